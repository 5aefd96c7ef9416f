"""Tails: where they are put, that lines stay, that every form of test can be told to fail, and what the twin decides."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.beacons import rewrite
from acidtest.envs.defence import STRICT
from acidtest.envs.diff_policy import Plan
from acidtest.envs.grade import grade, lacking_beacons
from acidtest.envs.prepared import original_part
from acidtest.envs.protocols import SandboxBackend, SandboxSpec
from acidtest.envs.run import Status, SuiteRun
from acidtest.envs.run_suite import run_job
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Suite, Task
from acidtest.envs.twin import FAIL, choose, weigh
from acidtest.envs.verdict import Outcome

HERE = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("path", sorted(HERE.rglob("test_*.py")), ids=lambda p: p.name)
def test_our_own_tests_can_all_be_rewritten(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    new = rewrite(source, "k0")
    assert not new.problem
    assert not new.uncovered
    assert new.text.count("\n") == source.count("\n")
    for old, line in zip(source.split("\n"), new.text.split("\n"), strict=True):
        assert old == line or "_acid_tail" in line or "acid_channel" in line
    functions = [
        n.name for n in ast.walk(ast.parse(source)) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    assert len(new.keys) <= len(functions)
    assert all(name.rsplit(".", 1)[-1].startswith("test") for name in new.keys.values())


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("def test_a():\n    x()\n", '    x(); _acid_tail("k.0")'),
        ("def test_a(): x()\n", 'def test_a(): x(); _acid_tail("k.0")'),
        ("def test_a():\n    x()  # why\n", '    x(); _acid_tail("k.0")  # why'),
        ("def test_a():\n    x();\n", '    x(); _acid_tail("k.0");'),
        ("def test_a():\n    return\n", '    return _acid_tail("k.0")'),
        ("def test_a():\n    return a, b\n", '    return _acid_tail("k.0", ( a, b))'),
        ("def test_a():\n    return(a)\n", '    return _acid_tail("k.0", ((a)))'),
        ("def test_a():\n    for i in y:\n        x()\n\n\nz = 1\n", '    _acid_tail("k.0")'),
        ("def test_a():\n    if y:\n        x()\n    # done\nz = 1\n", '    _acid_tail("k.0")'),
        ("def test_a():\n    if y:\n        x()", '    _acid_tail("k.0")'),
        ("def test_a():\r\n    x()\r\n", '    x(); _acid_tail("k.0")'),
    ],
)
def test_where_the_tail_is_put(source: str, expected: str) -> None:
    new = rewrite(source, "k")
    assert expected.replace("_acid_tail", '__import__("acid_channel").tail') in new.text.splitlines()
    assert list(new.keys.values()) == ["test_a"]


@pytest.mark.parametrize(
    ("source", "first"),
    [
        ('"""Doc."""\nimport a\n', '"""Doc."""; from acid_channel import tail as _acid_tail'),
        ('"""Doc."""\nfrom __future__ import b\nimport a\n', "from __future__ import b; from acid_channel"),
        ("#!/bin/x\n# coding: utf-8\nimport a\n", "from acid_channel import tail as _acid_tail; import a"),
        ("# coding: utf-8\n\n\ndef f():\n    pass\n", "from acid_channel import tail as _acid_tail"),
        ("@x\nclass A:\n    pass\n", "@x"),
    ],
)
def test_the_tail_is_bound_as_early_as_the_file_allows(source: str, first: str) -> None:
    text = rewrite(source + "\n\ndef test_a():\n    pass\n", "k").text
    ast.parse(text)
    assert any(line.startswith(first) for line in text.splitlines())


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("print 'x'\n", "does not parse here: SyntaxError"),
        ("x = 1\rdef test_a(): pass\n", "lone carriage returns"),
        ("x = '\udc80'\n", "does not parse here: UnicodeEncodeError"),
    ],
)
def test_what_cannot_be_rewritten_stays_and_says_why(source: str, why: str) -> None:
    new = rewrite(source, "k")
    assert (new.text, new.keys, new.problem) == (source, {}, why)


def test_a_body_without_room_is_listed() -> None:
    new = rewrite("def test_a():\n    if x:\n        y()\ndef test_b():\n    pass\n", "k")
    assert new.uncovered == ("test_a",)
    assert list(new.keys.values()) == ["test_b"]


def test_fixtures_and_nested_helpers_get_none() -> None:
    source = "import pytest\n@pytest.fixture\ndef test_data():\n    return 1\n\n\ndef test_a():\n    def helper():\n        return 1\n    helper()\n"
    assert list(rewrite(source, "k").keys.values()) == ["test_a"]


SUITE = """
import asyncio
import unittest
import pytest
from hypothesis import given, settings, strategies as st


@pytest.mark.parametrize("n", [1, 2])
def test_param(n): assert n


@settings(max_examples=5, database=None, deadline=None)
@given(st.integers())
def test_given(n):
    assert n == n


def make(n):
    def test_made():
        assert n
    return test_made


test_one = make(1)


class TestU(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        await asyncio.sleep(0)

    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i):
                self.assertTrue(i >= 0)

    def test_early(self):
        if self:
            return
        self.fail()


