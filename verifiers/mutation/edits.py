"""Text edits at AST offsets: replace one node of a source by another text, and compare programs by normal form."""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from ...envs.edits import parse_quietly

Position = tuple[int, int]


@dataclass(frozen=True)
class Edit:
    """Replace source[start:end] (UTF-8 byte offsets) by `text`. operator: what was done, line: where (1-based)."""

    start: int
    end: int
    text: str
    operator: str
    line: int


class Source:
    """A parsed Python text with byte offsets. Raises SyntaxError when it does not parse."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.data = text.encode()
        self.tree = parse_quietly(text)
        self.parents: dict[ast.AST, ast.AST] = {}
        for node in ast.walk(self.tree):
            for child in ast.iter_child_nodes(node):
                self.parents[child] = node
        self._starts = [0]
        for line in self.data.split(b"\n")[:-1]:
            self._starts.append(self._starts[-1] + len(line) + 1)

    def offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or 0
        return self.offset(node.lineno, node.col_offset), self.offset(end_line, end_column)

    def of(self, node: ast.expr | ast.stmt) -> str:
        start, end = self.span(node)
        return self.data[start:end].decode()

    def apply(self, edit: Edit) -> str:
        return (self.data[: edit.start] + edit.text.encode() + self.data[edit.end :]).decode()

    def replace(self, node: ast.expr | ast.stmt, text: str, operator: str) -> Edit:
        start, end = self.span(node)
        return Edit(start, end, text, operator, node.lineno)

    def replace_expr(self, node: ast.expr, new: ast.expr, operator: str) -> Edit:
        """Replace an expression, in parentheses where its surroundings could bind tighter."""
        text = ast.unparse(new)
        parent = self.parents.get(node)
        tight = isinstance(
            parent,
            (
                ast.BinOp,
                ast.BoolOp,
                ast.Compare,
                ast.UnaryOp,
                ast.Attribute,
                ast.Await,
                ast.Starred,
                ast.IfExp,
            ),
        ) or (isinstance(parent, (ast.Subscript, ast.Call)) and node in (_value(parent),))
        atom = isinstance(
            new, (ast.Name, ast.Call, ast.List, ast.Dict, ast.Set, ast.Subscript, ast.Attribute)
        )
        plain = isinstance(new, ast.Constant) and not isinstance(new.value, (int, float, complex))
        bare = atom or plain or (isinstance(new, ast.Constant) and not isinstance(parent, ast.Attribute))
        if (tight and not bare) or isinstance(new, (ast.Lambda, ast.NamedExpr, ast.Yield, ast.Await)):
            text = f"({text})"
        return self.replace(node, text, operator)

    def indent_of(self, node: ast.stmt) -> str:
        return " " * node.col_offset

    def statements(self, nodes: list[ast.stmt], where: ast.stmt) -> str:
        """Source of statements, to stand where `where` stands (its indentation, first line not indented)."""
        text = "\n".join(ast.unparse(node) for node in nodes) or "pass"
        return text.replace("\n", "\n" + self.indent_of(where))


def _value(node: ast.AST | None) -> ast.expr | None:
    if isinstance(node, ast.Subscript):
        return node.value
    return node.func if isinstance(node, ast.Call) else None


def walk_code(tree: ast.AST) -> Iterator[ast.AST]:
    """Nodes in source order without annotations, docstrings and the insides of f-strings (their offsets lie)."""
    stack = [tree]
    while stack:
        node = stack.pop()
        yield node
        if isinstance(node, ast.JoinedStr):
            continue
        skip: set[int] = set()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            if (first := node.body[:1]) and is_docstring(first[0]):
                skip.add(id(first[0]))
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) and node.returns:
            skip.add(id(node.returns))
        if isinstance(node, (ast.AnnAssign, ast.arg)) and node.annotation:
            skip.add(id(node.annotation))
        stack += [child for child in reversed(list(ast.iter_child_nodes(node))) if id(child) not in skip]


def is_docstring(node: ast.stmt) -> bool:
    return (
        isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    )


def normal_form(text: str) -> str | None:
    """Digest of the program without comments, layout and docstrings; None when it does not parse."""
    try:
        tree = parse_quietly(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    for node in ast.walk(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.Module)):
            if len(node.body) > 1 and is_docstring(node.body[0]):
                del node.body[0]
    return hashlib.sha256(ast.dump(tree).encode("utf-8", "surrogatepass")).hexdigest()[:24]
