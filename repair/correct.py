"""Programs that are known to be correct: the control that tells a strict test from a test that is too strict.

Three sources: alternatives that the task carries (`metadata["alternatives"]`, diffs), alternatives from a file
(JSON Lines with `task_id` or `instance_id` and `patch`), behaviour-preserving variants of gold. One that the original
suite itself does not pay is left out and named: the suite, not the added test, refuses it.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..envs.errors import ConfigError
from ..envs.patch import Patch
from ..envs.task import Task
from .bench import Judge

Alternatives = Mapping[str, tuple[Patch, ...]]


@dataclass(frozen=True)
class Correct:
    """patches: name -> program that must pass. left_out: name -> why it can't serve."""

    patches: Mapping[str, Patch] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def read_alternatives(path: str | Path) -> dict[str, tuple[Patch, ...]]:
    """Task id -> known-correct patches. Raises ConfigError that names the line."""
    found: dict[str, tuple[Patch, ...]] = {}
    for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
            task_id, patch = str(row.get("task_id") or row["instance_id"]), Patch(str(row["patch"]))
        except (ValueError, KeyError, AttributeError, TypeError) as error:
            raise ConfigError(
                f"{path}:{number}: no alternative ({error}).", mend="Give task_id or instance_id, and patch."
            ) from error
        found[task_id] = (*found.get(task_id, ()), patch)
    return found


def correct_programs(
    task: Task, judge: Judge, *, alternatives: Alternatives | None = None, variants: Iterable[Patch] = ()
) -> Correct:
    """Collect and check them: each has to resolve the task's original suite."""
    named: dict[str, Patch] = {}
    for number, text in enumerate(task.metadata.get("alternatives", ()), 1):
        named[f"alternative {number} of the task"] = Patch(str(text))
    for number, patch in enumerate((alternatives or {}).get(task.task_id, ()), 1):
        named[f"alternative {number} of the file"] = patch
    for number, patch in enumerate(variants, 1):
        named[f"variant {number} of gold"] = patch
    kept: dict[str, Patch] = {}
    left_out: dict[str, str] = {}
    for name, patch in named.items():
        verdict = judge.verify(task, patch, task.suite.original)
        if verdict.resolved:
            kept[name] = patch
        else:
            left_out[name] = f"the original suite says {verdict.outcome}"
    return Correct(kept, left_out)
