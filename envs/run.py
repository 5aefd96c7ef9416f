"""What happened when a suite ran (`SuiteRun`): observation only, no judgement."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .record import Record


class Status(StrEnum):
    """Status of one test id in one run. Only PASSED counts as passed."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"
    SKIPPED = "skipped"
    XFAIL = "xfail"
    XPASS = "xpass"
    MISSING = "missing"


@dataclass(frozen=True, kw_only=True)
class SuiteRun(Record):
    """One execution of a suite's command.

    statuses: executed id -> status, as the framework's structured report gave them.
    exit_code: of the command; None when it was killed.
    log: merged stdout and stderr, bounded; `log_truncated` says whether the middle was cut.
    timed_out, out_of_memory: the sandbox's own limits were hit.
    stopped: it was ended at the first failed test of those that end it (`Channel.stop`); later ones did not run.
    finished: the framework's report was complete (its closing record arrived).
    durations: executed id -> seconds. seconds: wall time of the command.
    beacons: executed id -> how often its tail was reached (empty when beacons are off).
    Equality leaves out the log and all times: two runs that say the same are equal.
    """

    statuses: Mapping[str, Status] = field(default_factory=dict)
    exit_code: int | None = 0
    log: str = field(default="", compare=False)
    log_truncated: bool = field(default=False, compare=False)
    timed_out: bool = False
    out_of_memory: bool = False
    stopped: bool = False
    finished: bool = True
    durations: Mapping[str, float] = field(default_factory=dict, compare=False)
    beacons: Mapping[str, int] = field(default_factory=dict)
    seconds: float = field(default=0.0, compare=False)
