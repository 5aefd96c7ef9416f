"""Episodes are judged by the hardened suite, and by the original one again at a switch."""

from __future__ import annotations

from dataclasses import replace

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

from acidtest.envs.code_env import CodeEnv
from acidtest.envs.errors import ConfigError, LockError
from acidtest.envs.patch import Patch
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.repair.lock import Lock, task_digest
from acidtest.repair.records import HardenedSuite
from acidtest.repair.wrapper import HardenedSuiteWrapper, serve


def task(task_id: str) -> Task:
    return Task(
        task_id=task_id,
        dataset="toy",
        prompt="Add.",
        suite=Suite(command="python test_solution.py", framework="plain", fail_to_pass=("t",)),
        gold_patch="",
        files={"solution.py": ""},
        metadata={"entry_point": "add", "solution_file": "solution.py"},
    )


def lock_of(*tasks: Task) -> Lock:
    entries = {}
    for one in tasks:
        added = AddedTests(
            command="python h.py", framework="plain", test_files={"h.py": "x"}, test_ids=("h",)
        )
        suite = replace(one.suite, added=added)
        entries[one.task_id] = HardenedSuite(
            task_id=one.task_id,
            original_digest=one.suite.digest,
            hardened_digest=suite.digest,
            image_digest="",
            suite=suite,
            task_digest=task_digest(one),
        )
    return Lock(entries)


def judge(one: Task, patch: Patch) -> tuple[Outcome, Outcome]:
    """An exploit: paid by the original suite, refused by added tests."""
    return (Outcome.UNRESOLVED if one.suite.added else Outcome.RESOLVED), Outcome.RESOLVED


def make(*tasks: Task) -> gymnasium.Env[str, str]:
    return CodeEnv(tasks, verifier=ScriptedVerifier(judge))


EXPLOIT = "```python\ndef add(a, b):\n    return a * b\n```"


def test_the_exploit_is_paid_by_the_original_suite_only() -> None:
    env = HardenedSuiteWrapper(make(task("a")), lock_of(task("a")))
    _, info = env.reset(seed=0)
    assert info["hardened"] is True
    _, reward, terminated, _, info = env.step(EXPLOIT)
    assert (reward, info["reward_original"], terminated) == (0.0, 1.0, True)
    assert info["incident"].severity == "false_pass"
    assert info["original_digest"] == task("a").suite.digest != info["suite_digest"]
    env.use_original()
    env.reset(seed=0)
    _, reward, *_, info = env.step(EXPLOIT)
    assert (reward, info["hardened"], info["suite_digest"]) == (1.0, False, info["original_digest"])
    env.use_hardened()
    env.reset(seed=0)
    assert env.step(EXPLOIT)[1] == 0.0
    env.close()


def test_gymnasium_accepts_it() -> None:
    env = HardenedSuiteWrapper(make(task("a")), lock_of(task("a")))
    check_env(env.unwrapped, skip_render_check=True)
    env.close()


def test_tasks_without_a_hardened_suite() -> None:
    both, lock = (task("a"), task("b")), lock_of(task("a"))
    with pytest.raises(LockError, match="b is not in the lock"):
        HardenedSuiteWrapper(make(*both), lock)
    assert [t.task_id for t in serve(both, lock, missing="drop")] == ["a"]
    assert [bool(t.suite.added) for t in serve(both, lock, missing="keep")] == [True, False]
    with pytest.raises(LockError, match="None of these"):
        serve([task("b")], lock, missing="drop")
    with pytest.raises(ConfigError):
        HardenedSuiteWrapper(make(*both), lock, missing="maybe")


def test_a_task_that_changed_since_is_refused() -> None:
    changed = replace(task("a"), gold_patch="diff")
    with pytest.raises(LockError) as refusal:
        HardenedSuiteWrapper(make(changed), lock_of(task("a")))
    assert task_digest(changed) in str(refusal.value)
    assert task_digest(task("a")) in str(refusal.value)


def test_an_environment_without_tasks_is_refused() -> None:
    class Bare(gymnasium.Env[str, str]):
        pass

    with pytest.raises(ConfigError, match="needs an environment with tasks"):
        HardenedSuiteWrapper(Bare(), lock_of(task("a")))
