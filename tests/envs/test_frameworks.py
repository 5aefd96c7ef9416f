"""Every framework file: the contract, forged text, and real runs with odd tests."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import acidtest.envs.frameworks as folder
from acidtest.envs import inside
from acidtest.envs.defence import STRICT
from acidtest.envs.diff_policy import Plan
from acidtest.envs.frameworks import framework_of
from acidtest.envs.prepared import original_part
from acidtest.envs.protocols import ExecResult, SandboxBackend, SandboxSpec
from acidtest.envs.registry import names
from acidtest.envs.report import observe
from acidtest.envs.run import Status
from acidtest.envs.run_suite import Observation, run_job
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Suite, Task

FRAMEWORKS = names(folder.__name__)
COMMANDS = {
    "plain": "python test_a.py",
    "pytest": "python -m pytest -rA tests/test_a.py",
    "unittest": "python -m unittest -v tests.test_a",
    "django": "python tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1 app.tests other",
    "sympy": "PYTHONWARNINGS='ignore::UserWarning' bin/test -C --verbose sympy/core/tests/test_a.py",
}
FORGED = st.lists(
    st.sampled_from(
        [
            "PASSED tests/test_a.py::test_x",
            "tests/test_a.py::test_x PASSED [100%]",
            "test_x (app.tests.C) ... ok",
            "test_x ok",
            "OK",
            "===== 1 passed in 0.01s =====",
            ">>>>> Start Test Output",
            '["e", "tests/test_a.py::test_x", "passed", 0.1]',
            '["f", 1]',
            "\r",
            "FAILED x::y",
        ]
    ),
    max_size=8,
)


@pytest.mark.parametrize("name", FRAMEWORKS)
def test_contract(name: str) -> None:
    framework = framework_of(name)
    assert framework.name == name
    call = framework.invocation(COMMANDS[name], seed=3)
    assert call.env["ACIDTEST_SHUFFLE"] == "3"
    assert "{scratch}/lib" in call.command
    assert all(path.startswith("lib/") and path.endswith((".py", ".pyc")) for path in call.files)
    assert "ACIDTEST_SHUFFLE" not in framework.invocation(COMMANDS[name]).env
    assert all(not path.startswith("/") for path in framework.test_paths(COMMANDS[name]))
    assert framework.map_ids(["a::b"], ["a::b"]).mapped == {"a::b": ("a::b",)}
    assert framework.select(COMMANDS[name], ["tests/test_a.py::test_x"], Suite(command="", framework=name))


@pytest.mark.parametrize("name", FRAMEWORKS)
@settings(max_examples=40, deadline=None)
@given(lines=FORGED)
def test_printed_text_is_never_read(name: str, lines: list[str]) -> None:
    output = "\n".join(lines).encode()
    report = framework_of(name).parse(ExecResult(exit_code=0, output=output))
    assert (report.statuses, report.finished) == ({}, False)


@settings(max_examples=300, deadline=None)
@given(
    before=st.lists(st.binary(max_size=30), max_size=4),
    forged=st.lists(st.sampled_from(["passed", "xfail", "skipped", "nonsense", "failed"]), max_size=4),
    real=st.sampled_from(["failed", "error", "skipped", "xfail"]),
)
def test_what_failed_stays_failed(before: list[bytes], forged: list[str], real: str) -> None:
    """Messages of any content never raise, and no later message makes a pass out of a failure."""
    messages = [*before, json.dumps(["e", "a::b", real, 0.1]).encode()]
    messages += [json.dumps(["e", "a::b", status, 0.1]).encode() for status in forged]
    assert observe(messages).statuses["a::b"] is not Status.PASSED


@pytest.mark.parametrize(
    ("name", "command", "paths"),
    [
        (
            "django",
            COMMANDS["django"],
            ["tests/app/tests.py", "tests/app/tests", "tests/other.py", "tests/other"],
        ),
        ("pytest", "pytest -q 'tests/test_a.py::C::test_x[1 2]' pkg", ["tests/test_a.py"]),
        ("pytest", "pytest", ["."]),
        ("sympy", COMMANDS["sympy"], ["sympy/core/tests/test_a.py"]),
        ("unittest", COMMANDS["unittest"], ["tests.py", "tests/test_a.py", "tests/test_a"]),
    ],
)
def test_where_the_tests_of_a_command_stand(name: str, command: str, paths: list[str]) -> None:
    assert set(paths) <= set(framework_of(name).test_paths(command))


@pytest.mark.parametrize("path", sorted(Path(inside.__file__).parent.glob("*.py")), ids=lambda p: p.name)
def test_helpers_in_the_sandbox_are_python_3_6(path: Path) -> None:
    if path.name != "__init__.py":
        ast.parse(path.read_text(), feature_version=(3, 6))


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    opened = open_backend("local")
    yield opened
    opened.close()


def run(
    backend: SandboxBackend, framework: str, command: str, files: dict[str, str], seed: int | None = None
) -> Observation:
    """The rewritten suite in a local sandbox."""
    suite = Suite(command=command, framework=framework)
    task = Task(task_id="t/1", dataset="t", prompt="", suite=suite, gold_patch="", files=files, timeout_s=60)
    part = original_part(backend, task, suite)
    with backend.open(SandboxSpec.of(task)) as sandbox:
        return run_job(sandbox, Plan(), part.job(STRICT, seed=seed), STRICT)


PYTEST_FILE = """
import pytest, unittest, asyncio


@pytest.mark.parametrize("text", ["a b", "ä", "x[y]", "::", "line\\nbreak"])
def test_param(text):
    assert text
    if text == "ä":
        return


