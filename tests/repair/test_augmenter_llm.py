"""A model's proposals: cited or dropped, told what failed, gated like any other, and retried with something different."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import AddedTests, Task
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.envs.verify import Verifier
from acidtest.repair.augmenters import llm as augmenter
from acidtest.repair.bench import VerifierBench
from acidtest.repair.loop import Job, repair_task
from acidtest.repair.records import RepairStatus
from acidtest.repair.vote import BLOCKS, LEAVES, votes_of
from acidtest.verifiers.judge import agreed
from acidtest.verifiers.llm.protocol import CallOutcome, Reply, Request
from acidtest.verifiers.records import Candidate, Family, Finding, Standing
from acidtest.verifiers.source import Material, SourceTree

CITED = "This holds for both writers."
GOOD = "from writers import to_tsv\n\n\ndef test_tsv_quotes():\n    assert to_tsv([['a\\tb']]) == '\"a\\tb\"\\n'\n"
BAD_IMPORT = GOOD.replace("from writers import", "from writers.tsv import")


@dataclass
class ScriptedLLM:
    """Answers in order, the last one again and again; keeps what it was asked."""

    answers: Sequence[dict[str, Any] | None]
    model: str = "scripted"
    asked: list[Request] = field(default_factory=list)

    def complete(self, request: Request) -> Reply:
        data = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(request)
        outcome = CallOutcome.REFUSED if data is None else CallOutcome.ANSWERED
        return Reply(outcome=outcome, data=data, model=self.model, cost_usd=0.01)

    def complete_many(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.complete(request) for request in requests]

    def flush(self) -> None:
        pass

    def close(self) -> None:
        pass


def answer(text: str, *, citation: str = CITED, path: str = "tests/test_hardened_tsv.py") -> dict[str, Any]:
    return {
        "files": [{"path": path, "content": text}],
        "ids": [f"{path}::test_tsv_quotes"],
        "command": f"python -m pytest -rA {path}",
        "citations": [citation],
        "rationale": "the other writer",
    }


@pytest.fixture(scope="module")
def task() -> Task:
    (one,) = load_tasks("toy", task_ids=["toy/two_paths"])
    return one


@pytest.fixture(scope="module")
def finding(task: Task) -> Finding:
    """Gold with the TSV half left out: the suite pays it."""
    path = "writers/delimited.py"
    gold = SourceTree(task).after(Patch(task.gold_patch))[path]
    wrong = gold.replace('"\\t".join(_quoted(cell, "\\t") for cell in row)', '"\\t".join(row)')
    assert wrong != gold
    patch = Patch.writing({path: wrong}, dict(task.files))
    candidate = Candidate(
        task_id=task.task_id,
        patch=patch,
        kind="S06",
        family=Family.EXPLOIT,
        origin="test",
        wrong_behaviour="to_tsv does not quote",
    )
    verdict = Verdict(
        task_id=task.task_id,
        patch_digest=patch.digest,
        suite_digest=task.suite.digest,
        outcome=Outcome.RESOLVED,
        original_outcome=Outcome.RESOLVED,
    )
    return Finding(candidate=candidate, verdict=verdict, standing=Standing.PROVEN)


def test_what_the_model_sees(task: Task, finding: Finding) -> None:
    model = ScriptedLLM([answer(GOOD)])
    (proposal,) = augmenter.propose(task, [finding], llm=model)
    assert proposal.citations == (CITED,)
    (request,) = model.asked
    seen = request.context + request.prompt
    for part in (CITED, "def to_tsv", "test_csv_quotes", "to_tsv does not quote", task.suite.command):
        assert part in seen, part
    assert f"<<<WRONG {request.fence}" in request.prompt


def test_without_a_real_citation_it_is_dropped(task: Task, finding: Finding) -> None:
    model = ScriptedLLM([answer(GOOD, citation="Both writers must be fast.")])
    assert list(augmenter.propose(task, [finding], llm=model)) == []
    (kept,) = augmenter.propose(task, [finding], llm=model, allow_unspecified=True)
    assert kept.metadata["unspecified"] is True


def test_no_model_and_no_answer_give_no_proposal(task: Task, finding: Finding) -> None:
    assert list(augmenter.propose(task, [finding])) == []
    assert list(augmenter.propose(task, [finding], llm=ScriptedLLM([None]))) == []


def test_a_rejected_proposal_is_told_and_the_next_one_repairs(task: Task, finding: Finding) -> None:
    model = ScriptedLLM([answer(BAD_IMPORT), answer(GOOD)])
    with Verifier(sandbox="local") as verifier:
        job = Job(
            task=task,
            findings=[finding],
            bench=VerifierBench(task, verifier),
            augmenters={"llm": augmenter.propose},
            options={"llm": model},
        )
        record, added, proof = repair_task(job)
    assert record.status is RepairStatus.REPAIRED, record.reason
    assert [one.result.passed for one in record.tries] == [False, True]
    failed = record.tries[0].result.failed_check
    assert failed is not None
    assert (failed.name, failed.defect) == ("collects", "import error")
    retry = model.asked[1].prompt
    assert "import error" in retry
    assert "do not repeat them" in retry
    assert "from writers.tsv import to_tsv" in retry
    assert model.asked[0].digest != model.asked[1].digest
    assert added is not None
    assert list(added.test_files) == ["tests/test_hardened_tsv.py"]
    assert proof is not None
    assert proof.holds
    assert record.cost_usd == pytest.approx(0.02)


def test_the_judges_votes(task: Task, finding: Finding) -> None:
    def vote(label: str) -> dict[str, Any]:
        return {"premises": ["x"], "trace": "t", "conclusion": "c", "label": label}

    proposal = augmenter.read_reply(
        task,
        Material.of(SourceTree(task), "tests"),
        Reply(outcome=CallOutcome.ANSWERED, data=answer(GOOD)),
        [finding],
    )
    assert proposal is not None
    votes = votes_of(task, proposal, [finding], ScriptedLLM([vote(BLOCKS), vote(LEAVES), vote(BLOCKS)]))
    assert votes == (BLOCKS, LEAVES, BLOCKS)
    assert agreed(votes) == BLOCKS
    assert agreed((BLOCKS, LEAVES, "undecided")) == "undecided"
    assert votes_of(task, proposal, [finding], ScriptedLLM([None])) == ("undecided",) * 3


def test_ids_as_logs_print_them_become_the_ids_that_are_executed() -> None:
    (task,) = load_tasks("toy", task_ids=["toy/slug_unittest"])
    text = (
        "import unittest\n\nfrom text import slug\n\n\nclass Added(unittest.TestCase):\n    def test_a(self):\n"
        "        self.assertEqual(slug('One Two'), 'one-two')\n"
    )
    printed = AddedTests(
        command="python -m unittest -v tests.test_added",
        framework="unittest",
        test_files={"tests/test_added.py": text},
        test_ids=("tests.test_added.Added.test_a",),
    )
    with Verifier(sandbox="local") as verifier:
        bench = VerifierBench(task, verifier)
        executed = bench.with_executed_ids(printed)
        assert executed.test_ids == ("test_a (tests.test_added.Added)",)
        assert not bench.whole(Patch(task.gold_patch), printed).resolved
        assert bench.whole(Patch(task.gold_patch), executed).resolved
