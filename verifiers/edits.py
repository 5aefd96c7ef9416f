"""From what a model writes to a clean unified diff: whole files, search/replace edits, or a diff that need not apply.

Models get line numbers, counts and trailing blanks wrong. We have the pristine text, so a hunk is read as "find
these lines, put those": found exactly, then without trailing blanks, then with another indentation; where it stands
more than once, the place nearest to the stated line. What cannot be placed is an `EditError`, never a guess.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..envs.errors import PatchError
from ..envs.patch import Patch, file_diff

Reader = Callable[[str], str | None]
"""Path relative to the workdir -> pristine text, None when there is no such file."""
_HUNK = re.compile(r"^@@+ ?(?:-(\d+)(?:,\d+)? \+\d+(?:,\d+)? ?@@)?")


class EditError(PatchError):
    """The answer holds no change that can be placed; the message says which and why."""


def patch_of(answer: Mapping[str, Any], read: Reader) -> Patch:
    """The patch an answer asks for: `files` [{path, content}], `edits` [{path, search, replace}] and `diff`.

    Several forms may stand together; they are applied in that order. Raises EditError.
    """
    new: dict[str, str | None] = {}

    def now(path: str) -> str | None:
        return new[path] if path in new else read(path)

    for entry in answer.get("files") or ():
        new[_path(entry)] = _final_newline(str(entry.get("content", "")))
    for number, entry in enumerate(answer.get("edits") or (), 1):
        path = _path(entry)
        new[path] = _edit(
            now(path), path, str(entry.get("search", "")), str(entry.get("replace", "")), number
        )
    diff = str(answer.get("diff") or "")
    if diff.strip():
        for path, hunks, gone in split_diff(diff):
            new[path] = None if gone else _hunks(now(path), path, hunks)
    if not new:
        raise EditError("the answer changes no file")
    text = "".join(file_diff(path, read(path), new[path]) for path in sorted(new))
    if not text:
        raise EditError("the answer changes nothing")
    return Patch(text)


def split_diff(diff: str) -> list[tuple[str, list[tuple[int, list[str]]], bool]]:
    """(path, [(stated line or 0, hunk lines)], deleted) per file; tolerant of headers, never of content."""
    found: list[tuple[str, list[tuple[int, list[str]]], bool]] = []
    old = ""
    lines = diff.replace("\r\n", "\n").split("\n")
    for index, line in enumerate(lines):
        following = lines[index + 1] if index + 1 < len(lines) else ""
        if line.startswith("--- ") and following.startswith("+++ "):
            old = _header_path(line[4:])
        elif line.startswith("+++ ") and index and lines[index - 1].startswith("--- "):
            target = _header_path(line[4:])
            found.append((target or old, [], not target))
        elif (match := _HUNK.match(line)) and found and line.startswith("@@"):
            found[-1][1].append((int(match[1] or 0), []))
        elif found and found[-1][1] and line[:1] in (" ", "+", "-", ""):
            if line.startswith(("diff --git ", "index ")):
                continue
            found[-1][1][-1][1].append(line or " ")
    for _, hunks, _ in found:
        for _, body in hunks:
            while body and body[-1] == " ":
                body.pop()
    if not found:
        raise EditError("the text holds no unified diff")
    return found


def _path(entry: Mapping[str, Any]) -> str:
    path = str(entry.get("path", "")).strip().removeprefix("./")
    if not path or path.startswith("/") or ".." in path.split("/"):
        raise EditError(f"{path!r} is no path inside the repository")
    return path


def _header_path(text: str) -> str:
    path = text.split("\t")[0].strip().strip('"')
    if path == "/dev/null":
        return ""
    path = re.sub(r"^[ab]/", "", path)
    return _path({"path": path})


def _final_newline(text: str) -> str:
    return text if not text or text.endswith("\n") else text + "\n"


def _edit(old: str | None, path: str, search: str, replace: str, number: int) -> str:
    if old is None:
        if search.strip():
            raise EditError(f"edit {number}: there is no file {path}")
        return _final_newline(replace)
    if not search.strip():
        raise EditError(f"edit {number}: nothing to search for in {path}")
    if old.count(search) == 1:
        return old.replace(search, replace)
    lines = old.split("\n")
    start, size, dedent = _place(
        lines, search.strip("\n").split("\n"), 0, f"edit {number} of {path}", unique=True
    )
    put = [dedent(line) for line in replace.strip("\n").split("\n")] if replace.strip("\n") else []
    return "\n".join(lines[:start] + put + lines[start + size :])


def _hunks(old: str | None, path: str, hunks: Sequence[tuple[int, list[str]]]) -> str:
    """Apply hunks in order; each is searched after the one before."""
    if old is None:
        return "".join(line[1:] + "\n" for _, body in hunks for line in body if line[0] == "+")
    lines = old.split("\n")
    for number, (stated, body) in enumerate(hunks, 1):
        before = [line[1:] for line in body if line[0] in " -"]
        after = [line[1:] for line in body if line[0] in " +"]
        if before == after:
            continue
        if not before:
            raise EditError(f"hunk {number} of {path} has no line to stand at")
        what = f"hunk {number} of {path}"
        try:
            start, size, dedent = _place(lines, before, stated, what, unique=False)
        except EditError:
            parts = _parts(body)
            if len(parts) < 2:
                raise
            lines = _in_parts(lines, parts, what)
            continue
        lines[start : start + size] = _keep_context(body, lines[start : start + size], dedent)
    return "\n".join(lines)


def _parts(body: list[str]) -> list[list[str]]:
    """Each run of changed lines with the two lines of context on its sides: for hunks that leave lines out between."""
    changed = [at for at, line in enumerate(body) if line[0] in "+-"]
    runs: list[tuple[int, int]] = []
    for at in changed:
        if runs and at == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], at)
        else:
            runs.append((at, at))
    parts = []
    for first, last in runs:
        head, tail = first, last + 1
        while head > max(0, first - 2) and body[head - 1][0] == " ":
            head -= 1
        while tail < min(len(body), last + 3) and body[tail][0] == " ":
            tail += 1
        parts.append(body[head:tail])
    return parts


def _in_parts(lines: list[str], parts: list[list[str]], what: str) -> list[str]:
    """Place the parts one after the other; each must stand exactly once behind the one before. Raises EditError."""
    done = 0
    for part in parts:
        before = [line[1:] for line in part if line[0] in " -"]
        if not before:
            raise EditError(f"{what} has a part with no line to stand at")
        start, size, dedent = _place(lines[done:], before, 0, what, unique=True)
        start += done
        put = _keep_context(part, lines[start : start + size], dedent)
        lines = lines[:start] + put + lines[start + size :]
        trailing = next((n for n, line in enumerate(reversed(part)) if line[0] != " "), 0)
        done = start + len(put) - trailing
    return lines


def _keep_context(body: list[str], there: list[str], dedent: Callable[[str], str]) -> list[str]:
    """New lines of a hunk; its context lines as they really stand in the file."""
    out: list[str] = []
    at = 0
    for line in body:
        if line[0] == "+":
            out.append(dedent(line[1:]))
            continue
        if line[0] == " ":
            out.append(there[at])
        at += 1
    return out


def _same(line: str) -> str:
    return line


def _place(
    lines: list[str], wanted: list[str], stated: int, what: str, *, unique: bool
) -> tuple[int, int, Callable[[str], str]]:
    """(first index, number of lines, how to re-indent new lines) of the wanted lines. Raises EditError."""
    size = len(wanted)
    spots = range(len(lines) - size + 1)

    def nearest(found: list[int]) -> int:
        if unique and len(found) > 1:
            raise EditError(f"{what}: the text stands {len(found)} times in the file")
        return min(found, key=lambda at: abs(at + 1 - stated))

    exact = [at for at in spots if lines[at : at + size] == wanted]
    if exact:
        return nearest(exact), size, _same
    bare = [line.rstrip() for line in wanted]
    loose = [at for at in spots if [line.rstrip() for line in lines[at : at + size]] == bare]
    if loose:
        return nearest(loose), size, _same
    flat = [line.strip() for line in wanted]
    moved = [
        at
        for at in spots
        if [line.strip() for line in lines[at : at + size]] == flat
        and _shift(lines[at : at + size], wanted) is not None
    ]
    if moved:
        at = nearest(moved)
        return at, size, _shifted(_shift(lines[at : at + size], wanted) or 0)
    raise EditError(f"{what}: the text does not stand in the file: {wanted[0].strip()[:80]!r}")


def _shift(there: list[str], wanted: list[str]) -> int | None:
    """By how many blanks every non-empty line is indented more there than wanted; None when not evenly."""
    shifts = {
        (len(a) - len(a.lstrip())) - (len(b) - len(b.lstrip()))
        for a, b in zip(there, wanted, strict=True)
        if b.strip()
    }
    return shifts.pop() if len(shifts) == 1 else None


def _shifted(by: int) -> Callable[[str], str]:
    def move(line: str) -> str:
        if not line.strip():
            return line
        return " " * by + line if by >= 0 else line[min(-by, len(line) - len(line.lstrip())) :]

    return move
