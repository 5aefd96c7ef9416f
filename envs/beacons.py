"""Layer "beacons": every body of a trusted test gets a call at its tail, which asks the supervisor what to do.

Line-preserving text edits at AST offsets, so tracebacks, assertion rewriting and line numbers stay. The tail, not
`finally`: wrong code that raises never reaches it. `return x` becomes `return _acid_tail(key, (x))`; a body that ends
in a block gets its call on the blank or comment line behind it. Nested functions keep their own tail only when they
are named `test*` (test factories). One rewriting serves the real run and the twin.

Not covered (listed in `Rewritten.uncovered`): files that do not parse here, bodies that end in a block with no free
line behind them, doctests, closures not named `test*`.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from .edits import BLOCKS, Edits, checked, readable

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BIND = b"from acid_channel import tail as _acid_tail"


@dataclass(frozen=True, kw_only=True)
class Rewritten:
    """text: the new source (the old one where `problem` says why). keys: beacon key -> qualified function name.

    uncovered: qualified names of test functions without a tail.
    """

    text: str
    keys: Mapping[str, str] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()
    problem: str = ""


def rewrite(source: str, prefix: str) -> Rewritten:
    """Give every test body its tail. prefix: makes the keys of one file unique among the suite's files."""
    tree, problem = readable(source)
    if tree is None:
        return Rewritten(text=source, problem=problem)
    edits = Edits(source)
    call = "_acid_tail" if edits.bind(tree, BIND) else '__import__("acid_channel").tail'
    keys: dict[str, str] = {}
    uncovered: list[str] = []
    for name, function in bodies(tree, ""):
        key = f"{prefix}.{len(keys)}"
        if _add_tail(function, edits, f'{call}("{key}"'.encode()):
            keys[key] = name
        else:
            uncovered.append(name)
    text, problem = checked(edits, source)
    return Rewritten(text=text, keys={} if problem else keys, uncovered=tuple(uncovered), problem=problem)


def bodies(tree: ast.AST, outer: str) -> Iterator[tuple[str, FunctionNode]]:
    """(qualified name, node) of every function named `test*` or `runTest`, nested ones included, fixtures not."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            name = f"{outer}{node.name}"
            if (node.name.startswith("test") or node.name == "runTest") and not _is_no_test(node):
                yield name, node
            yield from bodies(node, f"{name}.")
        elif isinstance(node, ast.ClassDef):
            yield from bodies(node, f"{outer}{node.name}.")
        else:
            yield from bodies(node, outer)


def _is_no_test(node: FunctionNode) -> bool:
    marks = " ".join(ast.unparse(d) for d in node.decorator_list)
    return "fixture" in marks or marks in {"property", "cached_property", "contextmanager"}


def _add_tail(function: FunctionNode, edits: Edits, call: bytes) -> bool:
    """Add the tail of one function; False when there is no place for it."""
    last = function.body[-1]
    if isinstance(last, BLOCKS):
        line = (last.end_lineno or last.lineno) + 1
        indent = edits.lines[function.body[0].lineno - 1][: function.body[0].col_offset]
        if indent.strip() or not edits.is_free(line):
            return False
        edits.take(line, indent + call + b")")
    own = list(_own_nodes(function))
    generator = isinstance(function, ast.AsyncFunctionDef) and any(isinstance(n, ast.Yield) for n in own)
    for node in own:
        if isinstance(node, ast.Return) and not generator:
            at = (node.lineno, node.col_offset + len("return"))
            if node.value is None:
                edits.insert(*at, b" " + call + b")")
            else:
                edits.insert(*at, b" " + call + b", (")
                edits.insert(node.end_lineno or node.lineno, node.end_col_offset or 0, b"))")
    if not isinstance(last, (*BLOCKS, ast.Return, ast.Raise)):
        edits.insert(last.end_lineno or last.lineno, last.end_col_offset or 0, b"; " + call + b")")
    return True


def _own_nodes(function: FunctionNode) -> Iterator[ast.AST]:
    """Nodes of a body without those of nested functions, classes and lambdas."""
    queue: list[ast.AST] = list(function.body)
    while queue:
        node = queue.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
            queue += list(ast.iter_child_nodes(node))
