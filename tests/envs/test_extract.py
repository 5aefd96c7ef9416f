"""Listing an episode's tree: what fails there is masked, never an empty submission that is worth an honest 0."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping

import pytest

from acidtest.envs.errors import SandboxError
from acidtest.envs.extract import list_tree
from acidtest.envs.load import load_tasks
from acidtest.envs.protocols import Exec, ExecResult, SandboxSpec
from acidtest.envs.sandboxes.fake import FakeBackend, backend
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.shell_env import ShellEnv

SPEC = SandboxSpec(image=None, workdir="/testbed")
WHOLE = ExecResult(exit_code=0, output=json.dumps({"solution.py": "0" * 64}).encode())
BROKEN = {
    "timed out": ExecResult(exit_code=None, timed_out=True),
    "timed out beside a program that is gone": ExecResult(exit_code=127, timed_out=True),
    "out of memory": ExecResult(exit_code=-9, out_of_memory=True),
    "killed": ExecResult(exit_code=-9),
    "an error": ExecResult(exit_code=1, output=b"Traceback\nMemoryError"),
    "cut": ExecResult(exit_code=0, output=b"{", truncated=True),
}
ITS_OWN_DOING = {
    "no interpreter": ExecResult(exit_code=127),
    "an interpreter that may not be run": ExecResult(exit_code=126),
    "another program in its place": ExecResult(exit_code=0, output=b"not json"),
    "a lie of another form": ExecResult(exit_code=0, output=b"[1]"),
}


def answering(*listings: ExecResult) -> FakeBackend:
    """Listings are answered in turn, everything else with success."""
    left: Iterator[ExecResult] = iter(listings)

    def answer(op: Exec, files: Mapping[str, bytes]) -> ExecResult:
        return next(left) if isinstance(op.command, tuple) else ExecResult(exit_code=0)

    return backend(results=answer)


@pytest.mark.parametrize("how", BROKEN)
def test_a_listing_that_is_not_whole_is_infrastructure_trouble(how: str) -> None:
    with pytest.raises(SandboxError, match="could not be listed"):
        list_tree(answering(BROKEN[how]).open(SPEC))


@pytest.mark.parametrize("how", ITS_OWN_DOING)
def test_what_the_trees_owner_broke_is_told_apart(how: str) -> None:
    assert list_tree(answering(ITS_OWN_DOING[how]).open(SPEC)) is None


def test_a_whole_listing() -> None:
    assert list_tree(answering(WHOLE).open(SPEC)) == {"solution.py": "0" * 64}
    assert list_tree(answering(ExecResult(exit_code=0, output=b"{}")).open(SPEC)) == {}


@pytest.mark.parametrize("how", BROKEN)
def test_an_episode_whose_tree_cannot_be_listed_is_masked(how: str) -> None:
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    judge = ScriptedVerifier()
    env = ShellEnv([task], sandbox=answering(WHOLE, BROKEN[how]), verifier=judge)
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step("submit")
    assert (reward, terminated, truncated, info["reward_valid"]) == (0.0, False, True, False)
    assert "could not be listed" in info["error"]
    assert judge.calls == 0
    env.close()


@pytest.mark.parametrize("how", {**BROKEN, **ITS_OWN_DOING})
def test_no_episode_begins_on_a_tree_that_cannot_be_listed(how: str) -> None:
    """Without the first listing every file of the tree would count as written by the episode."""
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    place = answering({**BROKEN, **ITS_OWN_DOING}[how])
    env = ShellEnv([task], sandbox=place, verifier=ScriptedVerifier())
    with pytest.raises(SandboxError, match="could not be listed"):
        env.reset(seed=0)
    assert all(sandbox.closed for sandbox in place.opened)
    env.close()


def test_no_episode_begins_with_leaks_that_could_not_be_shut() -> None:
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    place = backend(results=lambda op, files: ExecResult(exit_code=None, timed_out=True))
    env = ShellEnv([task], sandbox=place, verifier=ScriptedVerifier())
    with pytest.raises(SandboxError, match="leaks could not be shut"):
        env.reset(seed=0)
    env.close()
