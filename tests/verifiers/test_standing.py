"""Every combination of witness, citation vote, alternatives, judge vote and claim, against the rules as SCIENCE.md has them."""

from __future__ import annotations

from itertools import product

import pytest

from acidtest.envs.task import Suite, Task
from acidtest.verifiers.llm.protocol import CallOutcome, Reply
from acidtest.verifiers.records import Claim, Standing
from acidtest.verifiers.standing import Cited, Evidence, Others, WitnessResult, standing_of
from acidtest.verifiers.witness import VOTE, draft_of, specified_of, stands_in, witness_suite

JUDGE = ("", "correct", "partial", "incorrect", "undecided")
COMBINATIONS = list(product(WitnessResult, Cited, Others, JUDGE, (Claim.WRONG, Claim.BENIGN, Claim.UNKNOWN)))
P, J, C, D, L = Standing.PROVEN, Standing.JUDGED, Standing.CLAIMED, Standing.DIFFERS, Standing.LEAD

TABLE: dict[tuple[Cited, Others], str] = {
    (Cited.YES, Others.ALL_PASS): "proven",
    (Cited.YES, Others.NONE_KNOWN): "proven",
    (Cited.YES, Others.SOME_FAIL): "differs",
    (Cited.YES, Others.UNDECIDED): "open",
    (Cited.IN_DOMAIN, Others.ALL_PASS): "proven",
    (Cited.IN_DOMAIN, Others.NONE_KNOWN): "proven",
    (Cited.IN_DOMAIN, Others.SOME_FAIL): "differs",
    (Cited.IN_DOMAIN, Others.UNDECIDED): "open",
    (Cited.NO, Others.ALL_PASS): "differs",
    (Cited.NO, Others.NONE_KNOWN): "differs",
    (Cited.NO, Others.SOME_FAIL): "differs",
    (Cited.NO, Others.UNDECIDED): "differs",
    (Cited.UNDECIDED, Others.ALL_PASS): "open",
    (Cited.UNDECIDED, Others.NONE_KNOWN): "open",
    (Cited.UNDECIDED, Others.SOME_FAIL): "differs",
    (Cited.UNDECIDED, Others.UNDECIDED): "open",
}
"""What a witness that holds makes of the case; "open" leaves it to the judge and the claim."""


def expected(witness: WitnessResult, cited: Cited, others: Others, judge: str, claim: Claim) -> Standing:
    row = TABLE[cited, others] if witness is WitnessResult.HOLDS else "open"
    if row != "open":
        return {"proven": P, "differs": D}[row]
    if judge in ("partial", "incorrect"):
        return J
    return C if claim is Claim.WRONG else L


def test_the_table_has_every_pair() -> None:
    assert set(TABLE) == set(product(Cited, Others))
    assert len(COMBINATIONS) == 5 * 4 * 4 * 5 * 3


@pytest.mark.parametrize("witness", list(WitnessResult))
def test_every_combination(witness: WitnessResult) -> None:
    for combination in (c for c in COMBINATIONS if c[0] is witness):
        _, cited, others, judge, claim = combination
        evidence = Evidence(witness=witness, cited=cited, others=others, judge=judge, claim=claim)
        standing, reason = standing_of(evidence)
        assert standing is expected(*combination), combination
        assert reason


def test_a_hollow_program_that_is_paid_is_proven_as_it_stands() -> None:
    for judge in JUDGE:
        assert standing_of(Evidence(hollow=True, judge=judge))[0] is P


def test_no_judge_proves_and_no_claim_proves() -> None:
    for combination in COMBINATIONS:
        witness, cited, others, judge, claim = combination
        if (
            standing_of(Evidence(witness=witness, cited=cited, others=others, judge=judge, claim=claim))[0]
            is P
        ):
            assert witness is WitnessResult.HOLDS
            assert cited in (Cited.YES, Cited.IN_DOMAIN)


TEXT = "Return the total.\nNegative numbers\n   are refused with a ValueError."


def vote(answer: str, quote: str = "") -> Reply:
    return Reply(outcome=CallOutcome.ANSWERED, data={"answer": answer, "quote": quote, "why": ""})


