"""Applying a clean git diff to texts in memory, exactly: for gold and test patches, never for submissions."""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...envs.errors import PatchError

_FILE = re.compile(r'^diff --git "?a/(.+?)"? "?b/(.+?)"?$')
_HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


def sections(patch: str) -> dict[str, list[str]]:
    """New path -> lines of its part of the diff (deleted files are left out)."""
    parts: dict[str, list[str]] = {}
    current: list[str] = []
    for line in patch.split("\n"):
        match = _FILE.match(line)
        if match:
            current = parts.setdefault(match.group(2), [])
        current.append(line)
    return {p: lines for p, lines in parts.items() if not any(x.startswith("+++ /dev/null") for x in lines)}


def paths_of(patch: str) -> list[str]:
    """Paths that a diff leaves in the tree."""
    return list(sections(patch))


def apply_exact(texts: Mapping[str, str], patch: str, *, only: str) -> str:
    """Text of the file `only` after the diff; hunks may have moved, as `git apply` allows, but every line must fit.

    Raises PatchError where a hunk stands nowhere.
    """
    lines = sections(patch).get(only)
    if lines is None:
        return texts[only]
    if only not in texts:
        return "\n".join([new for _, _, _, after in _hunks(lines) for new in after] + [""])
    old = texts[only].split("\n")
    new: list[str] = []
    at = 0
    for start, before, _, after in _hunks(lines):
        found = _find(old, before, at, start)
        if found is None:
            raise PatchError(f"{only}: the hunk at line {start + 1} stands nowhere")
        new += old[at:found] + after
        at = found + len(before)
    return "\n".join(new + old[at:])


def _hunks(lines: list[str]) -> list[tuple[int, list[str], int, list[str]]]:
    """(old start from 0, old lines, new count, new lines) of each hunk."""
    hunks: list[tuple[int, list[str], int, list[str]]] = []
    number = 0
    while number < len(lines):
        match = _HUNK.match(lines[number])
        number += 1
        if not match:
            continue
        start, left, added = int(match[1]), int(match[2] or 1), int(match[4] or 1)
        before: list[str] = []
        after: list[str] = []
        hunks.append((start - 1 if left else start, before, added, after))
        while left or added:
            mark, text = lines[number][:1] or " ", lines[number][1:]
            number += 1
            if mark in " -":
                before.append(text)
                left -= 1
            if mark in " +":
                after.append(text)
                added -= 1
    return hunks


def _find(old: list[str], before: list[str], at: int, start: int) -> int | None:
    """The place nearest to `start`, not before `at`, where these lines stand."""
    places = sorted(range(at, len(old) - len(before) + 1), key=lambda n: abs(n - start))
    return next((n for n in places if old[n : n + len(before)] == before), None)
