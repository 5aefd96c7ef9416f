"""Calibration of the toy tasks: every flaw is flagged under its own name, sound tasks are usable."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from acidtest.envs.calibrate import Calibration, Flag
from acidtest.envs.ledger import Ledger
from acidtest.envs.load import load_tasks
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


def test_the_ledger_keeps_it(verifier: Verifier) -> None:
    with Ledger() as ledger:
        with Verifier(sandbox=verifier.backend, ledger=ledger) as first:
            found = first.calibration(TASKS["add_sound"])
        with Verifier(sandbox=verifier.backend, ledger=ledger) as second:
            assert second.calibration(TASKS["add_sound"]) == found
