"""Inputs on which the answer is a matter of taste: several pieces of the input are equally good, and the text says nothing.

Gold then takes one of them by accident (`<` or `<=`, a stable sort), and a correct program may take another. Tie twins
of gold make the accident visible: comparisons of two computed values with the strictness turned, sorts and selections
by key over the reversed sequence. Where a twin differs from gold, and gold's result is made of pieces of the input, the
input is not pinned, unless the task's text speaks of such cases. A count or a yes/no is no choice: there strictness is
meaning, and stays pinned.
"""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Iterator
from typing import Any

from ..envs import pyast

SPOKEN = re.compile(
    r"\b(ties?|tied|first|last|multiple|several|in case of|(same|similar) (length|number|sum|value|count|size)|equal|more than one"
    r"|smallest index|original order|order of|appear)\b",
    re.IGNORECASE,
)
TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}


def speaks_of_ties(text: str) -> bool:
    """Whether the task's text says what happens among equals."""
    return bool(SPOKEN.search(text))


def tie_twins(source: str, *, limit: int = 12) -> list[str]:
    """Programs that differ from `source` only in what they take among equals (at most `limit`)."""
    try:
        tree = pyast.parse(source)
    except (SyntaxError, ValueError):
        return []
    twins: list[str] = []
    for path in _places(tree):
        twin = copy.deepcopy(tree)
        _turn(_at(twin, path))
        text = ast.unparse(ast.fix_missing_locations(twin))
        if text not in twins:
            twins.append(text)
    return twins[:limit]


def _places(tree: ast.Module) -> Iterator[int]:
    """Positions, in walking order, of everything that can be turned."""
    for number, node in enumerate(ast.walk(tree)):
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in TURNED:
            if not any(isinstance(side, ast.Constant) for side in (node.left, node.comparators[0])):
                yield number
        elif isinstance(node, ast.Call) and _picks_by_key(node):
            yield number


def _at(tree: ast.Module, number: int) -> ast.AST:
    return next(node for at, node in enumerate(ast.walk(tree)) if at == number)


def _picks_by_key(node: ast.Call) -> bool:
    named = isinstance(node.func, ast.Name) and node.func.id in {"sorted", "min", "max"}
    return named and len(node.args) == 1 and any(keyword.arg == "key" for keyword in node.keywords)


def _turn(node: ast.AST) -> None:
    if isinstance(node, ast.Compare):
        node.ops = [TURNED[type(node.ops[0])]()]
    elif isinstance(node, ast.Call):
        whole = ast.Call(func=ast.Name(id="list", ctx=ast.Load()), args=[node.args[0]], keywords=[])
        back = ast.Slice(lower=None, upper=None, step=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(1)))
        node.args = [ast.Subscript(value=whole, slice=back, ctx=ast.Load())]


def made_of_pieces(result: Any, args: Any) -> bool:
    """Whether a result consists of values that stand in the arguments (elements, or parts of a string)."""
    if isinstance(result, bool) or result is None:
        return False
    whole = set(map(repr, _leaves(args)))
    texts = [leaf for leaf in _leaves(args) if isinstance(leaf, str)]
    leaves = list(_leaves(result))
    return bool(leaves) and all(
        repr(leaf) in whole or (isinstance(leaf, str) and leaf and any(leaf in text for text in texts))
        for leaf in leaves
    )


def _leaves(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        for pair in value.items():
            yield from _leaves(pair)
    elif isinstance(value, list | tuple | set | frozenset):
        for item in value:
            yield from _leaves(item)
    else:
        yield value
