"""`ast.parse` for threads.

CPython 3.11 keeps the recursion depth of its AST converter once for all threads: when another thread parses in between (a garbage
collection can switch threads inside the converter), a perfectly good source raises ``SystemError: AST constructor recursion depth
mismatch``. Seen once in a repair of five tasks with two threads. Here parsing is serialised and tried again; parsing done
elsewhere with `ast.parse` can still disturb it, hence the retries.
"""

from __future__ import annotations

import ast
import threading

_LOCK = threading.Lock()
_TRIES = 20


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
