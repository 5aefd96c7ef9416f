"""In the sandbox: reports every unittest run (Django's runner included) over the channel.

Hooks unittest.TestResult, which every result class calls. The id is `method (module.Class)`. Runs that a test starts
itself (another result while a test is on) stay apart. Python 3.6 and later.
"""

import time

import acid_channel
import acid_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_send = acid_channel.send
_worse = acid_channel.worse
_clock = time.perf_counter
_now = {}  # type: Any
_count = [0]


def ident_of(test: "Any") -> str:
    name = getattr(test, "_testMethodName", "")
    if not name:
        return str(test.id())
    cls = test.__class__
    return "%s (%s.%s)" % (name, cls.__module__, cls.__qualname__)  # noqa: UP031


def _started(result: "Any", test: "Any") -> None:
    if _now:
        return
    ident = ident_of(test)
    _now.update(result=result, id=ident, status="missing", start=_clock())
    try:
        description = test.shortDescription()
    except Exception:
        description = None
    if description:
        _send("a", description, ident)
    _send("s", ident)


def _status(result: "Any", status: str) -> None:
    if _now and _now["result"] is result:
        _now["status"] = _worse(_now["status"], status)


def _stopped(result: "Any", test: "Any") -> None:
    if _now and _now["result"] is result:
        _send("e", _now["id"], _now["status"], round(_clock() - _now["start"], 6))
        _now.clear()
        _count[0] += 1


def _subtest(result: "Any", test: "Any", subtest: "Any", error: "Any") -> None:
    if error is not None:
        failed = issubclass(error[0], getattr(test, "failureException", AssertionError))
        _status(result, "failed" if failed else "error")


def _finished(result: "Any") -> None:
    if not _now:
        _send("f", _count[0])


def _before(cls: "Any", name: str, action: "Any") -> None:
    real = getattr(cls, name)

    def method(self: "Any", *args: "Any") -> "Any":
        action(self, *args)
        return real(self, *args)

    method.__name__ = name
    method.__doc__ = real.__doc__
    for mark in ("_moduleSetUpFailed",):
        if hasattr(real, mark):
            setattr(method, mark, getattr(real, mark))
    setattr(cls, name, method)


def hook_results(module: "Any") -> None:
    cls = module.TestResult
    _before(cls, "startTest", _started)
    for name, status in (
        ("addSuccess", "passed"),
        ("addFailure", "failed"),
        ("addError", "error"),
        ("addSkip", "skipped"),
        ("addExpectedFailure", "xfail"),
        ("addUnexpectedSuccess", "xpass"),
    ):
        _before(cls, name, lambda result, *rest, status=status: _status(result, status))
    _before(cls, "addSubTest", _subtest)
    _before(cls, "stopTest", _stopped)
    _before(cls, "stopTestRun", _finished)
    _send("n", "unittest", "1")


def shuffle_methods(module: "Any") -> None:
    cls = module.TestLoader
    real = cls.getTestCaseNames

    def names(self: "Any", case: "Any") -> "Any":
        return acid_channel.reordered(real(self, case), case.__name__)

    cls.getTestCaseNames = names


def attach() -> None:
    acid_import.when_imported("unittest.result", hook_results)
    if acid_channel.SHUFFLE:
        acid_import.when_imported("unittest.loader", shuffle_methods)
