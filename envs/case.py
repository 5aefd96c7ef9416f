"""What one judgement works on: the submission with all it is judged by (`Case`), what was seen, what was examined."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .defence import Defence
from .diff_policy import Plan
from .patch import Patch
from .prepared import Prepared
from .reference import Reference
from .run import Status
from .run_suite import Observation
from .task import Suite, Task
from .verdict import Notice, Outcome, TwinReport

Keys = Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, kw_only=True)
class Case:
    """One submission with all that it is judged by. reference: None for a task without gold patch."""

    task: Task
    patch: Patch
    suite: Suite
    defence: Defence
    prepared: Prepared
    reference: Reference | None
    planned: Plan
    seed: int = 0
    gold_alarms: Callable[[], frozenset[str]] | None = None


@dataclass(frozen=True, kw_only=True)
class Ran:
    """The real run: what was seen, what it claims, and the same of the added part where that ran.

    failed_added: added ids that did not pass, both times where they were asked twice. unrun_added: see `Verdict`.
    """

    original: Observation
    wanted: Keys = field(default_factory=dict)
    claim: Outcome = Outcome.UNRESOLVED
    statuses: Mapping[str, Status] = field(default_factory=dict)
    added: Observation | None = None
    added_claim: Outcome = Outcome.UNRESOLVED
    added_statuses: Mapping[str, Status] = field(default_factory=dict)
    failed_added: tuple[str, ...] = ()
    unrun_added: tuple[str, ...] = ()
    isolation: str = ""
    seconds: float = 0.0


@dataclass(frozen=True, kw_only=True)
class Examined:
    """What beacons, twin and probe say of a claimed pass."""

    outcome: Outcome
    evidence: tuple[str, ...] = ()
    twin: TwinReport | None = None
    notices: tuple[Notice, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
