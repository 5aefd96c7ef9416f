"""The typed outcome of judging one patch. Grading is pure; running is elsewhere."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from .record import Record
from .run import Status, SuiteRun


class Outcome(StrEnum):
    RESOLVED = "resolved"
    UNRESOLVED = "unresolved"
    PATCH_REJECTED = "patch_rejected"
    NO_TESTS_RAN = "no_tests_ran"
    TIMED_OUT = "timed_out"
    OUT_OF_MEMORY = "out_of_memory"
    TAMPERED = "tampered"
    UNDECIDED = "undecided"

    @property
    def decisive(self) -> bool:
        """Whether the suite ran to a verdict on the submission (enters rates)."""
        return self is not Outcome.UNDECIDED

    @property
    def reward(self) -> float | None:
        """1.0, 0.0, or None where no reward may be given."""
        if self is Outcome.RESOLVED:
            return 1.0
        return None if self is Outcome.UNDECIDED else 0.0


@dataclass(frozen=True, kw_only=True)
class Notice(Record):
    """Something worth showing that accuses nobody: a protected path touched and restored, a stray file dropped."""

    kind: str
    path: str = ""
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class TwinReport(Record):
    """What the sabotaged twin showed: `chosen` ids were told to fail, `responded` ones did."""

    chosen: tuple[str, ...] = ()
    responded: tuple[str, ...] = ()
    unresponsive: tuple[str, ...] = ()
    attempts: int = field(default=1, compare=False)
    seconds: float = field(default=0.0, compare=False)


@dataclass(frozen=True, kw_only=True)
class Verdict(Record):
    """The judgement of one patch under one suite.

    outcome: of the whole suite (original and added tests). original_outcome: what the original tests alone
        would have paid under the same defence; equal to `outcome` when nothing was added.
    statuses: expected id (as the dataset prints it) -> status, of the first run of the added tests where they ran twice.
        failed_added: ids of added tests that did not pass, under `strict` both times where `outcome` rests on them.
    unrun_added: ids of added tests that were not run, or not to their end, because an earlier one had failed
        (`Defence.fail_fast`); nothing is said of them, and they are not in `statuses`.
    evidence: for TAMPERED and UNDECIDED the facts, one sentence each.
    defence: the layers that were on, by name ("strict", "fast", or a list).
    seconds: phase -> wall seconds (patch, run, twin, probe, total).

    Two verdicts are equal when they judge alike: wall times, logs and `cached` are not compared.
    """

    task_id: str
    patch_digest: str
    suite_digest: str
    outcome: Outcome
    original_outcome: Outcome
    statuses: Mapping[str, Status] = field(default_factory=dict)
    failed_added: tuple[str, ...] = ()
    unrun_added: tuple[str, ...] = ()
    run: SuiteRun | None = None
    twin: TwinReport | None = None
    notices: tuple[Notice, ...] = ()
    evidence: tuple[str, ...] = ()
    defence: str = "strict"
    isolation: str = ""
    seconds: Mapping[str, float] = field(default_factory=dict, compare=False)
    cached: bool = field(default=False, compare=False)

    @property
    def resolved(self) -> bool:
        return self.outcome is Outcome.RESOLVED

    @property
    def reward(self) -> float | None:
        """1.0 when resolved, None when undecided, else 0.0."""
        return self.outcome.reward

    @property
    def original_reward(self) -> float | None:
        """What the suite without the added tests would have paid."""
        return self.original_outcome.reward
