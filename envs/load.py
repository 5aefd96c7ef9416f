"""`load_tasks`: tasks from a name, a file or a folder, as plain `Task` records.

A source is one of
- a name: a file of `envs/datasets/` (``toy``, ``humaneval``, ``swe-bench-verified`` …) or a dotted path of
  the user's own module;
- a path: the adapter is picked by what the file holds (columns of its first row, files of a folder);
- ``name:path``: that adapter on that path, nothing guessed.

An adapter is a module with ``load(source, split) -> Iterator[Task]`` and, optionally, ``NAMES`` (further
names it answers to) and ``claims(path, columns) -> int`` (how sure it is that a path is its own: 0 not at all,
100 certain; the highest wins).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import ModuleType
from typing import Any, cast

from . import registry
from .errors import ConfigError, TaskError, UnknownName
from .task import Task

PACKAGE = "acidtest.envs.datasets"


def load_tasks(
    source: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    task_ids: Iterable[str] | None = None,
    exclusions: str | Path | Mapping[str, Sequence[str]] | None = None,
) -> list[Task]:
    """The tasks of a source in its own order.

    limit: at most so many, taken after `task_ids`. task_ids: only these, in the source's order.
    exclusions: task id -> test ids that need not pass on this machine, or the JSON file that holds such a mapping;
    they join a suite's own `exclude_ids`.
    Raises UnknownName (no such source), ConfigError (split, id or limit off), TaskError (a row that cannot be
    used: names row, field and mend).
    """
    if limit is not None and limit < 0:
        raise ConfigError(f"limit is {limit}.", mend="Give 0 or more.")
    tasks = iter_tasks(source, split=split)
    if exclusions is not None:
        tasks = map(partial(_excluding, read_exclusions(exclusions)), tasks)
    if task_ids is None:
        return list(islice(tasks, limit))
    wanted = set(task_ids)
    chosen = [task for task in tasks if task.task_id in wanted]
    missing = sorted(wanted - {task.task_id for task in chosen})
    if missing:
        shown = ", ".join(missing[:5]) + (" …" if len(missing) > 5 else "")
        raise ConfigError(
            f"{source} has no task {shown}.", mend="Task ids are printed by `acidtest validate`."
        )
    return chosen[:limit]


def read_exclusions(exclusions: str | Path | Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
    """The mapping itself, or read from a JSON file; raises ConfigError where it has another form."""
    value: Any = exclusions
    if isinstance(exclusions, str | Path):
        try:
            value = json.loads(Path(exclusions).expanduser().read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"{exclusions}: {error}.", mend="Give a JSON file: task id -> list of ids."
            ) from error
    for task_id, ids in value.items() if isinstance(value, Mapping) else [("the whole", None)]:
        if not isinstance(ids, list | tuple) or not all(isinstance(i, str) for i in ids):
            raise ConfigError(
                f"Exclusions: {task_id} is no list of ids.", mend="Map a task id to a list of test ids."
            )
    return cast("Mapping[str, Sequence[str]]", value)


def _excluding(exclusions: Mapping[str, Sequence[str]], task: Task) -> Task:
    more = exclusions.get(task.task_id, ())
    if not more:
        return task
    ids = tuple(dict.fromkeys((*task.suite.exclude_ids, *more)))
    return task.with_suite(replace(task.suite, exclude_ids=ids))


def iter_tasks(source: str | Path, *, split: str | None = None) -> Iterator[Task]:
    """Like `load_tasks`, one at a time; ids that come twice raise TaskError."""
    module, argument = adapter_for(source)
    seen: set[str] = set()
    for task in module.load(argument, split):
        if task.task_id in seen:
            raise TaskError(f"{source}: task id {task.task_id!r} comes twice.", mend="Ids must be unique.")
        seen.add(task.task_id)
        yield task


def adapter_for(source: str | Path) -> tuple[ModuleType, str]:
    """The adapter module of a source and the argument for its `load`."""
    text = str(source)
    if isinstance(source, str) and not Path(text).exists():
        name, colon, rest = text.partition(":")
        if colon and rest and Path(rest).expanduser().exists():
            return find_adapter(name), str(Path(rest).expanduser())
        if "/" not in text and not text.endswith((".jsonl", ".json", ".parquet")):
            return find_adapter(text), text
        raise ConfigError(
            f"No file or folder {text!r}.", mend="Give a path that exists or a data set's name."
        )
    return claimant(Path(text)), text


def find_adapter(name: str) -> ModuleType:
    """The adapter for a name: file names first, then `NAMES` of every adapter, then a dotted path."""
    files = registry.names(PACKAGE)
    wanted = name.replace("_", "-")
    if wanted in files or "." in name:
        return registry.find(PACKAGE, name)
    known = set(files)
    for file in files:
        module = registry.find(PACKAGE, file)
        names = tuple(getattr(module, "NAMES", ()))
        if wanted in names:
            return module
        known.update(names)
    raise UnknownName(
        f"No data set named {name!r}.", mend=f"There are: {', '.join(sorted(known))}; or give a path."
    )


def claimant(path: Path) -> ModuleType:
    """The adapter that is surest of a path; raises ConfigError where none claims it."""
    columns = columns_of(path)
    best: tuple[int, ModuleType | None] = (0, None)
    for name in registry.names(PACKAGE):
        module = registry.find(PACKAGE, name)
        claims = getattr(module, "claims", None)
        score = claims(path, columns) if claims else 0
        if score > best[0]:
            best = (score, module)
    if best[1] is None:
        _refuse_unreadable(path)
        held = f"columns {', '.join(sorted(columns)[:12])}" if columns else "no rows that could be read"
        raise ConfigError(f"{path}: no data set adapter knows it ({held}).", mend="See docs/datasets.md.")
    return best[1]


def _refuse_unreadable(path: Path) -> None:
    """Raise TaskError with line and cause where the first row of a JSONL file is no JSON object, or there is none."""
    if path.suffix not in (".jsonl", ".ndjson") or not path.is_file():
        return
    with path.open(encoding="utf-8", errors="replace") as file:
        number, line = next(((n, text) for n, text in enumerate(file, 1) if text.strip()), (0, ""))
    if not number:
        raise TaskError(f"{path}: no row in it.", mend="Each line is one JSON object, see docs/datasets.md.")
    try:
        value = json.loads(line)
    except ValueError as error:
        raise TaskError(
            f"{path}: line {number}: not JSON ({error}).", mend="Each row is one JSON object."
        ) from error
    if not isinstance(value, dict):
        raise TaskError(f"{path}: line {number}: a row is a JSON object, not {type(value).__name__}.")


def columns_of(path: Path) -> frozenset[str]:
    """Field names of the first row of a parquet, JSONL or JSON file; empty for folders and anything else."""
    if path.is_dir():
        return frozenset()
    if path.suffix == ".parquet":
        import pyarrow.parquet as pq

        return frozenset(pq.read_schema(path).names)
    with path.open(encoding="utf-8", errors="replace") as file:
        first = next((line.strip() for line in file if line.strip()), "")
        if path.suffix == ".json" or first in ("[", "{"):
            file.seek(0)
            first = file.read()
    try:
        row = json.loads(first)
    except ValueError:
        return frozenset()
    if isinstance(row, list):
        row = row[0] if row else {}
    return frozenset(row) if isinstance(row, dict) else frozenset()
