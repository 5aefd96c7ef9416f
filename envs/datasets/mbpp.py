"""Data set `mbpp`: a local `mbpp_sanitized.json` (or JSONL of such rows) as function tasks.

Fields: task_id, prompt, code, test_list (assert statements), test_imports. Task ids are "MBPP/<task_id>". Each
assert is a test of its own, ``test_1``, ``test_2`` …. The entry point is the function of `code` that the asserts
call; classes and further functions which the asserts use as well stay in the stub.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..edits import parse_quietly
from ..errors import TaskError
from ..task import Task
from ._functions import function_task, stub_of
from ._rows import Row, existing, need, read_rows

COLUMNS = frozenset({"task_id", "prompt", "code", "test_list"})


def claims(path: Path, columns: frozenset[str]) -> int:
    """90 for rows with MBPP's sanitized fields."""
    return 90 if columns >= COLUMNS else 0


def load(source: str = "mbpp", split: str | None = None) -> Iterator[Task]:
    """Yield the tasks of a local file; raises ConfigError without one and TaskError for a row that is off."""
    for where, row in read_rows(existing(source, "mbpp")):
        yield _task(row, where)


def _task(row: Row, where: str) -> Task:
    number = need(row, "task_id", where, int)
    where = f"{where} (MBPP/{number})"
    code, tests = need(row, "code", where), need(row, "test_list", where, list)
    imports: list[str] = list(row.get("test_imports") or ())
    try:
        module, used = parse_quietly(code), _names("\n".join(tests))
    except SyntaxError as error:
        raise TaskError(
            f"{where}: field 'code' or 'test_list' is no Python ({error.msg}).", mend="Drop the row."
        ) from error
    defined = [n for n in module.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and n.name in used]
    functions = [n.name for n in defined if isinstance(n, ast.FunctionDef)]
    if not functions:
        raise TaskError(f"{where}: field 'test_list' calls no function of 'code'.", mend="Drop the row.")
    entry = functions[-1]
    kept = [n for n in defined if n.name != entry]
    imports += [
        ast.unparse(n) for n in module.body if isinstance(n, ast.Import | ast.ImportFrom) and _binds(n) & used
    ]
    prompt = need(row, "prompt", where)
    stub = stub_of(code, entry, prompt)
    if kept:
        stub = "\n\n".join(ast.unparse(n) for n in kept) + "\n\n\n" + stub
    return function_task(
        task_id=f"MBPP/{number}",
        dataset="mbpp",
        prompt=f"{prompt.strip()}\n\nWrite it as `{entry}` in solution.py. It must satisfy:\n\n    {tests[0]}\n",
        entry_point=entry,
        stub=stub,
        gold=code,
        test=_test_file([n.name for n in defined], imports, tests),
        tests=tuple(f"test_{i}" for i in range(1, len(tests) + 1)),
    )


def _names(code: str) -> set[str]:
    return {node.id for node in ast.walk(parse_quietly(code)) if isinstance(node, ast.Name)}


def _binds(node: ast.Import | ast.ImportFrom) -> set[str]:
    """Names that an import of `code` binds: the original runs its asserts in the namespace of the code."""
    return {alias.asname or alias.name.split(".")[0] for alias in node.names}


def _test_file(names: list[str], imports: list[str], tests: list[Any]) -> str:
    head = [*imports, *([""] if imports else []), f"from solution import {', '.join(names)}"]
    bodies = [
        f"def test_{i}():\n" + "\n".join(f"    {line}" for line in test.strip().split("\n"))
        for i, test in enumerate(tests, 1)
    ]
    calls = "\n".join(f"    test_{i}()" for i in range(1, len(tests) + 1))
    main = f'if __name__ == "__main__":\n{calls}\n    print("OK")\n'
    return "\n\n\n".join(["\n".join(head), *bodies, main])
