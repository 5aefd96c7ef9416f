"""Shared by the LLM tests: ten small real tasks, a script of answers, and a verifier that executes in this process."""

from __future__ import annotations

import sys
import types
from dataclasses import dataclass, field
from typing import Any

from acidtest.envs.datasets._functions import function_task
from acidtest.envs.patch import Patch
from acidtest.envs.run import Status, SuiteRun
from acidtest.envs.task import Suite, Task
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.verifiers.llm.scripted import Line, ScriptedModel
from acidtest.verifiers.mutation.apply import apply_diff
from acidtest.verifiers.source import SourceTree

CITATION = "Negative numbers count as zero."


def make_task(i: int) -> Task:
    """f<i>(x): weak tests never try a negative number, an error message is fixed by nothing."""
    head = f'def f{i}(x):\n    """Return x plus {i}. {CITATION}\n\n    Text raises ValueError.\n    """\n'
    guard = "    if isinstance(x, str):\n        raise ValueError('no text')\n"
    return function_task(
        task_id=f"mini/{i}",
        dataset="mini",
        prompt=f"Write f{i}.\n\n{head}",
        entry_point=f"f{i}",
        stub=head + "    raise NotImplementedError\n",
        gold=head + guard + f"    return max(x, 0) + {i}\n",
        test=f"from solution import f{i}\n\n\ndef test_check():\n    assert f{i}(1) == {i + 1}\n    assert f{i}(0) == {i}\n",
    )


GUARD = "    if isinstance(x, str):\n        raise ValueError('no text')\n"


def body(i: int, text: str, form: str = "edits") -> dict[str, Any]:
    """An answer that puts this body in, in one of the three forms."""
    if form == "edits":
        change: dict[str, Any] = {
            "edits": [
                {
                    "path": "solution.py",
                    "search": "    raise NotImplementedError",
                    "replace": text.rstrip("\n"),
                }
            ]
        }
    elif form == "files":
        stub = make_task(i).files["solution.py"]
        change = {
            "files": [
                {"path": "solution.py", "content": stub.replace("    raise NotImplementedError\n", text)}
            ]
        }
    else:
        plus = "".join("+" + line + "\n" for line in text.rstrip("\n").split("\n"))
        change = {
            "diff": "--- a/solution.py\n+++ b/solution.py\n@@ -99,3 +99,1 @@\n     Text raises ValueError.\n"
            f'     """\n-    raise NotImplementedError\n{plus}'
        }
    return {
        "kind": "S22",
        "description": "d",
        "wrong_behaviour": "negative",
        "wrong_input": f"f{i}(-5)",
        **change,
    }


def lines_of(i: int) -> list[Line]:
    """Round 1: one paid and provable, one refused. Round 2: a message (differs), a memorising one. Control: one."""
    task = f"mini/{i}"
    negative = f"from solution import f{i}\n\n\ndef test_negative():\n    assert f{i}(-5) == {i}\n"
    message = (
        f"from solution import f{i}\n\n\ndef test_message():\n    try:\n        f{i}('a')\n"
        "    except ValueError as error:\n        assert str(error) == 'no text'\n"
    )
    benign = {"description": "b", "suspect_behaviour": "negative", "suspect_input": f"f{i}(-1)"}
    control = body(i, GUARD + f"    return (x if x > 0 else 0) + {i}\n", "files")
    return [
        Line(task_id=task, answer=body(i, GUARD + f"    return x + {i}\n"), label="incorrect", test=negative,
             citation=CITATION, specified="yes"),
        Line(task_id=task, answer=body(i, GUARD + f"    return x - {i} - 1\n", "diff"), label="incorrect"),
        Line(task_id=task, answer=body(i, GUARD.replace("no text", "text!") + f"    return max(x, 0) + {i}\n", "files"),
             round=2, label="correct", test=message, specified="no"),
        Line(task_id=task, answer={**body(i, f"    return {{0: {i}, 1: {i + 1}}}.get(x, 99)\n"), "kind": "S11"},
             round=2, label="partial"),
        Line(task_id=task, answer={**benign, "files": control["files"]}, round=0, label="correct"),
    ]  # fmt: skip


def script_for(tasks: list[Task]) -> ScriptedModel:
    model = ScriptedModel()
    for i, task in enumerate(tasks, 1):
        tree = SourceTree(task)
        for line in lines_of(i):
            model.learn(line, tree)
        gold = Line(task_id=task.task_id, answer={}, label="correct", round=-1)
        from acidtest.verifiers.judge import shown_change

        model.say(shown_change(tree, Patch(task.gold_patch)), gold)
    return model


@dataclass
class InstantVerifier:
    """Executes a function task's tests in this process: real semantics, no isolation, for trusted test programs only."""

    backend: Any = None
    limits: Any = None
    executed: list[str] = field(default_factory=list)

    def verify(self, task: Task, patch: Patch, suite: Suite | None = None, *, defence: Any = None) -> Verdict:
        suite = suite or task.suite
        self.executed.append(f"{task.task_id}:{suite.digest}:{patch.digest}")
        files = {**task.files, **(apply_diff(dict(task.files), patch.text) if patch.text else {})}
        statuses: dict[str, Status] = {}
        log = ""
        for ident in suite.fail_to_pass:
            path, name = ident.split("::")
            module = types.ModuleType("solution")
            try:
                exec(compile(files["solution.py"], "solution.py", "exec"), module.__dict__)
                sys.modules["solution"] = module
                scope: dict[str, Any] = {"__name__": "tests"}
                exec(compile(suite.test_files[path], path, "exec"), scope)
                scope[name]()
                statuses[ident] = Status.PASSED
            except Exception as error:
                statuses[ident] = Status.FAILED
                log += f"{name} failed: {type(error).__name__}: {error} in 0.12s at 0x7f00aabbccdd\n"
            finally:
                sys.modules.pop("solution", None)
        passed = bool(statuses) and all(s is Status.PASSED for s in statuses.values())
        outcome = Outcome.RESOLVED if passed else Outcome.UNRESOLVED
        return Verdict(
            task_id=task.task_id, patch_digest=patch.digest, suite_digest=suite.digest, outcome=outcome,
            original_outcome=outcome, statuses=statuses, run=SuiteRun(statuses=statuses, log=log),
        )  # fmt: skip
