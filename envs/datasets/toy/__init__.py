"""Data set `toy`: small tasks that ship inside the package, one readable TOML file each (beside this file).

They show every state an audit can find a task in: sound, weak, tamperable, gold that fails, a no-op that
passes, flaky, order-dependent, too narrow, slow; function tasks, a multi-file pytest repository, a unittest one.
`metadata["teaches"]` says which, `metadata["alternatives"]` holds known-correct patches as unified diffs.

File format: keys `title`, `teaches`, `prompt`, `framework`, `command`, `timeout_s`, `fail_to_pass`,
`pass_to_pass`, `entry_point` (function tasks); tables `[files]` (the tree), `[gold]` (files after the gold
patch), `[tests]` (trusted test files), `[[alternatives]]` (files after another correct patch).
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from importlib import resources
from typing import Any

from ...errors import ConfigError, TaskError
from ...patch import Patch
from ...task import Suite, Task

WORKDIR = "/testbed"
SPLITS = ("all",)


def load(source: str = "toy", split: str | None = None) -> Iterator[Task]:
    """Yield the toy tasks in order of their names. `source` is ignored; there is one split, "all"."""
    if split not in (None, *SPLITS):
        raise ConfigError(f"Data set 'toy' has no split {split!r}.", mend="Leave the split out.")
    files = [f for f in resources.files(__name__).iterdir() if f.name.endswith(".toml")]
    for file in sorted(files, key=lambda f: f.name):
        yield task_of(file.name.removesuffix(".toml"), tomllib.loads(file.read_text(encoding="utf-8")))


def task_of(name: str, row: dict[str, Any]) -> Task:
    """The task of one TOML file; raises TaskError naming the file and the missing key."""
    try:
        tree, gold, tests = dict(row["files"]), dict(row["gold"]), dict(row["tests"])
        suite = Suite(
            command=row["command"],
            framework=row["framework"],
            test_files=tests,
            fail_to_pass=tuple(row["fail_to_pass"]),
            pass_to_pass=tuple(row.get("pass_to_pass", ())),
        )
        metadata: dict[str, Any] = {"title": row["title"], "teaches": row["teaches"]}
        if row.get("entry_point"):
            metadata |= {"entry_point": row["entry_point"], "solution_file": "solution.py"}
        others = [Patch.writing({**tree, **other}, tree).text for other in row.get("alternatives", ())]
        if others:
            metadata["alternatives"] = others
        return Task(
            task_id=f"toy/{name}",
            dataset="toy",
            prompt=row["prompt"].strip() + "\n",
            suite=suite,
            gold_patch=Patch.writing({**tree, **gold}, tree).text,
            workdir=WORKDIR,
            files=tree,
            timeout_s=float(row.get("timeout_s", 30)),
            metadata=metadata,
        )
    except KeyError as error:
        raise TaskError(f"toy/{name}.toml: no key {error}.", mend="Add it.") from error
