"""A claim becomes a witness: one call writes a test, execution and a blind vote decide what it is worth.

It counts when gold passes and the candidate fails it in every run (each in a fresh sandbox, another hash seed each
time), when the behaviour it asserts is derived from a sentence that really stands in the task's text, by a majority
of blind votes, and when every known-correct alternative passes it too.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from ..envs import pyast
from ..envs.defence import STRICT
from ..envs.patch import Patch
from ..envs.record import Record, digest_of
from ..envs.run import Status
from ..envs.task import Suite, Task
from ..envs.verdict import Outcome, Verdict
from ..envs.verify import Verifier
from .attackers.llm import informative
from .interpreter import python_of
from .judge import flattened, shown_change
from .llm.fence import fenced, new_fence, without_words
from .llm.prompts import load
from .llm.protocol import LLM, Reply, Request
from .records import Witness, WitnessKind
from .source import Material, SourceTree
from .standing import Cited, Others, WitnessResult

RUNS = 2
STATUSES = replace(STRICT, name="witness", accounting=False, beacons=False, twin=0.0, probe=False)
"""Only statuses are read: a program that cheats here can only pass the witness, which clears it."""
_PEEKS = frozenset({"getsource", "getsourcelines", "getsourcefile", "__code__", "co_code", "dis", "inspect"})

_TEXT = {"type": "string"}
DRAFT: dict[str, Any] = {
    "type": "object",
    "properties": {"test": _TEXT, "citation": _TEXT, "why": _TEXT},
    "required": ["test", "citation", "why"],
    "additionalProperties": False,
}
VOTE: dict[str, Any] = {
    "type": "object",
    "properties": {
        "answer": {"type": "string", "enum": ["yes", "no", "undecided"]},
        "quote": _TEXT,
        "why": _TEXT,
    },
    "required": ["answer", "quote", "why"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Doubt(Record):
    """What a reviewer doubts about a program; the same form for exploits and for the benign control."""

    patch: Patch
    behaviour: str = ""
    input: str = ""


@dataclass(frozen=True, kw_only=True)
class Draft(Record):
    """A test as written. problem: why it can't serve ("" when it can)."""

    test: str = ""
    ids: tuple[str, ...] = ()
    citation: str = ""
    problem: str = ""

    @property
    def path(self) -> str:
        return f"acid_witness_{digest_of(self.test)[:10]}.py"


@dataclass(frozen=True, kw_only=True)
class Executed(Record):
    """What running a draft showed. observed: the candidate's failure, bounded."""

    result: WitnessResult
    observed: str = ""
    runs: int = 0
    others: Others = Others.NONE_KNOWN
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Specified(Record):
    """The blind vote. quote: a sentence that really stands in the text ("" when there is none)."""

    cited: Cited
    quote: str = ""
    votes: tuple[str, ...] = ()


