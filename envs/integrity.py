"""Layer "integrity": what a verdict rests on is what it started with: builtins, operators, assert methods, test files.

`inside/acid_integrity.py` reports at each test's tail what was replaced (C02, C05, C07), and trace functions (L06). What
gold replaces too, as tests that patch builtins do, is no finding. And trusted files are read back when the command has
ended: one that differs was rewritten by the submission while the tests ran (a later test file of the same run, say). Not
covered: what is put back before the tail or the end, names outside the kept list, code changed in memory.
"""

from __future__ import annotations

from collections.abc import Iterable


def replaced(seen: Iterable[str], golds: Iterable[str]) -> str:
    """The evidence sentence, "" where nothing but gold's own replacements was seen."""
    return _beyond_gold(seen, golds, "what asserts rest on was replaced while the tests ran")


def rewritten(seen: Iterable[str], golds: Iterable[str]) -> str:
    """The same for trusted files that were not as written when the run had ended."""
    return _beyond_gold(seen, golds, "files of the suite were changed while its tests ran")


def _beyond_gold(seen: Iterable[str], golds: Iterable[str], fact: str) -> str:
    names = sorted(set(seen) - set(golds))
    shown = ", ".join(names[:6]) + (" …" if len(names) > 6 else "")
    return f"{fact}: {shown}" if names else ""
