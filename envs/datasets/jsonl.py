"""Data set `jsonl`: tasks of your own, a JSON object on each line. The schema stands in docs/datasets.md.

Required: task_id, prompt, gold_patch or gold_files, suite {command, framework, fail_to_pass, and test_files or
test_patch}. Optional: image, workdir, files, protected_paths, timeout_s, base_commit, metadata, suite.pass_to_pass,
suite.exclude_ids, suite.env. A whole `Task.to_json()` line is a row too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from .. import registry
from ..errors import TaskError
from ..patch import Patch
from ..task import Task
from ._rows import existing, read_rows

REQUIRED = ("task_id", "prompt", "suite")
OPTIONAL = [
    "dataset",
    "gold_patch",
    "gold_files",
    "image",
    "workdir",
    "files",
    "protected_paths",
    "timeout_s",
    "base_commit",
    "metadata",
]
SUITE_REQUIRED = ("command", "framework", "fail_to_pass")
SUITE_OPTIONAL = ("test_files", "test_patch", "pass_to_pass", "exclude_ids", "env", "added")


def claims(path: Path, columns: frozenset[str]) -> int:
    """50 for rows that have the required fields; 1 for rows that look like it, so that `load` names what lacks."""
    if columns >= frozenset(REQUIRED):
        return 50
    return int("task_id" in columns and bool(columns & {"prompt", "suite", "gold_patch", "gold_files"}))


def load(source: str = "jsonl", split: str | None = None) -> Iterator[Task]:
    """Yield the tasks of a local file. Every error is one line: file, line, field, mend."""
    for where, row in read_rows(existing(source, "jsonl")):
        yield task_of(row, where)


def task_of(row: dict[str, Any], where: str) -> Task:
    """One row as a task; raises TaskError naming the field."""
    _fields(row, where, "", REQUIRED, OPTIONAL)
    suite = row["suite"]
    if not isinstance(suite, dict):
        raise TaskError(
            f"{where}: field 'suite' is {type(suite).__name__}, not an object.", mend="See docs/datasets.md."
        )
    _fields(suite, where, "suite.", SUITE_REQUIRED, SUITE_OPTIONAL)
    if not suite.get("fail_to_pass"):
        raise TaskError(f"{where}: field 'suite.fail_to_pass' is empty.", mend="Name at least one test.")
    if not suite.get("test_files") and not suite.get("test_patch"):
        raise TaskError(
            f"{where}: no field 'suite.test_files' or 'suite.test_patch'.", mend="Give one of them."
        )
    frameworks = registry.names("acidtest.envs.frameworks")
    if frameworks and suite["framework"] not in frameworks and "." not in suite["framework"]:
        raise TaskError(
            f"{where}: field 'suite.framework' is {suite['framework']!r}.",
            mend=f"There are: {', '.join(frameworks)}.",
        )
    if row.get("image") is None and not row.get("files"):
        raise TaskError(
            f"{where}: no field 'image' or 'files'.", mend="Give the image, or the tree as path -> text."
        )
    try:
        return Task.from_dict({"dataset": "jsonl", **_with_gold(row, where)})
    except TaskError as error:
        raise TaskError(f"{where}: {_plain(error.message)}.", mend="See docs/datasets.md.") from error


def _with_gold(row: dict[str, Any], where: str) -> dict[str, Any]:
    """`gold_files` (path -> text after the solution) turned into a diff against `files`."""
    rest = {key: value for key, value in row.items() if key != "gold_files"}
    if rest.get("gold_patch"):
        return rest
    gold = row.get("gold_files")
    if not isinstance(gold, dict) or not gold or not all(isinstance(text, str) for text in gold.values()):
        raise TaskError(
            f"{where}: no field 'gold_patch' (a git diff) or 'gold_files' (path -> text).",
            mend="Give one of them.",
        )
    return {**rest, "gold_patch": Patch.writing(gold, row.get("files") or {}).text}


def _fields(
    row: dict[str, Any],
    where: str,
    prefix: str,
    required: tuple[str, ...],
    optional: list[str] | tuple[str, ...],
) -> None:
    for name in required:
        if row.get(name) is None:
            raise TaskError(
                f"{where}: no field '{prefix}{name}'.", mend="Add it; docs/datasets.md has the schema."
            )
    unknown = sorted(set(row) - set(required) - set(optional))
    if unknown:
        raise TaskError(
            f"{where}: unknown field '{prefix}{unknown[0]}'.",
            mend="Put what the schema does not name into 'metadata'.",
        )


def _plain(message: str) -> str:
    """msgspec's path "$.suite.env" as "field 'suite.env'"."""
    text, _, path = message.removeprefix("Task: ").partition(" - at `$.")
    return f"field {path.rstrip('`')!r}: {text}" if path else text


def row_of(task: Task) -> str:
    """The line that `load` reads back as the same task."""
    return json.dumps(task.to_dict(), ensure_ascii=False)
