"""What a policy really wrote: candidates from a JSONL file (`--candidates rollouts.jsonl`).

One JSON object a line: `task_id` and either `patch` (unified diff) or `completion` (text of the solution; the last
fenced block when there is one, with the prompt's stub in front when it only continues it). Optional `metadata`,
`claim` (wrong, benign, unknown; default unknown), `kind`, `description`. Nothing is presumed about a rollout.
"""

from __future__ import annotations

import ast
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...envs.errors import ConfigError
from ...envs.patch import Patch
from ...envs.task import Task
from ..mutation.functions import FunctionView
from ..records import Candidate, Claim, Family, Finding

ORIGIN = "rollouts/1"
FENCE = re.compile(r"```[a-zA-Z0-9_+-]*\n(.*?)```", re.S)


def attack(
    task: Task, history: Sequence[Finding] = (), *, path: str | os.PathLike[str] | None = None
) -> Iterable[Candidate]:
    """Rollouts of this task in file order, equal patches once. Without a path there are none.

    Raises ConfigError that names the line for a row that is not usable.
    """
    if path is None:
        return
    seen: set[str] = set()
    for number, row in read_rows(path):
        if row["task_id"] == task.task_id:
            candidate = _candidate(task, row, f"{Path(path).name}:{number}")
            if candidate.patch.digest not in seen:
                seen.add(candidate.patch.digest)
                yield candidate


def read_rows(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """(line number, checked row) of a rollouts file."""
    try:
        lines = Path(path).read_text(encoding="utf-8").split("\n")
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror or error}.", mend="Give a readable JSONL file.") from error
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise ConfigError(f"{path}:{number}: not JSON ({error}).") from error
        if not isinstance(row, dict) or not isinstance(row.get("task_id"), str):
            raise ConfigError(f"{path}:{number}: a row needs a task_id (text).")
        if not isinstance(row.get("patch", row.get("completion")), str):
            raise ConfigError(f"{path}:{number}: a row needs a patch or a completion (text).")
        if row.get("claim", "unknown") not in ("wrong", "benign", "unknown"):
            raise ConfigError(f"{path}:{number}: claim is wrong, benign or unknown, not {row['claim']!r}.")
        yield number, row


def _candidate(task: Task, row: dict[str, Any], where: str) -> Candidate:
    patch = Patch(row["patch"]) if "patch" in row else completed(task, row["completion"])
    return Candidate(
        task_id=task.task_id,
        patch=patch,
        kind=str(row.get("kind", "rollout")),
        family=Family.ROLLOUT,
        origin=f"{ORIGIN} {where}",
        claim=Claim(row.get("claim", "unknown")),
        description=str(row.get("description", "")),
        metadata=dict(row.get("metadata") or {}),
    )


def completed(task: Task, completion: str) -> Patch:
    """The patch that a completion stands for.

    Function tasks: a whole program, a program in a fence, or the continuation of the stub. Otherwise the text (or
    its last fenced block) is taken as a unified diff.
    """
    blocks = FENCE.findall(completion)
    text = blocks[-1] if blocks else completion
    if not task.is_function:
        return Patch(text)
    view = FunctionView.of(task)
    if not defines(text, view.entry_point):
        head = str(task.metadata.get("stub_prompt") or view.stub)
        joined = head.rstrip("\n") + "\n" + text
        text = joined if defines(joined, view.entry_point) else text
    return view.patch(text if text.endswith("\n") else text + "\n")


def defines(text: str, name: str) -> bool:
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError):
        return False
    return any(isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef)) and n.name == name for n in tree.body)