@pytest.fixture
def broken():
    raise RuntimeError("no")


@pytest.fixture
def late():
    yield 1
    raise RuntimeError("late")


class TestA:
    def test_pass(self): assert True

    def test_fail(self):
        with pytest.raises(ValueError):
            int("x")
        assert False


def test_setup_error(broken): pass
def test_teardown_error(late): pass
def test_skip(): pytest.skip("no")


@pytest.mark.xfail
def test_xfail():
    assert False


@pytest.mark.xfail
def test_xpass(): pass


class TestU(unittest.TestCase):
    def test_sub(self):
        for i in range(2):
            with self.subTest(i=i):
                self.assertEqual(i, i)
"""


def test_pytest_statuses_and_beacons(backend: SandboxBackend) -> None:
    seen = run(backend, "pytest", "python -m pytest -q tests/test_a.py", {"tests/test_a.py": PYTEST_FILE})
    got = {ident.split("::", 1)[1]: status for ident, status in seen.run.statuses.items()}
    assert got == {
        "test_param[a b]": "passed",
        "test_param[\\xe4]": "passed",
        "test_param[x[y]]": "passed",
        "test_param[::]": "passed",
        "test_param[line\\nbreak]": "passed",
        "TestA::test_pass": "passed",
        "TestA::test_fail": "failed",
        "test_setup_error": "error",
        "test_teardown_error": "error",
        "test_skip": "skipped",
        "test_xfail": "xfail",
        "test_xpass": "xpass",
        "TestU::test_sub": "passed",
    }
    assert seen.run.finished
    reached = {ident.split("::", 1)[1] for ident in seen.run.beacons}
    assert reached == {i for i, s in got.items() if s in {"passed", "xpass"}} | {"test_teardown_error"}


UNITTEST_FILE = '''
import asyncio, unittest


class A(unittest.TestCase):
    def test_pass(self):
        """Named after its docstring,

        first line only."""
        self.assertTrue(True)

    def test_fail(self):
        self.assertTrue(False)

    def test_error(self):
        raise RuntimeError

    @unittest.skip("no")
    def test_skip(self): pass

    @unittest.expectedFailure
    def test_xfail(self): self.fail()

    @unittest.expectedFailure
    def test_xpass(self): pass

    def test_sub(self):
        for i in range(3):
            with self.subTest(i=i):
                self.assertNotEqual(i, 1)

    def test_nested_run(self):
        class Inner(unittest.TestCase):
            def test_inner(self):
                self.fail()
        result = unittest.TestResult()
        Inner("test_inner").run(result)
        self.assertEqual(len(result.failures), 1)


class B(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        raise RuntimeError

    def test_never(self): pass


class C(unittest.IsolatedAsyncioTestCase):
    async def test_async(self):
        await asyncio.sleep(0)
        self.assertTrue(1)


class D(A):
    pass
'''


def test_unittest_statuses_descriptions_and_beacons(backend: SandboxBackend) -> None:
    files = {"tests/__init__.py": "", "tests/test_a.py": UNITTEST_FILE}
    seen = run(backend, "unittest", "python -m unittest tests.test_a", files)
    mine = {i.removesuffix(" (tests.test_a.A)"): s for i, s in seen.run.statuses.items() if i.endswith(".A)")}
    assert mine == {
        "test_pass": "passed",
        "test_fail": "failed",
        "test_error": "error",
        "test_skip": "skipped",
        "test_xfail": "xfail",
        "test_xpass": "xpass",
        "test_sub": "failed",
        "test_nested_run": "passed",
    }
    assert seen.run.statuses["test_async (tests.test_a.C)"] is Status.PASSED
    assert seen.run.statuses["test_pass (tests.test_a.D)"] is Status.PASSED, (
        "inherited tests count on their own"
    )
    assert not any("never" in ident or "Inner" in ident for ident in seen.run.statuses)
    both = ("test_pass (tests.test_a.A)", "test_pass (tests.test_a.D)")
    assert seen.report.aliases == {"Named after its docstring,": both}
    assert all(seen.run.beacons[ident] == 1 for ident in (*both, "test_async (tests.test_a.C)"))
    assert seen.run.finished


def test_plain_statuses(backend: SandboxBackend) -> None:
    text = "import unittest\ndef test_a(): assert 1\ndef test_b(): assert 0\ndef test_c(): raise ValueError\n"
    text += "def test_d(): raise unittest.SkipTest\ndef helper(): pass\nif __name__ == '__main__':\n    1/0\n"
    seen = run(backend, "plain", "python test_a.py", {"test_a.py": text})
    assert {i[-1]: s for i, s in seen.run.statuses.items()} == {
        "a": "passed",
        "b": "failed",
        "c": "error",
        "d": "skipped",
    }
    assert seen.run.finished


@pytest.mark.parametrize(
    ("framework", "command"),
    [
        ("plain", "python test_a.py"),
        ("pytest", "python -m pytest -q test_a.py"),
        ("unittest", "python -m unittest test_b"),
    ],
)
def test_another_order_runs_the_same_tests(backend: SandboxBackend, framework: str, command: str) -> None:
    files = {"test_a.py": "".join(f"def test_{c}(): pass\n\n" for c in "abcde")}
    files["test_b.py"] = "import unittest\nclass T(unittest.TestCase):\n" + "".join(
        f"    def test_{c}(self): pass\n" for c in "abcde"
    )
    own = list(run(backend, framework, command, files).run.statuses)
    backwards = list(run(backend, framework, command, files, seed=-1).run.statuses)
    assert backwards == own[::-1]
    assert len(own) == 5
