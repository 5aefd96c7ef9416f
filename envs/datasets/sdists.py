"""Data set `sdists`: Verified rows that run faithfully on a PyPI source distribution, in images built here.

The source is a folder with `swebench_verified.parquet`, `verified_on_sdists.csv` (instance_id, install,
test_command, seconds_gold, …) and `p2p_exclusions.json` (instance_id -> official ids that do not exist or do not
hold there). The name alone takes the folder from ACIDTEST_DATA. Metadata adds: sdist (name and version),
requirements, seconds_gold, notes.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..errors import ConfigError, TaskError
from ..images import image_name
from ..task import Task
from . import _swe, swe_bench
from ._rows import need, read_rows

ROWS, TABLE, EXCLUSIONS = "swebench_verified.parquet", "verified_on_sdists.csv", "p2p_exclusions.json"


def claims(path: Path, columns: frozenset[str]) -> int:
    """95 for a folder that holds the table."""
    return 95 if path.is_dir() and (path / TABLE).is_file() else 0


def load(source: str = "sdists", split: str | None = None) -> Iterator[Task]:
    """Yield the rows of the table, in its order, joined with the official rows."""
    folder = _folder(source)
    rows = {row["instance_id"]: (where, row) for where, row in read_rows(folder / ROWS)}
    exclusions = json.loads((folder / EXCLUSIONS).read_text(encoding="utf-8"))
    with (folder / TABLE).open(encoding="utf-8", newline="") as file:
        for entry in csv.DictReader(file):
            instance = entry["instance_id"]
            if instance not in rows:
                raise TaskError(
                    f"{TABLE}: {instance} is not in {ROWS}.", mend="Drop the row or complete the parquet."
                )
            where, row = rows[instance]
            yield _task(swe_bench.task_of(row, where, dataset="sdists"), entry, exclusions.get(instance, ()))


def _task(task: Task, entry: dict[str, str], excluded: list[str]) -> Task:
    where = f"{TABLE} ({task.task_id})"
    suite = replace(
        task.suite,
        command=need(entry, "test_command", where),
        exclude_ids=tuple(excluded),
        env=_environment(task, entry["install"]),
    )
    seconds = float(entry["seconds_gold"] or 60)
    return replace(
        task,
        image=image_name(task.task_id),
        suite=suite,
        timeout_s=max(120.0, 15 * seconds),
        metadata={
            **task.metadata,
            "sdist": f"{entry['pypi_name']} {entry['sdist_version']}",
            "requirements": entry["requirements"].split(";"),
            "seconds_gold": seconds,
            "notes": entry["notes"],
        },
    )


def _environment(task: Task, install: str) -> dict[str, str]:
    """PYTHONPATH as the table says ("PYTHONPATH=$TREE/src (…)"), and what the repository needs."""
    path = install.split()[0].removeprefix("PYTHONPATH=").replace("$TREE", task.workdir)
    env = {**_swe.ENVIRONMENT.get(task.metadata["repo"], {}), "PYTHONPATH": path}
    if task.metadata["repo"] == "sympy/sympy":
        env["SYMPY_USE_CACHE"] = "no"
    return env


def _folder(source: str) -> Path:
    text = os.environ.get("ACIDTEST_DATA", "") if source == "sdists" else source
    folder = Path(text).expanduser()
    if not text or not (folder / TABLE).is_file():
        raise ConfigError(
            f"Data set 'sdists' needs a folder with {TABLE}; {text or 'ACIDTEST_DATA is not set'!r}.",
            mend="Set ACIDTEST_DATA or write sdists:FOLDER.",
        )
    return folder
