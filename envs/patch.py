"""A submission as a unified diff (`Patch`)."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from .record import Record


@dataclass(frozen=True)
class Patch(Record):
    """A unified diff in git's form. An empty text is the no-op."""

    text: str = ""

    @property
    def digest(self) -> str:
        """16 hex digits over the normalised text (line ends, trailing blank lines)."""
        normal = self.text.replace("\r\n", "\n").strip("\n")
        return hashlib.sha256(normal.encode("utf-8", "surrogatepass")).hexdigest()[:16]

    @property
    def exact_digest(self) -> str:
        """64 hex digits over the text as it stands: for caches (CRLF and LF make two patches to git)."""
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def is_empty(self) -> bool:
        return not self.text.strip()

    @classmethod
    def writing(cls, new: Mapping[str, str], old: Mapping[str, str] | None = None) -> Self:
        """The diff that makes `new` (path -> text) out of `old` (missing paths are new files).

        Used for function-level tasks and R2E replacement maps. Unchanged files add nothing.
        """
        before = old or {}
        parts = [file_diff(path, before.get(path), text) for path, text in sorted(new.items())]
        return cls("".join(parts))


def file_diff(path: str, old: str | None, new: str | None) -> str:
    """Git-style diff of one file; None means absent. Handles files without a final newline."""
    if old == new:
        return ""
    header = f"diff --git a/{path} b/{path}\n"
    if old is None:
        header += "new file mode 100644\n"
    if new is None:
        header += "deleted file mode 100644\n"
    lines = list(
        difflib.unified_diff(
            _lines(old or ""),
            _lines(new or ""),
            fromfile="/dev/null" if old is None else f"a/{path}",
            tofile="/dev/null" if new is None else f"b/{path}",
        )
    )
    return header + "".join(
        line if line.endswith("\n") else line + "\n\\ No newline at end of file\n" for line in lines
    )


def _lines(text: str) -> list[str]:
    """Split at newlines only (never at form feeds or \\x85), keeping them."""
    parts = text.split("\n")
    lines = [part + "\n" for part in parts[:-1]]
    return lines + ([parts[-1]] if parts[-1] else [])
