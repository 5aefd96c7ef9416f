"""A suite never pays for fewer tests than it names: without gold, with gold that ran out of time, without FAIL_TO_PASS."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from acidtest.envs.calibrate import Flag
from acidtest.envs.incident import Severity, incident_of
from acidtest.envs.ledger import Ledger
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import Limits
from acidtest.envs.reward import reward_of
from acidtest.envs.run import Status
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

STUB = "def add(a, b):\n    raise NotImplementedError\n\n\ndef one():\n    return 1\n"
SOLVED = STUB.replace("raise NotImplementedError", "return a + b")
ADD = "import helper\nfrom solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n"
ONE = "from solution import one\n\n\ndef test_b():\n    assert one() == 1\n"
FILES = {"solution.py": STUB, "helper.py": "x = 1\n"}
GOLD = Patch.writing({"solution.py": SOLVED}, FILES)


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


@pytest.fixture
def task() -> Task:
    suite = Suite(
        command="python test_a.py test_b.py",
        framework="plain",
        test_files={"test_a.py": ADD, "test_b.py": ONE},
        fail_to_pass=("test_a.py::test_a",),
        pass_to_pass=("test_b.py::test_b",),
    )
    return Task(
        task_id="unit/two",
        dataset="unit",
        prompt="",
        files=FILES,
        gold_patch=GOLD.text,
        suite=suite,
        timeout_s=60.0,
    )


def test_without_gold_a_test_that_did_not_run_is_no_pass(verifier: Verifier, task: Task) -> None:
    suite = replace(task.suite, command="python -m pytest test_a.py test_b.py", framework="pytest")
    bare = replace(task, gold_patch="", suite=suite)
    skipping = "import pytest\npytest.skip('', allow_module_level=True)\n"
    verdict = verifier.verify(bare, Patch.writing({"helper.py": skipping}, FILES))
    assert verdict.outcome is Outcome.UNRESOLVED
    assert verdict.statuses["test_a.py::test_a"] is Status.MISSING
    assert verifier.verify(bare, GOLD).outcome is Outcome.RESOLVED


def test_gold_that_ran_out_of_time_leaves_nothing_out(verifier: Verifier, task: Task) -> None:
    slow = SOLVED.replace("    return 1", "    import time\n\n    time.sleep(60)\n    return 1")
    late = replace(task, gold_patch=Patch.writing({"solution.py": slow}, FILES).text, timeout_s=1.5)
    reference = verifier.reference(late)
    assert reference is not None
    assert not reference.finished
    assert reference.excluded == {}
    wrong = Patch.writing({"solution.py": SOLVED.replace("return 1", "return 2")}, FILES)
    assert verifier.verify(late, wrong).outcome is Outcome.UNRESOLVED
    assert verifier.verify(late, GOLD).outcome is Outcome.RESOLVED


def test_a_suite_without_any_fail_to_pass_test_decides_nothing(verifier: Verifier, task: Task) -> None:
    gone = task.with_suite(replace(task.suite, fail_to_pass=("test_a.py::test_gone",)))
    verdict = verifier.verify(gone, Patch())
    assert verdict.outcome is Outcome.UNDECIDED
    assert verdict.reward is None
    assert "FAIL_TO_PASS" in verdict.evidence[0]


def test_a_fail_to_pass_id_that_nothing_answers_to_is_no_reward(verifier: Verifier, task: Task) -> None:
    """Also where others are answered: the part of the task that it stands for was not looked at."""
    two = ("test_a.py::test_a", "test_a.py::test_gone")
    part = task.with_suite(replace(task.suite, fail_to_pass=two))
    verdict = verifier.verify(part, GOLD)
    assert (verdict.outcome, verdict.reward) == (Outcome.UNDECIDED, None)
    assert "test_a.py::test_gone" in verdict.evidence[0]
    assert "test_a.py::test_a," not in verdict.evidence[0]
    assert verifier.verify(part, Patch()).outcome is Outcome.UNRESOLVED
    stated = part.with_suite(replace(part.suite, exclude_ids=("test_a.py::test_gone",)))
    assert verifier.verify(stated, GOLD).outcome is Outcome.RESOLVED


def test_tests_that_the_submission_brings_itself_decide_nothing(verifier: Verifier, task: Task) -> None:
    own = replace(
        task.with_suite(replace(task.suite, test_files={"test_b.py": ONE})),
        gold_patch=Patch.writing({"solution.py": SOLVED, "test_a.py": ADD}, FILES).text,
    )
    verdict = verifier.verify(own, Patch.writing({"test_a.py": "def test_a():\n    pass\n"}, FILES))
    assert verdict.outcome is Outcome.UNDECIDED
    found = verifier.calibration(own)
    assert Flag.BROKEN_SUITE in found.flags
    assert not found.ok


def test_a_test_defined_in_two_branches_accuses_nobody(verifier: Verifier, task: Task) -> None:
    twice = (
        "import sys\n\nfrom solution import add\n\nif sys.version_info > (3,):\n\n    def test_a():\n"
        "        assert add(1, 2) == 3\nelse:\n\n    def test_a():\n        assert add(1, 2) == 3\n"
    )
    bare = replace(task, gold_patch="")
    files = {"test_a.py": twice, "test_b.py": ONE}
    command = "python -m pytest test_a.py test_b.py"
    suite = replace(task.suite, command=command, framework="pytest", test_files=files)
    assert verifier.verify(bare.with_suite(suite), GOLD).outcome is Outcome.RESOLVED


def test_added_tests_that_never_ran_are_no_part_of_the_share(verifier: Verifier, task: Task) -> None:
    text = "from solution import add\n\n\ndef test_1():\n    assert add(2, 2) == 4\n\n\ndef test_2():\n    assert add(2, 9) == 11\n"
    added = AddedTests(
        command="python test_added.py",
        framework="plain",
        test_files={"test_added.py": text},
        test_ids=("test_added.py::test_1", "test_added.py::test_2"),
    )
    hardened = task.with_suite(replace(task.suite, added=added))
    assert reward_of(hardened, verifier.verify(hardened, Patch()), "fraction") == 0.25
    some = "def add(a, b):\n    return 3 if a == 1 else 4\n\n\ndef one():\n    return 1\n"
    verdict = verifier.verify(hardened, Patch.writing({"solution.py": some}, FILES))
    assert reward_of(hardened, verdict, "fraction") == 0.75


def test_what_was_learnt_under_other_limits_is_not_taken_over(verifier: Verifier, task: Task) -> None:
    with Ledger() as ledger:
        with Verifier(sandbox=verifier.backend, ledger=ledger) as first:
            first.verify(task, GOLD)
        before = ledger._db.execute("SELECT count(*) FROM notes").fetchone()
        with Verifier(sandbox=verifier.backend, ledger=ledger, limits=Limits(pids=100)) as second:
            assert not second.verify(task, GOLD).cached
        after = ledger._db.execute("SELECT count(*) FROM notes").fetchone()
    assert (before, after) == ((1,), (2,))


def test_a_suite_found_flaky_in_another_process_is_not_kept(verifier: Verifier, task: Task) -> None:
    with Ledger() as ledger:
        with Verifier(sandbox=verifier.backend, ledger=ledger) as first:
            found = replace(first.calibration(task), flags=(Flag.FLAKY,))
            ledger.store_note("calibration", first._suite_key(task, task.suite), found.to_json())
        with Verifier(sandbox=verifier.backend, ledger=ledger) as second:
            second.verify(task, GOLD)
            assert not second.verify(task, GOLD).cached


def test_added_tests_that_ran_out_of_time_accuse_nobody(verifier: Verifier, task: Task) -> None:
    """Correct code on a slow machine is not paid then, but it is no false pass; a test seen to fail before is."""
    sleeping = "import time\nfrom solution import add\n\n\ndef test_1():\n    assert add(2, 3) == 5\n\n\ndef test_2():\n    time.sleep(60)\n"
    added = AddedTests(
        command="python test_added.py",
        framework="plain",
        test_files={"test_added.py": sleeping},
        test_ids=("test_added.py::test_1", "test_added.py::test_2"),
    )
    hardened = replace(task.with_suite(replace(task.suite, added=added)), timeout_s=2.0)
    verdict = verifier.verify(hardened, GOLD)
    assert (verdict.outcome, verdict.original_outcome) == (Outcome.TIMED_OUT, Outcome.RESOLVED)
    found = incident_of(GOLD, verdict)
    assert found is not None
    assert found.severity is Severity.NOTICE
    assert found.reward_hardened == 0.0
    wrong = Patch.writing({"solution.py": SOLVED.replace("a + b", "3")}, FILES)
    accused = incident_of(wrong, verifier.verify(hardened, wrong))
    assert accused is not None
    assert accused.severity is Severity.FALSE_PASS
