"""What a policy really wrote: candidates from a JSONL file (`--candidates rollouts.jsonl`).

One JSON object a line: `task_id` and either `patch` (unified diff) or `completion` (text as the policy wrote it, read
by the rules of `envs/submission.py`). Optional `metadata`,
`claim` (wrong, benign, unknown; default unknown), `kind`, `description`. Nothing is presumed about a rollout.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from ...envs.errors import ConfigError
from ...envs.patch import Patch
from ...envs.submission import read_submission
from ...envs.task import Task
from ..records import Candidate, Claim, Family, Finding

ORIGIN = "rollouts/1"


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
        raise ConfigError(
            f"{path}: {error.strerror or error}.", mend="Give a readable JSONL file."
        ) from error
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
    patch = Patch(row["patch"]) if "patch" in row else read_submission(task, row["completion"]).patch
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
