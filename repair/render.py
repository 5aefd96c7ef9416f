"""Witnesses become readable tests: one file per task, one behaviour per test function, no randomness, no clock.

Only function-level tasks; tests for repositories are written by an augmenter that sees the repository. A witness
whose expectation is not a plain Python value (a class instance, a generator) cannot be rendered and is left out.
"""

from __future__ import annotations

import ast
import json
import keyword
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from ..envs import pyast
from ..envs.task import AddedTests, Task
from ..verifiers.records import Witness, WitnessKind

UNORDERED = re.compile(
    r"\bany order\b|order (does not|doesn't|doesnt) matter|\bin no particular order\b|\bunordered\b"
    r"|regardless of (the )?order|irrespective of (the )?order",
    re.IGNORECASE,
)

SAME = '''
def same(got, want):
    """Equal, floats to 1e-6 (relative and absolute), also inside lists, tuples and dicts."""
    if isinstance(want, bool) or isinstance(got, bool):
        return got == want
    if isinstance(want, (int, float)) and isinstance(got, (int, float)):
        return got == want or math.isclose(got, want, rel_tol=1e-6, abs_tol=1e-6)
    if isinstance(want, (list, tuple)) and type(got) is type(want):
        return len(got) == len(want) and all(same(g, w) for g, w in zip(got, want))
    if isinstance(want, dict) and isinstance(got, dict):
        return got.keys() == want.keys() and all(same(got[key], want[key]) for key in want)
    return got == want
'''


@dataclass(frozen=True, kw_only=True)
class Case:
    """One behaviour: a call and what it gives. note: one sentence on why it is here.

    raises: name of a builtin exception the call must raise ("" for a value).
    """

    call: str
    expected: str = ""
    raises: str = ""
    note: str = ""


def case_of(witness: Witness, *, note: str = "") -> Case | None:
    """The behaviour that a witness pins, or None when it cannot be written as a plain assert."""
    if not witness.call.strip() or not _is_expression(witness.call):
        return None
    if witness.kind in {
        WitnessKind.VALUE,
        WitnessKind.EXCEPTION,
        WitnessKind.TERMINATION,
        WitnessKind.HOLLOW,
    }:
        why = note or f"a program that the original suite paid gives {_short(witness.observed)}"
        if literal(witness.expected) is not None:
            return Case(call=witness.call, expected=witness.expected, note=why)
    return None


@dataclass(frozen=True)
class Plain:
    """A plain value read from text; wraps it so that None (no plain value) and the value None differ."""

    value: Any


def literal(text: str) -> Plain | None:
    """The plain value that `text` writes (numbers, strings, containers, inf and nan), or None when it is none."""
    try:
        tree = pyast.expression(text.strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    if not names <= {"inf", "nan", "set", "float", "frozenset"} or not all(_plain_call(c) for c in calls):
        return None
    if any(isinstance(node, ast.Attribute | ast.Lambda | ast.comprehension) for node in ast.walk(tree)):
        return None
    try:
        space = {"__builtins__": {}, "inf": math.inf, "nan": math.nan, "set": set, "float": float}
        return Plain(eval(compile(tree, "<value>", "eval"), {**space, "frozenset": frozenset}))
    except (ValueError, TypeError, ArithmeticError, NameError, RecursionError, MemoryError):
        return None


def _plain_call(node: ast.Call) -> bool:
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    return name in {"set", "float", "frozenset"} and not node.keywords


def _is_expression(text: str) -> bool:
    try:
        pyast.expression(text.strip())
    except (SyntaxError, ValueError, RecursionError):
        return False
    return True


def has_float(value: Any) -> bool:
    """Whether a float (or complex) occurs anywhere in a plain value."""
    if isinstance(value, float | complex):
        return True
    if isinstance(value, dict):
        return any(has_float(part) for pair in value.items() for part in pair)
    return isinstance(value, list | tuple | set | frozenset) and any(has_float(part) for part in value)


def is_unordered(task: Task) -> bool:
    """Whether the task leaves the order of a returned list open: its text says so, or its own tests sort the result."""
    entry = re.escape(str(task.metadata.get("entry_point", "candidate")))
    tests = "\n".join(task.suite.test_files.values())
    sorts = re.search(rf"\b(sorted|set|Counter)\(\s*(candidate|{entry})\(", tests)
    return bool(UNORDERED.search(task.prompt) or sorts)


def render(
    task: Task, cases: Sequence[Case], *, title: str = "", unordered: bool | None = None
) -> AddedTests:
    """One readable test file with a test per case, in the given order (best killers first).

    unordered: compare returned lists without their order (None: as the task's text and tests say).
    """
    path = file_path(task)
    names = _test_names(task, cases)
    loose = is_unordered(task) if unordered is None else unordered
    bodies = [_body(name, case, loose) for name, case in zip(names, cases, strict=True)]
    text = "\n".join(bodies)
    head = [f'"""{title or _title(task)}"""', ""]
    if "same(" in text or "math." in text:
        head.append("import math")
    constants = sorted(set(re.findall(r"(?<![\w.'\"])(inf|nan)(?![\w('\"])", _code(text))))
    if constants:
        head.append(f"from math import {', '.join(constants)}")
    head += [*([""] if head[2:] else []), import_line(task), ""]
    if "same(" in text:
        head += [SAME.rstrip("\n"), ""]
    tail = '\n\nif __name__ == "__main__":\n' + "".join(f"    {name}()\n" for name in names)
    source = "\n".join(head) + "\n" + text + tail
    framework = "pytest" if task.suite.framework == "pytest" else "plain"
    return AddedTests(
        command=f"{_python(task)} {'-m pytest -q ' if framework == 'pytest' else ''}{path}",
        framework=framework,
        test_files={path: source},
        test_ids=tuple(f"{path}::{name}" for name in names),
    )


def _code(text: str) -> str:
    """The assert lines alone (docstrings may use any word)."""
    return "\n".join(line for line in text.splitlines() if line.startswith("    assert"))


def _title(task: Task) -> str:
    return f"Added by acidtest repair to {task.task_id}: behaviours that wrong programs got past the original tests."


def _body(name: str, case: Case, unordered: bool) -> str:
    lines = ["", f"def {name}():", f'    """{_doc(case.note)}"""']
    if case.raises:
        lines += ["    try:", f"        {case.call}", f"    except {case.raises}:", "        return"]
        lines += [f'    raise AssertionError("{case.raises} expected")']
        return "\n".join(lines) + "\n"
    plain = literal(case.expected)
    if plain is None:
        raise ValueError(f"not a plain value: {case.expected[:80]}")
    lines.append(f"    assert {_comparison(case, plain.value, unordered)}")
    return "\n".join(lines) + "\n"


def _comparison(case: Case, value: Any, unordered: bool) -> str:
    call, want = case.call, case.expected
    if value is None or value is True or value is False:
        return f"{call} is {want}" if value is None else f"{call} == {want}"
    if isinstance(value, float) and math.isnan(value):
        return f"math.isnan({call})"
    if unordered and isinstance(value, list) and not has_float(value):
        return f"sorted({call}, key=repr) == sorted({want}, key=repr)"
    if has_float(value):
        return f"same({call}, {want})"
    return f"{call} == {want}"


def _doc(note: str) -> str:
    text = (note or "pinned behaviour").replace("\\", "\\\\").replace('"""', "'''")
    text = " ".join(text.split())
    text = text[:1].upper() + text[1:]
    return text + (" " if text.endswith('"') else "") if text.endswith((".", "!")) else text + "."


def _short(text: str, limit: int = 60) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 1] + "…"


