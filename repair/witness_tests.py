"""Witnesses of a repository's findings as added tests, as they were executed when they proved the finding.

A finding is proven there by a test: a call that the suite itself makes, recorded and compared, or a test written after a
quoted sentence. Gold passed it and the program failed it, repeatedly; the gates run it again in the suite's place.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from ..envs import pyast
from ..envs.record import digest_of
from ..envs.task import AddedTests, Task
from ..verifiers.interpreter import python_of
from ..verifiers.records import Finding, Witness
from .render import file_path

_PYTEST = re.compile(r"(?:^|[\s/])pytest(?=\s|$)")
_PATH = re.compile(r"\S+\.py|\S*(?:::|/)\S*|[\w.]*tests?")


def chosen_witnesses(findings: Sequence[Finding], refused: set[str], limit: int) -> list[Witness]:
    """One witness with a test for each finding, the best rated one that no gate refused; each test once."""
    chosen: dict[str, Witness] = {}
    for finding in findings:
        usable = [w for w in finding.witnesses if named_tests(w.test) and key_of(w) not in refused]
        if usable and len(chosen) < limit:
            best = max(usable, key=lambda w: w.rating)
            chosen.setdefault(key_of(best), best)
    return list(chosen.values())


def key_of(witness: Witness) -> str:
    return digest_of(witness.test)


def added_of(task: Task, witnesses: Sequence[Witness]) -> AddedTests:
    """A file for each witness beside the suite's tests, run by the suite's own pytest, else by the plain runner."""
    first = file_path(task).removesuffix(".py")
    taken = {re.split(r"::|\.", test_id)[-1] for test_id in task.suite.expected_ids}
    files: dict[str, str] = {}
    for number, witness in enumerate(witnesses, 1):
        files[f"{first}_{number}.py"] = text = _renamed(witness.test, taken)
        taken |= set(named_tests(text))
    pytest = task.suite.framework == "pytest" and _PYTEST.search(task.suite.command) is not None
    command = task.suite.command
    return AddedTests(
        command=only(command, list(files)) if pytest else f"{python_of(command)} {' '.join(files)}",
        framework="pytest" if pytest else "plain",
        test_files=files,
        test_ids=tuple(f"{path}::{name}" for path, text in files.items() for name in named_tests(text)),
    )


def named_tests(text: str) -> list[str]:
    """Names of the top-level test functions; [] for a text that does not parse."""
    try:
        tree = pyast.parse(text)
    except (SyntaxError, ValueError):
        return []
    return [n.name for n in tree.body if isinstance(n, ast.FunctionDef) and n.name.startswith("test")]


def _renamed(text: str, taken: set[str]) -> str:
    """The test with names of its own: R2E-Gym's rule tells tests apart by their name alone, without the file."""
    for name in named_tests(text):
        count, new = 1, name
        while new in taken:
            count += 1
            new = f"{name}_{count}"
        text = re.sub(rf"\b{name}\b", new, text) if new != name else text
    return text


def only(command: str, paths: Sequence[str]) -> str:
    """A pytest command with other files in place of its own; options and what stands before pytest stay."""
    *_, last = _PYTEST.finditer(command)
    kept = [
        word for word in command[last.end() :].split() if word.startswith("-") or not _PATH.fullmatch(word)
    ]
    return " ".join([command[: last.end()], *kept, *paths])