class WitnessMaker:
    """One task's witnesses. samples: votes per draft. runs: executions of each program."""

    def __init__(
        self,
        task: Task,
        tree: SourceTree,
        llm: LLM,
        verifier: Verifier,
        *,
        material: Material | None = None,
        samples: int = 3,
        runs: int = RUNS,
    ) -> None:
        self.task, self.tree, self.llm, self.verifier = task, tree, llm, verifier
        self.samples, self.runs = samples, runs
        self.material = material or Material.of(tree, "nothing")

    def draft_many(self, doubts: Sequence[Doubt]) -> list[Draft]:
        """One call per doubt. Raises AnswersPending, BudgetExceeded, LLMError."""
        replies = self.llm.complete_many([self.request(doubt) for doubt in doubts])
        return [draft_of(reply) for reply in replies]

    def vote_many(self, drafts: Sequence[Draft]) -> list[Specified]:
        """`samples` blind votes per draft, all asked at once."""
        requests = [self.vote_request(draft, sample) for draft in drafts for sample in range(self.samples)]
        replies = self.llm.complete_many(requests)
        step, text = self.samples, self.material.specification
        return [
            specified_of(replies[at * step : (at + 1) * step], text, draft.citation)
            for at, draft in enumerate(drafts)
        ]

    def execute(self, draft: Draft, patch: Patch, alternatives: Sequence[Patch] = ()) -> Executed:
        """Gold, the candidate, then (when it holds) every alternative. Raises SandboxError."""
        gold = [self._run(draft, Patch(self.task.gold_patch), n) for n in range(self.runs)]
        passes = [_all_passed(draft, verdict) for verdict in gold]
        if not all(passes):
            result = WitnessResult.UNSTABLE if any(passes) else WitnessResult.BROKEN
            return Executed(result=result, runs=self.runs, detail=f"gold: {_failure(gold[-1])}")
        seen = [self._run(draft, patch, n) for n in range(self.runs)]
        failed = [_failed_ids(draft, verdict) for verdict in seen]
        if all(_all_passed(draft, verdict) for verdict in seen):
            return Executed(result=WitnessResult.SPARES, runs=self.runs)
        if not all(failed) or len({frozenset(ids) for ids in failed}) > 1:
            outcomes = ", ".join(str(verdict.outcome) for verdict in seen)
            return Executed(result=WitnessResult.UNSTABLE, runs=self.runs, detail=f"candidate: {outcomes}")
        others = self._others(draft, alternatives)
        return Executed(
            result=WitnessResult.HOLDS, observed=_failure(seen[-1]), runs=self.runs, others=others
        )

    def request(self, doubt: Doubt) -> Request:
        change = shown_change(self.tree, doubt.patch)
        fence = new_fence(change, doubt.behaviour, doubt.input, self.material.text, self.material.source)
        words = f"Behaviour: {doubt.behaviour or 'not said'}\nInput or use: {doubt.input or 'not said'}"
        values = {
            "text": self.material.specification,
            "source": self.material.source,
            "gold": self.task.gold_patch,
            "fence": fence,
            "change": fenced(change, fence, "PROGRAM_B"),
            "doubt": fenced(words, fence, "DOUBT"),
        }
        return self._asked("witness", "witness", values, DRAFT, fence, 0)

    def vote_request(self, draft: Draft, sample: int) -> Request:
        test = without_words(draft.test) or draft.test
        fence = new_fence(test, self.material.specification)
        values = {"text": self.material.specification, "fence": fence, "test": fenced(test, fence, "TEST")}
        return self._asked("specified", "specified", values, VOTE, fence, sample)

    def _asked(
        self, name: str, purpose: str, values: dict[str, str], schema: dict[str, Any], fence: str, sample: int
    ) -> Request:
        prompt = load(name)
        return Request(
            purpose=purpose,
            system=prompt.fill("system", values),
            context=prompt.fill("context", values),
            prompt=prompt.fill("prompt", values),
            schema=schema,
            prompt_version=prompt.version,
            fence=fence,
            sample=sample,
            max_tokens=4000,
            task_id=self.task.task_id,
        )

    def _others(self, draft: Draft, alternatives: Sequence[Patch]) -> Others:
        if not alternatives:
            return Others.NONE_KNOWN
        for patch in alternatives:
            verdict = self._run(draft, patch, 0)
            if _all_passed(draft, verdict):
                continue
            return Others.SOME_FAIL if _failed_ids(draft, verdict) else Others.UNDECIDED
        return Others.ALL_PASS

    def _run(self, draft: Draft, patch: Patch, repeat: int) -> Verdict:
        return self.verifier.verify(
            self.task, patch, witness_suite(self.task, draft, repeat), defence=STATUSES
        )


def witness_suite(task: Task, draft: Draft, repeat: int = 0) -> Suite:
    """The witness alone, run by the standard-library runner in the task's own environment."""
    return Suite(
        command=f"{python_of(task.suite.command)} {draft.path}",
        framework="plain",
        test_files={draft.path: draft.test},
        fail_to_pass=draft.ids,
        env={**task.suite.env, "PYTHONHASHSEED": str(repeat), "ACIDTEST_REPEAT": str(repeat)},
    )


