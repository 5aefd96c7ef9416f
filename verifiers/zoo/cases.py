"""Visible cases of a function task: calls with literal arguments and literal expectations, read off the tests."""

from __future__ import annotations

import ast
from typing import Any

from ...envs import pyast
from .ground import Ground


def visible_cases(ground: Ground) -> list[tuple[list[Any], Any]]:
    """(arguments, expected) of every ``assert f(args) == literal`` in the trusted tests, in order.

    `f` is the entry point or a parameter it is passed through (HumanEval's `candidate`). Other forms are left out.
    """
    names = {str(ground.task.metadata.get("entry_point", "")), "candidate"}
    cases: list[tuple[list[Any], Any]] = []
    for text in ground.test_texts.values():
        asserts = [node for node in ast.walk(pyast.parse(text)) if isinstance(node, ast.Assert)]
        for node in sorted(asserts, key=lambda n: n.lineno):
            case = _case(node.test, names)
            if case is not None:
                cases.append(case)
    return cases


def _case(test: ast.expr, names: set[str]) -> tuple[list[Any], Any] | None:
    if isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq | ast.Is):
        call, right = test.left, test.comparators[0]
    elif isinstance(test, ast.Call):
        call, right = test, ast.Constant(True)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        call, right = test.operand, ast.Constant(False)
    else:
        return None
    if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and call.func.id in names):
        return None
    if call.keywords:
        return None
    try:
        return [pyast.literal(a) for a in call.args], pyast.literal(right)
    except ValueError:
        return None
