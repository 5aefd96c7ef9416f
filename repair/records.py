"""The nouns of repair: proposals, gate results, the hardened suite of one task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
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
