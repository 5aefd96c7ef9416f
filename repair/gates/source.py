"""Gates that read the proposed files without running them."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import PurePosixPath

from ...envs import pyast
from ..records import Check
from .trial import Trial, failed, passed

CONFIGURATION = frozenset(
    {"conftest.py", "__init__.py", "sitecustomize.py", "usercustomize.py", "setup.py", "noxfile.py"}
)
CALL_COUNTS = re.compile(
    r"^(call_count|call_args|call_args_list|mock_calls|method_calls|assert_(not_)?called\w*|assert_any_call"
    r"|assert_has_calls|assertNumQueries)$"
)
INTERNALS = frozenset(
    {
        "getsource",
        "getsourcelines",
        "__code__",
        "__closure__",
        "__globals__",
        "_getframe",
        "currentframe",
        "co_code",
    }
)


def only_new_test_files(trial: Trial) -> Check:
    """Every proposed file is a new test module: nothing existing is replaced, configured or shadowed."""
    name, task = "only new test files", trial.task
    existing = (
        set(task.files)
        | set(task.suite.test_files)
        | patch_paths(task.suite.test_patch)
        | patch_paths(task.gold_patch)
    )
    if not trial.added.test_files or not trial.added.test_ids:
        return failed(name, "the proposal holds no test file or names no test id", "uncollectable")
    modules = {PurePosixPath(path).stem for path in existing}
    for path in trial.added.test_files:
        pure = PurePosixPath(path)
        if pure.is_absolute() or ".." in pure.parts or ".git" in pure.parts:
            return failed(name, f"{path} leaves the tree", "touches files")
        if path in existing:
            return failed(name, f"{path} exists already: added tests may not replace it", "touches files")
        if pure.name in CONFIGURATION or pure.suffix != ".py":
            return failed(
                name, f"{path} is no test module (configuration and other files are refused)", "touches files"
            )
        if pure.stem in sys.stdlib_module_names or pure.stem in modules:
            return failed(name, f"{path} shadows the module {pure.stem!r}", "shadows a module")
        if "test" not in pure.stem.lower():
            return failed(name, f"{path} is not named as a test module", "touches files")
    clash = set(trial.added.test_ids) & set(task.suite.expected_ids)
    if clash:
        return failed(name, f"ids that the suite has already: {sorted(clash)[:5]}", "shadows a test")
    return passed(name, ", ".join(trial.added.test_files))


def asserts_something(trial: Trial) -> Check:
    """Every test function states something about a value that is computed."""
    name, count = "asserts something", 0
    for path, function in _tests(trial):
        if not any(_asserts(node) for node in ast.walk(function)):
            return failed(name, f"{path}::{function.name} asserts nothing", "no assertion")
        count += 1
    return passed(name, f"{count} test functions")


def no_implementation_detail(trial: Trial) -> Check:
    """No private names, call counts or message texts, unless the existing suite or the task's text uses them."""
    name = "no implementation detail"
    known = trial.bench.existing_tests() + "\n" + trial.task.prompt
    for path, tree in _trees(trial):
        for line, what, word in _details(tree):
            if not _known(word, known):
                return failed(
                    name,
                    f"{path}:{line}: {what} {word!r}, which neither suite nor task mentions",
                    "implementation detail",
                )
    return passed(name)


def _known(word: str, known: str) -> bool:
    flat = " ".join(known.split())
    text = " ".join(word.split())
    return text in flat or text.replace("\\", "") in flat


def patch_paths(diff: str) -> set[str]:
    """Paths that a unified diff names on either side."""
    found = re.findall(r"^(?:---|\+\+\+) [ab]/(\S+)", diff, re.MULTILINE)
    return set(found)


def _trees(trial: Trial) -> Iterator[tuple[str, ast.Module]]:
    for path, text in trial.added.test_files.items():
        try:
            yield path, pyast.parse(text)
        except (SyntaxError, ValueError):
            continue  # the gate "collects" says so, with the error of the real run


