"""Layer "diff policy": what of a submission is applied, what is left out, and what refuses it outright.

Refused (PATCH_REJECTED): absolute and `..` paths, anything in `.git`, symbolic links, submodules, mode changes,
binary content, and text that git would not read the same way. Left out (a notice): protected paths.
Application is `git apply` only, in one message with the cross-check (`apply_op`, `disagreement`).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from .defence import Defence
from .diffs import ChangeKind, FileChange, parse_diff
from .errors import PatchError
from .patch import Patch
from .protect import why_protected
from .protocols import Exec, ExecResult
from .task import Suite, Task
from .verdict import Notice

MAX_BYTES = 20_000_000


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is done with one submission. `rejected` says why nothing is ("" otherwise)."""

    text: str = ""
    changes: tuple[FileChange, ...] = ()
    notices: tuple[Notice, ...] = ()
    rejected: str = ""

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(path for change in self.changes for path in change.paths)

    @property
    def added_text(self) -> str:
        return "".join(change.added_text for change in self.changes)


def plan(task: Task, patch: Patch, suite: Suite, defence: Defence, test_paths: Iterable[str] = ()) -> Plan:
    """Read a submission and decide what is applied. Never raises for what the patch says."""
    if patch.is_empty:
        return Plan()
    text = patch.text if patch.text.endswith("\n") else patch.text + "\n"
    if not defence.diff_policy and not defence.protect:
        return Plan(text=text)
    if len(text) > MAX_BYTES:
        return Plan(rejected=f"the diff has {len(text):,} characters, more than {MAX_BYTES:,}")
    try:
        text.encode("utf-8", "surrogateescape")
        changes = parse_diff(text)
    except (PatchError, UnicodeEncodeError) as error:
        return Plan(rejected=str(error))
    if not changes:
        return Plan(rejected="the text holds no unified diff")
    if defence.diff_policy:
        for change in changes:
            if reason := refusal(change):
                return Plan(rejected=f"{printable(change.path)}: {reason}")
    return _without_protected(task, suite, defence, changes, test_paths)


def _without_protected(
    task: Task, suite: Suite, defence: Defence, changes: list[FileChange], test_paths: Iterable[str]
) -> Plan:
    open_paths = touched(task.gold_patch)
    kept: list[FileChange] = []
    notices: list[Notice] = []
    for change in changes:
        reasons = {
            path: reason
            for path in change.paths
            if defence.protect
            and path not in open_paths
            and (reason := why_protected(path, task, suite, test_paths, open_paths))
        }
        if reasons:
            notices += [
                Notice(kind="protected", path=printable(path), detail=f"{reason}: not applied")
                for path, reason in reasons.items()
            ]
        else:
            kept.append(change)
    return Plan(text="".join(c.text for c in kept), changes=tuple(kept), notices=tuple(notices))


@lru_cache(maxsize=256)
def touched(diff: str) -> frozenset[str]:
    """Paths that a diff touches (the gold patch's are open to every submission)."""
    if not diff.strip():
        return frozenset()
    return frozenset(path for change in parse_diff(diff) for path in change.paths)


def refusal(change: FileChange) -> str:
    """Why this change refuses the whole submission ("" when it does not)."""
    for path in change.paths:
        if reason := bad_path(path):
            return reason
    if change.binary:
        return "binary content"
    modes = [h for h in change.headers if h.startswith(("old mode ", "new mode "))]
    if modes:
        return "a mode change"
    for header in change.headers:
        match = re.fullmatch(r"(?:new|deleted) file mode (\d+)|index [0-9a-f]+\.\.[0-9a-f]+ (\d+)", header)
        mode = (match[1] or match[2]) if match else ""
        if mode and mode not in {"100644", "100755", "100664"}:
            return {"120000": "a symbolic link", "160000": "a submodule"}.get(mode, f"file mode {mode}")
    if "Subproject commit " in change.hunks and re.search(
        r"^[+-]Subproject commit [0-9a-f]{40}$", change.hunks, re.M
    ):
        return "a submodule"
    return ""


def bad_path(path: str) -> str:
    """Why a path may not stand in a submission ("" when it may)."""
    parts = path.split("/")
    if not path or path.startswith("/") or "\\" in path or re.match(r"[A-Za-z]:", path):
        return "an absolute or unusual path"
    if any(part in {"..", "."} or not part for part in parts):
        return "a path that leaves its folder"
    if any(
        re.sub(r"[\u200c\u200d\u200e\u200f\ufeff. ]+\Z", "", p).casefold() in {".git", "git~1"} for p in parts
    ):
        return "a path inside .git"
    if any(ord(c) < 32 or ord(c) == 127 for c in path):
        return "control characters in a path"
    return ""


def printable(path: str) -> str:
    return path.encode("utf-8", "backslashreplace").decode()


def apply_env(workdir: str) -> dict[str, str]:
    """No configuration but the repository's own, and no parent repository (git apply would skip files silently)."""
    parent = workdir.rstrip("/").rsplit("/", 1)[0] or "/"
    return {
        "GIT_CEILING_DIRECTORIES": parent,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
        "GIT_TERMINAL_PROMPT": "0",
        "HOME": "/nonexistent",
        "LC_ALL": "C",
    }


def apply_op(file: str, workdir: str, timeout_s: float = 60.0) -> Exec:
    """Apply the diff and print git's own reading of it, in one process. Exits with 1 or 128 where it does not apply."""
    command = ("git", "apply", "--apply", "--numstat", "--summary", "-z", "--whitespace=nowarn", file)
    return Exec(
        command=command, timeout_s=timeout_s, env=apply_env(workdir), output_bytes=4_000_000, check=True
    )


def disagreement(plan: Plan, result: ExecResult) -> str:
    """What git read differently from us, or why it did not apply ("" when all is well)."""
    output = result.output.decode("utf-8", "surrogateescape")
    if result.exit_code != 0:
        lines = [
            line for line in output.replace("\0", "\n").splitlines() if line.startswith(("error", "fatal"))
        ]
        return f"git apply: {'; '.join(lines)[:500] or 'failed'}"
    if not plan.changes:
        return ""
    *numstat, summary = output.split("\0")
    seen = sorted(tuple(entry.rsplit("\n", 1)[-1].split("\t", 2)) for entry in numstat)
    mine = sorted((str(c.added), str(c.deleted), c.path) for c in plan.changes)
    if seen != mine:
        return "git reads other files or line counts in this diff than we do"
    moved = sum(c.kind in {ChangeKind.RENAME, ChangeKind.COPY} for c in plan.changes)
    lines = [line for line in summary.split("\n") if line.startswith(" ")]
    if sum(line.startswith((" rename ", " copy ")) for line in lines) != moved:
        return "git reads other renames in this diff than we do"
    if any(line.startswith((" mode change ", " create mode 12", " create mode 16")) for line in lines):
        return "git reads a mode change, link or submodule in this diff"
    return ""
