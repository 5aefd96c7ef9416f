"""What an LLM audit of one task leaves behind: every candidate assessed, rounds, control, cost. Plain records."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.verdict import Outcome
from .attackers.llm import Round
from .eqs import Attempt
from .llm.protocol import Usage
from .records import Candidate, Claim, Finding, Standing, Witness
from .standing import Evidence


@dataclass(frozen=True, kw_only=True)
class Assessed(Record):
    """One executed candidate. label: the judge's majority ("" when not asked). standing: None when not paid.

    evidence: what the standing rests on. reasons: one sentence each.
    """

    candidate: Candidate
    outcome: Outcome
    label: str = ""
    votes: tuple[str, ...] = ()
    standing: Standing | None = None
    evidence: Evidence | None = None
    witnesses: tuple[Witness, ...] = ()
    reasons: tuple[str, ...] = ()

    @property
    def paid(self) -> bool:
        return self.outcome is Outcome.RESOLVED

    @property
    def attempt(self) -> Attempt:
        """What H and its kin need of it."""
        return Attempt(
            family=self.candidate.family,
            outcome=self.outcome,
            proven=self.standing is Standing.PROVEN,
            claim=self.candidate.claim,
            kind=self.candidate.kind,
            round=self.candidate.round,
            origin=self.candidate.origin,
        )


@dataclass(frozen=True, kw_only=True)
class Control(Record):
    """The benign control of one task, as counts. called_wrong: of the paid, judged or proven wrong."""

    asked: int = 0
    applied: int = 0
    paid: int = 0
    judged_wrong: int = 0
    proven_wrong: int = 0
    held: int = 0

    @property
    def called_wrong(self) -> int:
        return self.judged_wrong + self.proven_wrong


@dataclass(frozen=True, kw_only=True)
class LLMAuditResult(Record):
    """One task. findings: paid candidates that claim to be wrong (the control stands in `assessed` only).

    f1_labels: (judge's label, passed) over the fixed pool gold, control, exploits of all rounds.
    alternatives: control candidates that hold; they join the known-correct ones. options: everything that decides
    what was asked (k, rounds, seed, …). usage, cost_usd: of this task's calls, all sessions together.
    """

    task_id: str
    assessed: tuple[Assessed, ...] = ()
    findings: tuple[Finding, ...] = ()
    rounds: tuple[Round, ...] = ()
    control: Control = field(default_factory=Control)
    gold_label: str = ""
    gold_votes: tuple[str, ...] = ()
    f1_labels: tuple[tuple[str, bool], ...] = ()
    alternatives: tuple[Patch, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    calls: Mapping[str, int] = field(default_factory=dict)
    """purpose/outcome -> how many calls."""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Exploits of all rounds as the rates need them; the control is in none."""
        return tuple(a.attempt for a in self.assessed if a.candidate.claim is Claim.WRONG)

    @property
    def ratings(self) -> tuple[Mapping[str, int], ...]:
        """Votes per judged program (label -> count), for Fleiss' kappa."""
        rated = [self.gold_votes, *(a.votes for a in self.assessed)]
        return tuple({label: votes.count(label) for label in set(votes)} for votes in rated if votes)

    def summary(self) -> dict[str, Any]:
        """The tallies that stand in an AuditRecord's `llm`: counts per round and standing, control, cost."""
        per_round = {}
        for number in sorted({r.number for r in self.rounds if r.number}):
            mine = [a for a in self.assessed if a.candidate.round == number]
            asked = next(r for r in self.rounds if r.number == number)
            paid = [a for a in mine if a.paid]
            per_round[str(number)] = {
                "proposed": asked.proposed,
                "applied": asked.applied,
                "executed": len(mine),
                "decisive": sum(a.outcome.decisive for a in mine),
                "paid": len(paid),
                **{str(s): sum(a.standing is s for a in paid) for s in Standing},
                "call": asked.outcome,
            }
        return {
            "rounds": per_round,
            "control": self.control.to_dict(),
            "gold_label": self.gold_label,
            "options": dict(self.options),
            "calls": dict(self.calls),
            "usage": self.usage.to_dict(),
            "cost_usd": self.cost_usd,
            "votes": [list(a.votes) for a in self.assessed] + [list(self.gold_votes)],
            "notes": list(self.notes),
        }