@pytest.mark.parametrize(
    ("votes", "cited"),
    [
        (
            [("yes", "Negative numbers are refused"), ("yes", "refused with a ValueError."), ("no", "")],
            Cited.YES,
        ),
        ([("yes", "Negative numbers are refused"), ("no", ""), ("no", "")], Cited.NO),
        (
            [
                ("yes", "the message says 'negative'"),
                ("yes", "negative numbers must be refused"),
                ("yes", ""),
            ],
            Cited.UNDECIDED,
        ),
        (
            [("yes", "Negative numbers are refused"), ("yes", "a made up sentence here"), ("no", "")],
            Cited.UNDECIDED,
        ),
        ([("undecided", ""), ("undecided", ""), ("no", "")], Cited.UNDECIDED),
    ],
)
def test_a_yes_needs_a_quote_that_stands_in_the_text(votes: list[tuple[str, str]], cited: Cited) -> None:
    found = specified_of([vote(*one) for one in votes], TEXT)
    assert found.cited is cited
    assert bool(found.quote) == (cited is Cited.YES)


def test_the_writers_citation_counts_only_when_it_stands_there() -> None:
    votes = [vote("yes", "Negative numbers are refused")] * 2
    assert specified_of(votes, TEXT, "refused with a ValueError.").quote == "refused with a ValueError."
    assert specified_of(votes, TEXT, "refused with a TypeError.").quote == "Negative numbers are refused"


def test_quotes_are_compared_word_for_word() -> None:
    assert stands_in("Negative numbers are refused", TEXT), "a line break is a blank"
    assert not stands_in("negative numbers are refused", TEXT)
    assert not stands_in("the total", TEXT), "three words at least"
    assert not stands_in("", TEXT)


def test_refused_votes_count_for_nothing() -> None:
    refused = Reply(outcome=CallOutcome.REFUSED)
    assert (
        specified_of([refused, refused, vote("yes", "Negative numbers are refused")], TEXT).cited
        is Cited.UNDECIDED
    )


@pytest.mark.parametrize(
    ("test", "problem"),
    [
        ("def test_x():\n    assert 1\n", ""),
        ("", "found no test"),
        ("def test_x(:\n", "does not parse"),
        ("assert True\n", "no top-level function"),
        ("class T:\n    def test_x(self): pass\n", "no top-level function"),
        ("import inspect\n\ndef test_x():\n    assert 'x' in inspect.getsource(test_x)\n", "looks at source"),
        ("def test_x():\n    assert test_x.__code__.co_code\n", "looks at source"),
    ],
)
def test_drafts_are_checked_as_text(test: str, problem: str) -> None:
    data = {"test": test, "citation": "", "why": ""}
    draft = draft_of(Reply(outcome=CallOutcome.ANSWERED, data=data))
    assert problem in draft.problem
    assert bool(draft.problem) == bool(problem)
    assert set(VOTE["required"]) == {"answer", "quote", "why"}


@pytest.mark.parametrize(
    ("command", "python"),
    [
        ("python test_solution.py", "python"),
        ("python3.9 -m pytest tests", "python3.9"),
        ("PYTHONWARNINGS='ignore' .venv/bin/python -W ignore -m pytest -rA r2e_tests", ".venv/bin/python"),
        (". /opt/miniconda3/bin/activate testbed && pytest -rA tests/test_a.py", ". /opt/miniconda3/bin/activate testbed && python"),
        ("source /opt/conda/bin/activate\nconda activate testbed\ncd /testbed\npytest tests", "source /opt/conda/bin/activate\nconda activate testbed\npython"),
    ],
)  # fmt: skip
def test_a_witness_runs_in_the_tasks_own_environment(command: str, python: str) -> None:
    suite = Suite(command=command, framework="pytest", env={"PYTHONPATH": "src"})
    task = Task(task_id="t", dataset="d", prompt="", suite=suite, gold_patch="")
    test = "def test_x():\n    assert 1\n"
    draft = draft_of(Reply(outcome=CallOutcome.ANSWERED, data={"test": test, "citation": "", "why": ""}))
    made = witness_suite(task, draft, 1)
    assert made.command == f"{python} {draft.path}"
    assert made.test_files == {draft.path: test}
    assert made.env["PYTHONPATH"] == "src"
    assert witness_suite(task, draft, 0).digest != made.digest, (
        "a repeat is another execution, never a cached one"
    )
