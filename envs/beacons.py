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

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
BLOCKS = (
    ast.If,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.With,
    ast.AsyncWith,
    ast.Try,
    ast.TryStar,
    ast.Match,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
)
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


class Edits:
    """Text edits of one source, in UTF-8 bytes as AST offsets count; never adds a line but at the end."""

    def __init__(self, source: str) -> None:
        self.lines = source.encode().split(b"\n")
        self._edits: list[tuple[int, int, bytes]] = []

    def insert(self, line: int, column: int, text: bytes) -> None:
        """Insert before byte `column` of `line` (counted from 1). Later inserts at one place stand later."""
        self._edits.append((line, column, text))

    def is_free(self, line: int) -> bool:
        """Whether a line holds nothing but blanks or a comment and is not taken yet."""
        if line > len(self.lines) + 1 or any(edit[0] == line for edit in self._edits):
            return False
        if line == len(self.lines) + 1:
            return True
        text = self.lines[line - 1].strip()
        return not text or text.startswith(b"#")

    def take(self, line: int, text: bytes) -> None:
        """Replace a free line, or add one at the end of the file."""
        if line == len(self.lines) + 1:
            self.lines.append(b"")
        end = b"\r" if self.lines[line - 1].endswith(b"\r") else b""
        self.lines[line - 1] = b""
        self._edits.append((line, 0, text + end))

    def result(self) -> str:
        lines = list(self.lines)
        order = sorted(range(len(self._edits)), key=lambda i: (self._edits[i][0], self._edits[i][1], i))
        for i in reversed(order):
            line, column, text = self._edits[i]
            old = lines[line - 1]
            lines[line - 1] = old[:column] + text + old[column:]
        return b"\n".join(lines).decode()


def rewrite(source: str, prefix: str) -> Rewritten:
    """Give every test body its tail. prefix: makes the keys of one file unique among the suite's files."""
    try:
        tree = ast.parse(source)
        if "\r" in source.replace("\r\n", ""):
            return Rewritten(text=source, problem="lone carriage returns")
        source.encode()
    except (SyntaxError, ValueError, RecursionError) as error:
        return Rewritten(text=source, problem=f"does not parse here: {type(error).__name__}")
    edits = Edits(source)
    call = _bind(tree, edits)
    keys: dict[str, str] = {}
    uncovered: list[str] = []
    for name, function in bodies(tree, ""):
        key = f"{prefix}.{len(keys)}"
        if _add_tail(function, edits, f'{call}("{key}"'.encode()):
            keys[key] = name
        else:
            uncovered.append(name)
    text = edits.result()
    try:
        ast.parse(text)
    except SyntaxError as error:
        return Rewritten(text=source, problem=f"cannot be rewritten: {error.msg}")
    return Rewritten(text=text, keys=keys, uncovered=tuple(uncovered))


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


def _bind(tree: ast.Module, edits: Edits) -> str:
    """Bind the tail at import, as early as the file allows; returns how a tail is called."""
    head = [
        n
        for i, n in enumerate(tree.body)
        if (
            i == 0
            and isinstance(n, ast.Expr)
            and isinstance(n.value, ast.Constant)
            and isinstance(n.value.value, str)
        )
        or (isinstance(n, ast.ImportFrom) and n.module == "__future__")
    ]
    if head:
        edits.insert(head[-1].end_lineno or 1, head[-1].end_col_offset or 0, b"; " + BIND)
        return "_acid_tail"
    if tree.body and not isinstance(tree.body[0], BLOCKS):
        edits.insert(tree.body[0].lineno, tree.body[0].col_offset, BIND + b"; ")
        return "_acid_tail"
    first = (
        min([tree.body[0].lineno, *(d.lineno for d in getattr(tree.body[0], "decorator_list", []))])
        if tree.body
        else 1
    )
    for line in range(first - 1, 0, -1):
        text = edits.lines[line - 1]
        if edits.is_free(line) and not (line <= 2 and (b"coding" in text or text.startswith(b"#!"))):
            edits.take(line, BIND)
            return "_acid_tail"
    return '__import__("acid_channel").tail'


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
