"""Read a unified diff as `git apply` reads it: one `FileChange` a file, its raw text kept.

Headers are read here, line by line, as git does (names end at a tab, hunks are counted, text between files is
skipped); the hunks are read a second time by the `unidiff` library and must agree. In the sandbox git's own reading
(`--numstat`) is compared with this one. Not covered: combined diffs (`@@@`), which git apply does not read either.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

from .errors import PatchError

HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
EXTENDED = (
    "old mode ",
    "new mode ",
    "deleted file mode ",
    "new file mode ",
    "copy from ",
    "copy to ",
    "rename from ",
    "rename to ",
    "rename old ",
    "rename new ",
    "similarity index ",
    "dissimilarity index ",
    "index ",
    "--- ",
    "+++ ",
)


class ChangeKind(StrEnum):
    MODIFY = "modify"
    ADD = "add"
    DELETE = "delete"
    RENAME = "rename"
    COPY = "copy"


@dataclass(frozen=True, kw_only=True)
class FileChange:
    """One file of a diff. `old_path` equals `path` except for renames and copies.

    headers: extended header lines, without their line end. added, deleted: counted lines. text: the raw diff.
    """

    path: str
    old_path: str
    kind: ChangeKind
    headers: tuple[str, ...]
    added: int
    deleted: int
    text: str
    binary: bool = False
    hunks: str = ""

    @property
    def paths(self) -> tuple[str, ...]:
        return (self.path,) if self.path == self.old_path else (self.old_path, self.path)

    @property
    def added_text(self) -> str:
        """The added lines, without their marks."""
        return "".join(line[1:] for line in _split(self.hunks) if line.startswith("+"))


def parse_diff(text: str) -> list[FileChange]:
    """All files that a diff changes, in order. Raises PatchError for text that git would call corrupt."""
    lines = _split(text)
    changes: list[FileChange] = []
    at = 0
    while at < len(lines):
        if lines[at].startswith("diff --git "):
            change, at = _git_change(lines, at)
            changes.append(change)
        elif _is_plain_header(lines, at):
            change, at = _plain_change(lines, at)
            changes.append(change)
        elif HUNK.match(lines[at]):
            raise PatchError(f"Line {at + 1}: a hunk that belongs to no file.")
        else:
            at += 1
    return changes


def _split(text: str) -> list[str]:
    parts = text.split("\n")
    return [part + "\n" for part in parts[:-1]] + ([parts[-1]] if parts[-1] else [])


def _is_plain_header(lines: list[str], at: int) -> bool:
    return (
        at + 2 < len(lines)
        and lines[at].startswith("--- ")
        and lines[at + 1].startswith("+++ ")
        and lines[at + 2].startswith("@@ -")
    )


def _plain_change(lines: list[str], start: int) -> tuple[FileChange, int]:
    """A file with `---`/`+++` lines only (no `diff --git`)."""
    old, new = _name(lines[start][4:]), _name(lines[start + 1][4:])
    end, added, deleted = _hunks(lines, start + 2)
    kind = ChangeKind.ADD if old is None else ChangeKind.DELETE if new is None else ChangeKind.MODIFY
    path = new or old
    if path is None:
        raise PatchError(f"Line {start + 1}: both sides are /dev/null.")
    text = "".join(lines[start:end])
    hunks = "".join(lines[start + 2 : end])
    _second_reading(hunks, added, deleted, path)
    return (
        FileChange(
            path=path,
            old_path=path,
            kind=kind,
            headers=(),
            added=added,
            deleted=deleted,
            text=text,
            hunks=hunks,
        ),
        end,
    )


def _git_change(lines: list[str], start: int) -> tuple[FileChange, int]:
    at = start + 1
    headers: list[str] = []
    while at < len(lines) and lines[at].startswith(EXTENDED):
        headers.append(lines[at].rstrip("\r\n"))
        at += 1
    binary = at < len(lines) and lines[at].startswith(("GIT binary patch", "Binary files "))
    first_hunk = at
    at, added, deleted = _hunks(lines, at)
    old_path, path, kind = _git_names(lines[start], headers)
    hunks = "".join(lines[first_hunk:at])
    _second_reading(hunks, added, deleted, path)
    change = FileChange(
        path=path,
        old_path=old_path,
        kind=kind,
        headers=tuple(headers),
        added=added,
        deleted=deleted,
        text="".join(lines[start:at]),
        binary=binary,
        hunks=hunks,
    )
    return change, at


def _git_names(first: str, headers: list[str]) -> tuple[str, str, ChangeKind]:
    found = {}
    for header in headers:
        for mark in ("--- ", "+++ ", "rename from ", "rename to ", "copy from ", "copy to "):
            if header.startswith(mark):
                found[mark.strip()] = header[len(mark) :]
    for word, kind in (("rename", ChangeKind.RENAME), ("copy", ChangeKind.COPY)):
        if f"{word} from" in found and f"{word} to" in found:
            return unquote(found[f"{word} from"]), unquote(found[f"{word} to"]), kind
    old = _name(found["---"]) if "---" in found else None
    new = _name(found["+++"]) if "+++" in found else None
    path = new or old or _default_name(first)
    if old and new and old != new:
        raise PatchError(f"{old!r} becomes {new!r} without a rename header.")
    if any(h.startswith("new file mode ") for h in headers) or (old is None and "---" in found):
        return path, path, ChangeKind.ADD
    if any(h.startswith("deleted file mode ") for h in headers) or (new is None and "+++" in found):
        return path, path, ChangeKind.DELETE
    return path, path, ChangeKind.MODIFY


def _default_name(first: str) -> str:
    """The name on a `diff --git` line, which only counts when both sides agree."""
    rest = first[len("diff --git ") :].rstrip("\r\n")
    if rest.startswith('"'):
        match = re.fullmatch(r'("(?:[^"\\]|\\.)*") ("(?:[^"\\]|\\.)*")', rest)
        sides = [_strip(unquote(side)) for side in match.groups()] if match else []
    else:
        half = (len(rest) - 1) // 2
        sides = [_strip(rest[:half]), _strip(rest[half + 1 :])] if rest[half : half + 1] == " " else []
    if len(sides) != 2 or sides[0] != sides[1] or not sides[0]:
        raise PatchError(f"No file name in {first.strip()!r}.")
    return sides[0]


def _name(text: str) -> str | None:
    """The path of a `---` or `+++` line: up to a tab or line end, first folder cut; None for /dev/null."""
    raw = unquote(text) if text.startswith('"') else re.split(r"[\t\r\n]", text, maxsplit=1)[0]
    return None if raw == "/dev/null" else _strip(raw)


def _strip(name: str) -> str:
    """Cut the first folder (`a/`, `b/`), as -p1 does; a name without one stays as it is."""
    if name.startswith("/"):
        return name
    return name.split("/", 1)[1] if "/" in name else name


def unquote(text: str) -> str:
    """Undo git's C-style quoting (octal bytes are UTF-8). Text without quotes is returned as it is."""
    if not text.startswith('"'):
        return re.split(r"[\t\r\n]", text, maxsplit=1)[0]
    match = re.match(r'"((?:[^"\\]|\\.)*)"', text)
    if not match:
        raise PatchError(f"A quoted name without an end: {text[:80]!r}.")
    plain = {"a": 7, "b": 8, "t": 9, "n": 10, "v": 11, "f": 12, "r": 13, '"': 34, "\\": 92}
    out = bytearray()
    for piece in re.finditer(r"\\([0-3][0-7]{2})|\\(.)|([^\\]+)", match[1]):
        if piece[1]:
            out.append(int(piece[1], 8))
        elif piece[2]:
            if piece[2] not in plain:
                raise PatchError(f"An unknown escape in the name {text[:80]!r}.")
            out.append(plain[piece[2]])
        else:
            out += piece[3].encode("utf-8", "surrogatepass")
    return out.decode("utf-8", "surrogateescape")


