"""Read what `load_tasks(audit=…)` is given: a run folder, an audit, or records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..envs.errors import ConfigError
from ..envs.task import Task


def records_of(audit: Any) -> dict[str, Any]:
    """Audit records by task_id. Raises ConfigError when there are none to be found."""
    if isinstance(audit, str | Path):
        raise ConfigError(f"{audit} holds no audit.")
    found = getattr(audit, "records", audit)
    if isinstance(found, Mapping):
        found = found.values()
    if not isinstance(found, Iterable):
        raise ConfigError(
            f"{type(audit).__name__} is no audit.", mend="Give a run folder, an Audit or records."
        )
    return {record.task_id: record for record in found}


def eqs_served(task: Task, record: Any) -> float | None:
    """EQS of the suite that is served: the hardened one's where the task was hardened and it is known."""
    if task.suite.added is not None and getattr(record, "hardened_eqs", None) is not None:
        return float(record.hardened_eqs)
    return None if record.eqs is None else float(record.eqs)
