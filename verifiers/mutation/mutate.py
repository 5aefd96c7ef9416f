"""All mutants of chosen lines of one source text."""

from __future__ import annotations

import ast
import random
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass

from . import expressions, statements
from .edits import Edit, Source, normal_form, walk_code


@dataclass(frozen=True)
class Mutant:
    """One mutated text. kind: S21 (operators) or S22 (the rest); operator and line say what was done where."""

    text: str
    kind: str
    operator: str
    line: int


def mutants(
    text: str,
    lines: Collection[int] | None = None,
    *,
    harvested: Sequence[object] = (),
    seed: int = 0,
    limit: int | None = None,
    max_names: int = 3,
) -> list[Mutant]:
    """Distinct mutants (by normalised AST, and unlike the original) that touch `lines` (None: all), in source order.

    With `limit`, a sample drawn with `seed` that keeps source order. max_names: replacements tried per variable use.
    A text that does not parse has none. Not covered: mutants inside f-strings, annotations and docstrings.
    """
    try:
        source = Source(text)
    except (SyntaxError, ValueError):
        return []
    found: list[Mutant] = []
    seen = {normal_form(text)}
    seen_edits: set[tuple[int, int, str]] = set()
    for edit in _edits(source, lines, harvested, max_names):
        key = (edit.start, edit.end, edit.text)
        if key in seen_edits:
            continue
        seen_edits.add(key)
        new = source.apply(edit)
        form = normal_form(new)
        if form is None or form in seen:
            continue
        seen.add(form)
        found.append(Mutant(new, _kind(edit), edit.operator, edit.line))
    if limit is not None and len(found) > limit:
        chosen = sorted(random.Random(seed).sample(range(len(found)), limit))
        found = [found[i] for i in chosen]
    return found


def _kind(edit: Edit) -> str:
    return "S21" if edit.operator.startswith(("operator-", "comparison-", "boolean-")) else "S22"


def _edits(
    source: Source, lines: Collection[int] | None, harvested: Sequence[object], max_names: int
) -> Iterator[Edit]:
    for node in walk_code(source.tree):
        first = getattr(node, "lineno", None)
        if first is None or (lines is not None and not _touches(node, lines)):
            continue
        if isinstance(node, ast.stmt):
            yield from statements.mutations(source, node)
        elif isinstance(node, ast.expr):
            names = _names(source, node, max_names) if isinstance(node, ast.Name) else ()
            yield from expressions.mutations(source, node, names, harvested)


def _touches(node: ast.AST, lines: Collection[int]) -> bool:
    first: int = node.lineno  # type: ignore[attr-defined]
    last: int = getattr(node, "end_lineno", None) or first
    if isinstance(node, ast.stmt) and hasattr(node, "body"):
        last = first
    return any(line in lines for line in range(first, last + 1))


def _names(source: Source, node: ast.Name, limit: int) -> list[str]:
    """Variables of the enclosing function, nearest in use first; callables and the name's own function left out."""
    parent = source.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        return []
    scope: ast.AST | None = node
    while scope is not None and not isinstance(scope, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
        scope = source.parents.get(scope)
    if scope is None:
        return []
    distance: dict[str, int] = {}
    for other in ast.walk(scope):
        if isinstance(other, ast.arg):
            name, line = other.arg, other.lineno
        elif isinstance(other, ast.Name) and isinstance(other.ctx, ast.Store):
            name, line = other.id, other.lineno
        else:
            continue
        if name != node.id and name not in ("self", "cls"):
            gap = abs(line - node.lineno)
            distance[name] = min(gap, distance.get(name, gap))
    return sorted(distance, key=lambda name: (distance[name], name))[:limit]
