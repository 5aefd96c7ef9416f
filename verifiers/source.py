"""What a model is shown of a task: pristine source, bounded; the text that specifies it; the tests as far as allowed."""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..envs import pyast
from ..envs.diff_policy import bad_path, touched
from ..envs.patch import Patch
from ..envs.protect import why_protected
from ..envs.protocols import Limits, Op, Read, ReadResult, SandboxBackend, SandboxSpec
from ..envs.task import Task
from .mutation.apply import apply_diff, parse_diff

SHOWN = 60_000
"""Most characters of source, and of tests, in a prompt."""
AROUND = 120
"""Lines shown on each side of what the gold patch touches, in files too long to show whole."""


class SourceTree:
    """Pristine files of a task, read from `task.files` or from its image (one short sandbox per batch of paths).

    Thread-safe. Raises SandboxError when the engine does. Files over 1 MB, and such that are not UTF-8, count as absent.
    """

    def __init__(
        self, task: Task, backend: SandboxBackend | None = None, limits: Limits | None = None
    ) -> None:
        self.task = task
        self._backend = backend
        self._limits = limits
        self._texts: dict[str, str | None] = dict(task.files)
        self._lock = threading.Lock()

    def read(self, path: str) -> str | None:
        """The pristine text; None when there is no such file."""
        self.fetch([path])
        return self._texts[path]

    def fetch(self, paths: Iterable[str]) -> dict[str, str]:
        """Those of the paths that exist, in one sandbox."""
        wanted = list(dict.fromkeys(paths))
        with self._lock:
            missing = [path for path in wanted if path not in self._texts]
            if missing:
                self._texts.update(self._from_image(missing))
            return {path: text for path in wanted if (text := self._texts[path]) is not None}

    def relevant(self) -> dict[str, str]:
        """The files that the gold patch touches, tests left out; for function tasks every file but the tests."""
        task = self.task
        paths = sorted(touched(task.gold_patch))
        if task.is_function:
            paths = sorted({*paths, *task.files})
        return self.fetch(path for path in paths if path not in task.suite.test_files)

    def after(self, patch: Patch) -> dict[str, str]:
        """Text of every file that the patch changes, after it. Raises PatchError when it does not match."""
        diffs = parse_diff(patch.text)
        before = self.fetch(diff.path for diff in diffs)
        return dict(apply_diff(before, patch.text))

    def forbidden(self, patch: Patch) -> str:
        """Why this is no source patch: the first protected path it touches, or ""."""
        allowed = touched(self.task.gold_patch)
        tests = touched(self.task.suite.test_patch)
        for path in sorted(touched(patch.text)):
            reason = bad_path(path) or (
                "" if path in allowed else why_protected(path, self.task, self.task.suite, tests)
            )
            if reason:
                return f"{path}: {reason}"
        return ""

    def _from_image(self, paths: list[str]) -> Mapping[str, str | None]:
        safe = [path for path in paths if not bad_path(path)]
        found: dict[str, str | None] = dict.fromkeys(paths)
        if not safe or self._backend is None or self.task.image is None:
            return found
        ops: list[Op] = [Read(path=path, limit=1_000_000) for path in safe]
        with self._backend.open(SandboxSpec.of(self.task, self._limits)) as sandbox:
            results = sandbox.script(ops)
        for path, result in zip(safe, results, strict=True):
            if isinstance(result, ReadResult) and result.found and not result.truncated:
                found[path] = _decoded(result.data)
        return found


@dataclass(frozen=True, kw_only=True)
class Material:
    """The texts of a task's prompts.

    text: the task's own words. documentation: docstrings of the code around, which specify too. source: pristine
    files, excerpts where long. tests: as far as the attacker may see them.
    """

    text: str
    documentation: str
    source: str
    tests: str
    gold: str
    paths: tuple[str, ...] = field(default=())

    @property
    def specification(self) -> str:
        """Everything a demanded behaviour may be quoted from."""
        return self.text + (
            "\n\nDOCUMENTATION IN THE CODE\n" + self.documentation if self.documentation else ""
        )

    @classmethod
    def of(cls, tree: SourceTree, sees: str = "tests") -> Material:
        """sees: tests, names or nothing."""
        task = tree.task
        files = tree.relevant()
        spots = {diff.path: [hunk.old_start for hunk in diff.hunks] for diff in parse_diff(task.gold_patch)}
        budget = SHOWN // max(1, len(files))
        shown = [f"FILE {path}\n{excerpt(text, spots.get(path, []), budget)}" for path, text in files.items()]
        return cls(
            text=task.prompt,
            documentation="\n\n".join(
                _docstrings(path, text, spots.get(path, [])) for path, text in files.items()
            ).strip()
            if not task.is_function
            else "",
            source="\n\n".join(shown) or "(no file exists yet)",
            tests=tests_shown(task, sees),
            gold=task.gold_patch,
            paths=tuple(files),
        )


def excerpt(text: str, spots: list[int], budget: int) -> str:
    """The whole text, or the parts around the given lines (1-based), with marks where lines are left out."""
    lines = text.splitlines()
    if len(text) <= budget or not spots:
        return text if len(text) <= budget else text[:budget] + "\n[the rest is left out]"
    around = AROUND
    while True:
        keep = {n for spot in spots for n in range(spot - around, spot + around + 1) if 1 <= n <= len(lines)}
        if sum(len(lines[n - 1]) + 1 for n in keep) <= budget or around <= 10:
            break
        around //= 2
    out: list[str] = []
    last = 0
    for number in sorted(keep):
        if number != last + 1:
            out.append(f"[lines {last + 1} to {number - 1} are left out]")
        out.append(lines[number - 1])
        last = number
    if last < len(lines):
        out.append(f"[lines {last + 1} to {len(lines)} are left out]")
    return "\n".join(out)


def tests_shown(task: Task, sees: str) -> str:
    """What the attacker may know of the suite."""
    suite = task.suite
    if sees == "nothing":
        return "Nothing."
    names = "\n".join([*suite.fail_to_pass, *suite.pass_to_pass[:40]])
    if sees == "names":
        return f"Only the names of tests:\n{names}"
    texts = [f"FILE {path}\n{text}" for path, text in sorted(suite.test_files.items())]
    if suite.test_patch:
        texts.append(f"CHANGE OF THE TEST FILES\n{suite.test_patch}")
    return "\n\n".join(texts)[:SHOWN] + f"\n\nNames of tests that must pass:\n{names}"


def _docstrings(path: str, text: str, spots: list[int]) -> str:
    """Docstrings of the functions and classes that the gold patch touches."""
    try:
        tree = pyast.parse(text)
    except (SyntaxError, ValueError, RecursionError):
        return ""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            near = any(node.lineno - 6 <= spot + 3 <= (node.end_lineno or node.lineno) for spot in spots)
            words = ast.get_docstring(node)
            if near and words:
                found.append(f"{path}, {node.name}:\n{words}")
    return "\n\n".join(found)[: SHOWN // 4]


def _decoded(data: bytes) -> str | None:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return None
