"""`ast.parse` for threads.

CPython 3.11 keeps the recursion depth of its AST converter once for all threads: when another thread parses in between (a garbage
collection can switch threads inside the converter), a perfectly good source raises ``SystemError: AST constructor recursion depth
mismatch``. Seen once in a repair of five tasks with two threads. Here parsing is serialised and tried again; parsing done
elsewhere with `ast.parse` can still disturb it, hence the retries. All host code of the package parses here
(`tests/test_architecture.py`); helpers that run alone in a process of their own do not need to.
"""

from __future__ import annotations

import ast
import os
import threading
from typing import Any

_LOCK = threading.Lock()
_TRIES = 20


def _fork_child() -> None:
    """A thread of the parent may hold the lock, and it does not exist in the child."""
    global _LOCK
    _LOCK = threading.Lock()


os.register_at_fork(after_in_child=_fork_child)


def parse(source: str, filename: str = "<unknown>") -> ast.Module:
    """The module's tree. Raises what `ast.parse` raises (SyntaxError, ValueError, RecursionError, MemoryError)."""
    for _ in range(_TRIES - 1):
        try:
            with _LOCK:
                return ast.parse(source, filename)
        except SystemError:
            continue
    with _LOCK:
        return ast.parse(source, filename)


def expression(source: str) -> ast.Expression:
    """The tree of one expression. Raises what `parse` raises."""
    for _ in range(_TRIES - 1):
        try:
            with _LOCK:
                return ast.parse(source, "<unknown>", "eval")
        except SystemError:
            continue
    with _LOCK:
        return ast.parse(source, "<unknown>", "eval")


def literal(value: str | ast.AST) -> Any:
    """`ast.literal_eval` of a text or a node. Raises what it raises (ValueError, SyntaxError, TypeError, MemoryError …)."""
    return ast.literal_eval(expression(value.lstrip(" \t")) if isinstance(value, str) else value)
