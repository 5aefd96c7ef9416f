"""Reads a results matrix, the tasks' strata and the two lists of tasks (flagged, audited).

Matrix: a table (parquet or CSV) with one row per submission, a column `submission`, and one 0/1 column per
task. Tasks: a CSV with `instance_id` and one column per stratum. Submissions: a CSV with `submission` and
any of `date`, `board`. Lists: a text file (one id a line), a JSON list, or a run directory.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from ...envs.errors import ConfigError

Array = NDArray[np.float64]
Codes = NDArray[np.int64]
Flags = NDArray[np.bool_]

HACKABLE = "hackable"
UNDECIDED = "UNDECIDED"


@dataclass(frozen=True, kw_only=True)
class Results:
    """Who solved what. `solved` is (submissions, tasks), 0.0 or 1.0.

    columns: stratum name -> label per task. submission_columns: name -> label per submission.
    """

    solved: Array
    submissions: tuple[str, ...]
    tasks: tuple[str, ...]
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    submission_columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    def restricted(self, keep: Iterable[str]) -> Self:
        """Only these tasks, in the matrix's order."""
        wanted = set(keep)
        index = [i for i, task in enumerate(self.tasks) if task in wanted]
        columns = {name: tuple(values[i] for i in index) for name, values in self.columns.items()}
        return replace(
            self, solved=self.solved[:, index], tasks=tuple(self.tasks[i] for i in index), columns=columns
        )

    def codes(self, names: Sequence[str]) -> tuple[Codes, tuple[str, ...]]:
        """Stratum number per task for the crossing of the named columns, and the strata's labels.

        No names: one stratum. Raises ConfigError for a column that does not exist.
        """
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise ConfigError(
                f"No stratum column {missing[0]!r} for these tasks.",
                mend=f"There are: {', '.join(self.columns) or 'none'}; give a table with --tasks.",
            )
        labels = [" × ".join(parts) for parts in zip(*(self.columns[n] for n in names), strict=True)]
        if not names:
            labels = ["all"] * len(self.tasks)
        known = tuple(sorted(set(labels)))
        place = {label: i for i, label in enumerate(known)}
        return np.array([place[label] for label in labels], dtype=np.int64), known

    def mask(self, ids: Iterable[str]) -> Flags:
        wanted = set(ids)
        return np.array([task in wanted for task in self.tasks], dtype=bool)


def load_results(matrix: Path, tasks: Path | None = None, submissions: Path | None = None) -> Results:
    """The matrix with its two side tables; each falls back to a `*instances.csv` / `*submissions.csv` beside it."""
    frame = _table(matrix)
    if "submission" not in frame.columns:
        raise ConfigError(f"{matrix} has no column 'submission'.", mend="One row per submission is needed.")
    names = tuple(str(value) for value in frame["submission"])
    columns = [str(column) for column in frame.columns if column != "submission"]
    solved = _zero_one(frame[columns], matrix)
    if len(set(names)) != len(names) or len(set(columns)) != len(columns):
        raise ConfigError(
            f"{matrix} names a submission or a task twice.", mend="Give each one row or column."
        )
    task_columns = _side(tasks or _beside(matrix, "*instances.csv"), ("instance_id", "task_id"), columns)
    if "repo" not in task_columns and all("__" in name for name in columns):
        task_columns["repo"] = tuple(name.rsplit("-", 1)[0].replace("__", "/") for name in columns)
    return Results(
        solved=solved,
        submissions=names,
        tasks=tuple(columns),
        columns=task_columns,
        submission_columns=_side(
            submissions or _beside(matrix, "*submissions.csv"), ("submission",), list(names)
        ),
    )


def read_flags(source: str, known: Sequence[str]) -> tuple[str, ...]:
    """Ids of the flagged tasks: of a list file, or those a run's audit calls hackable."""
    path = Path(source)
    if not path.is_dir():
        return _listed(path, known)
    records = run_records(path)
    return tuple(r["task_id"] for r in records if HACKABLE in r.get("flags", ()))


