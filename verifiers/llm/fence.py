"""Hostile text in a prompt: a random fence per call, and the candidate's own words taken out of its code.

A fence is fresh for every call and cannot be guessed by whoever wrote the text; a text that contains it by chance
gets another one. The request's digest does not depend on it. `without_words` removes comments and docstrings of
Python code: what cannot be read cannot instruct, and cannot describe itself.
"""

from __future__ import annotations

import ast
import io
import secrets
import tokenize

from ...envs import pyast


def new_fence(*texts: str) -> str:
    """A delimiter of 16 hex digits that occurs in none of the texts."""
    while True:
        fence = secrets.token_hex(8)
        if not any(fence in text for text in texts):
            return fence


def fenced(text: str, fence: str, name: str) -> str:
    """The text between marked lines that carry the fence."""
    return f"<<<{name} {fence}\n{text}\n{name} {fence}>>>"


def without_words(source: str) -> str | None:
    """Python code without comments and docstrings, lines kept in place; None when it does not parse."""
    try:
        tree = pyast.parse(source)
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (SyntaxError, ValueError, tokenize.TokenError, RecursionError):
        return None
    lines = source.splitlines(keepends=True)
    for token in tokens:
        if token.type == tokenize.COMMENT:
            row, column = token.start
            line = lines[row - 1]
            end = "\n" if line.endswith("\n") else ""
            lines[row - 1] = line[:column].rstrip() + end
    for node in _docstrings(tree):
        _blank(lines, node)
    return "".join(lines)


def _docstrings(tree: ast.Module) -> list[ast.Expr]:
    """String statements anywhere: docstrings, and bare strings that serve as comments."""
    return [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, str)
    ]


def _blank(lines: list[str], node: ast.Expr) -> None:
    """Put `...` where the string stood (its block may hold nothing else); columns are UTF-8 offsets."""
    first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
    head = lines[first].encode()[: node.col_offset].decode()
    tail = lines[last].encode()[node.end_col_offset :].decode()
    for row in range(first, last + 1):
        lines[row] = "\n"
    lines[first] = head + "..." + (tail if tail.strip() else "\n")
