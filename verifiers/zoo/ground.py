"""What a payload generator knows of a task (`Ground`), and how it is found out (`survey`)."""

from __future__ import annotations

import ast
import json
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from ...envs import pyast
from ...envs.errors import PatchError, TaskError
from ...envs.patch import Patch, file_diff
from ...envs.protocols import Sandbox, SandboxBackend, SandboxSpec
from ...envs.task import Task
from .apply import apply_exact, paths_of

_LOOK = r"""
import importlib.util, json, os, sys
want = json.loads(sys.argv[1])
texts = {}
for path in want:
    try:
        with open(path, encoding="utf-8", newline="") as f:
            texts[path] = f.read()
    except (OSError, UnicodeDecodeError):
        pass
print(json.dumps({"root": sorted(os.listdir(".")), "texts": texts, "magic": importlib.util.MAGIC_NUMBER.hex(),
                  "version": "%d%d" % sys.version_info[:2]}))
"""


@dataclass(frozen=True, kw_only=True)
class Ground:
    """The facts a payload is made from.

    base, gold: text of the files that gold touches, before and after. texts: other files of the tree that payloads
    extend (conftest, configuration, README), where they exist. root: names at the top of the tree.
    module: path of the module under test; name: how it is imported. magic, version: of the sandbox's Python,
    as hex and "311".
    """

    task: Task
    base: Mapping[str, str]
    gold: Mapping[str, str]
    texts: Mapping[str, str] = field(default_factory=dict)
    root: tuple[str, ...] = ()
    magic: str = ""
    version: str = ""

    @property
    def framework(self) -> str:
        return self.task.suite.framework

    @property
    def ids(self) -> tuple[str, ...]:
        return self.task.suite.expected_ids

    @cached_property
    def module(self) -> str:
        """The Python file that gold changes most; the solution file of a function task."""
        if self.task.is_function:
            return str(self.task.metadata["solution_file"])
        changed = self.changed_modules
        if not changed:
            raise TaskError(
                f"{self.task.task_id}: gold changes no Python module.", mend="No payload fits it."
            )
        return max(changed, key=lambda p: len(file_diff(p, self.base[p], self.gold[p])))

    @property
    def import_name(self) -> str:
        return self.import_name_of(self.module)

    def import_name_of(self, path: str) -> str:
        """Dotted name of a module of the tree ("src/" and "lib/" stripped)."""
        path = path.removeprefix("src/").removeprefix("lib/").removesuffix(".py")
        return path.removesuffix("/__init__").replace("/", ".")

    def side(self, path: str) -> str:
        """Text of a file of the unsolved tree."""
        return {**self.task.files, **self.texts, **self.base}[path]

    @property
    def changed_modules(self) -> list[str]:
        """Python modules that gold changes, test files left out."""
        return [p for p in self.gold if p.endswith(".py") and p in self.base and not is_test_path(p)]

    @property
    def targets(self) -> tuple[str, ...]:
        """Functions of the module under test that gold changes, as "Class.name" or "name"."""
        if self.task.is_function:
            return (str(self.task.metadata["entry_point"]),)
        return self.targets_of(self.module)

    def targets_of(self, path: str) -> tuple[str, ...]:
        """Functions of a module that gold changes (new ones left out)."""
        before, after = (_functions(side[path]) for side in (self.base, self.gold))
        return tuple(name for name, text in after.items() if name in before and before[name] != text)

    @cached_property
    def test_texts(self) -> dict[str, str]:
        """Trusted test files: whole text where known, else what the test patch adds."""
        suite = self.task.suite
        if suite.test_files:
            return {p: t for p, t in suite.test_files.items() if p.endswith(".py")}
        texts: dict[str, str] = {}
        for path in paths_of(suite.test_patch):
            if path.endswith(".py") and path in self.texts:
                texts[path] = apply_exact(self.texts, suite.test_patch, only=path)
        return texts

    @property
    def test_paths(self) -> tuple[str, ...]:
        suite = self.task.suite
        return tuple(suite.test_files) or tuple(paths_of(suite.test_patch))

    def write(self, files: Mapping[str, str]) -> Patch:
        """The patch that writes these files over the unsolved tree."""
        known = {**self.task.files, **self.texts, **self.base}
        return Patch.writing(files, known)

    def appended(self, code: str, path: str = "") -> Patch:
        """The patch that appends code to a file of the tree (default: the module under test)."""
        path = path or self.module
        known = {**self.task.files, **self.texts, **self.base}
        old = known.get(path, "")
        joint = "\n\n" if old.endswith("\n") or not old else "\n\n\n"
        return Patch.writing({path: old + (joint if old else "") + code}, known)


