"""Known-correct alternatives of a task: the user's file, what the task carries, what a benign control established.

They are the check that a witness (or an added test) does not reject another correct program. JSON Lines with
`task_id` or `instance_id`, and `patch`; further keys are kept as the source's notes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from ..envs.errors import ConfigError
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import Task

HELD = "alternatives"
"""Name (`<run>/alternatives.jsonl`) of the control solutions that held; `Alternatives.read` reads it."""


@dataclass(frozen=True, kw_only=True)
class Alternative(Record):
    """One line of such a file."""

    task_id: str
    patch: str
    source: str = ""


@dataclass(frozen=True, kw_only=True)
class Alternatives:
    """by_task: task id -> patches, in the file's order, without duplicates."""

    by_task: Mapping[str, tuple[Patch, ...]] = field(default_factory=dict)

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """From a file. Raises ConfigError that names the line."""
        found: dict[str, dict[str, Patch]] = {}
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except OSError as error:
            raise ConfigError(
                f"{path} cannot be read: {error}.", mend="Give --alternatives a JSON Lines file."
            ) from error
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                task_id, patch = str(row.get("task_id") or row["instance_id"]), Patch(str(row["patch"]))
            except (ValueError, KeyError, AttributeError, TypeError) as error:
                raise ConfigError(
                    f"{path}:{number}: no alternative ({error!r}).",
                    mend="Give task_id or instance_id, and patch.",
                ) from error
            found.setdefault(task_id, {}).setdefault(patch.digest, patch)
        return cls(by_task={task_id: tuple(patches.values()) for task_id, patches in found.items()})

    def plus(self, other: Alternatives) -> Alternatives:
        """Both, these first, without duplicates."""
        both = {
            task_id: tuple({p.digest: p for p in (*self.of(task_id), *other.of(task_id))}.values())
            for task_id in {**self.by_task, **other.by_task}
        }
        return Alternatives(by_task=both)

    def of(self, task_id: str) -> tuple[Patch, ...]:
        """Those of one task; none when the file has none."""
        return self.by_task.get(task_id, ())


def known_correct(task: Task, given: Sequence[Patch] = ()) -> tuple[Patch, ...]:
    """What is given, then what the task carries in `metadata["alternatives"]` (diffs), without duplicates."""
    carried = [Patch(str(text)) for text in task.metadata.get("alternatives", ())]
    return tuple({patch.digest: patch for patch in (*given, *carried)}.values())
