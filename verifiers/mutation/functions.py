"""A function-level task as the audit sees it: gold's text, the entry point, the visible calls and their results."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...envs import pyast
from ...envs.edits import parse_quietly
from ...envs.errors import PatchError, TaskError
from ...envs.patch import Patch
from ...envs.task import Task
from .apply import apply_diff, parse_diff


@dataclass(frozen=True)
class VisibleCall:
    """One literal call in a test. expected: what it is compared with by ==, `has_expected` False when not literal."""

    args: tuple[Any, ...]
    has_expected: bool = False
    expected: Any = None


@dataclass(frozen=True)
class FunctionView:
    """Texts of one function task. stub: the file as the policy gets it; gold: with the gold patch; lines: added by it."""

    task_id: str
    path: str
    entry_point: str
    stub: str
    gold: str
    tests: Mapping[str, str]
    lines: frozenset[int]

    @classmethod
    def of(cls, task: Task) -> FunctionView:
        """Raises TaskError for a task that is no function, or whose gold patch does not apply to its files."""
        path = str(task.metadata.get("solution_file") or "solution.py")
        if not task.is_function:
            raise TaskError(f"{task.task_id}: no entry_point in metadata, so this is no function task.")
        try:
            after = apply_diff(task.files, task.gold_patch)
            parts = {part.path: part for part in parse_diff(task.gold_patch)}
        except PatchError as error:
            raise TaskError(f"{task.task_id}: gold_patch: {error}") from error
        if path not in after:
            raise TaskError(
                f"{task.task_id}: solution_file {path!r} is neither in files nor in the gold patch."
            )
        lines = frozenset(parts[path].added_lines(task.files.get(path))) if path in parts else frozenset()
        return cls(
            task_id=task.task_id,
            path=path,
            entry_point=str(task.metadata["entry_point"]),
            stub=task.files.get(path, ""),
            gold=after[path],
            tests=dict(task.suite.test_files),
            lines=lines,
        )

    def patch(self, source: str) -> Patch:
        return Patch.writing({self.path: source}, {self.path: self.stub} if self.stub else None)

    def source_of(self, patch: Patch) -> str | None:
        """The program that a patch makes; None when it does not apply here or leaves no program."""
        try:
            base = {self.path: self.stub} if self.stub else {}
            return apply_diff(base, patch.text).get(self.path)
        except PatchError:
            return None

    @cached_property
    def tree(self) -> ast.Module:
        return parse_quietly(self.gold)

    @cached_property
    def function(self) -> ast.FunctionDef | None:
        """The entry point's definition (the last one of that name)."""
        found = [n for n in self.tree.body if isinstance(n, ast.FunctionDef) and n.name == self.entry_point]
        return found[-1] if found else None

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        if self.function is None:
            return ()
        return tuple(a.arg for a in (*self.function.args.posonlyargs, *self.function.args.args))

    @cached_property
    def calls(self) -> tuple[VisibleCall, ...]:
        """Literal calls of the entry point in the tests, in order, without repeats."""
        seen: set[str] = set()
        found: list[VisibleCall] = []
        for text in self.tests.values():
            try:
                tree = parse_quietly(text)
            except SyntaxError:
                continue
            for call in _visible_calls(tree, self.names(tree)):
                if (key := repr(call.args)) not in seen:
                    seen.add(key)
                    found.append(call)
        return tuple(found)

    def names(self, tree: ast.Module) -> set[str]:
        """Names under which a test file calls the entry point: its own, `candidate`, and import aliases."""
        found = {self.entry_point, "candidate"}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                found |= {a.asname for a in node.names if a.name == self.entry_point and a.asname}
        return found


def _visible_calls(tree: ast.Module, names: set[str]) -> Iterator[VisibleCall]:
    compared: dict[ast.AST, ast.expr] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], (ast.Eq, ast.Is)):
            compared[node.left] = node.comparators[0]
            compared[node.comparators[0]] = node.left
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or node.keywords:
            continue
        name = node.func.id if isinstance(node.func, ast.Name) else getattr(node.func, "attr", "")
        if name not in names:
            continue
        args = [literal(arg) for arg in node.args]
        if any(not known for known, _ in args):
            continue
        known, value = literal(compared[node]) if node in compared else (False, None)
        yield VisibleCall(tuple(value for _, value in args), known, value)


def literal(node: ast.expr) -> tuple[bool, Any]:
    """(True, value) for a literal, simple arithmetic on numbers included."""
    try:
        return True, pyast.literal(node)
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError):
        return False, None
