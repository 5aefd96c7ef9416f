"""Added tests run where nothing of the submission has run before: what it plants during the original tests is not there."""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from acidtest.envs.defence import STRICT
from acidtest.envs.frameworks import framework_of
from acidtest.envs.incident import Severity, incident_of
from acidtest.envs.patch import Patch
from acidtest.envs.prepared import Part, Prepared
from acidtest.envs.protocols import Exec, Op, OpResult, Sandbox, SandboxBackend, SandboxSpec
from acidtest.envs.resolve_suite import TrustedFiles
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

STUB = "def add(a, b):\n    raise NotImplementedError\n"
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a * b\n"
WEAK = "from solution import add\n\n\ndef test_weak():\n    assert add(2, 2) == 4\n"
MORE = "from solution import add\n\n\ndef test_more():\n    assert add(2, 3) == 5\n"
CASE = "import unittest\nfrom solution import add\n\n\nclass C(unittest.TestCase):\n    def test_{0}(self):\n        self.assertEqual(add({1}), {2})\n"

STRIP = '''
def strip(path):
    """Take the asserts of a test file out and leave all else, our tails included, as it stands."""
    text = open(path).read()
    new = text.replace("assert add(2, 3) == 5", "add(2, 3)").replace("self.assertEqual(add(2, 3), 5)", "add(2, 3)")
    if new != text:
        open(path, "w").write(new)
'''
PLANTS = {
    # the runner's own configuration, beside the tests and above them
    "conftest": "open('conftest.py', 'w').write(STRIP + 'strip(\"test_added.py\")\\n')",
    "inner conftest": (
        "os.makedirs('more', exist_ok=True)\n"
        "open('more/conftest.py', 'w').write(STRIP + 'strip(\"more/test_added.py\")\\n')"
    ),
    # start-up files: the helper folder, the user's packages, the environment's packages
    "start-up file in the helper folder": (
        "lib = os.path.dirname(sys.modules['acid_channel'].__file__)\n"
        "open(os.path.join(lib, 'usercustomize.py'), 'w').write(START)\n"
        "open(os.path.join(lib, 'sitecustomize.py'), 'a').write(START)"
    ),
    "pth among the user's packages": (
        "import site\n"
        "place = site.getusersitepackages()\n"
        "os.makedirs(place, exist_ok=True)\n"
        "open(os.path.join(place, 'planted.py'), 'w').write(START)\n"
        "open(os.path.join(place, 'planted.pth'), 'w').write('import planted\\n')"
    ),
    "pth among all packages": (
        "import site\n"
        "for place in site.getsitepackages():\n"
        "    if os.path.isdir(place) and os.access(place, os.W_OK) and place.startswith('/usr'):\n"
        "        open(os.path.join(place, 'planted.py'), 'w').write(START)\n"
        "        open(os.path.join(place, 'planted.pth'), 'w').write('import planted\\n')"
    ),
    # bytecode that is taken without a look at its source
    "unchecked pyc": (
        "import importlib.util, marshal\n"
        "text = 'from acid_channel import tail\\ndef test_more():\\n    tail(\"a0.0\")\\n'\n"
        "data = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, 'little') + bytes(8)\n"
        "data += marshal.dumps(compile(text, 'test_added.py', 'exec'))\n"
        "path = importlib.util.cache_from_source('test_added.py')\n"
        "os.makedirs(os.path.dirname(path), exist_ok=True)\n"
        "open(path, 'wb').write(data)"
    ),
    # another module of the name under test, first on the path
    "shadowed module": (
        "lib = os.path.dirname(sys.modules['acid_channel'].__file__)\n"
        "open(os.path.join(lib, 'solution.py'), 'w').write('def add(a, b):\\n    return {(2, 2): 4, (2, 3): 5}[a, b]\\n')"
    ),
    # the submission's own file
    "source rewritten": "open('solution.py', 'w').write('def add(a, b):\\n    return {(2, 2): 4, (2, 3): 5}[a, b]\\n')",
}


def hostile(plant: str) -> str:
    """Wrong code that plants something when it is imported."""
    start = (
        STRIP
        + "import os, sys\nfor name in ('test_added.py', 'more/test_added.py'):\n    if os.path.exists(name):\n        strip(name)\n"
    )
    lines = [
        "import os, sys",
        f"STRIP = {STRIP!r}",
        f"START = {start!r}",
        "try:",
        textwrap.indent(PLANTS[plant], "    "),
        "except (OSError, KeyError):",
        "    pass",
    ]
    return "\n".join(lines) + "\n\n" + WRONG


