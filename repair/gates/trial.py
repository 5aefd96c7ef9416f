"""What a gate looks at (`Trial`) and what it may run (`Bench`).

A gate is a function `Trial -> Check`. Whatever it executes goes through the bench, so that gates can be read, and
tested, without a sandbox.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from ...envs.patch import Patch
from ...envs.run import Status
from ...envs.task import AddedTests, Task
from ...envs.verdict import Outcome
from ...verifiers.records import Candidate
from ..records import Check, Proposal


@dataclass(frozen=True, kw_only=True)
class AddedRun:
    """One execution of the added tests alone, against one program.

    statuses: added id -> status. passed: every id executed and passed, under the defence that was asked for.
    durations: executed id -> seconds. seconds: the tests' own time as the runner reports it (the command's where it reports none); wall: the command's.
    """

    outcome: Outcome
    statuses: Mapping[str, Status] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    log: str = ""
    seconds: float = 0.0
    wall: float = 0.0
    timed_out: bool = False
    evidence: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        return self.outcome is Outcome.RESOLVED

    @property
    def failed_ids(self) -> tuple[str, ...]:
        return tuple(name for name, status in self.statuses.items() if status is not Status.PASSED)


@dataclass(frozen=True, kw_only=True)
class Observation:
    """What the added tests did to their surroundings while gold was in place (`observe.py`).

    writes: paths created, changed or removed outside temporary folders. network: addresses asked for.
    patched: attributes of the code under test that differed after the tests from before.
    complete: the observer reported to the end (False: the file does not parse, or the run was killed).
    """

    writes: tuple[str, ...] = ()
    network: tuple[str, ...] = ()
    patched: tuple[str, ...] = ()
    complete: bool = True


@dataclass(frozen=True, kw_only=True)
class Disturbance:
    """Original ids whose status under gold changed with the added tests in place: id -> "before -> after"."""

    changed: Mapping[str, str] = field(default_factory=dict)
    compared: int = 0
    runs: int = 0


class Bench(Protocol):
    """Runs one task's added tests. Infrastructure trouble raises; what the tests did is data.

    Every distinct (patch, tests, repeat) is executed once and remembered.
    """

    task: Task

    def run(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> AddedRun:
        """`repeat` i > 0 is another execution: hash seed i, order shuffled with seed i where the framework can."""
        ...

    def other_orders(self, patch: Patch, added: AddedTests) -> Iterator[tuple[str, AddedRun]]:
        """(label, run) with the added tests in other orders than that of the file."""
        ...

    def observe(self, added: AddedTests) -> Observation: ...

    def disturbance(self, added: AddedTests) -> Disturbance: ...

    def deaf(self, added: AddedTests) -> tuple[str, ...]:
        """Added ids that are not reported as failed when they are told to fail at their end, gold in place."""
        ...

    def existing_tests(self) -> str:
        """The text of the suite's own test files, joined."""
        ...

    def timed(self, added: AddedTests, suite_seconds: float) -> tuple[AddedRun, float]:
        """Gold under the added tests once more, now, and how much slower the machine is than it was: the original suite's
        command, executed right afterwards, against `suite_seconds` (1.0 where it is not slower, or nothing is known)."""
        ...


@dataclass(frozen=True, kw_only=True)
class GateLimits:
    """How hard the gates look. Times in wall seconds on this machine.

    gold_runs: n of "gold passes n of n". block_runs: executions of a target that must all fail.
    max_seconds: the added tests' own time under gold; a suite that is slow itself may grow by `max_share` of its time. The
    whole command (start-up, imports) may take three times that, and twice the original suite's command on top. Where
    the original suite's own command takes longer now than it did, both grow by that factor, at most `max_slowness`.
    """

    gold_runs: int = 3
    block_runs: int = 2
    max_seconds: float = 10.0
    max_share: float = 1.0
    max_slowness: float = 20.0
    allow_unspecified: bool = False


@dataclass(kw_only=True)
class Trial:
    """One proposal before the gates.

    targets: programs the tests ought to block. correct: name -> program they must let through.
    suite_seconds: the original suite's own time under gold. blocked: filled by the gates.
    """

    task: Task
    proposal: Proposal
    bench: Bench
    targets: tuple[Candidate, ...] = ()
    correct: Mapping[str, Patch] = field(default_factory=dict)
    limits: GateLimits = field(default_factory=GateLimits)
    suite_seconds: float = 0.0
    blocked: list[str] = field(default_factory=list)

    @property
    def added(self) -> AddedTests:
        return self.proposal.added

    @property
    def gold(self) -> Patch:
        return Patch(self.task.gold_patch)


def passed(name: str, evidence: str = "") -> Check:
    return Check(name=name, passed=True, evidence=evidence[:600])


def failed(name: str, evidence: str, defect: str = "") -> Check:
    return Check(name=name, passed=False, evidence=evidence[:2500], defect=defect)
