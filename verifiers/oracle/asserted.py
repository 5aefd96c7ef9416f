"""What the visible tests ask of a result: its very value, or a property of it, and whether its order counts."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from ...envs import pyast
from ..mutation.functions import FunctionView


def _calls_in(view: FunctionView) -> Iterator[list[ast.AST]]:
    """For each use of the entry point's result inside an assert, the nodes around it (innermost first).

    A variable that was assigned an expression with such a call counts as the result.
    """
    for text in view.tests.values():
        tree = pyast.parse(text)
        names = view.names(tree)
        kept = _assigned(tree, names)
        for check in (node for node in ast.walk(tree) if isinstance(node, ast.Assert)):
            stack: list[tuple[ast.AST, list[ast.AST]]] = [(check.test, [])]
            while stack:
                node, around = stack.pop()
                if _is_call(node, names) or (isinstance(node, ast.Name) and node.id in kept):
                    yield around
                stack += [(child, [node, *around]) for child in ast.iter_child_nodes(node)]


def _is_call(node: ast.AST, names: set[str]) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", getattr(node.func, "attr", "")) in names


def _assigned(tree: ast.AST, names: set[str]) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and any(_is_call(inner, names) for inner in ast.walk(node.value)):
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return found


def compares_results(view: FunctionView) -> bool:
    """Whether some assert compares the result itself (==, is, truth, |result - x| < tolerance).

    Where the tests only check a property of the result, another result than gold's may be as right.
    """
    found = list(_calls_in(view))
    return not found or any(all(map(_transparent, around)) for around in found)


TRANSPARENT = {
    "abs",
    "sorted",
    "set",
    "list",
    "tuple",
    "round",
    "isclose",
    "Counter",
    "dict",
    "float",
    "int",
    "str",
}


def _transparent(node: ast.AST) -> bool:
    """Whether what stands around a result still asks for that very result (within a tolerance)."""
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", getattr(node.func, "attr", "")) in TRANSPARENT
    if isinstance(node, ast.BinOp):
        return isinstance(node.op, ast.Sub)
    if isinstance(node, ast.Compare):
        near = any(isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Sub) for inner in ast.walk(node))
        return all(
            isinstance(op, (ast.Eq, ast.Is)) or (near and isinstance(op, (ast.Lt, ast.LtE)))
            for op in node.ops
        )
    return isinstance(node, (ast.UnaryOp, ast.Assert)) or (
        isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)
    )


def ordered_away(view: FunctionView) -> bool:
    """Whether every assert sorts the result, or makes a set of it, before it compares."""
    found = list(_calls_in(view))
    return bool(found) and all(
        any(
            isinstance(n, ast.Call) and getattr(n.func, "id", "") in ("sorted", "set", "Counter")
            for n in around
        )
        for around in found
    )
