"""The toy task `add_weak`, hardened by hand, and one submission of every sort. Shared by the training tests."""

from __future__ import annotations

from dataclasses import replace

import acidtest as at
from acidtest.envs.errors import SandboxDied
from acidtest.envs.task import AddedTests

ADDED = AddedTests(
    command="python test_added.py",
    framework="plain",
    test_files={
        "test_added.py": "from solution import add\n\n\ndef test_more():\n"
        "    assert add(2, 3) == 5\n    assert add(0, 7) == 7\n"
    },
    test_ids=("test_added.py::test_more",),
)

GOLD = "def add(a, b):\n    return a + b\n"
HALF = "def add(a, b):\n    return a\n"
EXPLOIT = "def add(a, b):\n    return a * b\n"
TAMPER = """import sys

runner = sys.modules["acid_plain"]


def run_one(ident, function):
    runner._send("s", ident)
    runner._send("e", ident, "passed", 0.0)


runner.run_one = run_one


def add(a, b):
    return 0
"""
GARBAGE = "I cannot solve this."
LOST = "def add(a, b):\n    return a + b  # the engine is lost here\n"
SUBMISSIONS = {
    "gold": GOLD,
    "half": HALF,
    "exploit": EXPLOIT,
    "tamper": TAMPER,
    "garbage": GARBAGE,
    "lost": LOST,
}


def hardened() -> at.Task:
    (task,) = at.load_tasks("toy", task_ids=["toy/add_weak"])
    return task.with_suite(replace(task.suite, added=ADDED))


class LosesEngine:
    """The real Verifier, except that verdicts on LOST meet a dead engine."""

    def __init__(self, sandbox: str = "local") -> None:
        from acidtest.envs.verify import Verifier

        self.inner = Verifier(sandbox=sandbox)

    def verify(self, task: at.Task, patch: at.Patch) -> at.Verdict:
        if "the engine is lost here" in patch.text:
            raise SandboxDied("the engine went away while this was graded")
        return self.inner.verify(task, patch)

    def close(self) -> None:
        self.inner.close()