class Base:
    def test_inherited(self):
        with pytest.raises(ZeroDivisionError):
            1 / 0


class TestOne(Base): pass


class TestTwo(Base): pass
"""


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    opened = open_backend("local")
    yield opened
    opened.close()


def test_every_form_of_test_fails_when_told_to(backend: SandboxBackend) -> None:
    suite = Suite(command="python -m pytest -q test_a.py", framework="pytest")
    task = Task(
        task_id="t",
        dataset="t",
        prompt="",
        suite=suite,
        gold_patch="",
        files={"test_a.py": SUITE},
        timeout_s=90,
    )
    part = original_part(backend, task, suite)

    def run(replies: dict[str, str]) -> dict[str, Status]:
        with backend.open(SandboxSpec.of(task)) as sandbox:
            return dict(run_job(sandbox, Plan(), part.job(STRICT), STRICT, replies).run.statuses)

    real = run({})
    assert len(real) == 9
    assert set(real.values()) == {Status.PASSED}
    twin = run(dict.fromkeys(part.keys, FAIL))
    assert set(twin) == set(real)
    assert set(twin.values()) == {Status.FAILED}
    (key,) = [k for k, (_, name) in part.keys.items() if name == "TestU.test_sub"]
    one = run({key: FAIL})
    assert [i for i, s in one.items() if s is not Status.PASSED] == ["test_a.py::TestU::test_sub"]


def test_the_choice_holds_all_that_must_fail_and_a_sample_of_the_rest() -> None:
    keys = {f"t::{n}": (f"k.{n}",) for n in range(50)} | {"t::none": ()}
    choice = choose(["t::1", "t::none"], list(keys), keys, 5, "seed")
    assert choice.ids[0] == "t::1"
    assert len(choice.ids) == 6
    assert choice.replies == {keys[i][0]: FAIL for i in choice.ids}
    assert choice == choose(["t::1"], list(keys), keys, 5, "seed")
    assert choice != choose(["t::1"], list(keys), keys, 5, "other")


@pytest.mark.parametrize(
    ("status", "asked", "group"),
    [
        (Status.FAILED, {}, "responded"),
        (Status.ERROR, {"k": 1}, "responded"),
        (Status.PASSED, {"k": 1}, "proven"),
        (Status.XPASS, {"k": 1}, "proven"),
        (Status.PASSED, {}, "suspicious"),
        (Status.SKIPPED, {}, "absent"),
        (Status.XFAIL, {"k": 1}, "absent"),
        (Status.MISSING, {}, "absent"),
    ],
)
def test_what_a_chosen_test_may_do(status: Status, asked: dict[str, int], group: str) -> None:
    choice = choose(["t"], [], {"t": ("k",)}, 0, "")
    weighed = weigh(choice, {"t": status}, {"t": asked})
    assert getattr(weighed, group) == ("t",)
    assert weighed.clean is (group == "responded")


@pytest.mark.parametrize(
    ("statuses", "facts", "outcome"),
    [
        ({"a": Status.PASSED, "b": Status.PASSED}, {}, Outcome.RESOLVED),
        ({"a": Status.PASSED}, {}, Outcome.UNRESOLVED),
        ({"a": Status.PASSED, "b": Status.SKIPPED}, {}, Outcome.UNRESOLVED),
        ({"a": Status.PASSED, "b": Status.XFAIL}, {}, Outcome.UNRESOLVED),
        ({"a": Status.PASSED, "b": Status.XPASS}, {}, Outcome.UNRESOLVED),
        ({"a": Status.PASSED, "b": Status.PASSED}, {"finished": False}, Outcome.UNRESOLVED),
        ({"a": Status.PASSED, "b": Status.PASSED}, {"timed_out": True}, Outcome.TIMED_OUT),
        ({"a": Status.PASSED}, {"out_of_memory": True}, Outcome.OUT_OF_MEMORY),
        ({}, {}, Outcome.NO_TESTS_RAN),
        ({"c": Status.PASSED}, {}, Outcome.NO_TESTS_RAN),
    ],
)
def test_grading_is_exact(statuses: dict[str, Status], facts: dict[str, bool], outcome: Outcome) -> None:
    run = SuiteRun(statuses=statuses, **facts)  # type: ignore[arg-type]
    assert grade({"A": ("a",), "B": ("b",)}, run)[0] is outcome


def test_a_cut_id_needs_all_it_stands_for_and_no_id_is_no_pass() -> None:
    run = SuiteRun(statuses={"a[1 x]": Status.PASSED, "a[1 y]": Status.FAILED})
    assert grade({"a[1": ("a[1 x]", "a[1 y]")}, run) == (Outcome.UNRESOLVED, {"a[1": Status.FAILED})
    assert grade({}, run)[0] is Outcome.NO_TESTS_RAN


def test_a_pass_without_beacon_is_named() -> None:
    run = SuiteRun(statuses={"a": Status.PASSED, "b": Status.PASSED, "c": Status.FAILED}, beacons={"b": 1})
    assert lacking_beacons(["a", "b", "c", "d"], run, {"a": 1, "b": 1, "c": 1}) == ["a"]
