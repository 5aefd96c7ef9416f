"""Campaign: every row of `verified_on_sdists.csv` in Docker, calibrated and judged; figures go to docs/measurements.md.

Cheap rows come first. ACIDTEST_GOLD_RUNS=2 makes calibrations short. ACIDTEST_CAMPAIGN=FOLDER keeps a ledger (an interrupted campaign resumes) and `rows.jsonl`, one line a row.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.ledger import Ledger
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

pytestmark = [pytest.mark.campaign, pytest.mark.docker, pytest.mark.data, pytest.mark.timeout(0)]
DATA = Path(os.environ.get("ACIDTEST_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")
TASKS: list[Task] = list(load_tasks(f"sdists:{DATA}")) if (DATA / "verified_on_sdists.csv").is_file() else []
TASKS.sort(key=lambda task: float(task.metadata["seconds_gold"]))
RUNS = int(os.environ.get("ACIDTEST_GOLD_RUNS", "0")) or None
CHOSEN = re.compile(os.environ.get("ACIDTEST_ROWS", ""))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    named = os.environ.get("ACIDTEST_CAMPAIGN")
    place = Path(named) if named else tmp_path_factory.mktemp("campaign")
    place.mkdir(parents=True, exist_ok=True)
    return place


@pytest.fixture(scope="module")
def verifier(engine: str, folder: Path) -> Iterator[Verifier]:
    with (
        Ledger(folder / "ledger.sqlite") as ledger,
        Verifier(sandbox="docker", ledger=ledger, gold_runs=RUNS) as opened,
    ):
        yield opened


def alternatives(task: Task) -> list[Patch]:
    rows = [json.loads(line) for line in (DATA / "alternatives_dev.jsonl").read_text().splitlines()]
    return [Patch(row["patch"]) for row in rows if row["instance_id"] == task.task_id]


@pytest.mark.parametrize("task", [t for t in TASKS if CHOSEN.search(t.task_id)], ids=lambda t: t.task_id)
def test_row(task: Task, verifier: Verifier, folder: Path) -> None:
    """Gold is paid, the no-op and an empty-handed gold are not, independent correct patches are, nothing differs."""
    found = verifier.calibration(task)
    gold = verifier.verify(task, Patch(task.gold_patch))
    others = [verifier.verify(task, patch) for patch in alternatives(task)]
    line = {
        "task": task.task_id,
        "calibration": found.to_dict(),
        "gold": gold.outcome,
        "gold_seconds": dict(gold.seconds),
        "gold_evidence": gold.evidence,
        "alternatives": [[v.outcome, v.evidence, [n.to_dict() for n in v.notices]] for v in others],
    }
    with (folder / "rows.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    assert found.ok, found.reasons
    assert found.noop_outcome != Outcome.RESOLVED
    assert found.differing == ()
    assert gold.outcome is Outcome.RESOLVED, gold.evidence
    assert gold.notices == ()
    assert [v.outcome for v in others] == [Outcome.RESOLVED] * len(others), [v.evidence for v in others]
