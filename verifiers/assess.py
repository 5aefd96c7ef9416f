"""From paid candidates to standings: judge, witness, vote, alternatives, in as few waits as possible."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..envs.errors import AnswersPending
from ..envs.patch import Patch
from ..envs.task import Task
from ..envs.verdict import Verdict
from ..envs.verify import Verifier
from .attackers.llm import Tried
from .judge import Judgement, SemiFormalJudge
from .llm.protocol import LLM
from .llm_record import Assessed
from .records import Candidate, Finding, Standing, Witness, WitnessKind
from .source import Material, SourceTree
from .standing import Cited, Evidence, WitnessResult, standing_of
from .witness import Doubt, Executed, WitnessMaker, draft_of_test, witness_of

T = TypeVar("T")
Prover = Callable[[Task, Sequence[Candidate]], Mapping[str, tuple[Witness, ...]]]
"""Task and candidates -> candidate id -> in-domain witnesses (the oracle of function tasks)."""


class Waiting:
    """Collects the waits of several independent steps, so that all their questions are out before any is waited for."""

    def __init__(self) -> None:
        self._first: AnswersPending | None = None

    def get(self, step: Callable[[], T]) -> T | None:
        """The step's result, or None when its answers are not there yet."""
        try:
            return step()
        except AnswersPending as error:
            self._first = self._first or error
            return None

    def settle(self) -> None:
        """Raise AnswersPending when any step waits."""
        if self._first is not None:
            raise self._first


@dataclass(frozen=True, kw_only=True)
class Proof:
    """What was found about one paid candidate beside the judge's label."""

    evidence: Evidence = field(default_factory=Evidence)
    witnesses: tuple[Witness, ...] = ()
    reasons: tuple[str, ...] = ()


