"""In the sandbox: reports sympy's own test runner over the channel. The id is `path/from/root.py:function`.

Hooks the runner's reporter, sympy.testing.runtests (1.6 and later) or sympy.utilities.runtests (before).
"""

import os
import time

import acid_channel
import acid_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_send = acid_channel.send
_clock = time.perf_counter
_now = {}  # type: Any
_where = [""]
_count = [0]


def _file(reporter: "Any", filename: str, *rest: "Any") -> None:
    root = str(getattr(reporter, "root_dir", "") or os.getcwd())
    _where[0] = os.path.relpath(os.path.abspath(str(filename)), root)


def _entering(reporter: "Any", function: "Any") -> None:
    ident = _where[0] + ":" + getattr(function, "__name__", str(function))
    _now.update(id=ident, start=_clock())
    _send("s", ident)


def _ended(status: str) -> "Any":
    def report(reporter: "Any", *rest: "Any") -> None:
        if _now:
            _send("e", _now["id"], status, round(_clock() - _now["start"], 6))
            _now.clear()
            _count[0] += 1

    return report


def _finish(reporter: "Any", *rest: "Any") -> None:
    _send("f", _count[0])


def _before(cls: "Any", name: str, action: "Any") -> None:
    real = getattr(cls, name)

    def method(self: "Any", *args: "Any", **named: "Any") -> "Any":
        action(self, *args)
        return real(self, *args, **named)

    method.__name__ = name
    setattr(cls, name, method)


def hook(module: "Any") -> None:
    cls = module.PyTestReporter
    _before(cls, "entering_filename", _file)
    _before(cls, "entering_test", _entering)
    for name, status in (
        ("test_pass", "passed"),
        ("test_fail", "failed"),
        ("test_exception", "error"),
        ("test_skip", "skipped"),
        ("test_xfail", "xfail"),
        ("test_xpass", "xpass"),
    ):
        _before(cls, name, _ended(status))
    _before(cls, "finish", _finish)
    _send("n", "sympy", "1")


def attach() -> None:
    acid_import.when_imported("sympy.testing.runtests", hook)
    acid_import.when_imported("sympy.utilities.runtests", hook)