def _hunks(lines: list[str], at: int) -> tuple[int, int, int]:
    """(line after the last hunk, added, deleted) of the hunks that start at `at`."""
    added = deleted = 0
    while at < len(lines) and (match := HUNK.match(lines[at])):
        old, new = int(match[2] or 1), int(match[4] or 1)
        start = at
        at += 1
        while old > 0 or new > 0:
            mark = lines[at][0] if at < len(lines) else ""
            if mark in {" ", "\n"} or lines[at : at + 1] == ["\r\n"]:
                old, new = old - 1, new - 1
            elif mark == "-":
                old, deleted = old - 1, deleted + 1
            elif mark == "+":
                new, added = new - 1, added + 1
            elif mark != "\\":
                raise PatchError(f"Line {at + 1}: the hunk of line {start + 1} ends too early.")
            if old < 0 or new < 0:
                raise PatchError(f"Line {at + 1}: the hunk of line {start + 1} has too many lines.")
            at += 1
        if at < len(lines) and lines[at].startswith("\\"):
            at += 1
    return at, added, deleted


def _second_reading(hunks: str, added: int, deleted: int, path: str) -> None:
    """Let the unidiff library read the same hunks; a disagreement is a corrupt diff."""
    if not hunks:
        return
    import unidiff

    body = "".join(" " + line if line in {"\n", "\r\n"} else line for line in _split(hunks))
    try:
        files = unidiff.PatchSet.from_string(f"--- a/x\n+++ b/x\n{body}")
    except unidiff.UnidiffParseError as error:
        raise PatchError(f"{path}: {error}") from error
    counts = (sum(f.added for f in files), sum(f.removed for f in files))
    if counts != (added, deleted):
        raise PatchError(f"{path}: two readings of its hunks differ ({counts} and {(added, deleted)}).")
