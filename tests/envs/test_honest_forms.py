"""Correct patches of odd form are paid: CRLF files, bytes that are no UTF-8, folders and packages with unlucky names."""

from __future__ import annotations

from dataclasses import replace

import acidtest as at
from acidtest.envs.defence import STRICT
from acidtest.envs.diff_policy import plan
from acidtest.envs.patch import Patch
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.submission import read_submission
from acidtest.envs.task import Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier
from acidtest.training_hooks.scorer import Scorer

STUB = "def add(a, b):\n    raise NotImplementedError\n"
SOLVED = "def add(a, b):\n    return a + b\n"
CHECK = "from solution import add\n\n\ndef test_a():\n    assert add(1, 2) == 3\n"
SUITE = Suite(
    command="python test_a.py",
    framework="plain",
    test_files={"test_a.py": CHECK},
    fail_to_pass=("test_a.py::test_a",),
)


def make_task(stub: str, solved: str) -> Task:
    files = {"solution.py": stub}
    gold = Patch.writing({"solution.py": solved}, files).text
    return Task(task_id="unit/add", dataset="unit", prompt="", files=files, gold_patch=gold, suite=SUITE)


def test_a_diff_of_a_crlf_file_is_paid_as_text_too() -> None:
    task = make_task(STUB.replace("\n", "\r\n"), SOLVED.replace("\n", "\r\n"))
    for text in (task.gold_patch, f"Done:\n```diff\n{task.gold_patch}```\n"):
        assert read_submission(task, text).patch.text == task.gold_patch
    with Verifier(sandbox="local") as verifier:
        assert verifier.verify(task, read_submission(task, task.gold_patch).patch).resolved


def test_line_ends_of_the_transport_still_become_newlines() -> None:
    task = make_task(STUB, SOLVED)
    text = task.gold_patch.replace("\n", "\r\n")
    assert read_submission(task, text).patch.text == task.gold_patch
    fenced = f"Here:\r\n```diff\r\n{text}```\r\n"
    assert read_submission(task, fenced).patch.text == task.gold_patch


def test_bytes_that_are_no_utf8_are_judged_like_any_other() -> None:
    task = make_task(STUB, SOLVED)
    with Verifier(sandbox="local") as verifier:
        more = Patch.writing({"solution.py": SOLVED, "data\udcff.txt": "\udcfe\n"}, dict(task.files))
        assert verifier.verify(task, more).resolved
        assert verifier.verify(task, Patch("\udcff")).outcome is Outcome.PATCH_REJECTED


def test_crlf_and_lf_are_two_questions() -> None:
    task = make_task(STUB, SOLVED)
    with_cr = Patch(task.gold_patch.replace("add(a, b):\n", "add(a, b):\r\n"))
    script = ScriptedVerifier(lambda t, p: Outcome.UNRESOLVED if "\r" in p.text else Outcome.RESOLVED)
    with Scorer([task], verifier=script) as scorer:
        rewards = [s.reward for s in scorer.score([(task, with_cr), (task, Patch(task.gold_patch))])]
    assert rewards == [0.0, 1.0]


def notices(task: at.Task, path: str) -> list[str]:
    change = Patch.writing({path: "x = 2\n"}, {path: "x = 1\n"})
    return [n.path for n in plan(task, change, task.suite, STRICT).notices]


def test_a_package_that_gold_works_in_shadows_nothing() -> None:
    task = make_task(STUB, SOLVED)
    assert notices(task, "numpy/core/b.py") == ["numpy/core/b.py"]
    assert notices(task, "calendar/views.py") == ["calendar/views.py"]
    one = {"numpy/core/a.py": "x = 1\n", "calendar/a.py": "x = 1\n", "pytest/a.py": "x = 1\n"}
    new = dict.fromkeys(one, "x = 2\n")
    theirs = replace(task, gold_patch=Patch.writing(new, one).text, metadata={"repo": "numpy/numpy"})
    assert notices(theirs, "numpy/core/b.py") == notices(theirs, "calendar/views.py") == []
    assert notices(theirs, "numpy/testing/utils.py") == ["numpy/testing/utils.py"]
    assert notices(theirs, "pytest/b.py") == ["pytest/b.py"]


def test_a_folder_called_env_is_no_environment() -> None:
    task = make_task(STUB, SOLVED)
    assert notices(task, "pkg/env/loader.py") == []
    for path in ("env/bin/python", "a/env/lib/x.py", "a/.venv/x.py", "env/pyvenv.cfg"):
        assert notices(task, path) == [path]
