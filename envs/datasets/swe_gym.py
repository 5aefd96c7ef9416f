"""Data set `swe-gym`: rows of SWE-Gym, from the hub or a local parquet/JSONL file.

SWE-bench's columns; FAIL_TO_PASS and PASS_TO_PASS are lists, JSON strings, or (as some exports have them) Python
literals. The images are those of the SWE-Gym authors; tests run by pytest, as their harness does.
Metadata: as for `swe-bench`.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from ..task import Task
from . import swe_bench
from ._rows import Row, literal_list, read_rows, rows_of

NAMES = ("swe-gym", "swe-gym-lite")
HUB = {"swe-gym": "SWE-Gym/SWE-Gym", "swe-gym-lite": "SWE-Gym/SWE-Gym-Lite"}
REPOSITORIES = frozenset(
    [
        "getmoto/moto",
        "pandas-dev/pandas",
        "python/mypy",
        "Project-MONAI/MONAI",
        "conan-io/conan",
        "dask/dask",
        "iterative/dvc",
        "pydantic/pydantic",
        "facebookresearch/hydra",
        "bokeh/bokeh",
        "modin-project/modin",
    ]
)


def claims(path: Path, columns: frozenset[str]) -> int:
    """80 for a file with SWE-bench's columns whose first row is of a SWE-Gym repository."""
    if not columns >= swe_bench.COLUMNS:
        return 0
    first = next(read_rows(path), None)
    return 80 if first is not None and first[1].get("repo") in REPOSITORIES else 0


def load(source: str = "swe-gym", split: str | None = None) -> Iterator[Task]:
    """Yield the tasks of a hub name (NAMES) or of a local file."""
    for where, row in rows_of(source, HUB, split or "train"):
        yield task_of(row, where)


def task_of(row: Row, where: str) -> Task:
    """One row as a task; raises TaskError naming row, field and mend."""
    lists = {field: literal_list(row.get(field)) for field in ("FAIL_TO_PASS", "PASS_TO_PASS")}
    task = swe_bench.task_of({**row, **lists}, where, dataset="swe-gym")
    return replace(task, image=row.get("image") or row.get("image_name") or image_of(task.task_id))


def image_of(instance_id: str) -> str:
    """The published image of a SWE-Gym instance."""
    return f"xingyaoww/sweb.eval.x86_64.{instance_id.replace('__', '_s_')}:latest".lower()
