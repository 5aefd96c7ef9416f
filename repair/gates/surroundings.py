"""Gates on what the proposed tests do to the world around them: network, files, the code under test, other tests."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import PurePosixPath

from ...envs import pyast
from ...envs.task import Task
from ..records import Check
from .source import patch_paths
from .trial import Trial, failed, passed


def no_network(trial: Trial) -> Check:
    """No name is looked up and no address is dialled outside this machine."""
    seen = trial.bench.observe(trial.added).network
    if seen:
        return failed("no network", f"asked for {', '.join(seen[:5])}", "needs the network")
    return passed("no network")


def writes_nothing(trial: Trial) -> Check:
    """Nothing is created, changed or removed outside a temporary folder."""
    seen = trial.bench.observe(trial.added).writes
    if seen:
        return failed("writes nothing", f"outside a temporary folder: {', '.join(seen[:8])}", "touches files")
    return passed("writes nothing")


def leaves_the_source_alone(trial: Trial) -> Check:
    """The code under test is not patched: not on disk, not in memory, unless the existing suite patches the same name."""
    name = "leaves the source alone"
    seen = trial.bench.observe(trial.added).patched
    if seen:
        return failed(name, f"changed in memory: {', '.join(seen[:5])}", "patches the source")
    known = trial.bench.existing_tests()
    for path, text in trial.added.test_files.items():
        try:
            tree = pyast.parse(text)
        except (SyntaxError, ValueError):
            continue  # "collects" names it
        for line, target in patches(tree, source_roots(trial.task)):
            if target not in known:
                return failed(name, f"{path}:{line} patches {target!r}", "patches the source")
    return passed(name)


def nothing_disturbed(trial: Trial) -> Check:
    """The suite's own tests keep the statuses they have under gold, with the added tests before, after and beside them."""
    seen = trial.bench.disturbance(trial.added)
    if seen.changed:
        shown = "; ".join(f"{test_id}: {change}" for test_id, change in list(seen.changed.items())[:5])
        return failed("nothing disturbed", shown, "disturbs existing tests")
    return passed("nothing disturbed", f"{seen.compared} statuses compared in {seen.runs} runs")


def source_roots(task: Task) -> frozenset[str]:
    """Top-level import names of the code under test, from the task's files and the paths that gold changes."""
    tests = set(task.suite.test_files) | patch_paths(task.suite.test_patch)
    roots: set[str] = set()
    for path in (set(task.files) | patch_paths(task.gold_patch)) - tests:
        parts = [part for part in PurePosixPath(path).parts if part not in {"src", "lib", "."}]
        if parts and path.endswith(".py"):
            roots.add(parts[0].removesuffix(".py"))
    return frozenset(roots - {"test", "tests", "testing"})


def patches(tree: ast.Module, roots: frozenset[str]) -> Iterator[tuple[int, str]]:
    """(line, target) of every statement that replaces something in the code under test or in the interpreter."""
    ours = _imported(tree, roots)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Delete):
            targets = node.targets if isinstance(node, ast.Assign | ast.Delete) else [node.target]
            for target in targets:
                if _root(target) in ours and isinstance(target, ast.Attribute):
                    yield node.lineno, ast.unparse(target)
                elif isinstance(target, ast.Subscript) and ast.unparse(target.value).endswith(
                    ("sys.modules", "__dict__")
                ):
                    yield node.lineno, ast.unparse(target)
        elif isinstance(node, ast.Call):
            yield from _patching_call(node, ours, roots)


def _patching_call(node: ast.Call, ours: frozenset[str], roots: frozenset[str]) -> Iterator[tuple[int, str]]:
    called = ast.unparse(node.func)
    if called.endswith("reload"):
        yield node.lineno, called
    if not node.args or called.rsplit(".", 1)[-1] not in {
        "setattr",
        "delattr",
        "object",
        "patch",
        "setitem",
        "multiple",
    }:
        return
    first = node.args[0]
    if isinstance(first, ast.Constant) and isinstance(first.value, str):
        if first.value.split(".")[0] in roots | {"builtins"}:
            yield node.lineno, first.value
    elif _root(first) in ours | {"builtins"} or ast.unparse(first).endswith("sys.modules"):
        second = node.args[1] if len(node.args) > 1 else None
        named = second.value if isinstance(second, ast.Constant) and isinstance(second.value, str) else ""
        yield node.lineno, f"{ast.unparse(first)}.{named}" if named else ast.unparse(first)


def _imported(tree: ast.Module, roots: frozenset[str]) -> frozenset[str]:
    """Local names that importing the code under test binds, and `builtins`."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.split(".")[0] in roots | {"builtins"}:
                    names.add((alias.asname or alias.name).split(".")[0])
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in roots:
            names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def _root(node: ast.AST) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""
