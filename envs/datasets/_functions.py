"""The form of function-level tasks: one function in `solution.py`, one trusted `test_solution.py`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from .. import pyast
from ..edits import parse_quietly
from ..patch import Patch
from ..task import Suite, Task

SOLUTION, TEST = "solution.py", "test_solution.py"
WORKDIR = "/testbed"


def function_task(
    *,
    task_id: str,
    dataset: str,
    prompt: str,
    entry_point: str,
    stub: str,
    gold: str,
    test: str,
    tests: tuple[str, ...] = ("test_check",),
    timeout_s: float = 30.0,
    metadata: Mapping[str, Any] | None = None,
) -> Task:
    """A function task; `tests` are the names of test functions in `test`, all fail-to-pass."""
    files = {SOLUTION: _ended(stub)}
    return Task(
        task_id=task_id,
        dataset=dataset,
        prompt=prompt,
        suite=Suite(
            command=f"python {TEST}",
            framework="plain",
            test_files={TEST: _ended(test)},
            fail_to_pass=tuple(f"{TEST}::{name}" for name in tests),
        ),
        gold_patch=Patch.writing({SOLUTION: _ended(gold)}, files).text,
        workdir=WORKDIR,
        files=files,
        timeout_s=timeout_s,
        metadata={"entry_point": entry_point, "solution_file": SOLUTION, **(metadata or {})},
    )


def raising_stub(prompt: str) -> str:
    """The prompt (imports, helpers, signature, docstring) with a body that raises."""
    return prompt.rstrip() + "\n    raise NotImplementedError\n"


def stub_of(code: str, entry_point: str, docstring: str) -> str:
    """`code` with the body of the function `entry_point` replaced by a docstring and a raise.

    Everything else of the module is dropped but imports: helpers belong to the solution.
    """
    module = parse_quietly(code)
    keep: list[ast.stmt] = [n for n in module.body if isinstance(n, ast.Import | ast.ImportFrom)]
    for node in module.body:
        if isinstance(node, ast.FunctionDef) and node.name == entry_point:
            body: list[ast.stmt] = [
                ast.Expr(ast.Constant(docstring)),
                *pyast.parse("raise NotImplementedError").body,
            ]
            node.body = body
            keep.append(node)
    return ast.unparse(ast.Module(body=keep, type_ignores=[])) + "\n"


def _ended(text: str) -> str:
    return text if text.endswith("\n") else text + "\n"
