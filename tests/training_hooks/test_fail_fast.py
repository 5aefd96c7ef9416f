"""In training the added tests end at the first failure where only the whole verdict is paid, and nowhere else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import acidtest as at
from acidtest.envs.defence import FAST, STRICT, Defence
from acidtest.envs.task_env import open_verifier
from acidtest.envs.verdict import Verdict
from acidtest.training_hooks.incidents import text_of
from acidtest.training_hooks.scorer import Scorer

from .weak_add import SUBMISSIONS, hardened


def one_by_one() -> at.Task:
    """The hardened task with its added asserts as two tests."""
    task = hardened()
    assert task.suite.added is not None
    text = (
        "from solution import add\n\n\ndef test_more():\n    assert add(2, 3) == 5\n\n\n"
        "def test_zero():\n    assert add(0, 7) == 7\n"
    )
    names = ("test_added.py::test_more", "test_added.py::test_zero")
    added = replace(task.suite.added, test_files={"test_added.py": text}, test_ids=names)
    return task.with_suite(replace(task.suite, added=added))


def paid(task: at.Task, verdict: Verdict) -> float:
    return 1.0 if verdict.resolved else 0.0


def in_scorer(reward: Any, **options: Any) -> Defence:
    with Scorer([hardened()], reward=reward, sandbox="fake", **options) as scorer:
        return scorer._judge().defence  # type: ignore[attr-defined, no-any-return]


def in_env(reward: Any, **options: Any) -> Defence:
    env = at.make([hardened()], reward=reward, sandbox="fake", **options)
    try:
        return env.unwrapped.verifier.defence  # type: ignore[no-any-return]
    finally:
        env.close()


def in_vector(reward: Any, **options: Any) -> Defence:
    envs = at.make([hardened()], num_envs=2, reward=reward, sandbox="fake", **options)
    try:
        return envs.envs[1].unwrapped.verifier.defence  # type: ignore[no-any-return]
    finally:
        envs.close()


@pytest.mark.parametrize("where", [in_scorer, in_env, in_vector])
def test_it_is_on_where_only_the_whole_verdict_is_paid(where: Callable[..., Defence]) -> None:
    assert where("resolved") == replace(STRICT, fail_fast=True)
    assert where("resolved", defence="fast") == replace(FAST, fail_fast=True)
    assert where("resolved", defence=STRICT) == STRICT, "a Defence is taken as it is"
    assert where("fraction") == STRICT
    assert where(paid, defence="fast") == FAST


def test_outside_of_training_it_is_off() -> None:
    with at.Verifier(sandbox="fake") as verifier:
        assert not verifier.defence.fail_fast
    opened: Any = open_verifier("fraction", sandbox="fake")
    opened.close()
    assert not opened.defence.fail_fast


def test_the_same_rewards_and_incidents_with_and_without() -> None:
    task = one_by_one()
    asks = [(task.task_id, f"```python\n{text}```") for text in SUBMISSIONS.values()]
    with Scorer([task], sandbox="local") as short, Scorer([task], sandbox="local", defence=STRICT) as whole:
        quick, full = short.score(asks), whole.score(asks)
    assert [score.reward for score in quick] == [score.reward for score in full]
    assert [score.severity for score in quick] == [score.severity for score in full]
    exploit = quick[list(SUBMISSIONS).index("exploit")]
    assert exploit.incident is not None
    assert exploit.incident.failed_added == ("test_added.py::test_more",)
    text = text_of(exploit.incident)
    assert "refused by added test test_added.py::test_more" in text
    assert "not run after that: 1 added tests" in text
    assert "test_zero" not in text
