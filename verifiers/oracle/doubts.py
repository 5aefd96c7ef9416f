"""Reasons to distrust gold on an input: slips in its own text, and results that hinge on rounding.

Gold is wrong or peculiar on some inputs of about one task in ten; such an input proves nothing about a candidate.
"""

from __future__ import annotations

import ast
import copy
import random
from collections.abc import Iterator
from typing import Any

from ...envs import pyast


def other_readings(source: str, entry: str) -> list[str]:
    """Gold with every unparenthesised ``a and b or c`` read as ``a and (b or c)``, all at once and one by one.

    Where such a reading also passes the visible tests, inputs on which it differs from gold are in doubt.
    """
    try:
        tree = pyast.parse(source)
    except SyntaxError:
        return []
    spots = list(_mixed(tree, source))
    if not spots or len(spots) > 8:
        return []
    choices = [set(spots)] + ([{spot} for spot in spots] if len(spots) > 1 else [])
    return [ast.unparse(_Regroup(chosen).visit(copy.deepcopy(tree))) for chosen in choices]


def _mixed(tree: ast.AST, source: str) -> Iterator[tuple[int, int]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.BoolOp) and isinstance(node.op, ast.Or) and _bare_and(node.values[0], source):
            yield node.lineno, node.col_offset


def _bare_and(node: ast.expr, source: str) -> bool:
    """An `and` without parentheses of its own: the text right before it does not open one."""
    if not (isinstance(node, ast.BoolOp) and isinstance(node.op, ast.And)):
        return False
    line = source.split("\n")[node.lineno - 1].encode()[: node.col_offset].decode().rstrip()
    after = (
        source.split("\n")[(node.end_lineno or node.lineno) - 1].encode()[node.end_col_offset or 0 :].decode()
    )
    return not (line.endswith("(") and after.lstrip().startswith(")"))


class _Regroup(ast.NodeTransformer):
    def __init__(self, spots: set[tuple[int, int]]) -> None:
        self.spots = spots

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        spot = (node.lineno, node.col_offset)
        self.generic_visit(node)
        first = node.values[0]
        if isinstance(node.op, ast.Or) and spot in self.spots and isinstance(first, ast.BoolOp):
            inner = ast.BoolOp(ast.Or(), [first.values[-1], *node.values[1:]])
            return ast.copy_location(ast.BoolOp(ast.And(), [*first.values[:-1], inner]), node)
        return node


def jittered(args: tuple[Any, ...], rng: random.Random) -> tuple[Any, ...] | None:
    """The arguments with every float that is no short binary fraction moved by a rounding error; None without any.

    A result that changes with such a move hinges on rounding, and an equally correct program may give another.
    """
    moved = [False]

    def move(value: Any) -> Any:
        if type(value) is float and value * 64 != int(value * 64):
            moved[0] = True
            return value * (1 + rng.choice((-1, 1)) * rng.randint(1, 50) * 1e-14)
        if type(value) in (list, tuple):
            return type(value)(move(item) for item in value)
        if type(value) is dict:
            return {key: move(item) for key, item in value.items()}
        return value

    new = tuple(move(value) for value in args)
    return new if moved[0] else None


def below(args: Any, floor: int) -> bool:
    """Whether some number in the arguments is smaller than the floor that the task's text states."""
    if isinstance(args, (int, float)) and not isinstance(args, bool):
        return args < floor
    if isinstance(args, dict):
        return any(below(item, floor) for pair in args.items() for item in pair)
    return isinstance(args, (list, tuple, set)) and any(below(item, floor) for item in args)
