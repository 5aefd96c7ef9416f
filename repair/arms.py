"""Four ways to decide on the very same proposals, and what each one's "repaired" is worth when it is executed.

- judge only: the first proposal, taken when the judge's majority says it blocks the program
- gate without retry: the first proposal, taken when gold passes it and the judge says so
- gate with retry: the first of all proposals that gold passes and the judge approves
- gate with retry and execution: all gates, proposals until every target was executed and refused

The first three are the paper's (10, 3 and 9 of its 11 tasks). "Really blocks" is executed for all four alike: gold
passes the taken tests, and every target is refused, repeatedly. Gates run once per proposal, whatever the arm, and no
expected value is mended: what is judged, gated and taken is the proposal as it was made.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import AddedTests, Task
from ..envs.verify import Verifier
from ..verifiers.judge import agreed
from ..verifiers.records import Candidate, Finding, Standing
from ..verifiers.stats import wilson
from .bench import VerifierBench
from .correct import correct_programs
from .gates.behaviour import gold_passes, is_block
from .gates.trial import Trial
from .loop import Job, gate, targets_of
from .merge import merge
from .proposals import ProposalLine
from .records import GateResult, Proposal, Try
from .vote import BLOCKS

ARMS = ("judge only", "gate without retry", "gate with retry", "gate with retry and execution")


@dataclass(frozen=True, kw_only=True)
class Given:
    """The proposals of one task in the order they were made, already gated; targets and correct programs."""

    task: Task
    bench: VerifierBench
    tries: Sequence[Try]
    targets: Sequence[Candidate]
    correct: Mapping[str, Patch] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class ArmRow(Record):
    """One arm over all tasks. claimed: tasks it calls repaired. blocks: of those, really (executed).

    gold_fails: of those, the taken tests refuse gold. too_strict: of those, they refuse a correct program.
    """

    arm: str
    tasks: int
    claimed: int = 0
    blocks: int = 0
    gold_fails: int = 0
    too_strict: int = 0

    @property
    def line(self) -> str:
        return (
            f"{self.arm}: calls {self.claimed} of {self.tasks} tasks repaired; {self.blocks} of these {self.claimed}"
            f" really block every target; gold fails {self.gold_fails}, a correct program {self.too_strict}"
            f" (Wilson 95 %: called {_span(self.claimed, self.tasks)}, of those real {_span(self.blocks, self.claimed)})"
        )


def _span(part: int, whole: int) -> str:
    interval = wilson(part, whole)
    return "nothing to count" if interval is None else f"{interval[0]:.0%} to {interval[1]:.0%}"


def arms(given: Iterable[Given]) -> list[ArmRow]:
    """Execute and count. Raises SandboxError."""
    held = list(given)
    return [_row(arm, held) for arm in ARMS]


def _row(arm: str, given: Sequence[Given]) -> ArmRow:
    claimed = blocks = fails = strict = 0
    for one in given:
        taken = taken_by(arm, one)
        if taken is None:
            continue
        claimed += 1
        gold = _gold_passes(one, taken)
        fails += not gold
        blocks += gold and all(_refuses(one, taken, target.patch) for target in one.targets)
        strict += gold and any(_refuses(one, taken, patch) for patch in one.correct.values())
    return ArmRow(
        arm=arm, tasks=len(given), claimed=claimed, blocks=blocks, gold_fails=fails, too_strict=strict
    )


def taken_by(arm: str, given: Given) -> AddedTests | None:
    """The tests that an arm would put into the suite; None when it gives up."""
    tries = list(given.tries)
    if arm == ARMS[0]:
        return next((one.proposal.added for one in tries[:1] if _approved(one)), None)
    if arm in ARMS[1:3]:
        chosen = tries[:1] if arm == ARMS[1] else tries
        good = (one for one in chosen if _approved(one) and _gold_passes(given, one.proposal.added))
        return next((one.proposal.added for one in good), None)
    return _executed(given, tries)


def _executed(given: Given, tries: Sequence[Try]) -> AddedTests | None:
    taken: AddedTests | None = None
    left = {target.candidate_id for target in given.targets}
    for one in tries:
        if left and one.result.passed and left & set(one.result.blocked):
            taken = one.proposal.added if taken is None else merge(taken, one.proposal.added)
            left -= set(one.result.blocked)
    return taken if not left else None


def _approved(one: Try) -> bool:
    return agreed(one.votes) == BLOCKS


def _gold_passes(given: Given, added: AddedTests) -> bool:
    return gold_passes(_trial(given, added)).passed


def _refuses(given: Given, added: AddedTests, patch: Patch, *, runs: int = 2) -> bool:
    trial = _trial(given, added)
    return all(is_block(trial, given.bench.run(patch, added, repeat=i)) for i in range(runs))


def _trial(given: Given, added: AddedTests) -> Trial:
    return Trial(
        task=given.task,
        proposal=Proposal(task_id=given.task.task_id, added=added),
        bench=given.bench,
        targets=tuple(given.targets),
        correct=given.correct,
    )


def given_of(
    task: Task,
    verifier: Verifier,
    tries: Sequence[Try],
    *,
    findings: Sequence[Finding] = (),
    wrong: Sequence[Candidate] = (),
    alternatives: Sequence[Patch] = (),
) -> Given:
    """One task's proposals through the gates of this version, votes kept. wrong: further programs to block; those that
    the original suite does not pay are no targets and are left out."""
    original = task.with_suite(task.suite.original)
    held = targets_of(findings)
    for candidate in wrong:
        verdict = verifier.verify(original, candidate.patch)
        if verdict.resolved:
            held.append(Finding(candidate=candidate, verdict=verdict, standing=Standing.PROVEN))
    bench = VerifierBench(original, verifier)
    correct = correct_programs(original, verifier, alternatives=alternatives).patches
    job = Job(task=original, findings=held, bench=bench, augmenters={}, correct=correct)
    fresh = [replace(gate(job, one.proposal, held, mend=False), votes=one.votes) for one in tries]
    targets = [finding.candidate for finding in held]
    return Given(task=original, bench=bench, tries=fresh, targets=targets, correct=correct)


def line_tries(lines: Iterable[ProposalLine], task: Task) -> list[Try]:
    """The lines of one task as tries that nobody has gated yet, in order of their iteration."""
    empty = GateResult(task_id=task.task_id, proposal_digest="")
    ordered = sorted(lines, key=lambda line: line.iteration)
    return [Try(proposal=line.proposal(task), result=empty, votes=line.votes) for line in ordered]
