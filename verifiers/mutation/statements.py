"""Mutations of statements: dropped, swapped, negated, cut short."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .edits import Edit, Source, is_docstring
from .expressions import ARITHMETIC, BITS

LOOPS = (ast.For, ast.While)


def mutations(source: Source, node: ast.AST) -> Iterator[Edit]:
    """Every mutation of one statement node."""
    if not isinstance(node, ast.stmt) or isinstance(
        node, (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
    ):
        return
    if not isinstance(node, (ast.Pass, ast.Global, ast.Nonlocal)) and not is_docstring(node):
        yield source.replace(node, "pass", "drop-statement")
    if isinstance(node, (ast.If, ast.While)):
        yield from _branch(source, node)
    if isinstance(node, LOOPS):
        yield from _loop(source, node)
    if isinstance(node, ast.Return):
        yield from _return(source, node)
    if isinstance(node, ast.AugAssign):
        yield from _augmented(source, node)
    if isinstance(node, ast.Break):
        yield source.replace(node, "continue", "break-continue")
    if isinstance(node, ast.Continue):
        yield source.replace(node, "break", "continue-break")
    if isinstance(node, ast.Raise):
        yield source.replace(node, "return None", "raise-return")
    if isinstance(node, ast.Try):
        yield source.replace(node, source.statements(node.body, node), "drop-handler")
    yield from _swap_with_next(source, node)


def _branch(source: Source, node: ast.If | ast.While) -> Iterator[Edit]:
    test = node.test
    negated = _negated(test)
    yield source.replace_expr(test, negated, "negate-condition")
    yield source.replace_expr(test, ast.Constant(False), "condition-false")
    if isinstance(node, ast.If):
        yield source.replace_expr(test, ast.Constant(True), "condition-true")
        if source.data[slice(*source.span(node))].startswith(b"elif"):
            return
        if node.orelse:
            swapped = ast.If(test, node.orelse, node.body)
            yield source.replace(node, source.statements([swapped], node), "swap-branches")
            yield source.replace(node, source.statements([ast.If(test, node.body, [])], node), "drop-else")


def _negated(node: ast.expr) -> ast.expr:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return node.operand
    return ast.UnaryOp(ast.Not(), node)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _loop(source: Source, node: ast.For | ast.While) -> Iterator[Edit]:
    once = copy.copy(node)
    once.body = [*node.body, ast.Break()]
    yield source.replace(node, source.statements([once], node), "one-iteration")
    if isinstance(node, ast.For):
        for lower, upper in ((1, None), (None, -1)):
            part = ast.Slice(
                ast.Constant(lower) if lower else None,
                ast.UnaryOp(ast.USub(), ast.Constant(1)) if upper else None,
            )
            cut = ast.Subscript(ast.Call(ast.Name("list", ast.Load()), [node.iter], []), part, ast.Load())
            yield source.replace_expr(node.iter, cut, "skip-first" if lower else "skip-last")


def _return(source: Source, node: ast.Return) -> Iterator[Edit]:
    if node.value is None:
        return
    options: list[tuple[ast.expr, str]] = [(ast.Constant(None), "return-none")]
    if isinstance(node.value, ast.Compare) or _is_not(node.value) or isinstance(node.value, ast.BoolOp):
        options += [
            (ast.UnaryOp(ast.Not(), node.value), "negate-return"),
            (ast.Constant(True), "return-constant"),
            (ast.Constant(False), "return-constant"),
        ]
    elif not isinstance(node.value, ast.Constant):
        options += [
            (_shift(node.value, ast.Add()), "return-shift"),
            (_shift(node.value, ast.Sub()), "return-shift"),
        ]
    for new, operator in options:
        yield source.replace_expr(node.value, new, operator)


def _shift(node: ast.expr, op: ast.operator) -> ast.expr:
    return ast.BinOp(node, op, ast.Constant(1))


def _augmented(source: Source, node: ast.AugAssign) -> Iterator[Edit]:
    for kind in ARITHMETIC if isinstance(node.op, ARITHMETIC) else BITS:
        if not isinstance(node.op, kind):
            new = ast.AugAssign(node.target, kind(), node.value)
            yield source.replace(node, ast.unparse(new), f"operator-{kind.__name__.lower()}")
    yield source.replace(node, f"{ast.unparse(node.target)} = {ast.unparse(node.value)}", "assign")


def _swap_with_next(source: Source, node: ast.stmt) -> Iterator[Edit]:
    parent = source.parents.get(node)
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if not isinstance(block, list) or node not in block:
            continue
        at = block.index(node)
        if at + 1 >= len(block) or is_docstring(node):
            return
        after = block[at + 1]
        if isinstance(after, (ast.FunctionDef, ast.ClassDef)):
            return
        start, end = source.span(node)[0], source.span(after)[1]
        yield Edit(start, end, source.statements([after, node], node), "swap-statements", node.lineno)
