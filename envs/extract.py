"""Take a source diff out of a container that an agent has owned, without trusting anything in it.

Nothing of the agent's is run by us on this side: a stdlib script lists the tree inside the container, and whatever it
prints (the agent may have replaced the interpreter) is only ever *its own submission*. Its git, hooks, attributes and
configuration are never used; `.git` is not part of the diff. The list made before the agent's first command says what changed;
the old texts come from the pristine tree, never from the agent's container.
A listing that fails is infrastructure trouble, not an empty submission; only where the agent itself can be seen to have broken it
(no interpreter or workdir left, or an interpreter that ends well and prints no listing) it has submitted nothing.
Not covered: modes and symbolic links (dropped), files that are not UTF-8 text (dropped), empty folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from .errors import SandboxError
from .patch import Patch, file_diff
from .protocols import Exec, ExecResult, Read, ReadResult, Sandbox

_LIST = r"""
import hashlib, json, os, sys
skip = {".git", ".hg", ".svn", "__pycache__", ".pytest_cache", ".mypy_cache", ".ruff_cache", ".hypothesis", ".tox", "node_modules"}
out = {}
for top, dirs, files in os.walk("."):
    dirs[:] = sorted(d for d in dirs if d not in skip and not d.endswith(".egg-info"))
    for name in sorted(files):
        path = os.path.join(top, name)[2:]
        if name == ".git" or name.endswith((".pyc", ".pyo")):
            continue
        try:
            if os.path.islink(path) or not os.path.isfile(path):
                out[path] = "special"
                continue
            size = os.path.getsize(path)
            if size > LIMIT:
                out[path] = "large:%d" % size
                continue
            with open(path, "rb") as file:
                out[path] = hashlib.sha256(file.read()).hexdigest()
        except OSError:
            out[path] = "unreadable"
sys.stdout.write(json.dumps(out))
"""
_HASH = re.compile(r"[0-9a-f]{64}\Z")
_LIST_BYTES = 40_000_000
_GONE = (126, 127)
"""Exit codes of a command that could not be started: no such program or folder. It could when the episode began."""


@dataclass(frozen=True)
class Extract:
    """The submission and what was left out of it: path -> why."""

    patch: Patch
    dropped: Mapping[str, str] = field(default_factory=dict)


def list_tree(
    sandbox: Sandbox, *, file_limit: int = 2_000_000, timeout_s: float = 120.0
) -> dict[str, str] | None:
    """Path relative to the workdir -> SHA-256, or a word for what is no plain file; None where the tree's owner broke it.

    Version control, caches and compiled files are left out. None: the interpreter or the workdir is gone, or what stands
    at the interpreter's place ended well and printed no listing. Raises SandboxError for every other listing that is not
    whole: killed, timed out, out of memory, cut, ended with an error.
    """
    source = _LIST.replace("LIMIT", str(file_limit))
    command = ("python3", "-I", "-S", "-c", source)
    (result,) = sandbox.script([Exec(command=command, timeout_s=timeout_s, output_bytes=_LIST_BYTES)])
    if not isinstance(result, ExecResult):
        raise SandboxError("The tree could not be listed: no answer.")
    if not result.timed_out and result.exit_code in _GONE:
        return None
    if problem := _unfinished(result):
        raise SandboxError(f"The tree could not be listed: {problem}.", mend="Grade it in a new episode.")
    try:
        listed = json.loads(result.output.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return None
    if not isinstance(listed, dict):
        return None
    return {path: str(mark) for path, mark in listed.items() if _plain(path)}


def _unfinished(result: ExecResult) -> str:
    """Why a listing is not whole ("" when it is)."""
    if result.timed_out:
        return "it ran into its time limit"
    if result.out_of_memory:
        return "it ran out of memory"
    if result.exit_code != 0:
        last = result.output.decode("utf-8", "replace").strip().splitlines()[-1:]
        return f"exit code {result.exit_code}" + "".join(f" ({line[:200]})" for line in last)
    return f"more than {_LIST_BYTES:,} bytes" if result.truncated else ""


def _plain(path: str) -> bool:
    """Whether a listed path may stand in a diff header of ours."""
    parts = PurePosixPath(path).parts
    usable = path.isprintable() and '"' not in path and "\\" not in path and not path.startswith("/")
    return bool(parts) and usable and ".." not in parts and ".git" not in parts and len(path) < 1000


def extract(
    sandbox: Sandbox,
    before: Mapping[str, str],
    pristine: Callable[[list[str]], Mapping[str, bytes]],
    *,
    max_files: int = 300,
    max_bytes: int = 5_000_000,
) -> Extract:
    """The diff from the tree as `before` listed it to the tree as it is now.

    pristine: asked once, for the old texts of changed and deleted files; paths it lacks count as new files.
    Beyond max_files or max_bytes (old and new texts together) further files are dropped, changed ones kept before new ones.
    Raises SandboxError when the tree could not be listed.
    """
    after = list_tree(sandbox)
    if after is None or (before and not after):
        return Extract(Patch(), {".": "the tree could not be listed: the episode broke or emptied it"})
    dropped: dict[str, str] = {}
    changed = [p for p in sorted(before) if after.get(p) != before[p] and _HASH.match(before[p])]
    fresh = [p for p in sorted(after) if p not in before]
    wanted: list[str] = []
    for path in [*changed, *fresh]:
        mark = after.get(path)
        if mark is not None and not _HASH.match(mark):
            dropped[path] = mark
        elif len(wanted) >= max_files:
            dropped[path] = f"more than {max_files} files"
        else:
            wanted.append(path)
    old = pristine([p for p in wanted if p in before])
    return _assemble(sandbox, wanted, after, old, dropped, max_bytes)


def _assemble(
    sandbox: Sandbox,
    wanted: Iterable[str],
    after: Mapping[str, str],
    old: Mapping[str, bytes],
    dropped: dict[str, str],
    max_bytes: int,
) -> Extract:
    parts: list[str] = []
    total = 0
    for path in wanted:
        new: bytes | None = None
        if path in after and total < max_bytes:
            new = read_file(sandbox, path, max_bytes)
            if new is None:
                dropped[path] = "unreadable"
                continue
        total += len(new or b"") + len(old.get(path, b""))
        if total >= max_bytes:
            dropped[path] = f"more than {max_bytes} bytes"
            continue
        try:
            parts.append(file_diff(path, _text(old.get(path)), _text(new)))
        except UnicodeDecodeError:
            dropped[path] = "not text"
    return Extract(Patch("".join(parts)), dropped)


def read_file(sandbox: Sandbox, path: str, limit: int) -> bytes | None:
    """A regular file's content, at most `limit` bytes; None for anything else."""
    (result,) = sandbox.script([Read(path=path, limit=limit)])
    return result.data if isinstance(result, ReadResult) and result.found else None


def _text(data: bytes | None) -> str | None:
    if data is None:
        return None
    if b"\0" in data:
        raise UnicodeDecodeError("utf-8", data, 0, 1, "NUL")
    return data.decode("utf-8")
