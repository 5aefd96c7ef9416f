"""The repair of one task: propose, gate, judge, until every target is blocked or the budget is spent; then prove.

A rejected proposal goes back to the augmenters with what failed and its class. Where only an expected value is wrong
it is recomputed from gold and gated again. The judge votes as in the paper and its votes are recorded; whether a
program is blocked is decided by execution alone.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

from ..envs.errors import BudgetExceeded, ConfigError
from ..envs.patch import Patch
from ..envs.task import AddedTests, Task
from ..verifiers.records import Finding, Standing
from .bench import IN_ORDER_OF_FILE, VerifierBench
from .defects import Defect
from .gates import run_gates
from .gates.trial import GateLimits, Trial
from .merge import merge
from .order import in_order, kills_of
from .prove import Proof, prove
from .recompute import recompute
from .records import Proposal, RepairRecord, RepairStatus, Try

RECOMPUTABLE = frozenset({Defect.WRONG_EXPECTED, Defect.INVERTED, Defect.ASSERTION})
Vote = Callable[[Task, Proposal, Sequence[Finding]], tuple[str, ...]]


class Augmenter(Protocol):
    """`propose` of a file in `repair/augmenters`."""

    def __call__(
        self, task: Task, findings: Sequence[Finding], rejected: Sequence[Try], **options: Any
    ) -> Iterable[Proposal]: ...


@dataclass(kw_only=True)
class Job:
    """Everything the loop needs for one task.

    findings: all of the audit's findings of this task; the proven ones are the targets. correct: programs that must
    pass. options: handed to the augmenters (llm, seed, tree …). vote: the judge, None for none.
    """

    task: Task
    findings: Sequence[Finding]
    bench: VerifierBench
    augmenters: Mapping[str, Augmenter]
    correct: Mapping[str, Patch] = field(default_factory=dict)
    iterations: int = 5
    limits: GateLimits = field(default_factory=GateLimits)
    suite_seconds: float = 0.0
    options: Mapping[str, Any] = field(default_factory=dict)
    vote: Vote | None = None
    seed: int = 0


def targets_of(findings: Iterable[Finding]) -> list[Finding]:
    """The proven findings, one per program, hackable families before memorising ones."""
    proven = {f.candidate.candidate_id: f for f in findings if f.standing is Standing.PROVEN}
    return sorted(proven.values(), key=lambda f: f.candidate.family == "memorising")


def repair_task(job: Job) -> tuple[RepairRecord, AddedTests | None, Proof | None]:
    """Run the loop. The record has no `hardened` yet: locking is the caller's, who knows the image."""
    started = time.monotonic()
    targets = targets_of(job.findings)
    state = _State(open_targets=list(targets))
    reason = "" if targets else "no proven finding"
    spent = False
    for iteration in range(1, job.iterations + 1):
        if not state.open_targets or reason:
            break
        try:
            moved = _iterate(job, state, iteration)
        except BudgetExceeded as error:
            reason, spent = str(error), True
            break
        if not moved:
            reason = "the augmenters have nothing more to propose"
    proof = None
    if state.added is not None:
        state.added, proof = _proven(job, state, targets)
        if not proof.holds:
            reason = f"the proof of the whole suite does not hold: {_why(proof)}"
            state.added = None
    blocked = tuple(proof.blocked) if proof is not None and state.added is not None else ()
    record = RepairRecord(
        task_id=job.task.task_id,
        status=_status(len(targets), len(blocked)),
        targets=tuple(f.candidate.candidate_id for f in targets),
        blocked=blocked,
        tries=tuple(state.tries),
        reason=reason if len(blocked) < len(targets) or not targets else "",
        cost_usd=sum(one.usd for one in state.tries),
        seconds=time.monotonic() - started,
        executions=job.bench.executions,
        seed=job.seed,
        budget_spent=spent,
    )
    return record, state.added, proof