def _tests(trial: Trial) -> Iterator[tuple[str, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for path, tree in _trees(trial):
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test"):
                yield path, node


def _asserts(node: ast.AST) -> bool:
    if isinstance(node, ast.Assert):
        return any(
            isinstance(part, ast.Call | ast.Name | ast.Attribute | ast.Subscript)
            for part in ast.walk(node.test)
        )
    if isinstance(node, ast.Raise):
        return True
    if isinstance(node, ast.Call):
        words = re.split(r"[^A-Za-z0-9]+|(?<=[a-z])(?=[A-Z])|_", ast.unparse(node.func))
        own = isinstance(node.func, ast.Attribute) and not isinstance(node.func.value, ast.Name)
        own = own or (
            isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) not in {"self", "cls"}
        )
        computed = own or bool(node.keywords) or any(not _constant(arg) for arg in node.args)
        lower = {word.lower() for word in words}
        return bool(lower & {"assert", "raises", "warns", "fail", "check", "same", "expect"}) and (
            computed or "fail" in lower
        )
    return False


def _constant(node: ast.AST) -> bool:
    return not any(
        isinstance(part, ast.Call | ast.Name | ast.Attribute | ast.Subscript) for part in ast.walk(node)
    )


def _details(tree: ast.Module) -> Iterator[tuple[int, str, str]]:
    """(line, what, word) for everything that reaches for how the code does it rather than for what it does."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            own = isinstance(node.value, ast.Name) and node.value.id in {"self", "cls"}
            if CALL_COUNTS.match(node.attr):
                yield node.lineno, "call count", node.attr
            elif node.attr in INTERNALS:
                yield node.lineno, "internals", node.attr
            elif _private(node.attr) and not own:
                yield node.lineno, "private name", node.attr
        elif isinstance(node, ast.ImportFrom):
            names = [*(node.module or "").split("."), *(alias.name for alias in node.names)]
            for word in filter(_private, names):
                yield node.lineno, "private name", word
        elif isinstance(node, ast.Call):
            yield from _private_getattr(node)
            yield from _message_call(node)
        elif isinstance(node, ast.Compare):
            yield from _message_compare(node)


def _private(word: str) -> bool:
    return word.startswith("_") and not word.startswith("__") and word != "_"


def _private_getattr(node: ast.Call) -> Iterator[tuple[int, str, str]]:
    if (
        isinstance(node.func, ast.Name)
        and node.func.id in {"getattr", "hasattr", "setattr"}
        and len(node.args) > 1
    ):
        word = node.args[1]
        if isinstance(word, ast.Constant) and isinstance(word.value, str):
            if _private(word.value) or word.value in INTERNALS:
                yield node.lineno, "private name", word.value


def _message_call(node: ast.Call) -> Iterator[tuple[int, str, str]]:
    called = ast.unparse(node.func).rsplit(".", 1)[-1]
    texts = [
        k.value
        for k in node.keywords
        if k.arg in {"match", "msg_regex", "expected_regex", "expected_message"}
    ]
    if called in {"assertRaisesRegex", "assertRaisesMessage", "assertWarnsRegex", "assertWarnsMessage"}:
        texts += node.args[1:2]
    if called in {"raises", "warns", *ASSERT_MESSAGES}:
        for text in texts:
            if isinstance(text, ast.Constant) and isinstance(text.value, str) and text.value:
                yield node.lineno, "message text", text.value
    if called in {"assertEqual", "assertIn"} and any(_reads_message(arg) for arg in node.args):
        yield from _strings(node.lineno, node.args)


ASSERT_MESSAGES = frozenset(
    {"assertRaisesRegex", "assertRaisesMessage", "assertWarnsRegex", "assertWarnsMessage"}
)


def _message_compare(node: ast.Compare) -> Iterator[tuple[int, str, str]]:
    sides = [node.left, *node.comparators]
    if any(_reads_message(side) for side in sides):
        yield from _strings(node.lineno, sides)


def _strings(line: int, nodes: list[ast.expr]) -> Iterator[tuple[int, str, str]]:
    for node in nodes:
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value:
            yield line, "message text", node.value


def _reads_message(node: ast.AST) -> bool:
    """str(error), error.args[0], str(caught.value), caught.exception.message …"""
    text = ast.unparse(node)
    return bool(
        re.search(r"\bstr\((\w*(err|exc|exception|error|caught|e)\w*)(\.\w+)?\)", text, re.IGNORECASE)
        or re.search(
            r"\b\w*(err|exc|exception|error|caught)\w*(\.(value|exception))?\.(args|message)\b",
            text,
            re.IGNORECASE,
        )
    )
