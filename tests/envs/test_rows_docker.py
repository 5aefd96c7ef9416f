"""A real row of each runner in Docker: gold is paid, the no-op is not (all 60 rows: test_rows_campaign.py)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

pytestmark = [pytest.mark.docker, pytest.mark.data]
ROWS = ("django__django-16901", "pallets__flask-5014", "sympy__sympy-23950", "pytest-dev__pytest-10051")


@pytest.fixture(scope="module")
def verifier(engine: str) -> Iterator[Verifier]:
    with Verifier(sandbox="docker") as opened:
        yield opened


@pytest.mark.parametrize("row", ROWS)
def test_gold_is_paid_and_the_no_op_is_not(
    verifier: Verifier, sdist_image: Callable[[str], str], data_dir: Path, row: str
) -> None:
    sdist_image(row)
    (task,) = load_tasks(str(data_dir), task_ids=[row])
    reference = verifier.reference(task)
    assert reference is not None
    assert reference.resolved
    assert reference.unresponsive == ()
    assert set(reference.excluded) == set()
    gold = verifier.verify(task, Patch(task.gold_patch))
    assert gold.outcome is Outcome.RESOLVED, gold.evidence
    assert gold.notices == ()
    assert gold.twin is not None
    assert set(gold.twin.responded) == set(gold.twin.chosen)
    assert verifier.verify(task, Patch()).outcome is Outcome.UNRESOLVED