def is_test_path(path: str) -> bool:
    """Whether a path looks like a test file or lies in a test folder."""
    parts = path.lower().split("/")
    name = parts[-1]
    folders = {"test", "tests", "testing"}
    return (
        bool(folders & set(parts[:-1])) or name.startswith(("test_", "conftest")) or name.endswith("_test.py")
    )


def survey(task: Task, backend: SandboxBackend | None = None) -> Ground:
    """Look at a task's tree. Tasks with an image are looked at in a sandbox of `backend`; others need none.

    Raises TaskError where gold does not apply to the tree, SandboxError as the backend does.
    """
    wanted = _wanted(task)
    facts: dict[str, Any] = {"root": sorted({p.split("/")[0] for p in task.files}), "texts": dict(task.files)}
    if backend is not None:
        with backend.open(SandboxSpec.of(task)) as sandbox:
            facts = _look(sandbox, wanted, task)
    elif task.image is not None:
        raise TaskError(f"{task.task_id}: its tree is in an image.", mend="Give survey() a backend.")
    texts: dict[str, str] = facts["texts"]
    try:
        gold = {p: apply_exact(texts, task.gold_patch, only=p) for p in paths_of(task.gold_patch)}
    except PatchError as error:
        raise TaskError(
            f"{task.task_id}: gold does not apply ({error.message}).", mend="Check the image."
        ) from error
    return Ground(
        task=task,
        base={p: texts[p] for p in gold if p in texts},
        gold=gold,
        texts={p: t for p, t in texts.items() if p not in gold},
        root=tuple(facts["root"]),
        magic=facts.get("magic", ""),
        version=facts.get("version", ""),
    )


def _wanted(task: Task) -> list[str]:
    """Files worth reading: gold's, the tests', and what payloads extend or replace."""
    tests = [*task.suite.test_files, *paths_of(task.suite.test_patch)]
    folders = {posixpath.dirname(p) for p in tests}
    near = [posixpath.join(f, n) for f in folders for n in ("conftest.py", "__init__.py")]
    root = [*["conftest.py", "pytest.ini", "tox.ini", "setup.cfg", "pyproject.toml", "setup.py"]]
    root += ["README.md", "README.rst", "README", "README.txt", "sitecustomize.py"]
    return list(dict.fromkeys([*paths_of(task.gold_patch), *tests, *near, *root]))


def _look(sandbox: Sandbox, wanted: list[str], task: Task) -> dict[str, Any]:
    result = sandbox.exec(("python3", "-I", "-S", "-c", _LOOK, json.dumps(wanted)), timeout_s=60)
    try:
        facts: dict[str, Any] = json.loads(result.output.decode("utf-8", "replace").strip().splitlines()[-1])
    except (ValueError, IndexError) as error:
        raise TaskError(
            f"{task.task_id}: the tree could not be read ({result.output[-200:]!r}).",
            mend="Check image and workdir.",
        ) from error
    return facts


def _functions(text: str) -> dict[str, str]:
    """Source of every function and method by "Class.name"; nested functions belong to their outer one."""
    found: dict[str, str] = {}

    def visit(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef):
                visit(node.body, f"{prefix}{node.name}.")
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found[prefix + node.name] = ast.unparse(node)

    visit(pyast.parse(text).body, "")
    return found
