"""Four arms on the same proposals: what each would take, and what that is worth when it is executed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.run import Status
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier
from acidtest.repair.arms import ARMS, Given, arms, given_of, line_tries, taken_by
from acidtest.repair.gates.trial import AddedRun
from acidtest.repair.proposals import ProposalLine
from acidtest.repair.records import Check, GateResult, Proposal, Try
from acidtest.repair.vote import BLOCKS, LEAVES
from acidtest.verifiers.records import Candidate, Family

TASK = Task(
    task_id="t",
    dataset="toy",
    prompt="",
    suite=Suite(command="python test_solution.py", framework="plain"),
    gold_patch="gold",
)
WRONG = Candidate(task_id="t", patch=Patch("wrong"), kind="S21", family=Family.MUTANT, origin="test")
OTHER = Candidate(task_id="t", patch=Patch("other"), kind="S21", family=Family.MUTANT, origin="test")


@dataclass
class Table:
    """A bench that knows which program each proposal's tests refuse."""

    refuses: Mapping[str, set[str]]
    task: Task = TASK
    asked: int = field(default=0)

    def run(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> AddedRun:
        self.asked += 1
        bad = any(patch.text in self.refuses[path] for path in added.test_files)
        outcome = Outcome.UNRESOLVED if bad else Outcome.RESOLVED
        return AddedRun(
            outcome=outcome,
            statuses=dict.fromkeys(added.test_ids, Status.FAILED if bad else Status.PASSED),
        )

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not needed here")


def one(name: str, *votes: str, passes: bool, blocked: Sequence[Candidate] = ()) -> Try:
    added = AddedTests(
        command=f"python {name}", framework="plain", test_files={name: ""}, test_ids=(f"{name}::test",)
    )
    check = Check(name="gold passes", passed=passes)
    return Try(
        proposal=Proposal(task_id="t", added=added),
        result=GateResult(
            task_id="t",
            proposal_digest=name,
            checks=(check,),
            blocked=tuple(c.candidate_id for c in blocked),
        ),
        votes=votes,
    )


def given(tries: Sequence[Try], refuses: Mapping[str, set[str]], *targets: Candidate) -> Given:
    bench: Any = Table(refuses)
    return Given(
        task=TASK, bench=bench, tries=tries, targets=targets or (WRONG,), correct={"alt": Patch("alt")}
    )


YES, NO = (BLOCKS, BLOCKS, LEAVES), (LEAVES, LEAVES, BLOCKS)


def cases() -> Iterator[Given]:
    # the judge likes a test that gold fails; the second one is good
    yield given(
        [one("a", *YES, passes=False), one("b", *YES, passes=True, blocked=[WRONG])],
        {"a": {"gold", "wrong"}, "b": {"wrong"}},
    )
    # the judge likes a test that blocks nothing
    yield given([one("a", *YES, passes=False)], {"a": set()})
    # the judge dislikes a test that blocks; it is too strict as well
    yield given([one("a", *NO, passes=False)], {"a": {"wrong", "alt"}})
    # two halves, which only the last arm puts together
    yield given(
        [one("a", *YES, passes=True, blocked=[WRONG]), one("b", *NO, passes=True, blocked=[OTHER])],
        {"a": {"wrong"}, "b": {"other"}},
        WRONG,
        OTHER,
    )


def test_the_arms_differ_on_the_same_proposals() -> None:
    rows = {row.arm: row for row in arms(cases())}
    assert [rows[arm].claimed for arm in ARMS] == [3, 2, 3, 2]
    assert [rows[arm].blocks for arm in ARMS] == [0, 0, 1, 2]
    assert [rows[arm].gold_fails for arm in ARMS] == [1, 0, 0, 0]
    assert all(row.tasks == 4 and row.too_strict == 0 for row in rows.values())
    assert "calls 3 of 4 tasks repaired; 0 of these 3 really block" in rows["judge only"].line
    assert "(Wilson 95 %: called 30% to 95%, of those real 0% to 56%)" in rows["judge only"].line


def test_the_last_arm_gives_up_when_a_target_stays_open() -> None:
    half = given([one("a", *YES, passes=True, blocked=[WRONG])], {"a": {"wrong"}}, WRONG, OTHER)
    assert taken_by(ARMS[3], half) is None
    assert taken_by(ARMS[2], half) is not None


@pytest.mark.parametrize("arm", ARMS)
def test_no_proposal_no_claim(arm: str) -> None:
    assert taken_by(arm, given([], {})) is None


def test_a_wrong_expected_value_is_not_mended_between_gate_and_taking() -> None:
    """What an arm takes is what was gated: a mended copy that passes must not stand for the proposal that fails gold."""
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    text = "from solution import add\n\n\ndef test_a():\n    assert add(1, 3) == 5\n"
    wrong = {"product": "def add(a, b):\n    return a * b\n"}
    bad, good = (
        ProposalLine(task_id=task.task_id, files={"test_added.py": t}, wrong=wrong, votes=YES, iteration=n)
        for n, t in enumerate((text, text.replace("== 5", "== 4")), 1)
    )
    with Verifier(sandbox="local") as verifier:
        held = given_of(task, verifier, line_tries([bad, good], task), wrong=good.wrong_candidates(task))
        assert [one.result.passed for one in held.tries] == [False, True]
        last = {row.arm: row for row in arms([held])}[ARMS[3]]
    assert (last.claimed, last.blocks, last.gold_fails) == (1, 1, 0)