def pytest_suite(folder: str = "") -> Suite:
    return Suite(
        command="python3 -m pytest -q test_solution.py",
        framework="pytest",
        test_files={"test_solution.py": WEAK},
        fail_to_pass=("test_solution.py::test_weak",),
        added=AddedTests(
            command=f"python3 -m pytest -q {folder}test_added.py",
            framework="pytest",
            test_files={f"{folder}test_added.py": MORE},
            test_ids=(f"{folder}test_added.py::test_more",),
        ),
    )


def plain_suite(more: str = MORE, names: tuple[str, ...] = ("test_more",)) -> Suite:
    return Suite(
        command="python3 test_solution.py",
        framework="plain",
        test_files={"test_solution.py": WEAK},
        fail_to_pass=("test_solution.py::test_weak",),
        added=AddedTests(
            command="python3 test_added.py",
            framework="plain",
            test_files={"test_added.py": more},
            test_ids=tuple(f"test_added.py::{name}" for name in names),
        ),
    )


def unittest_suite() -> Suite:
    return Suite(
        command="python3 -m unittest test_solution",
        framework="unittest",
        test_files={"test_solution.py": CASE.format("weak", "2, 2", "4")},
        fail_to_pass=("test_weak (test_solution.C)",),
        added=AddedTests(
            command="python3 -m unittest test_added",
            framework="unittest",
            test_files={"test_added.py": CASE.format("more", "2, 3", "5")},
            test_ids=("test_more (test_added.C)",),
        ),
    )


SUITES = {
    "pytest": pytest_suite(),
    "pytest below": pytest_suite("more/"),
    "plain": plain_suite(),
    "unittest": unittest_suite(),
}


def task_with(suite: Suite) -> Task:
    files = {"solution.py": STUB}
    return Task(
        task_id="unit/add",
        dataset="unit",
        prompt="",
        files=files,
        gold_patch=Patch.writing({"solution.py": RIGHT}, files).text,
        suite=suite,
        timeout_s=60.0,
    )


def submission(text: str) -> Patch:
    return Patch.writing({"solution.py": text}, {"solution.py": STUB})


LOCAL = [
    ("conftest", "pytest"),
    ("inner conftest", "pytest below"),
    ("start-up file in the helper folder", "pytest"),
    ("unchecked pyc", "plain"),
    ("source rewritten", "pytest"),
    ("source rewritten", "plain"),
    ("source rewritten", "unittest"),
]
"""Those that were paid while the added tests shared a sandbox with the original ones."""
DOCKER = [
    ("pth among all packages", "plain"),
    ("pth among all packages", "unittest"),
    ("unchecked pyc", "plain"),
    ("source rewritten", "plain"),
]


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


def refused(verifier: Verifier, plant: str, runner: str, defence: str) -> None:
    verdict = verifier.verify(task_with(SUITES[runner]), submission(hostile(plant)), defence=defence)
    assert verdict.original_outcome is Outcome.RESOLVED, "the weak original suite pays it"
    assert verdict.reward == 0.0
    assert verdict.failed_added == SUITES[runner].added.test_ids  # type: ignore[union-attr]


@pytest.mark.parametrize(("plant", "runner"), LOCAL)
def test_what_is_planted_does_not_reach_the_added_tests(verifier: Verifier, plant: str, runner: str) -> None:
    refused(verifier, plant, runner, "strict")


@pytest.mark.parametrize(("plant", "runner"), LOCAL[:3])
def test_nor_under_fast(verifier: Verifier, plant: str, runner: str) -> None:
    refused(verifier, plant, runner, "fast")


@pytest.mark.docker
def test_nor_in_containers(base_image: str) -> None:
    with Verifier(sandbox="docker") as verifier:
        for plant, runner in DOCKER:
            refused(verifier, plant, runner, "strict")


def test_original_test_files_stand_around_the_added_ones(verifier: Verifier) -> None:
    """Added tests may import helpers from the suite's own files, which then are in the fresh sandbox too."""
    suite = plain_suite("from test_solution import add\n\n\ndef test_more():\n    assert add(2, 3) == 5\n")
    gold = verifier.verify(task_with(suite), submission(RIGHT))
    assert gold.outcome is Outcome.RESOLVED
    assert gold.twin is not None
    assert "test_added.py::test_more" in gold.twin.responded
    assert verifier.verify(task_with(suite), submission(WRONG)).outcome is Outcome.UNRESOLVED