def read_audited(source: str, known: Sequence[str]) -> tuple[str, ...]:
    """Ids of the tasks that were looked at: "all", a list file, or a run's decided and unbroken records."""
    if source == "all":
        return tuple(known)
    path = Path(source)
    if not path.is_dir():
        return _listed(path, known)
    return tuple(r["task_id"] for r in run_records(path) if audited_record(r))


def audited_record(record: Mapping[str, Any]) -> bool:
    """Whether a run's record is an answer: no error, no broken task, and decided (or proven hackable)."""
    if record.get("error") or record.get("broken"):
        return False
    decision = (record.get("score") or {}).get("decision", UNDECIDED)
    return HACKABLE in record.get("flags", ()) or decision != UNDECIDED


def run_records(run: Path) -> list[dict[str, Any]]:
    """The last record of every task in a run's `audit.jsonl`."""
    path = run / "audit.jsonl"
    if not path.is_file():
        raise ConfigError(
            f"{run} holds no audit.jsonl.", mend="Give an audit's run directory, or a list of ids."
        )
    records: dict[str, dict[str, Any]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        try:
            record = json.loads(line)
        except json.JSONDecodeError:
            continue  # a line cut by a kill: the task is audited again on resume
        if isinstance(record, dict) and "task_id" in record:
            records[str(record["task_id"])] = record
    return list(records.values())


def _listed(path: Path, known: Sequence[str]) -> tuple[str, ...]:
    if not path.is_file():
        raise ConfigError(f"No file or run directory {path}.", mend="Give one id a line, or a run directory.")
    text = path.read_text(encoding="utf-8")
    if text.lstrip().startswith("["):
        ids = [str(value) for value in json.loads(text)]
    else:
        ids = [line.split("#", 1)[0].split(",", 1)[0].strip() for line in text.splitlines()]
    ids = list(dict.fromkeys(i for i in ids if i and i not in ("instance_id", "task_id")))
    unknown = sorted(set(ids) - set(known))
    if unknown:
        raise ConfigError(
            f"{path} names {len(unknown)} tasks that the matrix does not have, e.g. {unknown[0]!r}.",
            mend="Take them out, or give the matrix they belong to.",
        )
    return tuple(ids)


def _table(path: Path) -> Any:
    import pandas as pd

    if not path.is_file():
        raise ConfigError(f"No results file {path}.", mend="Give a parquet or CSV matrix with --results.")
    if path.suffix == ".csv":
        return pd.read_csv(path)
    return pd.read_parquet(path)


def _zero_one(frame: Any, path: Path) -> Array:
    values = frame.to_numpy(dtype=np.float64)
    if not np.isin(values, (0.0, 1.0)).all():
        raise ConfigError(
            f"{path} holds {int((~np.isin(values, (0.0, 1.0))).sum())} cells that are neither 0 nor 1.",
            mend="Write 1 for resolved, 0 for not; leave out submissions with missing results.",
        )
    return np.ascontiguousarray(values)


def _beside(path: Path, pattern: str) -> Path | None:
    found = sorted(path.parent.glob(pattern))
    return found[0] if len(found) == 1 else None


def _side(path: Path | None, keys: Sequence[str], ids: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Columns of a side table, in the order of `ids`; numbers and labels alike as text."""
    if path is None:
        return {}
    frame = _table(path)
    key = next((key for key in keys if key in frame.columns), None)
    if key is None:
        raise ConfigError(f"{path} has no column {keys[0]!r}.", mend="It is what rows are matched by.")
    frame = frame.drop_duplicates(key).set_index(key)
    absent = [name for name in ids if name not in frame.index]
    if absent:
        raise ConfigError(f"{path} lacks {len(absent)} of the matrix's rows, e.g. {absent[0]!r}.")
    chosen = frame.loc[list(ids)]
    return {str(name): tuple(str(value) for value in chosen[name]) for name in chosen.columns}