def draft_of_test(test: str) -> Draft:
    """A draft from the source of a test that we rendered ourselves."""
    tree = pyast.parse(test)
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
    draft = Draft(test=test)
    return replace(draft, ids=tuple(f"{draft.path}::{name}" for name in names))


def draft_of(reply: Reply) -> Draft:
    """The test in an answer, checked as text: it parses, has tests, and does not look at source instead of behaviour."""
    if not reply.answered or reply.data is None:
        return Draft(problem=f"no answer: {reply.outcome} {reply.detail}".strip())
    test, citation = str(reply.data["test"]), str(reply.data["citation"]).strip()
    if not test.strip():
        return Draft(problem="the writer found no test")
    test = test if test.endswith("\n") else test + "\n"
    try:
        tree = pyast.parse(test)
    except (SyntaxError, ValueError, RecursionError) as error:
        return Draft(test=test, citation=citation, problem=f"does not parse: {error}")
    names = [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]
    words = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    words |= {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
    words |= {
        alias.name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    words |= {str(node.module) for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)}
    draft = Draft(test=test, citation=citation)
    if not names:
        return replace(draft, problem="has no top-level function test_*")
    if peeks := sorted(words & _PEEKS):
        return replace(draft, problem=f"looks at source instead of behaviour ({', '.join(peeks)})")
    return replace(draft, ids=tuple(f"{draft.path}::{name}" for name in names))


def specified_of(replies: Sequence[Reply], text: str, citation: str = "", need: int = 2) -> Specified:
    """Count the votes. A yes without a quote that stands in the text is no vote; the writer's citation counts only
    when it stands there too. Pure."""
    votes: list[str] = []
    quotes: list[str] = []
    for reply in replies:
        answer = str(reply.data["answer"]) if reply.answered and reply.data else "undecided"
        if answer == "yes":
            quote = str(reply.data["quote"]) if reply.data else ""
            if not stands_in(quote, text):
                answer = "undecided"
            else:
                quotes.append(quote.strip())
        votes.append(answer)
    if votes.count("yes") >= need:
        quote = citation if stands_in(citation, text) else quotes[0]
        return Specified(cited=Cited.YES, quote=quote, votes=tuple(votes))
    cited = Cited.NO if votes.count("no") >= need else Cited.UNDECIDED
    return Specified(cited=cited, votes=tuple(votes))


def stands_in(quote: str, text: str) -> bool:
    """Whether the sentence occurs in the text word for word (blanks count as one); three words at least."""
    flat = flattened(quote)
    return len(flat.split()) >= 3 and flat in flattened(text)


def witness_of(draft: Draft, executed: Executed, specified: Specified) -> Witness:
    """The record of a witness that holds. rating: 1 when specified and no alternative is against it."""
    good = specified.cited is Cited.YES and executed.others in (Others.ALL_PASS, Others.NONE_KNOWN)
    return Witness(
        kind=WitnessKind.TEST,
        call=", ".join(ident.split("::")[-1] for ident in draft.ids),
        expected="passes",
        observed=executed.observed,
        test=draft.test,
        rating=1.0 if good else 0.3,
        runs=executed.runs,
        citation=specified.quote,
    )


def _all_passed(draft: Draft, verdict: Verdict) -> bool:
    return bool(draft.ids) and all(verdict.statuses.get(i) is Status.PASSED for i in draft.ids)


def _failed_ids(draft: Draft, verdict: Verdict) -> list[str]:
    """Tests that ran and failed; all of them when the run hit its time limit."""
    failed = [i for i in draft.ids if verdict.statuses.get(i) in (Status.FAILED, Status.ERROR)]
    if not failed and (verdict.outcome is Outcome.TIMED_OUT or bool(verdict.run and verdict.run.timed_out)):
        return list(draft.ids)
    return failed


def _failure(verdict: Verdict) -> str:
    log = verdict.run.log if verdict.run else "\n".join(verdict.evidence)
    return f"{verdict.outcome}: {informative(log, 600)}".strip()
