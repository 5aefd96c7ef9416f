"""A verdict on small tasks in the local sandbox: what is paid, what is not, and why."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from dataclasses import replace

import pytest

from acidtest.envs.errors import EngineTimeout, ImageMissing, SandboxDied, SandboxError, TaskError
from acidtest.envs.ledger import Ledger
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import Sandbox, SandboxBackend, SandboxSpec
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


class Failing:
    """A backend that fails a number of times before it opens the real one."""

    name = "failing"

    def __init__(self, real: SandboxBackend, failures: int, error: SandboxError) -> None:
        self.real, self.left, self.error = real, failures, error

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        if self.left:
            self.left -= 1
            raise self.error
        return self.real.open(spec)

    def image_digest(self, image: str | None) -> str:
        return self.real.image_digest(image)

    def close(self) -> None:
        self.real.close()


def test_infrastructure_trouble_is_retried_then_raised(verifier: Verifier, weak: Task) -> None:
    gold = Patch(weak.gold_patch)
    with Ledger() as ledger:
        twice = Failing(verifier.backend, 2, SandboxDied("gone"))
        with Verifier(sandbox=twice, ledger=ledger) as patient:
            assert patient.verify(weak, gold).resolved
        assert [entry[2] for entry in ledger.attempts()] == ["SandboxDied", "SandboxDied"]
    with (
        Verifier(sandbox=Failing(verifier.backend, 3, SandboxDied("gone"))) as given_up,
        pytest.raises(SandboxDied),
    ):
        given_up.verify(weak, gold)
    with (
        Verifier(sandbox=Failing(verifier.backend, 1, ImageMissing("none"))) as final,
        pytest.raises(ImageMissing),
    ):
        final.verify(weak, gold)


class Forgetful(Failing):
    """A backend that cannot say an image's digest a number of times."""

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        return self.real.open(spec)

    def image_digest(self, image: str | None) -> str:
        if self.left:
            self.left -= 1
            raise self.error
        return self.real.image_digest(image)


def test_an_engine_that_cannot_say_an_images_digest_is_asked_again(verifier: Verifier, weak: Task) -> None:
    """The digest is part of the cache's key, which is made before the first sandbox opens."""
    gold = Patch(weak.gold_patch)
    with Ledger() as ledger:
        twice = Forgetful(verifier.backend, 2, EngineTimeout("slow"))
        with Verifier(sandbox=twice, ledger=ledger) as patient:
            assert patient.verify(weak, gold).resolved
            assert patient.verify(weak, gold).cached
        assert [entry[2] for entry in ledger.attempts()] == ["EngineTimeout", "EngineTimeout"]
    with Verifier(sandbox=Forgetful(verifier.backend, 2, EngineTimeout("slow"))) as patient:
        assert patient.reference(weak) is not None
    with Verifier(sandbox=Forgetful(verifier.backend, 2, EngineTimeout("slow"))) as patient:
        assert patient.calibration(weak).ok
    with (
        Verifier(sandbox=Forgetful(verifier.backend, 3, EngineTimeout("slow"))) as given_up,
        pytest.raises(EngineTimeout),
    ):
        given_up.verify(weak, gold)


def test_a_verdict_is_kept_and_marked(verifier: Verifier, weak: Task) -> None:
    with Ledger() as ledger, Verifier(sandbox=verifier.backend, ledger=ledger) as keeping:
        first = keeping.verify(weak, Patch(weak.gold_patch))
        second = keeping.verify(weak, Patch(weak.gold_patch))
        assert (first.cached, second.cached) == (False, True)
        assert second == replace(first, cached=True)
        fast = keeping.verify(weak, Patch(weak.gold_patch), defence="fast")
        assert not fast.cached
        assert fast.defence == "fast"


def test_threads_share_a_verifier(verifier: Verifier, weak: Task) -> None:
    patches = [Patch(weak.gold_patch), Patch(), Patch(weak.gold_patch), Patch()]
    with Verifier(sandbox=verifier.backend) as shared, ThreadPoolExecutor(4) as pool:
        rewards = list(pool.map(lambda patch: shared.verify(weak, patch).reward, patches))
    assert rewards == [1.0, 0.0, 1.0, 0.0]


def test_an_endless_suite_is_timed_out_and_pays_nothing(verifier: Verifier, weak: Task) -> None:
    endless = replace(weak, timeout_s=1.0)
    verdict = verifier.verify(endless, solution(weak, "def add(a, b):\n    while True:\n        pass\n"))
    assert verdict.outcome is Outcome.TIMED_OUT
    assert verdict.reward == 0.0


def test_a_task_without_gold_is_judged_by_its_sources(verifier: Verifier, weak: Task) -> None:
    bare = replace(weak, gold_patch="")
    verdict = verifier.verify(bare, Patch(weak.gold_patch))
    assert verdict.outcome is Outcome.RESOLVED
    assert verdict.twin is not None
    assert verdict.twin.responded == weak.suite.fail_to_pass
    assert verifier.verify(bare, Patch()).outcome is Outcome.UNRESOLVED


def test_a_test_patch_is_resolved_on_the_pristine_tree(verifier: Verifier, weak: Task) -> None:
    """Test files come from a diff; what the submission writes at their path does not count (R15)."""
    text = weak.suite.test_files["test_solution.py"]
    suite = replace(weak.suite, test_files={}, test_patch=Patch.writing({"test_solution.py": text}).text)
    task = weak.with_suite(suite)
    planted = Patch.writing({"test_solution.py": "def test_add():\n    pass\n"})
    assert verifier.verify(task, planted).outcome is Outcome.UNRESOLVED
    gold = verifier.verify(task, Patch(weak.gold_patch))
    assert gold.outcome is Outcome.RESOLVED
    assert gold.twin is not None
    assert gold.twin.responded == weak.suite.fail_to_pass
    broken = task.with_suite(replace(suite, test_patch=suite.test_patch.replace("new file", "deleted file")))
    with pytest.raises(TaskError):
        verifier.verify(broken, planted)
