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
    """Text of the file `only` after the diff. Raises PatchError where a line does not fit."""
    lines = sections(patch).get(only)
    if lines is None:
        return texts[only]
    old = texts.get(only, "").split("\n")
    new: list[str] = []
    at = 0
    number = 0
    while number < len(lines):
        match = _HUNK.match(lines[number])
        number += 1
        if not match:
            continue
        start, removed = int(match.group(1)), int(match.group(2) or 1)
        left, added = removed, int(match.group(4) or 1)
        position = start - 1 if removed else start
        new += old[at:position]
        at = position
        while left or added:
            line = lines[number]
            number += 1
            mark, text = line[:1] or " ", line[1:]
            if mark in " -":
                if at >= len(old) or old[at].rstrip("\r") != text.rstrip("\r"):
                    raise PatchError(f"{only}: line {at + 1} is not {text!r}")
                at, left = at + 1, left - 1
            if mark in " +":
                new.append(old[at - 1] if mark == " " else text)
                added -= 1
    rest = old[at:]
    if only not in texts:
        rest = [""]
    return "\n".join(new + rest)
