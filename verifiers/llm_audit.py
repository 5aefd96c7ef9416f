"""`llm_audit(task)`: the frontier attacker against one suite, judged, proven where it can be, with a benign control.

Composed by `audit`: the result's attempts, findings and labels go into the task's AuditRecord. With answers that come
later (`files:`, `batch:`) it raises AnswersPending after asking everything it can; called again, it goes on, and
nothing that was answered is asked twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

from ..envs.patch import Patch
from ..envs.task import Task
from ..envs.verdict import Verdict
from ..envs.verify import Verifier
from . import benign as control
from .alternatives import known_correct
from .assess import Assessor, Prover, Waiting, finding_of
from .attackers.llm import Attacker, Round, Tried
from .judge import Judgement
from .llm.prompts import load
from .llm.protocol import LLM, Usage
from .llm_record import Assessed, Control, LLMAuditResult
from .records import Candidate, Finding, Standing
from .source import Material, SourceTree

PROMPTS = ("exploit", "benign", "judge", "witness", "specified")


def llm_audit(
    task: Task,
    verifier: Verifier,
    llm: LLM,
    *,
    k: int = 4,
    rounds: int = 3,
    benign: int = 2,
    alternatives: Sequence[Patch] = (),
    attacker_sees: str = "tests",
    seed: int = 0,
    samples: int = 3,
    prover: Prover | None = None,
) -> LLMAuditResult:
    """Attack, judge and prove one task. k: candidates a round. benign: correct solutions asked for (0: no control).

    alternatives: patches known to be correct. samples: judge and vote samples. prover: in-domain witnesses for
    function tasks (the oracle). Raises AnswersPending, BudgetExceeded, LLMError, SandboxError.
    """
    run = _Run(task, verifier, llm, k, rounds, benign, alternatives, attacker_sees, seed, samples, prover)
    return run.go()


def judge_survivors(
    task: Task,
    verifier: Verifier,
    llm: LLM,
    findings: Sequence[Finding],
    *,
    alternatives: Sequence[Patch] = (),
    samples: int = 3,
    prover: Prover | None = None,
) -> list[Finding]:
    """The same path for survivors of the mechanical audit: every LEAD gets a standing, other findings stay.

    Raises AnswersPending, BudgetExceeded, LLMError, SandboxError.
    """
    leads = [finding for finding in findings if finding.standing is Standing.LEAD]
    tree = SourceTree(task, verifier.backend, verifier.limits)
    assessor = Assessor(task, tree, llm, verifier, samples=samples, prover=prover)
    tried = [Tried(candidate=finding.candidate, verdict=finding.verdict) for finding in leads]
    known = known_correct(task, alternatives)
    done = dict(zip((f.candidate.candidate_id for f in leads), assessor.assess(tried, known), strict=True))
    return [
        finding_of(done[f.candidate.candidate_id], f.verdict) if f.standing is Standing.LEAD else f
        for f in findings
    ]


class _Run:
    """One task's run; everything it learns is a function of the task, the options and the answers."""

    def __init__(
        self, task: Task, verifier: Verifier, llm: LLM, k: int, rounds: int, benign: int,
        alternatives: Sequence[Patch], sees: str, seed: int, samples: int, prover: Prover | None,
    ) -> None:  # fmt: skip
        self.task, self.verifier, self.llm = task, verifier, llm
        self.rounds, self.benign = rounds, benign
        self.known = known_correct(task, alternatives)
        self.tree = SourceTree(task, verifier.backend, verifier.limits)
        self.blind = Material.of(self.tree, "nothing")
        self.attacker = Attacker(
            task=task, tree=self.tree, llm=llm, k=k, rounds=rounds, sees=sees, seed=seed, store=llm.store,
            material=Material.of(self.tree, sees),
        )  # fmt: skip
        self.assessor = Assessor(
            task, self.tree, llm, verifier, samples=samples, prover=prover, material=self.blind
        )
        self.options = {
            "model": llm.model, "k": k, "rounds": rounds, "benign": benign, "attacker_sees": sees,
            "seed": seed, "samples": samples, "alternatives": len(self.known),
            "prompts": [load(name).version for name in PROMPTS],
        }  # fmt: skip

    def go(self) -> LLMAuditResult:
        """Attack and control side by side; then everything is judged; later rounds do not wait for the judge."""
        waiting = Waiting()
        asked: list[Round] = []
        correct: list[Tried] = []
        if self.benign:
            got = waiting.get(
                lambda: control.benign_round(self.task, self.tree, self.llm, self.blind, self.benign)
            )
            if got is not None:
                asked.append(got)
                correct = self._execute(got.candidates)
        exploits = self._attack(waiting, asked)
        gold = waiting.get(lambda: self.assessor.judge.judge_many([Patch(self.task.gold_patch)]))
        benign = waiting.get(lambda: self.assessor.assess(correct, self.known))
        held = self._held(benign or ())
        pool = (*self.known, *held)
        wrong = waiting.get(lambda: self.assessor.assess(exploits, pool))
        waiting.settle()
        assert gold is not None
        assert benign is not None
        assert wrong is not None
        return self._result(
            asked, gold[0], benign, wrong, held, {t.candidate.candidate_id: t.verdict for t in exploits}
        )

    def _attack(self, waiting: Waiting, asked: list[Round]) -> list[Tried]:
        """All rounds as far as answers go; each sees the verdicts of the ones before."""
        history: list[Tried] = []
        for number in range(1, self.rounds + 1):
            got = waiting.get(lambda: self.attacker.round(number, tuple(history)))  # noqa: B023
            if got is None:
                break
            asked.append(got)
            history += self._execute(got.candidates)
        return history

    def _execute(self, candidates: Iterable[Candidate]) -> list[Tried]:
        return [Tried(candidate=c, verdict=self.verifier.verify(self.task, c.patch)) for c in candidates]

    def _held(self, benign: Iterable[Assessed]) -> tuple[Patch, ...]:
        """Paid, called correct, and no witness against it."""
        return tuple(
            a.candidate.patch
            for a in benign
            if a.paid and a.label == "correct" and a.standing is Standing.LEAD
        )

    def _result(
        self,
        asked: Sequence[Round],
        gold: Judgement,
        benign: Sequence[Assessed],
        wrong: Sequence[Assessed],
        held: tuple[Patch, ...],
        verdicts: dict[str, Verdict],
    ) -> LLMAuditResult:
        usage, cost, calls = self._cost()
        everything = (*benign, *wrong)
        labels = [(gold.label, True)]
        labels += [(a.label, a.paid) for a in everything if a.outcome.decisive]
        notes = [f"round {r.number}: {why}" for r in asked for why in r.left_out]
        notes += [f"round {r.number}: the call ended {r.outcome}" for r in asked if r.outcome != "answered"]
        return LLMAuditResult(
            task_id=self.task.task_id,
            assessed=everything,
            findings=tuple(finding_of(a, verdicts[a.candidate.candidate_id]) for a in wrong if a.paid),
            rounds=tuple(replace(r, candidates=()) for r in asked),
            control=_control(asked, benign, len(held)),
            gold_label=gold.label,
            gold_votes=gold.votes,
            f1_labels=tuple(labels),
            alternatives=held,
            options=self.options,
            calls=calls,
            usage=usage,
            cost_usd=cost,
            notes=tuple(notes),
        )

    def _cost(self) -> tuple[Usage, float, dict[str, int]]:
        """Of this task's calls in the store, every session and every attempt."""
        rows = [row for row in self.llm.store.rows() if row["task_id"] == self.task.task_id]
        usage = Usage(
            input=sum(row["input_tokens"] for row in rows),
            output=sum(row["output_tokens"] for row in rows),
            cache_write=sum(row["cache_write_tokens"] for row in rows),
            cache_read=sum(row["cache_read_tokens"] for row in rows),
        )
        calls = Counter(f"{row['purpose']}/{row['outcome']}" for row in rows)
        return usage, sum(row["cost_usd"] for row in rows), dict(sorted(calls.items()))


def _control(asked: Sequence[Round], benign: Sequence[Assessed], held: int) -> Control:
    mine = next((r for r in asked if r.number == control.ROUND), None)
    paid = [a for a in benign if a.paid]
    return Control(
        asked=mine.proposed if mine else 0,
        applied=mine.applied if mine else 0,
        paid=len(paid),
        judged_wrong=sum(a.standing is Standing.JUDGED for a in paid),
        proven_wrong=sum(a.standing is Standing.PROVEN for a in paid),
        held=held,
    )
