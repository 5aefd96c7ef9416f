"""Options that several commands share, declared once. Defaults of an audit stand in `verifiers/audit_config.py`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..envs.errors import ConfigError

if TYPE_CHECKING:
    from ..envs.task import Task

Source = Annotated[str, typer.Argument(help="Data set name, file, folder, or NAME:PATH.")]
Limit = Annotated[int | None, typer.Option("--limit", "-n", min=1, help="At most so many tasks.")]
TaskIds = Annotated[list[str] | None, typer.Option("--task", "-t", help="Only this task (repeatable).")]
Split = Annotated[str | None, typer.Option(help="Split of the data set.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=0, help="Tasks at a time; 0: one per core.")]
Seed = Annotated[int, typer.Option(help="Seed of everything random.")]
SandboxName = Annotated[
    str, typer.Option("--sandbox", help="docker, local or fake; default: docker where an engine answers.")
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON instead of a table.")]
RunPath = Annotated[Path, typer.Argument(help="Run directory (--out of an audit).")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress.")]


def chosen(source: str, split: str | None, limit: int | None, task_ids: list[str] | None) -> list[Task]:
    """The tasks of a source after --split, --task and --limit. Raises ConfigError when none is left."""
    from ..envs.load import load_tasks

    tasks = load_tasks(source, split=split, limit=limit, task_ids=task_ids or None)
    if not tasks:
        raise ConfigError(f"{source} has no task.", mend="Check --split, --limit and --task.")
    return tasks
