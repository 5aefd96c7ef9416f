"""In the sandbox: the pytest plugin that reports over the channel. Loaded by `-p acid_pytest` in PYTEST_ADDOPTS.

One status an id from all its phases, the worst counts. Only the first session of the process reports: tests that
run pytest themselves stay apart. pytest 3.6 and later.
"""

import acid_channel
import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_send = acid_channel.send
_worse = acid_channel.worse
_reordered = acid_channel.reordered
_owner = []  # type: Any
_state = {}  # type: Any


def _status(report: "Any") -> str:
    xfail = hasattr(report, "wasxfail")
    if report.outcome == "skipped":
        return "xfail" if xfail else "skipped"
    if report.outcome == "passed":
        if report.when != "call":
            return "missing"
        return "xpass" if xfail else "passed"
    return "failed" if report.when == "call" else "error"


class Reporter:
    """Registered once, for the session that loaded the plugin."""

    count = 0

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self, nodeid: str, location: "Any") -> None:
        _state[nodeid] = ["missing", 0.0]
        _send("s", nodeid)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: "Any") -> None:
        entry = _state.setdefault(report.nodeid, ["missing", 0.0])
        entry[0] = _worse(entry[0], _status(report))
        entry[1] += getattr(report, "duration", 0.0)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logfinish(self, nodeid: str, location: "Any") -> None:
        status, seconds = _state.pop(nodeid, ["missing", 0.0])
        self.count += 1
        _send("e", nodeid, status, round(seconds, 6))

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, session: "Any", config: "Any", items: "Any") -> None:
        if acid_channel.SHUFFLE:
            items[:] = shuffled(items)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: "Any", exitstatus: "Any") -> None:
        _send("f", self.count)


def shuffled(items: "Any") -> "Any":
    """Files, then classes of a file, then functions of a class in another order (fixtures keep their scopes)."""
    groups = {}  # type: Any
    for item in items:
        parts = item.nodeid.split("::")
        groups.setdefault(parts[0], {}).setdefault("::".join(parts[1:-1]), []).append(item)
    out = []
    for name in _reordered(sorted(groups)):
        for part in _reordered(sorted(groups[name]), name):
            out += _reordered(groups[name][part], name + part)
    return out


def pytest_configure(config: "Any") -> None:
    if not _owner and acid_channel.connected():
        _owner.append(config)
        _send("n", "pytest", pytest.__version__)
        config.pluginmanager.register(Reporter(), "acid-reporter")
