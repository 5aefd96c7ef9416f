"""Layer "trusted tests": which files the suite's tests stand in, read from the pristine tree with the test patch applied.

Resolved in a fresh sandbox that never sees a submission, then written into every grading sandbox after the
submission, so that a path created ahead of time (R15) is replaced. A task without image is resolved on the host
where it has no test patch.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from .diff_policy import apply_env, touched
from .diffs import ChangeKind, parse_diff
from .errors import SandboxError, TaskError
from .protocols import (
    Exec,
    ExecResult,
    Framework,
    Limits,
    Op,
    Read,
    ReadResult,
    SandboxBackend,
    SandboxSpec,
    Write,
)
from .task import AddedTests, Suite, Task

MAX_FILES = 400
TEST_NAMES = ("test_*.py", "*_test.py", "tests.py", "tests_*.py")


@dataclass(frozen=True, kw_only=True)
class TrustedFiles:
    """files: path -> content, written after the submission. sources: the Python test files among the command's
    (path -> text), whether or not the test patch touches them. deleted: paths the test patch removes."""

    files: Mapping[str, bytes] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()

    @property
    def paths(self) -> frozenset[str]:
        return frozenset(self.files) | frozenset(self.deleted) | frozenset(self.sources)


def resolve(
    backend: SandboxBackend, task: Task, suite: Suite, framework: Framework, limits: Limits | None = None
) -> TrustedFiles:
    """Raises TaskError for a test patch that does not apply to the pristine tree, SandboxError for infrastructure."""
    own = {path: text.encode() for path, text in suite.test_files.items()}
    wanted = framework.test_paths(suite.command)
    if task.image is None and not suite.test_patch.strip():
        tree = {**task.files, **suite.test_files}
        chosen = _with_ids([path for path in tree if path.endswith(".py") and belongs(path, wanted)], suite)
        return TrustedFiles(files=own, sources={path: tree[path] for path in chosen})
    changed, deleted = _patch_paths(task, suite)
    with backend.open(SandboxSpec.of(task, limits)) as sandbox:
        ops: list[Op] = []
        if suite.test_patch.strip():
            patch = f"{sandbox.scratch}/acid-tests.diff"
            text = suite.test_patch if suite.test_patch.endswith("\n") else suite.test_patch + "\n"
            ops = [
                Write(files={patch: text.encode()}),
                Exec(
                    command=f"git apply --whitespace=nowarn {shlex.quote(patch)}",
                    env=apply_env(sandbox.workdir),
                    check=True,
                ),
            ]
        results = sandbox.script([*ops, _listing(wanted)])
        if ops and (not isinstance(results[1], ExecResult) or results[1].exit_code != 0):
            text = results[1].output.decode(errors="replace") if isinstance(results[1], ExecResult) else ""
            raise TaskError(f"Task {task.task_id}: its test patch does not apply: {text.strip()[:300]}")
        listing = results[-1]
        listed = (
            listing.output.decode(errors="replace").split("\0") if isinstance(listing, ExecResult) else []
        )
        paths = _with_ids(_chosen(listed, wanted), suite)[:MAX_FILES]
        read = _read(sandbox.script([Read(path=p) for p in [*changed, *paths]]), [*changed, *paths])
    files = {path: read[path] for path in changed if path in read} | own
    sources = {
        p: _text(read[p]) for p in dict.fromkeys([*paths, *changed]) if p in read and p.endswith(".py")
    }
    sources |= {p: t for p, t in suite.test_files.items() if p.endswith(".py")}
    return TrustedFiles(files=files, sources=sources, deleted=deleted)


def added_files(added: AddedTests) -> TrustedFiles:
    """The files of tests that repair added: all text, all trusted."""
    return TrustedFiles(
        files={path: text.encode() for path, text in added.test_files.items()},
        sources={path: text for path, text in added.test_files.items() if path.endswith(".py")},
    )


def belongs(path: str, wanted: Iterable[str]) -> bool:
    """Whether a file is one of the command's: named, or a test file in a named folder ("." is the whole tree)."""
    for place in wanted:
        if path == place or fnmatchcase(path, place):
            return True
        inside = place == "." or path.startswith(place.rstrip("/") + "/")
        if inside and any(fnmatchcase(path.rsplit("/", 1)[-1], name) for name in TEST_NAMES):
            return True
        if inside and place != "." and path.endswith(".py"):
            return True
    return False


def _patch_paths(task: Task, suite: Suite) -> tuple[list[str], tuple[str, ...]]:
    """(paths that exist after the test patch, paths that it removes)."""
    if not suite.test_patch.strip():
        return [], ()
    changes = parse_diff(suite.test_patch)
    gone = {c.path for c in changes if c.kind is ChangeKind.DELETE}
    gone |= {c.old_path for c in changes if c.kind is ChangeKind.RENAME}
    paths = sorted(touched(suite.test_patch) - gone)
    if not paths and not gone:
        raise TaskError(f"Task {task.task_id}: its test patch changes no file.")
    return paths, tuple(sorted(gone))


def _listing(wanted: Iterable[str]) -> Exec:
    places = " ".join(shlex.quote("./" + place) for place in wanted if not place.startswith("/"))
    return Exec(
        command=f"find {places or '.'} -name '*.py' -type f -size -2000k -print0 2>/dev/null | head -c 900000; true",
        timeout_s=60.0,
    )


def _chosen(listed: list[str], wanted: tuple[str, ...]) -> list[str]:
    paths = sorted({p.removeprefix("./").removeprefix("./") for p in listed if p.endswith(".py")})
    return [p for p in paths if belongs(p, wanted)]


def _with_ids(paths: list[str], suite: Suite) -> list[str]:
    """Of the command's files those that expected ids name, where ids name files at all (`path::test`)."""
    named = {ident.split("::", 1)[0] for ident in suite.expected_ids if "::" in ident}
    chosen = [
        p for p in paths if p in named or any(p.endswith("/" + n) or n.endswith("/" + p) for n in named)
    ]
    return chosen or paths


def _read(results: Iterable[object], paths: list[str]) -> dict[str, bytes]:
    out = {}
    for path, result in zip(paths, results, strict=True):
        if not isinstance(result, ReadResult):
            raise SandboxError(f"The sandbox did not answer when {path} was read.")
        if result.found and not result.truncated:
            out[path] = result.data
    return out


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
