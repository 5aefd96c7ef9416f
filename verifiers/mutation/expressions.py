"""Mutations of expressions: every replacement of every operator and comparison, constants, boundaries, calls."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from .edits import Edit, Source

ARITHMETIC: tuple[type[ast.operator], ...] = (
    ast.Add, ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow,
)  # fmt: skip
BITS: tuple[type[ast.operator], ...] = (ast.BitAnd, ast.BitOr, ast.BitXor, ast.LShift, ast.RShift)
ORDER: tuple[type[ast.cmpop], ...] = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
PAIRS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is,
}  # fmt: skip
SWAPS: dict[str, tuple[str, ...]] = {
    "min": ("max",), "max": ("min",), "any": ("all",), "all": ("any",), "sum": ("max", "len"), "len": ("sum",),
    "upper": ("lower",), "lower": ("upper",), "isupper": ("islower", "isalpha"), "islower": ("isupper", "isalpha"),
    "isdigit": ("isalpha", "isalnum"), "isalpha": ("isdigit", "isalnum", "isupper"), "startswith": ("endswith",),
    "endswith": ("startswith",), "find": ("rfind",), "rfind": ("find",), "index": ("rindex",),
    "strip": ("lstrip", "rstrip"), "lstrip": ("rstrip", "strip"), "rstrip": ("lstrip", "strip"),
    "ceil": ("floor",), "floor": ("ceil",), "round": ("int",), "int": ("round", "float"), "abs": ("int",),
    "append": ("extend",), "extend": ("append",), "sorted": ("list", "set"), "set": ("list",), "list": ("set",),
    "add": ("discard",), "union": ("intersection",), "intersection": ("union",), "keys": ("values",),
    "values": ("keys",), "sqrt": ("abs",), "swapcase": ("upper", "lower"), "capitalize": ("title", "upper"),
    "isinstance": ("issubclass",), "count": ("index",), "reversed": ("list",), "log2": ("log",), "log10": ("log",),
}  # fmt: skip


def mutations(
    source: Source, node: ast.AST, names: Sequence[str], harvested: Sequence[object]
) -> Iterator[Edit]:
    """Every mutation of one expression node. names: variables in scope; harvested: constants from the tests."""
    for new, operator in _replacements(node, names, harvested):
        assert isinstance(node, ast.expr)
        yield source.replace_expr(node, new, operator)


def _replacements(
    node: ast.AST, names: Sequence[str], harvested: Sequence[object]
) -> Iterator[tuple[ast.expr, str]]:
    if isinstance(node, ast.BinOp):
        yield from _binary(node)
    elif isinstance(node, ast.Compare):
        yield from _compare(node)
    elif isinstance(node, ast.BoolOp):
        yield from _boolean(node)
    elif isinstance(node, ast.UnaryOp):
        yield node.operand, f"drop-{type(node.op).__name__.lower()}"
    elif isinstance(node, ast.Constant):
        yield from _constant(node, harvested)
    elif isinstance(node, ast.IfExp):
        yield ast.IfExp(node.test, node.orelse, node.body), "swap-branches"
        yield node.body, "drop-branch"
        yield node.orelse, "drop-branch"
    elif isinstance(node, ast.Call):
        yield from _call(node)
    elif isinstance(node, ast.Subscript):
        yield from _subscript(node)
    elif isinstance(node, (ast.ListComp, ast.SetComp, ast.GeneratorExp, ast.DictComp)):
        yield from _comprehension(node)
    elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load):
        for name in names:
            if name != node.id:
                yield ast.Name(name, ast.Load()), "other-variable"


def _binary(node: ast.BinOp) -> Iterator[tuple[ast.expr, str]]:
    kinds = ARITHMETIC if isinstance(node.op, ARITHMETIC) else BITS
    for kind in kinds:
        if not isinstance(node.op, kind):
            yield ast.BinOp(node.left, kind(), node.right), f"operator-{kind.__name__.lower()}"
    yield node.left, "drop-operand"
    yield node.right, "drop-operand"
    if not isinstance(node.op, (ast.Mult, ast.BitAnd, ast.BitOr, ast.BitXor)):
        yield ast.BinOp(node.right, node.op, node.left), "swap-operands"


def _compare(node: ast.Compare) -> Iterator[tuple[ast.expr, str]]:
    for at, op in enumerate(node.ops):
        kinds = ORDER if isinstance(op, ORDER) else (PAIRS[type(op)],)
        for kind in kinds:
            if not isinstance(op, kind):
                new = copy.copy(node)
                new.ops = [*node.ops[:at], kind(), *node.ops[at + 1 :]]
                yield new, f"comparison-{kind.__name__.lower()}"
        if isinstance(op, ORDER):
            for step in (1, -1):
                new = copy.copy(node)
                new.comparators = list(node.comparators)
                if not isinstance(node.comparators[at], ast.Constant):
                    new.comparators[at] = _shift(node.comparators[at], step)
                    yield new, "boundary"
    if len(node.ops) > 1:
        yield ast.Compare(node.left, node.ops[:1], node.comparators[:1]), "drop-comparison"
        yield ast.Compare(node.comparators[0], node.ops[1:], node.comparators[1:]), "drop-comparison"


def _boolean(node: ast.BoolOp) -> Iterator[tuple[ast.expr, str]]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield ast.BoolOp(other, node.values), f"boolean-{type(other).__name__.lower()}"
    for at in range(len(node.values)):
        rest = node.values[:at] + node.values[at + 1 :]
        yield rest[0] if len(rest) == 1 else ast.BoolOp(node.op, rest), "drop-condition"


def _constant(node: ast.Constant, harvested: Sequence[object]) -> Iterator[tuple[ast.expr, str]]:
    value = node.value
    options: list[object] = []
    if isinstance(value, bool):
        options = [not value]
    elif isinstance(value, int):
        options = [value + 1, value - 1, 0, 1, -1, -value]
        options += [v for v in harvested if type(v) is int][:3]
    elif isinstance(value, float):
        options = [value + 1, value - 1, 0.0, 1.0, -value, value / 2]
        options += [v for v in harvested if type(v) is float][:2]
    elif isinstance(value, str):
        options = ["", value.swapcase(), value[1:], value[:-1], value + value[-1:] if value else " "]
        options += [v for v in harvested if type(v) is str and len(v) < 20][:2]
    elif value is None:
        options = [0, ""]
    seen: set[tuple[type, object]] = {(type(value), value)}
    for option in options:
        if (type(option), option) not in seen:
            seen.add((type(option), option))
            yield _literal(option), "constant"


def _literal(value: object) -> ast.expr:
    if isinstance(value, (int, float)) and not isinstance(value, bool) and value < 0:
        return ast.UnaryOp(ast.USub(), ast.Constant(-value))
    return ast.Constant(value)  # type: ignore[arg-type]


def _shift(node: ast.expr, step: int) -> ast.expr:
    if isinstance(node, ast.Constant) and type(node.value) is int:
        return _literal(node.value + step)
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(1))


def _call(node: ast.Call) -> Iterator[tuple[ast.expr, str]]:
    func = node.func
    name = func.id if isinstance(func, ast.Name) else func.attr if isinstance(func, ast.Attribute) else ""
    for other in SWAPS.get(name, ()):
        swapped: ast.expr = ast.Name(other, ast.Load())
        if isinstance(func, ast.Attribute):
            swapped = ast.Attribute(func.value, other, ast.Load())
        yield ast.Call(swapped, node.args, node.keywords), f"call-{name}-{other}"
    if isinstance(func, ast.Name) and node.args and not isinstance(node.args[0], ast.Starred):
        yield node.args[0], "unwrap-call"
    if isinstance(func, ast.Attribute):
        yield func.value, "unwrap-method"
    if len(node.args) == 2:
        yield ast.Call(func, node.args[::-1], node.keywords), "swap-arguments"
    for at in range(len(node.args)):
        if len(node.args) > 1 or isinstance(func, ast.Attribute):
            yield ast.Call(func, node.args[:at] + node.args[at + 1 :], node.keywords), "drop-argument"
    for at, keyword in enumerate(node.keywords):
        yield ast.Call(func, node.args, node.keywords[:at] + node.keywords[at + 1 :]), "drop-keyword"
        if keyword.arg == "reverse":
            flipped = ast.keyword("reverse", ast.UnaryOp(ast.Not(), keyword.value))
            yield (
                ast.Call(func, node.args, [*node.keywords[:at], flipped, *node.keywords[at + 1 :]]),
                "reverse",
            )
    if name == "range":
        for at, arg in enumerate(node.args):
            for step in (1, -1):
                if not isinstance(arg, ast.Constant):
                    moved = [*node.args[:at], _shift(arg, step), *node.args[at + 1 :]]
                    yield ast.Call(func, moved, []), "range"
        if len(node.args) == 1:
            yield ast.Call(func, [ast.Constant(1), *node.args], []), "range"
    if name == "sorted" and not any(k.arg == "reverse" for k in node.keywords):
        yield (
            ast.Call(func, node.args, [*node.keywords, ast.keyword("reverse", ast.Constant(True))]),
            "reverse",
        )


def _subscript(node: ast.Subscript) -> Iterator[tuple[ast.expr, str]]:
    if not isinstance(node.ctx, ast.Load):
        return
    part = node.slice
    if isinstance(part, ast.Slice):
        for name in ("lower", "upper", "step"):
            bound = getattr(part, name)
            if bound is not None:
                yield _sliced(node, part, name, None), "drop-bound"
                if name != "step" and not isinstance(bound, ast.Constant):
                    for step in (1, -1):
                        yield _sliced(node, part, name, _shift(bound, step)), "slice"
            elif name == "lower":
                yield _sliced(node, part, name, ast.Constant(1)), "slice"
            elif name == "upper":
                yield _sliced(node, part, name, _literal(-1)), "slice"
        yield node.value, "drop-slice"
    elif not isinstance(part, (ast.Constant, ast.Tuple)):
        for step in (1, -1):
            yield ast.Subscript(node.value, _shift(part, step), ast.Load()), "index"


def _sliced(node: ast.Subscript, part: ast.Slice, name: str, bound: ast.expr | None) -> ast.expr:
    new = copy.copy(part)
    setattr(new, name, bound)
    return ast.Subscript(node.value, new, ast.Load())


def _comprehension(
    node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp,
) -> Iterator[tuple[ast.expr, str]]:
    for at, generator in enumerate(node.generators):
        options: list[tuple[ast.comprehension, str]] = []
        for skip in range(len(generator.ifs)):
            new = copy.copy(generator)
            new.ifs = generator.ifs[:skip] + generator.ifs[skip + 1 :]
            options.append((new, "drop-filter"))
            negated = copy.copy(generator)
            negated.ifs = list(generator.ifs)
            negated.ifs[skip] = ast.UnaryOp(ast.Not(), generator.ifs[skip])
            options.append((negated, "negate-filter"))
        for option, operator in options:
            changed = copy.copy(node)
            changed.generators = [*node.generators[:at], option, *node.generators[at + 1 :]]
            yield changed, operator