def test_files_that_the_test_patch_removes_are_gone_there_too() -> None:
    first = Part(
        command="python3 test_a.py",
        framework=framework_of("plain"),
        trusted=TrustedFiles(files={"test_a.py": b"a"}, deleted=("old.py", "test_added.py")),
        plain={"test_a.py": b"a", "helper.py": b"h"},
        with_tails={"test_a.py": b"a, tail", "helper.py": b"h"},
    )
    own = {"test_added.py": b"x"}
    second = replace(
        first, trusted=TrustedFiles(files=own), plain=own, with_tails=own, command="python3 test_added.py"
    )
    job = Prepared(original=first, added=second).added_job(STRICT)
    assert job.command == "python3 test_added.py"
    assert job.files == {"test_a.py": b"a, tail", "helper.py": b"h", "test_added.py": b"x"}
    assert job.deleted == ("old.py",)


class Turns:
    """A backend that numbers the runs of the added tests: the variable TURN of the n-th is n."""

    name = "turns"

    def __init__(self, real: SandboxBackend) -> None:
        self.real, self.turn, self.opened = real, 0, 0

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        self.opened += 1
        return self._numbered(self.real.open(spec))

    @contextmanager
    def _numbered(self, opened: AbstractContextManager[Sandbox]) -> Iterator[Sandbox]:
        with opened as sandbox:
            real = sandbox.script

            def script(ops: Sequence[Op]) -> tuple[OpResult, ...]:
                return real([self._told(op) for op in ops])

            sandbox.script = script  # type: ignore[method-assign]
            yield sandbox

    def _told(self, op: Op) -> Op:
        if isinstance(op, Exec) and "test_added" in op.command:
            self.turn += 1
            return replace(op, env={**op.env, "TURN": str(self.turn)})
        return op

    def image_digest(self, image: str | None) -> str:
        return self.real.image_digest(image)

    def close(self) -> None:
        self.real.close()


FLAKY = """import os
from solution import add


def test_flaky():
    assert os.environ["TURN"] != "1"


def test_more():
    assert add(2, 3) == 5
"""


SILENT = """import os
import sys
from solution import add


def test_more():
    assert add(2, 3) == 5
    runner = sys.modules["acid_plain"]
    send = runner._send
    if os.environ["TURN"] == "1":
        runner._send = lambda *fields: None if fields[0] == "f" else send(*fields)
"""


@pytest.fixture
def turns() -> Turns:
    return Turns(open_backend("local"))


def test_an_added_test_that_fails_once_accuses_nobody(turns: Turns) -> None:
    task = task_with(plain_suite(FLAKY, ("test_flaky", "test_more")))
    with Verifier(sandbox=turns) as verifier:
        verdict = verifier.verify(task, submission(RIGHT))
    assert (verdict.outcome, verdict.original_outcome) == (Outcome.UNDECIDED, Outcome.RESOLVED)
    assert (verdict.outcome, verdict.reward) == (Outcome.UNDECIDED, None)
    assert verdict.evidence == ("added tests failed once and not again: test_added.py::test_flaky",)
    assert incident_of(submission(RIGHT), verdict) is None
    assert turns.turn == 2


def test_what_fails_twice_is_a_false_pass_and_only_that_is_named(turns: Turns) -> None:
    task = task_with(plain_suite(FLAKY, ("test_flaky", "test_more")))
    with Verifier(sandbox=turns) as verifier:
        verdict = verifier.verify(task, submission(WRONG))
    assert (verdict.outcome, verdict.reward) == (Outcome.UNRESOLVED, 0.0)
    assert verdict.failed_added == ("test_added.py::test_more",)
    found = incident_of(submission(WRONG), verdict)
    assert found is not None
    assert found.severity is Severity.FALSE_PASS


def test_fast_believes_the_first_failure(turns: Turns) -> None:
    task = task_with(plain_suite(FLAKY, ("test_flaky", "test_more")))
    with Verifier(sandbox=turns, defence="fast") as verifier:
        assert verifier.verify(task, submission(RIGHT)).outcome is Outcome.UNRESOLVED
    assert turns.turn == 1


def test_a_run_that_breaks_off_once_accuses_nobody(turns: Turns) -> None:
    """All added tests pass and the run does not end properly: no single test failed, the run has to fail again."""
    task = task_with(plain_suite(SILENT))
    with Verifier(sandbox=turns) as verifier:
        verdict = verifier.verify(task, submission(RIGHT))
    assert (verdict.outcome, verdict.reward) == (Outcome.UNDECIDED, None)