class Assessor:
    """One task's judge and witness maker. prover: finds in-domain witnesses of function tasks, None for none."""

    def __init__(
        self,
        task: Task,
        tree: SourceTree,
        llm: LLM,
        verifier: Verifier,
        *,
        samples: int = 3,
        prover: Prover | None = None,
        material: Material | None = None,
    ) -> None:
        self.task = task
        material = material or Material.of(tree, "nothing")
        self.judge = SemiFormalJudge(task, tree, llm, material=material, samples=samples)
        self.maker = WitnessMaker(task, tree, llm, verifier, material=material, samples=samples)
        self.prover = prover

    def assess(self, tried: Sequence[Tried], alternatives: Sequence[Patch] = ()) -> list[Assessed]:
        """Label every candidate and give the paid ones a standing. Raises AnswersPending after asking all it can."""
        waiting = Waiting()
        labels = waiting.get(lambda: self.judge.judge_many([entry.candidate.patch for entry in tried]))
        paid = [entry.candidate for entry in tried if entry.verdict.resolved]
        proofs = waiting.get(lambda: self.prove(paid, alternatives))
        waiting.settle()
        assert labels is not None
        assert proofs is not None
        return [
            assessed_of(entry.candidate, entry.verdict, label, proofs.get(entry.candidate.candidate_id))
            for entry, label in zip(tried, labels, strict=True)
        ]

    def prove(self, paid: Sequence[Candidate], alternatives: Sequence[Patch] = ()) -> dict[str, Proof]:
        """Candidate id -> what execution and votes say. In-domain witnesses first; a written one where there is none."""
        found: dict[str, Proof] = {}
        in_domain = self.prover(self.task, paid) if self.prover is not None and paid else {}
        for candidate in paid:
            proof = self._from_domain(candidate, in_domain.get(candidate.candidate_id, ()), alternatives)
            if proof is not None:
                found[candidate.candidate_id] = proof
        rest = [candidate for candidate in paid if candidate.candidate_id not in found]
        found.update(self._written(rest, alternatives))
        return found

    def _from_domain(
        self, candidate: Candidate, witnesses: Sequence[Witness], alternatives: Sequence[Patch]
    ) -> Proof | None:
        """The first in-domain witness that holds in sandboxes and that no alternative fails; None when none does."""
        others = [patch for patch in alternatives if patch.digest != candidate.patch.digest]
        for witness in witnesses:
            if witness.kind is WitnessKind.HOLLOW:
                return Proof(evidence=Evidence(claim=candidate.claim, hollow=True), witnesses=(witness,))
            if not witness.test:
                continue
            executed = self.maker.execute(draft_of_test(witness.test), candidate.patch, others)
            evidence = Evidence(
                claim=candidate.claim, witness=executed.result, cited=Cited.IN_DOMAIN, others=executed.others
            )
            if standing_of(evidence)[0] is Standing.PROVEN:
                return Proof(evidence=evidence, witnesses=(replace(witness, runs=executed.runs),))
        return None

    def _written(self, candidates: Sequence[Candidate], alternatives: Sequence[Patch]) -> dict[str, Proof]:
        """Each candidate as far as its answers go; drafts of all are asked at once, then found in the store."""
        waiting = Waiting()
        waiting.get(lambda: self.maker.draft_many([_doubt(candidate) for candidate in candidates]))
        found: dict[str, Proof] = {}
        for candidate in candidates:
            proof = waiting.get(lambda: self._by_test(candidate, alternatives))  # noqa: B023
            if proof is not None:
                found[candidate.candidate_id] = proof
        waiting.settle()
        return found

    def _by_test(self, candidate: Candidate, alternatives: Sequence[Patch]) -> Proof:
        """A written test, executed; when it holds, the vote on what it asserts."""
        others = [patch for patch in alternatives if patch.digest != candidate.patch.digest]
        (draft,) = self.maker.draft_many([_doubt(candidate)])
        executed = Executed(result=WitnessResult.NONE, detail=draft.problem)
        if not draft.problem:
            executed = self.maker.execute(draft, candidate.patch, others)
        base = Evidence(claim=candidate.claim, witness=executed.result, others=executed.others)
        if executed.result is not WitnessResult.HOLDS:
            return Proof(evidence=base, reasons=(f"witness: {executed.result} {executed.detail}".strip(),))
        (vote,) = self.maker.vote_many([draft])
        return Proof(
            evidence=replace(base, cited=vote.cited),
            witnesses=(witness_of(draft, executed, vote),),
            reasons=(f"specified: {', '.join(vote.votes)}", f"alternatives: {executed.others}"),
        )


def _doubt(candidate: Candidate) -> Doubt:
    return Doubt(
        patch=candidate.patch,
        behaviour=candidate.wrong_behaviour or candidate.description,
        input=candidate.wrong_input,
    )


def assessed_of(candidate: Candidate, verdict: Verdict, label: Judgement, proof: Proof | None) -> Assessed:
    """Put one candidate's findings together. Pure."""
    if not verdict.resolved:
        return Assessed(candidate=candidate, outcome=verdict.outcome, label=label.label, votes=label.votes,
                        reasons=label.reasons)  # fmt: skip
    found = proof or Proof(evidence=Evidence(claim=candidate.claim))
    evidence = replace(found.evidence, claim=candidate.claim, judge=label.label)
    standing, why = standing_of(evidence)
    example = (f"judge: {label.counterexample}",) if label.counterexample else ()
    return Assessed(
        candidate=candidate,
        outcome=verdict.outcome,
        label=label.label,
        votes=label.votes,
        standing=standing,
        evidence=evidence,
        witnesses=found.witnesses,
        reasons=(why, *found.reasons, *label.reasons, *example),
    )


def finding_of(assessed: Assessed, verdict: Verdict) -> Finding:
    """The finding of a paid candidate."""
    assert assessed.standing is not None
    return Finding(
        candidate=assessed.candidate,
        verdict=verdict,
        standing=assessed.standing,
        witnesses=assessed.witnesses,
        reasons=assessed.reasons,
        votes=assessed.votes,
    )
