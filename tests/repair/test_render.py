"""Witnesses become readable test files that hold for the program they were read from, and only for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from acidtest.envs.task import Suite, Task
from acidtest.repair.render import Case, case_of, is_unordered, literal, render
from acidtest.verifiers.records import Witness, WitnessKind

TESTS = "from solution import {name}\n\ndef test_check():\n    assert {name}(2, 2) == 4\n"


def task(name: str = "add", *, prompt: str = "Add two numbers.", framework: str = "plain") -> Task:
    suite = Suite(
        command="python test_solution.py",
        framework=framework,
        test_files={"test_solution.py": TESTS.format(name=name)},
        fail_to_pass=("test_solution.py::test_check",),
    )
    return Task(
        task_id="t/1",
        dataset="toy",
        prompt=prompt,
        suite=suite,
        gold_patch="",
        metadata={"entry_point": name, "solution_file": "solution.py"},
    )


def run(folder: Path, solution: str, source: str) -> subprocess.CompletedProcess[str]:
    (folder / "solution.py").write_text(solution)
    (folder / "test_hardened_t_1.py").write_text(source)
    return subprocess.run(
        [sys.executable, "-B", "test_hardened_t_1.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_file_passes_gold_and_fails_the_wrong_program(tmp_path: Path) -> None:
    cases = [
        Case(call="add(2, -3)", expected="-1", note='the "minus" case'),
        Case(call="add(0.1, 0.2)", expected="0.3"),
        Case(call="add(float('inf'), 1)", expected="inf"),
        Case(call="add('a', 1)", raises="TypeError"),
    ]
    added = render(task(), cases)
    assert list(added.test_files) == ["test_hardened_t_1.py"]
    assert len(added.test_ids) == len(set(added.test_ids)) == 4
    source = added.test_files["test_hardened_t_1.py"]
    gold = run(tmp_path, "def add(a, b):\n    return a + b\n", source)
    assert gold.returncode == 0, gold.stderr
    for wrong in ("a * b", "a - b", "abs(a + b)", "round(a + b)"):
        assert run(tmp_path, f"def add(a, b):\n    return {wrong}\n", source).returncode == 1, wrong


@pytest.mark.parametrize(
    ("value", "wrong"),
    [
        ("None", "0"),
        ("True", "False"),
        ("nan", "1.0"),
        ("{'a': [1.5, 2]}", "{'a': [1.5, 3]}"),
        ("(1, 2)", "[1, 2]"),
        ("''", "None"),
        ("{1, 2}", "{1}"),
        ("1e-09", "0.1"),
        ("'it\\'s \"\"\" inf'", "''"),
        ("10000000000000001", "10000000000000002"),
    ],
)
def test_every_plain_value_is_compared_as_itself(tmp_path: Path, value: str, wrong: str) -> None:
    added = render(task("f"), [Case(call="f(0)", expected=value)])
    source = next(iter(added.test_files.values()))
    body = "from math import nan, inf\n\ndef f(x):\n    return "
    assert run(tmp_path, body + value + "\n", source).returncode == 0, source
    assert run(tmp_path, body + wrong + "\n", source).returncode == 1, source


def test_an_open_order_is_left_open(tmp_path: Path) -> None:
    free = task("f", prompt="Return the unique elements in any order.")
    assert is_unordered(free)
    assert not is_unordered(task("f", prompt="Return them in order."))
    source = next(iter(render(free, [Case(call="f(0)", expected="[1, 2, 3]")]).test_files.values()))
    assert run(tmp_path, "def f(x):\n    return [3, 1, 2]\n", source).returncode == 0
    assert run(tmp_path, "def f(x):\n    return [3, 1]\n", source).returncode == 1


@pytest.mark.parametrize(
    "text", ["<object at 0x7f>", "open('x')", "[i for i in range(3)]", "Point(1)", "a.b", "1 +"]
)
def test_what_is_no_plain_value_is_not_rendered(text: str) -> None:
    assert literal(text) is None
    witness = Witness(kind=WitnessKind.VALUE, call="f(1)", expected=text, observed="2")
    assert case_of(witness) is None


def test_two_cases_that_read_alike_get_two_names() -> None:
    added = render(task("f"), [Case(call="f([1, 2])", expected="1"), Case(call="f((1, 2))", expected="2")])
    assert len(set(added.test_ids)) == 2


def test_pytest_suites_get_a_pytest_file() -> None:
    added = render(task(framework="pytest"), [Case(call="add(1, 2)", expected="3")])
    assert added.framework == "pytest"
    assert "-m pytest" in added.command
