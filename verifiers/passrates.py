"""Pass@1 from outside (`--pass-at-1`): successes and trials per task, from which D is computed.

Forms: a table (parquet, CSV) with one row a submission and one 0/1 column a task, or rows with `task_id` (or
`instance_id`), `k` successes and `n` trials (parquet, CSV, JSONL).
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from ..envs.errors import ConfigError

if TYPE_CHECKING:
    import pandas as pd

ID_COLUMNS = ("task_id", "instance_id")


class PassRates:
    """counts: task_id -> (successes, trials)."""

    def __init__(self, counts: Mapping[str, tuple[int, int]] | None = None) -> None:
        self.counts = dict(counts or {})

    def of(self, task_id: str) -> tuple[int, int] | None:
        return self.counts.get(task_id)

    @classmethod
    def read(cls, path: str | Path) -> PassRates:
        """Raises ConfigError that names the file and what is off."""
        table = _table(Path(path))
        ids = next((c for c in ID_COLUMNS if c in table.columns), None)
        if ids and {"k", "n"} <= set(table.columns):
            rows = zip(table[ids].astype(str), table["k"].astype(int), table["n"].astype(int), strict=True)
            counts = {task: (int(k), int(n)) for task, k, n in rows}
        else:
            counts = _from_matrix(table, path)
        wrong = next((t for t, (k, n) in counts.items() if not 0 <= k <= n), None)
        if wrong is not None:
            raise ConfigError(f"{path}: task {wrong} has {counts[wrong][0]} successes of {counts[wrong][1]}.")
        return cls(counts)


def _from_matrix(table: pd.DataFrame, path: str | Path) -> dict[str, tuple[int, int]]:
    """One 0/1 column a task; other columns (names, dates) are left out; missing cells are no trials."""
    import pandas as pd

    counts = {}
    for name in table.columns:
        values = pd.to_numeric(table[name], errors="coerce") if table[name].dtype != bool else table[name]
        values = values.dropna()
        if len(values) and values.isin([0, 1]).all():
            counts[str(name)] = (int(values.sum()), len(values))
    if not counts:
        raise ConfigError(
            f"{path}: no 0/1 column and no columns task_id, k, n.",
            mend="Give one row a submission and one 0/1 column a task, or rows of task_id, k, n.",
        )
    return counts


def _table(path: Path) -> pd.DataFrame:
    import pandas as pd

    try:
        if path.suffix == ".parquet":
            return pd.read_parquet(path)
        if path.suffix == ".csv":
            return pd.read_csv(path)
        return pd.read_json(path, lines=True)
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path}: {error}.", mend="Give a parquet, CSV or JSONL file.") from error
