"""Line-preserving text edits of one Python source at AST offsets, and the first place where a name can be bound."""

from __future__ import annotations

import ast
import threading
import warnings

from . import pyast

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


class Edits:
    """Text edits of one source, in UTF-8 bytes as AST offsets count; never adds a line but at the end."""

    def __init__(self, source: str) -> None:
        self.lines = source.encode().split(b"\n")
        self._edits: list[tuple[int, int, int, bytes]] = []

    def insert(self, line: int, column: int, text: bytes, *, replacing: int = 0) -> None:
        """Insert before byte `column` of `line` (counted from 1), cutting `replacing` bytes there.

        Later inserts at one place stand later.
        """
        self._edits.append((line, column, replacing, text))

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
        self._edits.append((line, 0, 0, text + end))

    def result(self) -> str:
        lines = list(self.lines)
        order = sorted(range(len(self._edits)), key=lambda i: (self._edits[i][0], self._edits[i][1], i))
        for i in reversed(order):
            line, column, length, text = self._edits[i]
            old = lines[line - 1]
            lines[line - 1] = old[:column] + text + old[column + length :]
        return b"\n".join(lines).decode()

    def bind(self, tree: ast.Module, statement: bytes) -> bool:
        """Put an import as early as the file allows; False when there is no place for it."""
        head = [node for i, node in enumerate(tree.body) if _stays_first(node, i)]
        if head:
            self.insert(head[-1].end_lineno or 1, head[-1].end_col_offset or 0, b"; " + statement)
            return True
        if tree.body and not isinstance(tree.body[0], BLOCKS):
            self.insert(tree.body[0].lineno, tree.body[0].col_offset, statement + b"; ")
            return True
        first = 1
        if tree.body:
            decorators = getattr(tree.body[0], "decorator_list", [])
            first = min([tree.body[0].lineno, *(d.lineno for d in decorators)])
        for line in range(first - 1, 0, -1):
            text = self.lines[line - 1]
            if self.is_free(line) and not (line <= 2 and (b"coding" in text or text.startswith(b"#!"))):
                self.take(line, statement)
                return True
        return False


def _stays_first(node: ast.stmt, position: int) -> bool:
    """A docstring or a `__future__` import."""
    if position == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant):
        return isinstance(node.value.value, str)
    return isinstance(node, ast.ImportFrom) and node.module == "__future__"


_quiet = threading.Lock()


def parse_quietly(source: str) -> ast.Module:
    """`ast.parse` without warnings about escapes in other people's code (errors where warnings are errors)."""
    with _quiet, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pyast.parse(source)


def readable(source: str) -> tuple[ast.Module | None, str]:
    """(tree, "") or (None, why it cannot be rewritten here)."""
    try:
        source.encode()
        if "\r" in source.replace("\r\n", ""):
            return None, "lone carriage returns"
        return parse_quietly(source), ""
    except (SyntaxError, ValueError, RecursionError) as error:
        return None, f"does not parse here: {type(error).__name__}"


def checked(edits: Edits, source: str) -> tuple[str, str]:
    """(new text, "") or (the old text, why)."""
    text = edits.result()
    try:
        parse_quietly(text)
    except SyntaxError as error:
        return source, f"cannot be rewritten: {error.msg}"
    return text, ""
