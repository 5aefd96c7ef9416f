"""Behaviour-preserving variants of gold: other texts of the same behaviour, which every added test must let through.

They catch tests that look at the source or at local names. They hardly ever reveal a test that is too strict in
behaviour (0 of 758 in a prototype, SCIENCE.md): that is what independent alternatives and the domain are for.
Only functions that gold's added lines touch are rewritten, and only where the rewriting is certain to be harmless:
functions with nested scopes, `global`, `nonlocal`, `locals()`, `exec`, `del` or `except … as` are left alone by the
renaming. Repository tasks need the pristine texts of the files that gold touches.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Mapping

from ...envs.edits import parse_quietly
from ...envs.errors import PatchError
from ...envs.patch import Patch
from ...envs.task import Task
from .apply import apply_diff, parse_diff

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)
COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
SENSITIVE = (ast.Global, ast.Nonlocal, ast.Delete, ast.ExceptHandler, ast.Import, ast.ImportFrom, ast.Match)


def variants_of(
    task: Task, *, limit: int = 4, seed: int = 0, texts: Mapping[str, str] | None = None
) -> list[Patch]:
    """At most `limit` distinct variants. texts: pristine files (None: `task.files`). seed: which come first."""
    before = dict(task.files if texts is None else texts)
    try:
        parts = [part for part in parse_diff(task.gold_patch) if part.path.endswith(".py")]
        after = dict(apply_diff(before, task.gold_patch))
    except (PatchError, KeyError):
        return []
    made: dict[str, Patch] = {}
    for name, change in _turned(list(CHANGES.items()), seed):
        new = {p.path: _rewritten(after[p.path], p.added_lines(), change) for p in parts if p.path in after}
        changed = {path: text for path, text in new.items() if text is not None}
        if changed:
            made.setdefault(name, Patch.writing({**after, **changed}, before))
    return list(made.values())[:limit]


def _turned(
    items: list[tuple[str, Callable[[FunctionNode], bool]]], seed: int
) -> Iterator[tuple[str, Callable[[FunctionNode], bool]]]:
    start = seed % len(items)
    yield from items[start:] + items[:start]


def _rewritten(
    text: str, lines: set[int] | frozenset[int], change: Callable[[FunctionNode], bool]
) -> str | None:
    """The file with the touched functions rewritten, the rest byte for byte; None when nothing changed."""
    try:
        tree = parse_quietly(text)
    except (SyntaxError, ValueError):
        return None
    out = text.splitlines(keepends=True)
    done = False
    for node in reversed([n for n in ast.walk(tree) if isinstance(n, FunctionNode) and _touched(n, lines)]):
        if any(isinstance(inner, SCOPES) for part in node.body for inner in ast.walk(part)):
            continue
        new = copy.deepcopy(node)
        if not change(new):
            continue
        new.decorator_list = []
        source = ast.unparse(ast.fix_missing_locations(new)).splitlines()
        indent = " " * node.col_offset
        out[node.lineno - 1 : node.end_lineno] = [_indented(line, indent) for line in source]
        done = True
    result = "".join(out)
    return result if done and result != text and _parses(result) else None


def _touched(node: FunctionNode, lines: set[int] | frozenset[int]) -> bool:
    span = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    own_line = node.end_lineno is not None and node.end_lineno > node.lineno
    return own_line and any(line in lines for line in span)


def _indented(line: str, indent: str) -> str:
    return f"{indent}{line}\n" if line.strip() else "\n"


def _parses(text: str) -> bool:
    try:
        parse_quietly(text)
    except (SyntaxError, ValueError):
        return False
    return True


def reformat(node: FunctionNode) -> bool:
    """Another layout, comments gone."""
    return True


def rename_locals(node: FunctionNode) -> bool:
    """Every plain local variable gets another name; parameters keep theirs (they are part of the interface)."""
    inner = [n for part in node.body for n in ast.walk(part)]
    if any(isinstance(n, (*SENSITIVE, *COMPREHENSIONS)) for n in inner):
        return False
    if any(
        isinstance(n, ast.Name) and n.id in {"locals", "vars", "exec", "eval", "super", "__class__"}
        for n in inner
    ):
        return False
    taken = {a.arg for a in ast.walk(node.args) if isinstance(a, ast.arg)}
    stored = {n.id for n in inner if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)} - taken
    used = {n.id for n in inner if isinstance(n, ast.Name)} | taken
    names = {old: f"{old}_value" for old in stored if f"{old}_value" not in used}
    for n in inner:
        if isinstance(n, ast.Name) and n.id in names:
            n.id = names[n.id]
    return bool(names)


def turn_branches(node: FunctionNode) -> bool:
    """`if c: A else: B` becomes `if not c: B else: A`."""
    found = False
    for n in (n for part in node.body for n in ast.walk(part)):
        if (
            isinstance(n, ast.If)
            and n.orelse
            and not (len(n.orelse) == 1 and isinstance(n.orelse[0], ast.If))
        ):
            n.test = ast.UnaryOp(op=ast.Not(), operand=n.test)
            n.body, n.orelse = n.orelse, n.body
            found = True
    return found


def name_results(node: FunctionNode) -> bool:
    """`return x` becomes `outcome = x; return outcome`."""
    taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}
    name = next(word for word in ("outcome", "outcome_", "outcome__") if word not in taken)
    found = False
    for n in ast.walk(node):
        for field in ("body", "orelse", "finalbody"):
            block = getattr(n, field, None)
            if not isinstance(block, list):
                continue
            for at in reversed(range(len(block))):
                one = block[at]
                if (
                    isinstance(one, ast.Return)
                    and one.value is not None
                    and not isinstance(one.value, ast.Name)
                ):
                    target = ast.Name(id=name, ctx=ast.Store())
                    block[at : at + 1] = [
                        ast.Assign(targets=[target], value=one.value, lineno=0),
                        ast.Return(value=ast.Name(id=name, ctx=ast.Load())),
                    ]
                    found = True
    return found


CHANGES: dict[str, Callable[[FunctionNode], bool]] = {
    "locals renamed": rename_locals,
    "branches turned": turn_branches,
    "results named": name_results,
    "reformatted": reformat,
}
