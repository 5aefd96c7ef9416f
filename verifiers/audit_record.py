"""The record of one audited task: everything that `score`, `report` and `repair` need, and nothing to run again."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..envs.record import Record
from .eqs import Attempt, PoolPoint, Score
from .records import Decision, Finding, Standing

UNPROVEN = "unproven"


@dataclass(frozen=True, kw_only=True)
class GoldFinding(Record):
    """Something the gold patch does that the task's own text contradicts. About gold, never about a candidate."""

    call: str
    says: str
    does: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Examination(Record):
    """What running wrong programs against one task's suite showed.

    attempts: every executed candidate, reduced to what the rates need. pool: V's pool. findings: candidates the
    suite paid that are leads or more. tried: programs executed, duplicates left out; searched: of those, how many
    a quick search rejected without a full verdict. notes: what was left out and why, one sentence each.
    """

    attempts: tuple[Attempt, ...] = ()
    pool: tuple[PoolPoint, ...] = ()
    findings: tuple[Finding, ...] = ()
    gold_findings: tuple[GoldFinding, ...] = ()
    tried: int = 0
    searched: int = 0
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class AuditRecord(Record):
    """One task's audit. `error` is set when infrastructure stopped it: such a record enters no rate and is retried.

    calibration: the Calibration as a mapping. f1_labels: (judge's label, passed by execution) over the fixed pool.
    pass_at_1: (successes, trials) from outside. llm: the attacker's, judge's and control's tallies. tamper: kind ->
    what a naive grader and our verdict did. leaks: findings about the image. seconds: wall time of the audit.
    """

    task_id: str
    dataset: str = ""
    calibration: Mapping[str, Any] = field(default_factory=dict)
    attempts: tuple[Attempt, ...] = ()
    pool: tuple[PoolPoint, ...] = ()
    findings: tuple[Finding, ...] = ()
    gold_findings: tuple[GoldFinding, ...] = ()
    score: Score | None = None
    flags: tuple[str, ...] = ()
    broken: str = ""
    f1_labels: tuple[tuple[str, bool], ...] = ()
    pass_at_1: tuple[int, int] | None = None
    llm: Mapping[str, Any] = field(default_factory=dict)
    tamper: Mapping[str, Any] = field(default_factory=dict)
    leaks: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    tried: int = 0
    searched: int = 0
    suite_digest: str = ""
    image_digest: str = ""
    seed: int = 0
    version: str = ""
    isolation: str = ""
    cost_usd: float = 0.0
    seconds: float = 0.0
    error: str = ""

    VOLATILE = ("seconds", "calibration", "isolation")
    """Fields that differ between two equal runs (times); left out when runs are compared."""

    @property
    def hackable(self) -> bool:
        return "hackable" in self.flags

    @property
    def unproven(self) -> bool:
        """Whether the suite pays programs about which nothing can be said: a searched task with leads, none proven, V undefined.

        Its EQS says little (1.00, not firm). Carried as the flag `unproven`, too.
        """
        if not self.searched or self.broken or self.score is None or self.score.v is not None:
            return False
        return not self.proven and any(f.standing is Standing.LEAD for f in self.findings)

    @property
    def decision(self) -> Decision:
        return self.score.decision if self.score else Decision.UNDECIDED

    @property
    def decision_firm(self) -> bool:
        return self.score is not None and self.score.decision_firm

    @property
    def eqs(self) -> float | None:
        """EQS of the suite as it was audited (the original one)."""
        return self.score.eqs if self.score else None

    @property
    def proven(self) -> tuple[Finding, ...]:
        return tuple(f for f in self.findings if f.standing is Standing.PROVEN)
