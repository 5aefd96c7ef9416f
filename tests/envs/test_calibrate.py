"""Calibration of the toy tasks: every flaw is flagged under its own name, sound tasks are usable."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import pytest

from acidtest.envs.calibrate import Calibration, Flag
from acidtest.envs.ids import place_of
from acidtest.envs.ledger import Ledger
from acidtest.envs.load import load_tasks
from acidtest.envs.protocols import Exec, Op, OpResult, Sandbox, SandboxBackend, SandboxSpec
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Task
from acidtest.envs.verify import Verifier

TASKS = {task.task_id.removeprefix("toy/"): task for task in load_tasks("toy")}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


@pytest.mark.parametrize(
    ("name", "flag", "usable"),
    [
        ("broken_gold", Flag.BROKEN_GOLD, False),
        ("noop_passes", Flag.NOOP_PASSES, False),
        ("order_dependent", Flag.ORDER_DEPENDENT, True),
        ("slow", Flag.SLOW, True),
    ],
)
def test_each_flaw_has_its_flag(verifier: Verifier, name: str, flag: Flag, usable: bool) -> None:
    found = verifier.calibration(TASKS[name])
    assert flag in found.flags
    assert found.ok is usable
    assert len(found.reasons) == len(found.flags)


def test_a_coin_is_no_suite(verifier: Verifier) -> None:
    """It passes two runs in five: five runs in a row look like broken gold in 8 cases of 100, sound in 1 of 100."""
    for _ in range(3):
        found = verifier.calibration(TASKS["flaky"])
        if not found.ok:
            break
    assert not found.ok
    assert set(found.flags) & {Flag.FLAKY, Flag.BROKEN_GOLD}


class Numbered:
    """A backend that tells every run the number of its sandbox (variable OPEN, from 1), and counts runs that share one."""

    name = "numbered"

    def __init__(self, real: SandboxBackend) -> None:
        self.real, self.opened, self.shared = real, 0, 0

    @contextmanager
    def open(self, spec: SandboxSpec) -> Iterator[Sandbox]:
        self.opened += 1
        told, ran = {"OPEN": str(self.opened)}, 0
        with self.real.open(spec) as sandbox:
            real = sandbox.script

            def script(ops: Sequence[Op]) -> tuple[OpResult, ...]:
                nonlocal ran
                ran += sum(isinstance(op, Exec) and op.channel is not None for op in ops)
                self.shared += ran > 1
                return real(
                    [replace(op, env={**op.env, **told}) if isinstance(op, Exec) else op for op in ops]
                )

            sandbox.script = script  # type: ignore[method-assign]
            yield sandbox

    def image_digest(self, image: str | None) -> str:
        return self.real.image_digest(image)

    def close(self) -> None:
        self.real.close()


def calibrated(failing: int) -> tuple[Calibration, Numbered]:
    """Of a sound task whose gold fails in the sandbox of that number (0: in none)."""
    task = TASKS["add_sound"]
    where = f"import os\nassert os.environ['OPEN'] != '{failing}'\n"
    files = {path: where + text for path, text in task.suite.test_files.items()}
    backend = Numbered(open_backend("local"))
    try:
        with Verifier(sandbox=backend) as verifier:
            return verifier.calibration(replace(task, suite=replace(task.suite, test_files=files))), backend
    finally:
        backend.close()


def test_gold_that_fails_once_is_flagged_whichever_run_it_was() -> None:
    """Every run has a sandbox of its own, so each is a chance to see what fails now and then."""
    sound, backend = calibrated(0)
    assert sound.ok
    assert backend.shared == 0
    assert sound.gold_runs == 5
    flags = [calibrated(number)[0].flags for number in range(1, backend.opened + 1)]
    unusable = [bool({Flag.FLAKY, Flag.BROKEN_GOLD} & set(found)) for found in flags]
    assert unusable == [True, False, False] + 6 * [True], (
        "all but gold's twin and the no-op, which fail anyway"
    )


@pytest.mark.parametrize("name", ["add_sound", "tamperable", "too_narrow", "slug_unittest"])
def test_a_sound_task_is_usable(verifier: Verifier, name: str) -> None:
    task = TASKS[name]
    found = verifier.calibration(task)
    assert found.ok
    assert found.flags == ()
    assert found.gold_passed == found.gold_runs >= 2
    assert found.shuffled_passed == found.shuffled_runs
    assert (found.shuffled_runs > 0) is (len(task.suite.expected_ids) > 1)
    assert found.compared_passed == found.compared > 0
    assert found.twin_responsive == found.with_beacons == len(task.suite.expected_ids)
    assert Calibration.from_json(found.to_json()) == found


def test_a_suite_that_cannot_be_prepared_is_a_flag(verifier: Verifier) -> None:
    task = TASKS["add_sound"]
    for suite in (
        replace(task.suite, framework="no_such_framework"),
        replace(task.suite, command="make check"),
    ):
        found = verifier.calibration(task.with_suite(suite))
        assert found.flags == (Flag.BROKEN_SUITE,)
        assert not found.ok


def test_an_id_that_no_test_answers_to_is_excluded_and_listed(verifier: Verifier) -> None:
    task: Task = TASKS["add_sound"]
    odd = replace(task.suite, pass_to_pass=("[100%]", "test_solution.py::test_gone"))
    found = verifier.calibration(task.with_suite(odd))
    assert set(found.ids_excluded) == {"[100%]", "test_solution.py::test_gone"}
    assert Flag.IDS_EXCLUDED in found.flags
    assert found.ok


def with_a_file_that_gold_cannot_import(kept: int, lost: int) -> Task:
    task: Task = TASKS["add_sound"]
    head = "from solution import add\n"
    files = {
        "test_kept.py": head
        + "".join(f"\n\ndef test_{n}():\n    assert add({n}, 1) == {n + 1}\n" for n in range(kept)),
        "test_lost.py": "import no_such_module\n"
        + "".join(f"\n\ndef test_{n}():\n    pass\n" for n in range(lost)),
    }
    names = [f"test_kept.py::test_{n}" for n in range(kept)] + [
        f"test_lost.py::test_{n}" for n in range(lost)
    ]
    suite = replace(
        task.suite,
        command="python -m pytest -q --continue-on-collection-errors test_kept.py test_lost.py",
        framework="pytest",
        test_files=files,
        fail_to_pass=("test_kept.py::test_0",),
        pass_to_pass=tuple(names[1:]),
    )
    return task.with_suite(suite)


def test_a_file_that_gold_cannot_import_is_named(verifier: Verifier) -> None:
    with Verifier(sandbox=verifier.backend, gold_runs=2) as quick:
        found = quick.calibration(with_a_file_that_gold_cannot_import(kept=11, lost=2))
    assert found.ok
    assert len(found.ids_excluded) == 2
    (reason,) = [reason for reason in found.reasons if "do not count" in reason]
    assert "2 of 12 PASS_TO_PASS ids" in reason
    assert "gold ran no test of test_lost.py (2 ids)" in reason


def test_a_suite_that_loses_a_large_share_is_not_used(verifier: Verifier) -> None:
    with Verifier(sandbox=verifier.backend, gold_runs=2) as quick:
        found = quick.calibration(with_a_file_that_gold_cannot_import(kept=7, lost=2))
    assert not found.ok
    assert Flag.BROKEN_SUITE in found.flags
    assert any("2 of 8 PASS_TO_PASS ids" in reason for reason in found.reasons)


@pytest.mark.parametrize(
    ("framework", "ident", "place"),
    [
        ("pytest", "tests/test_a.py::C::test_b[x]", "tests/test_a.py"),
        ("django", "test_x (app.tests.Cls)", "app.tests.Cls"),
        ("unittest", "app.tests.Cls.test_x", "app.tests.Cls"),
        ("sympy", "sympy/core/tests/test_a.py:test_b", "sympy/core/tests/test_a.py"),
        ("sympy", "test_b", ""),
        ("django", "Named URLs should be reversible", ""),
    ],
)
def test_where_an_id_says_that_it_stands(framework: str, ident: str, place: str) -> None:
    assert place_of(ident) == place


def test_the_ledger_keeps_it(verifier: Verifier) -> None:
    with Ledger() as ledger:
        with Verifier(sandbox=verifier.backend, ledger=ledger) as first:
            found = first.calibration(TASKS["add_sound"])
        with Verifier(sandbox=verifier.backend, ledger=ledger) as second:
            assert second.calibration(TASKS["add_sound"]) == found
