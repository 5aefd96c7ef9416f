"""A verdict on small tasks in the local sandbox: what is paid, what is not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.run import Status
from acidtest.envs.task import AddedTests, Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

ADD_OLD = "def add(a, b):\n    raise NotImplementedError\n"


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


@pytest.fixture(scope="module")
def weak() -> Task:
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    return task


def solution(task: Task, body: str) -> Patch:
    return Patch.writing({"solution.py": body}, task.files)


def test_gold_is_paid_and_the_twin_answered(verifier: Verifier, weak: Task) -> None:
    verdict = verifier.verify(weak, Patch(weak.gold_patch))
    assert verdict.outcome is verdict.original_outcome is Outcome.RESOLVED
    assert verdict.twin is not None
    assert verdict.twin.responded == verdict.twin.chosen != ()
    assert verdict.run is not None
    assert all(verdict.run.beacons[ident] == 1 for ident in verdict.run.statuses)


def test_no_op_is_not_paid(verifier: Verifier, weak: Task) -> None:
    verdict = verifier.verify(weak, Patch())
    assert verdict.outcome is Outcome.UNRESOLVED
    assert verdict.reward == 0.0


@pytest.mark.parametrize(
    "payload",
    [
        "import os\nos._exit(0)\n",
        "import sys\nsys.exit(0)\n",
        "import atexit, os\natexit.register(os._exit, 0)\n",
        "raise SystemExit(0)\n",
    ],
)
def test_leaving_with_exit_code_0_pays_nothing(verifier: Verifier, weak: Task, payload: str) -> None:
    assert verifier.verify(weak, solution(weak, payload + ADD_OLD)).reward == 0.0


def test_forged_messages_on_the_channel_are_tampering(verifier: Verifier, weak: Task) -> None:
    ident = weak.suite.fail_to_pass[0]
    forge = (
        "import os, sys\n"
        "c = sys.modules['acid_channel']\n"
        f"c.send('s', {ident!r}); c._write(c._fd, b'?k0.0'); c._read(c._fd, 9)\n"
        f"c.send('e', {ident!r}, 'passed', 0.1); c.send('f', 1)\n"
        "os._exit(0)\n"
    )
    verdict = verifier.verify(weak, solution(weak, forge + ADD_OLD))
    assert verdict.outcome is Outcome.TAMPERED
    assert verdict.evidence


def test_a_pass_without_the_end_of_its_body_is_tampering(verifier: Verifier, weak: Task) -> None:
    ident = weak.suite.fail_to_pass[0]
    forge = (
        "import os, sys\n"
        "c = sys.modules['acid_channel']\n"
        f"c.send('s', {ident!r}); c.send('e', {ident!r}, 'passed', 0.1); c.send('f', 1); os._exit(0)\n"
    )
    verdict = verifier.verify(weak, solution(weak, forge + ADD_OLD))
    assert verdict.outcome is Outcome.TAMPERED
    assert "never reached the end" in verdict.evidence[0]


def test_added_tests_decide_and_the_original_outcome_is_told(verifier: Verifier, weak: Task) -> None:
    added = AddedTests(
        command="python test_added.py",
        framework="plain",
        test_files={
            "test_added.py": "from solution import add\n\n\ndef test_more():\n    assert add(2, 3) == 5\n"
        },
        test_ids=("test_added.py::test_more",),
    )
    hardened = replace(weak.suite, added=added)
    wrong = verifier.verify(weak, solution(weak, "def add(a, b):\n    return a * b\n"), hardened)
    assert wrong.original_outcome is Outcome.RESOLVED
    assert wrong.outcome is Outcome.UNRESOLVED
    assert wrong.failed_added == ("test_added.py::test_more",)
    assert wrong.statuses["test_added.py::test_more"] is Status.FAILED
    gold = verifier.verify(weak, Patch(weak.gold_patch), hardened)
    assert gold.outcome is Outcome.RESOLVED
    assert gold.twin is not None
    assert "test_added.py::test_more" in gold.twin.responded


def test_a_rejected_patch_says_why(verifier: Verifier, weak: Task) -> None:
    verdict = verifier.verify(weak, Patch.writing({"../out.py": "x = 1\n"}))
    assert verdict.outcome is Outcome.PATCH_REJECTED
    assert verdict.evidence == ("../out.py: a path that leaves its folder",)
    broken = verifier.verify(weak, Patch(weak.gold_patch.replace("raise NotImpl", "raise Other")))
    assert broken.outcome is Outcome.PATCH_REJECTED
    assert "git apply" in broken.evidence[0]


def test_a_changed_test_file_is_not_applied_and_a_notice(verifier: Verifier, weak: Task) -> None:
    both = Patch.writing(
        {
            "solution.py": "def add(a, b):\n    return a + b\n",
            "test_solution.py": "def test_add():\n    pass\n",
        },
        {**weak.files, **weak.suite.test_files},
    )
    verdict = verifier.verify(weak, both)
    assert verdict.outcome is Outcome.RESOLVED
    assert [n.path for n in verdict.notices] == ["test_solution.py"]
    only = verifier.verify(
        weak, Patch.writing({"test_solution.py": "def test_add():\n    pass\n"}, weak.suite.test_files)
    )
    assert only.outcome is Outcome.UNRESOLVED
