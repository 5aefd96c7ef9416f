"""Layer "integrity": the builtins, operators and assert methods that a verdict rests on are the ones it started with.

`inside/acid_integrity.py` reports at each test's tail what was replaced (C02, C05, C07), and trace functions (L06). What
gold replaces too, as tests that patch builtins do, is no finding. Not covered: what is put back before the tail, and
names outside the kept list.
"""

from __future__ import annotations

from collections.abc import Iterable


def replaced(seen: Iterable[str], golds: Iterable[str]) -> str:
    """The evidence sentence, "" where nothing but gold's own replacements was seen."""
    names = sorted(set(seen) - set(golds))
    if not names:
        return ""
    shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
    return f"what asserts rest on was replaced while the tests ran: {shown}"