def _test_names(task: Task, cases: Iterable[Case]) -> list[str]:
    entry = str(task.metadata.get("entry_point", "behaviour"))
    names: list[str] = []
    for case in cases:
        inner = case.call.split("(", 1)[-1].rstrip(")")
        slug = re.sub(r"[^0-9A-Za-z]+", "_", inner.replace("-", " minus ")).strip("_").lower()[:40].strip("_")
        name = base = f"test_{entry}_{slug or 'nothing'}"
        count = 1
        while name in names or keyword.iskeyword(name):
            count += 1
            name = f"{base}_{count}"
        names.append(name)
    return names


def slug_of(task_id: str) -> str:
    """A task id as a file or folder name: lower case letters, digits, dots, dashes and single underscores."""
    return re.sub(r"[^0-9A-Za-z.-]+", "_", task_id).strip("._").lower() or "task"


def file_path(task: Task) -> str:
    """Where the added test file goes: beside the existing test file, named so that runners collect it."""
    folder = PurePosixPath(next(iter(sorted(task.suite.test_files)), "test_solution.py")).parent
    slug = re.sub(r"[^0-9A-Za-z]+", "_", slug_of(task.task_id))
    name = f"test_hardened_{slug}.py"
    return name if str(folder) == "." else f"{folder}/{name}"


def import_line(task: Task) -> str:
    """How the existing tests import the function, or an import of the solution file's module."""
    entry = str(task.metadata.get("entry_point", ""))
    for text in task.suite.test_files.values():
        for line in text.splitlines():
            found = re.match(r"from\s+([\w.]+)\s+import\s+(?!\()(.*)$", line)
            if found and re.search(rf"\b{re.escape(entry)}\b(?!\s+as)", found[2]):
                return f"from {found[1]} import {entry}"
    module = str(task.metadata.get("solution_file", "solution.py")).removesuffix(".py").replace("/", ".")
    return f"from {module} import {entry}"


def _python(task: Task) -> str:
    first = (task.suite.command.split() or ["python"])[0]
    return first if re.fullmatch(r"(\S*/)?python[\d.]*", first) else "python"


def call_of(entry_point: str, args: Sequence[Any]) -> str:
    """A readable call expression for positional arguments that are plain values."""
    return f"{entry_point}({', '.join(map(repr, args))})"


def args_of(witness: Witness) -> list[Any] | None:
    """The positional arguments of a witness when they are plain JSON values."""
    if not witness.args_json:
        return None
    try:
        args = json.loads(witness.args_json)
    except json.JSONDecodeError:
        return None
    return args if isinstance(args, list) else None
