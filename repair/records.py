"""The nouns of repair: proposals, gate results, the hardened suite and the repair record of one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from ..envs.record import Record
from ..envs.task import AddedTests, Suite


@dataclass(frozen=True, kw_only=True)
class Proposal(Record):
    """Tests somebody proposes to add to one task's suite.

    added: the tests. targets: candidate ids they are meant to block. citations: quoted sentences of the task
    the assertions follow from. origin: augmenter and version.
    """

    task_id: str
    added: AddedTests
    targets: tuple[str, ...] = ()
    rationale: str = ""
    citations: tuple[str, ...] = ()
    origin: str = ""
    iteration: int = 1
    metadata: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Check(Record):
    """One named gate: passed or not, and the evidence (bounded)."""

    name: str
    passed: bool
    evidence: str = ""
    defect: str = ""
    """Class of the defect when it failed, e.g. "inverted assertion"."""


@dataclass(frozen=True, kw_only=True)
class GateResult(Record):
    """All checks of one proposal, in the order they ran; the first failed one stops it."""

    task_id: str
    proposal_digest: str
    checks: tuple[Check, ...] = ()
    blocked: tuple[str, ...] = ()
    """Candidate ids that were executed against the tests and failed, while gold passed."""

    @property
    def passed(self) -> bool:
        return bool(self.checks) and all(check.passed for check in self.checks)

    @property
    def failed_check(self) -> Check | None:
        return next((check for check in self.checks if not check.passed), None)


@dataclass(frozen=True, kw_only=True)
class HardenedSuite(Record):
    """One entry of `suites.lock.json`: which suite was hardened, with what, and the proof."""

    task_id: str
    original_digest: str
    hardened_digest: str
    image_digest: str
    suite: Suite
    files: Mapping[str, str] = field(default_factory=dict)
    """Readable test file under suites/<task>/ -> SHA-256 of its text."""
    gates: tuple[GateResult, ...] = ()
    votes: Mapping[str, Any] = field(default_factory=dict)
    proof: Mapping[str, Any] = field(default_factory=dict)
    cost_usd: float = 0.0
    version: str = ""
    task_digest: str = ""
    """Digest of tree, gold and original suite (`lock.task_digest`)."""


@dataclass(frozen=True, kw_only=True)
class Try(Record):
    """One proposal before the gates, and what became of it.

    votes: labels of the judge, one per sample (blocks / does not / undecided). recomputed: assertion -> the value gold
    gave in place of the proposed one. usd: what the proposal cost.
    """

    proposal: Proposal
    result: GateResult
    votes: tuple[str, ...] = ()
    recomputed: Mapping[str, str] = field(default_factory=dict)
    usd: float = 0.0


class RepairStatus(StrEnum):
    REPAIRED = "repaired"
    """Every target was executed against the hardened suite, repeatedly, and refused."""
    PARTLY = "partly"
    NOT_REPAIRED = "not repaired"
    SKIPPED = "skipped"


@dataclass(frozen=True, kw_only=True)
class RepairRecord(Record):
    """What repair did to one task: one line of `repairs.jsonl`.

    targets: candidate ids of the proven findings. blocked: those the hardened suite refuses. tries: in order.
    held_out: name -> (rejected, of) on programs that no proposal was made from. before, after: EQS, decision and
    flags of the original and of the hardened suite. seconds: wall time. executions: verdicts asked for by gates and proof.
    budget_spent: the model's ceiling ended it. options_digest, suite_digest: what it was done with.
    """

    task_id: str
    status: RepairStatus
    targets: tuple[str, ...] = ()
    blocked: tuple[str, ...] = ()
    tries: tuple[Try, ...] = ()
    hardened: HardenedSuite | None = None
    held_out: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    before: Mapping[str, Any] = field(default_factory=dict)
    after: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    cost_usd: float = 0.0
    seconds: float = 0.0
    executions: int = 0
    seed: int = 0
    budget_spent: bool = False
    options_digest: str = ""
    suite_digest: str = ""

    @property
    def open_targets(self) -> tuple[str, ...]:
        done = set(self.blocked)
        return tuple(target for target in self.targets if target not in done)
