"""A small pure applier for unified diffs whose context matches exactly, at the printed line or the nearest other.

Used to get at program texts inside the audit. It judges nothing: verdicts apply patches with `git apply` semantics.
Not covered: renames, copies, binary patches, hunks whose context does not match word for word.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from ...envs.errors import PatchError

HUNK = re.compile(r"^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


@dataclass(frozen=True)
class Hunk:
    """One hunk. old_start, new_start: 1-based as printed; lines: with their first character (' ', '+', '-')."""

    old_start: int
    new_start: int
    lines: tuple[str, ...]

    @property
    def old(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] in " -"]

    @property
    def new(self) -> list[str]:
        return [line[1:] for line in self.lines if line[0] in " +"]


@dataclass
class FileDiff:
    """The hunks of one file. path: in the new tree. created, deleted: from or to /dev/null."""

    path: str
    created: bool = False
    deleted: bool = False
    hunks: list[Hunk] = field(default_factory=list)

    def added_lines(self, before: str | None = None) -> set[int]:
        """1-based line numbers, in the new file, of the lines this diff adds.

        With the old text, as the hunks really lie there; without it, as they are printed.
        """
        return self._lines("+", before)

    def touched_lines(self, before: str | None = None) -> set[int]:
        """Added lines, and the lines on both sides of where something was removed."""
        return self._lines("+-", before)

    def _lines(self, marks: str, before: str | None) -> set[int]:
        found: set[int] = set()
        places = self._places(split_lines(before)) if before is not None else None
        grown = 0
        for at, hunk in enumerate(self.hunks):
            number = hunk.new_start if places is None else places[at] + 1 + grown
            grown += len(hunk.new) - len(hunk.old)
            for line in hunk.lines:
                if line[0] in marks:
                    found |= {number} if line[0] == "+" else {max(1, number - 1), number}
                number += line[0] != "-"
        return found

    def apply(self, text: str) -> str:
        """The new text. Raises PatchError where the old text is not what the hunks say."""
        lines = split_lines(text)
        out: list[str] = []
        at = 0
        for hunk, start in zip(self.hunks, self._places(lines), strict=True):
            out += lines[at:start] + hunk.new
            at = start + len(hunk.old)
        return "".join(out + lines[at:])

    def _places(self, lines: list[str]) -> list[int]:
        """0-based line at which each hunk's old lines stand: nearest to where they are printed, in order."""
        places: list[int] = []
        first = drift = 0
        for hunk in self.hunks:
            old = hunk.old
            printed = (hunk.old_start - 1 if old else hunk.old_start) + drift
            options = [
                start
                for start in ([printed] if not old else range(first, len(lines) - len(old) + 1))
                if first <= start <= len(lines) and lines[start : start + len(old)] == old
            ]
            if not options:
                raise PatchError(f"{self.path}: hunk at line {hunk.old_start} does not match.")
            place = min(options, key=lambda start: abs(start - printed))
            drift += place - printed
            first = place + len(old)
            places.append(place)
        return places


def split_lines(text: str) -> list[str]:
    """Lines with their newline; splits at newlines only (never at form feeds)."""
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def parse_diff(text: str) -> list[FileDiff]:
    """The files of a unified diff, in order. Raises PatchError on a hunk that ends early."""
    files: list[FileDiff] = []
    lines = text.split("\n")
    at = 0
    while at < len(lines):
        if lines[at].startswith("--- ") and at + 1 < len(lines) and lines[at + 1].startswith("+++ "):
            old, new = (_path(lines[at][4:]), _path(lines[at + 1][4:]))
            files.append(FileDiff(new or old or "", created=old is None, deleted=new is None))
            at += 2
        elif files and (match := HUNK.match(lines[at])):
            hunk, at = _hunk(lines, at, match, files[-1].path)
            files[-1].hunks.append(hunk)
        else:
            at += 1
    return files


def apply_diff(files: Mapping[str, str], diff: str) -> dict[str, str]:
    """`files` with the diff applied; files it deletes are gone, unmentioned ones unchanged."""
    after = dict(files)
    for part in parse_diff(diff):
        if part.deleted:
            after.pop(part.path, None)
            continue
        if part.path not in after and not part.created:
            raise PatchError(f"{part.path}: the patched file is not there.")
        after[part.path] = part.apply("" if part.created else after[part.path])
    return after


def _path(field_text: str) -> str | None:
    name = field_text.split("\t")[0].strip()
    if name == "/dev/null":
        return None
    return name[2:] if name[:2] in ("a/", "b/") else name


def _hunk(lines: list[str], at: int, match: re.Match[str], path: str) -> tuple[Hunk, int]:
    old_left = int(match[2]) if match[2] is not None else 1
    new_left = int(match[4]) if match[4] is not None else 1
    body: list[str] = []
    at += 1
    while old_left > 0 or new_left > 0:
        if at >= len(lines) or (lines[at] and lines[at][0] not in " +-\\"):
            raise PatchError(f"{path}: a hunk ends early.")
        line = lines[at] or " "
        if line[0] == "\\":
            at += 1
            continue
        old_left -= line[0] in " -"
        new_left -= line[0] in " +"
        body.append(line + "\n")
        at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            body[-1] = body[-1][:-1]
            at += 1
    return Hunk(int(match[1]), int(match[3]), tuple(body)), at