def _proven(job: Job, state: _State, targets: Sequence[Finding]) -> tuple[AddedTests, Proof]:
    """The added tests with the best first, and the proof of exactly those; in the order they were found in where that
    refuses more (a program that keeps state between calls may pass in one order and fail in another)."""
    assert state.added is not None
    programs = [finding.candidate for finding in targets]
    kills = kills_of(job.bench, state.added, programs)

    def proof_of(tests: AddedTests) -> Proof:
        proof = prove(job.bench, tests, programs, job.correct, runs=job.limits.block_runs)
        return replace(proof, kill_rates=kills.rates)

    ordered = in_order(state.added, kills)
    proof = proof_of(ordered)
    gated = {name for one in state.tries if one.result.passed for name in one.result.blocked}
    if ordered == state.added or (proof.holds and gated <= set(proof.blocked)):
        return ordered, proof
    other = proof_of(state.added)
    better = other.holds and (not proof.holds or len(other.blocked) > len(proof.blocked))
    return (state.added, other) if better else (ordered, proof)


@dataclass
class _State:
    open_targets: list[Finding]
    tries: list[Try] = field(default_factory=list)
    added: AddedTests | None = None

    @property
    def rejected(self) -> list[Try]:
        return [one for one in self.tries if not one.result.passed]


def _iterate(job: Job, state: _State, iteration: int) -> bool:
    """One round over all augmenters; whether anything was proposed."""
    moved = False
    for name, propose in job.augmenters.items():
        if not state.open_targets:
            break
        options = {**job.options, "all_findings": targets_of(job.findings)}
        for proposal in propose(job.task, tuple(state.open_targets), tuple(state.rejected), **options):
            moved = True
            one = gate(
                job,
                replace(proposal, iteration=iteration, origin=proposal.origin or name),
                state.open_targets,
            )
            state.tries.append(one)
            if one.result.passed and _accept(state, one):
                blocked = set(one.result.blocked)
                state.open_targets = [
                    f for f in state.open_targets if f.candidate.candidate_id not in blocked
                ]
            if not state.open_targets:
                break
    return moved


def gate(job: Job, proposal: Proposal, findings: Sequence[Finding], *, mend: bool = True) -> Try:
    """One proposal through the gates; with `mend` its expectation is recomputed once where only that is wrong."""
    usd = float(proposal.metadata.get("usd", 0.0))
    if proposal.added.framework not in IN_ORDER_OF_FILE:
        proposal = replace(proposal, added=job.bench.with_executed_ids(proposal.added))
    votes = job.vote(job.task, proposal, findings) if job.vote else ()
    result = run_gates(_trial(job, proposal, findings))
    failed = result.failed_check
    if mend and failed is not None and failed.name == "gold passes" and failed.defect in RECOMPUTABLE:
        added, changes = recompute(job.bench, proposal.added)
        if changes:
            mended = replace(proposal, added=added, metadata={**proposal.metadata, "recomputed": changes})
            return Try(
                proposal=mended,
                result=run_gates(_trial(job, mended, findings)),
                votes=votes,
                recomputed=changes,
                usd=usd,
            )
    return Try(proposal=proposal, result=result, votes=votes, usd=usd)


def _trial(job: Job, proposal: Proposal, findings: Sequence[Finding]) -> Trial:
    return Trial(
        task=job.task,
        proposal=proposal,
        bench=job.bench,
        targets=tuple(f.candidate for f in findings),
        correct=job.correct,
        limits=job.limits,
        suite_seconds=job.suite_seconds,
    )


def _accept(state: _State, one: Try) -> bool:
    if state.added is None:
        state.added = one.proposal.added
        return True
    try:
        state.added = merge(state.added, one.proposal.added)
    except ConfigError:
        return False
    return True


def _status(targets: int, blocked: int) -> RepairStatus:
    if not targets:
        return RepairStatus.SKIPPED
    if not blocked:
        return RepairStatus.NOT_REPAIRED
    return RepairStatus.REPAIRED if blocked == targets else RepairStatus.PARTLY


def _why(proof: Proof) -> str:
    if proof.gold < proof.runs:
        return f"gold resolved {proof.gold} of {proof.runs} times"
    if proof.refused:
        return f"correct programs refused: {', '.join(proof.refused[:5])}"
    return "no target is refused every time"
