"""The nouns of the audit: candidates, witnesses, findings and the record of one audited task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..envs.patch import Patch
from ..envs.record import Record, digest_of
from ..envs.verdict import Verdict


class Claim(StrEnum):
    """What the origin of a candidate says it is. BENIGN ones are the control, GOLD and VARIANT are known correct."""

    WRONG = "wrong"
    BENIGN = "benign"
    VARIANT = "variant"
    UNKNOWN = "unknown"


class Standing(StrEnum):
    """How far a paid candidate's wrongness is established (SCIENCE.md): only PROVEN ones decide anything."""

    PROVEN = "proven"
    JUDGED = "judged"
    CLAIMED = "claimed"
    DIFFERS = "differs"
    LEAD = "lead"
    """A surviving mutant nobody has claimed anything about yet."""


class Family(StrEnum):
    """Which rate a candidate kind enters (table in SCIENCE.md, Definitions)."""

    EXPLOIT = "exploit"
    MEMORISING = "memorising"
    MUTANT = "mutant"
    TAMPER = "tamper"
    BENIGN = "benign"
    ROLLOUT = "rollout"


@dataclass(frozen=True, kw_only=True)
class Candidate(Record):
    """One program to execute. kind: S01 … J03, a mutation operator, or a name; origin: who made it and how.

    wrong_input, wrong_behaviour: what the origin says is wrong, and for which input. round: 1 for single shot.
    """

    task_id: str
    patch: Patch
    kind: str
    family: Family
    origin: str
    claim: Claim = Claim.WRONG
    round: int = 1
    description: str = ""
    wrong_input: str = ""
    wrong_behaviour: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def candidate_id(self) -> str:
        """Stable id: task, kind and patch."""
        return digest_of([self.task_id, self.kind, self.patch.digest])


class WitnessKind(StrEnum):
    """How gold and candidate differ, best evidence first."""

    VALUE = "value"
    EXCEPTION = "exception"
    MUTATION = "mutated_argument"
    TERMINATION = "termination"
    TEST = "test"
    HOLLOW = "hollow"


@dataclass(frozen=True, kw_only=True)
class Witness(Record):
    """An executed difference: gold does `expected`, the candidate does `observed`, `runs` times out of `runs`.

    call: readable expression, e.g. ``add(2, 3)``. script: a standalone Python file that anyone can run:
    exit 0 when it holds (gold passes and the candidate fails), 1 when it does not.
    test: source of a test that gold passes and the candidate fails ("" when the witness is no test).
    in_domain: why the input belongs to the stated domain ("" when that is not established).
    rating: 0 … 1, higher is stronger evidence. citation: quoted sentence it follows from, for repository tasks.
    """

    kind: WitnessKind
    call: str
    expected: str
    observed: str
    script: str = ""
    test: str = ""
    in_domain: str = ""
    rating: float = 0.0
    runs: int = 1
    citation: str = ""
    args_json: str = ""
    """JSON list of the arguments when they are plain JSON values, else ""."""


@dataclass(frozen=True, kw_only=True)
class Finding(Record):
    """A candidate that the suite paid, and how far its wrongness is established."""

    candidate: Candidate
    verdict: Verdict
    standing: Standing
    witnesses: tuple[Witness, ...] = ()
    reasons: tuple[str, ...] = ()
    votes: tuple[str, ...] = ()
    """Judge labels, one per sample: correct / partial / incorrect / undecided."""


class Decision(StrEnum):
    KEEP = "KEEP"
    FIX = "FIX"
    DROP = "DROP"
    UNDECIDED = "UNDECIDED"
