"""Layer "protect": the paths a submission may not change, because they decide what the tests do.

A change to one is not applied (the grading sandbox is fresh, so the pristine file stands) and becomes a notice:
agents add tests in good faith. A path that the gold patch itself touches is open. Not covered: runner behaviour
that is reached from ordinary source (R11); beacons and the twin answer for that.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Iterable
from fnmatch import fnmatchcase
from pathlib import Path

from .task import Suite, Task

CONFIG_NAMES = {
    "conftest.py": "test configuration",
    "pytest.ini": "test configuration",
    ".pytest.ini": "test configuration",
    "tox.ini": "test configuration",
    "setup.cfg": "test configuration",
    "pyproject.toml": "test configuration",
    "noxfile.py": "test configuration",
    ".coveragerc": "test configuration",
    ".gitattributes": "decides what git writes for the rest of the diff",
    "runtests.py": "test runner",
    "run_tests.sh": "test runner",
    "sitecustomize.py": "start-up file",
    "usercustomize.py": "start-up file",
}
TEST_FILE = re.compile(r"(?:test_[^/]*|[^/]*_test|tests)\.pyi?\Z")
TEST_FOLDER = re.compile(r"(?:^|/)tests/|^test/|^testing/")
ENVIRONMENT = re.compile(
    r"(?:^|/)(?:\.?venv|env/(?:bin|include|lib|lib64|share|Scripts)|site-packages|dist-packages|__pycache__"
    r"|[^/]*\.(?:dist|egg)-info)/|(?:^|/)env/pyvenv\.cfg$"
)
RUNNER_MODULES = frozenset(
    [
        "pytest",
        "_pytest",
        "py",
        "pluggy",
        "iniconfig",
        "xdist",
        "hypothesis",
        "nose",
        "mock",
        "asynctest",
        "trial",
        "unittest2",
        "numpy",
    ]
)
HELPERS = frozenset(path.stem for path in Path(__file__).parent.glob("inside/acid_*.py"))
"""What runs beside the tests. They import it by name, from their own folder first."""
RUNNING = (RUNNER_MODULES - {"numpy"}) | {"unittest", "doctest"}
PATH_ROOTS = ("", "src/", "lib/")
OWN_RUNNERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pytest", ("src/_pytest/*", "src/pytest/*", "src/pytest.py", "_pytest/*", "pytest.py")),
    ("django", ("django/test/*", "tests/runtests.py")),
    ("numpy", ("numpy/testing/*",)),
    ("sympy", ("sympy/testing/*", "sympy/utilities/runtests.py", "sympy/utilities/pytest.py", "bin/test")),
)


def why_protected(
    path: str, task: Task, suite: Suite, test_paths: Iterable[str] = (), golds: Collection[str] = ()
) -> str:
    """Why this path may not be changed by a submission ("" when it may).

    path: relative to the workdir. test_paths: files that the suite's trusted tests stand in. golds: paths that the
    gold patch touches: a package it works in is the project's own and shadows nothing.
    """
    name = path.rsplit("/", 1)[-1]
    added = suite.added.test_files if suite.added is not None else {}
    for trusted in (*suite.test_files, *test_paths, *added):
        if path == trusted or path.startswith(trusted + "/") or trusted.startswith(path + "/"):
            return "test file of the suite"
    if any(fnmatchcase(path, pattern) for pattern in task.protected_paths):
        return "protected by the task"
    if name in CONFIG_NAMES:
        return CONFIG_NAMES[name]
    if name.endswith((".pth", ".pyc", ".pyo", ".so", ".egg-link")):
        return "start-up or compiled file"
    if ENVIRONMENT.search(path):
        return "installed environment"
    if TEST_FILE.fullmatch(name) or TEST_FOLDER.search(path):
        return "tests"
    if not HELPERS.isdisjoint(part.removesuffix(".py") for part in path.split("/")):
        return "shadows a helper of the verdict"
    return _shadows(path, golds) or _own_runner(path, task)


def _shadows(path: str, golds: Collection[str]) -> str:
    """A module at a root of sys.path that would stand before the standard library's or the runner's."""
    for root in PATH_ROOTS:
        if path.startswith(root):
            top = path[len(root) :].split("/", 1)[0]
            module = top[:-3] if top.endswith(".py") else top
            if module not in RUNNING and any(gold.startswith(f"{root}{module}/") for gold in golds):
                continue
            if module in sys.stdlib_module_names or (module in RUNNER_MODULES and root == ""):
                return f"shadows the module {module}"
    return ""


def _own_runner(path: str, task: Task) -> str:
    """Where the repository is its own test runner, the runner's files."""
    repository = str(task.metadata.get("repo", "") or task.task_id).lower()
    for project, patterns in OWN_RUNNERS:
        if re.search(rf"(?:^|[/_]){project}(?:[-_/]|$)", repository):
            if any(fnmatchcase(path, pattern) for pattern in patterns):
                return f"{project}'s own test runner"
    return ""
