"""CodeEnv against a scripted verifier: Gymnasium's contract, what `info` says, and how submissions are read."""

from __future__ import annotations

import subprocess
import sys
import warnings

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import acidtest as at
from acidtest.envs.code_env import CodeEnv
from acidtest.envs.errors import ConfigError, EngineUnavailable, UnknownName
from acidtest.envs.reward import Policy
from acidtest.envs.run import Status
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.spaces import TextSpace, clip
from acidtest.envs.submission import read_submission
from acidtest.envs.task import AddedTests
from acidtest.envs.verdict import Notice

STUB = 'from typing import List\n\n\ndef add(a, b):\n    """Sum."""\n'
GOLD = STUB + "    return a + b\n"


def make_task(task_id: str = "add", added: bool = False) -> at.Task:
    extra = AddedTests(
        command="x", framework="plain", test_files={}, test_ids=("added.py::test_a", "added.py::test_b")
    )
    suite = at.Suite(
        command="python test_solution.py",
        framework="plain",
        test_files={"test_solution.py": "def test_check():\n    assert True\n"},
        fail_to_pass=("test_solution.py::test_check",),
        added=extra if added else None,
    )
    return at.Task(
        task_id=task_id,
        dataset="unit",
        prompt=f"Write {task_id}.",
        suite=suite,
        gold_patch=at.Patch.writing({"solution.py": GOLD}, {"solution.py": STUB}).text,
        files={"solution.py": STUB},
        metadata={"entry_point": "add", "solution_file": "solution.py"},
    )


TASK = make_task()
PATCH = TASK.gold_patch


def env_with(answer: object, **options: object) -> CodeEnv:
    return CodeEnv([make_task(added=True)], verifier=ScriptedVerifier({PATCH: answer}), **options)  # type: ignore[arg-type,dict-item]


def one_step(env: CodeEnv, action: str = PATCH) -> tuple[float, dict[str, object]]:
    env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(action)
    assert (terminated, truncated) == (True, False)
    return float(reward), info


def test_check_env_passes_and_ids_are_registered() -> None:
    env = gymnasium.make(
        "acidtest/Code-v0", tasks=[make_task("a"), make_task("b")], verifier=ScriptedVerifier()
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    assert isinstance(env.unwrapped, CodeEnv)
    env.close()
    assert "acidtest/Shell-v0" in gymnasium.registry
    named = gymnasium.make("acidtest.envs:acidtest/Code-v0", tasks="toy", verifier=ScriptedVerifier())
    assert named.reset(seed=0)[1]["task_id"].startswith("toy/")
    named.close()


def test_import_is_light_and_registers_nothing_heavy() -> None:
    code = (
        "import sys, acidtest; heavy = {'docker','datasets','wandb','torch','anthropic','pandas','matplotlib','scipy'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_seed_decides_the_order_and_options_decide_the_task() -> None:
    env = CodeEnv([make_task(str(i)) for i in range(20)], verifier=ScriptedVerifier())
    first = [env.reset(seed=3)[1]["task_id"], *[env.reset()[1]["task_id"] for _ in range(6)]]
    again = [env.reset(seed=3)[1]["task_id"], *[env.reset()[1]["task_id"] for _ in range(6)]]
    assert first == again
    assert len(set(first)) > 2
    assert env.reset(options={"task_id": "7"})[1]["task_id"] == "7"
    assert env.reset(options={"index": 19})[1]["task_id"] == "19"
    with pytest.raises(UnknownName, match="nobody"):
        env.reset(options={"task_id": "nobody"})
    rows = CodeEnv([make_task("x"), make_task("y")], verifier=ScriptedVerifier(), order="sequential")
    assert [rows.reset()[1]["task_id"] for _ in range(3)] == ["x", "y", "x"]


def test_step_without_reset_and_step_twice_are_refused() -> None:
    env = env_with(at.Outcome.RESOLVED)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("")
    one_step(env)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("")


@pytest.mark.parametrize(
    ("answer", "reward", "valid", "severity"),
    [
        (at.Outcome.RESOLVED, 1.0, True, None),
        (at.Outcome.UNRESOLVED, 0.0, True, None),
        ((at.Outcome.UNRESOLVED, at.Outcome.RESOLVED), 0.0, True, "false_pass"),
        (at.Outcome.TAMPERED, 0.0, True, "tamper"),
        (at.Outcome.UNDECIDED, 0.0, False, None),
        (at.Outcome.TIMED_OUT, 0.0, True, None),
        (EngineUnavailable("no engine"), 0.0, False, None),
    ],
)
def test_what_each_outcome_pays(answer: object, reward: float, valid: bool, severity: str | None) -> None:
    paid, info = one_step(env_with(answer))
    assert (paid, info["reward_valid"]) == (reward, valid)
    incident = info["incident"]
    assert (incident and incident.severity) == severity  # type: ignore[attr-defined]
    if isinstance(answer, Exception):
        assert "no engine" in str(info["error"])
        assert info["verdict"] is None
    if severity == "false_pass":
        assert isinstance(incident, at.Incident)
        assert (info["reward_original"], info["reward_hardened"]) == (1.0, 0.0)
        assert incident.failed_added == ("added.py::test_a",)


def test_policy_by_severity_and_kind() -> None:
    fooled = (at.Outcome.UNRESOLVED, at.Outcome.RESOLVED)
    assert one_step(env_with(fooled, policy=Policy({"false_pass": -0.5})))[0] == -0.5
    assert one_step(env_with(fooled, policy=Policy({"false_pass": "original"})))[0] == 1.0
    assert one_step(env_with(fooled, policy=Policy({"false_pass": "log"})))[0] == 0.0
    assert (
        one_step(env_with(at.Outcome.TAMPERED, policy=Policy({"tamper": -1.0}, {"unclassified": -3})))[0]
        == -3.0
    )
    assert one_step(env_with(at.Outcome.TAMPERED, policy=Policy({"tamper": "log"})))[0] == 0.0
    assert one_step(env_with(at.Outcome.UNDECIDED, policy=Policy({"tamper": -1.0})))[0] == 0.0
    with pytest.raises(ConfigError):
        Policy({"tamper": "shout"})
    with pytest.raises(ConfigError):
        Policy({"no such severity": "zero"})
    with pytest.raises(ConfigError):
        Policy({"tamper": float("nan")})


def test_reward_modes() -> None:
    task = make_task(added=True)
    logged = Policy({"false_pass": "log"})

    def quarter(task: at.Task, verdict: at.Verdict) -> float:
        return 0.25 * len(verdict.statuses)

    two = at.Verdict(
        task_id="add",
        patch_digest="p",
        suite_digest="s",
        outcome=at.Outcome.UNRESOLVED,
        original_outcome=at.Outcome.RESOLVED,
        statuses={"test_solution.py::test_check": Status.PASSED},
        failed_added=("added.py::test_a",),
        notices=(Notice(kind="protected_path", path="conftest.py"),),
    )
    share = CodeEnv([task], verifier=ScriptedVerifier(default=two), reward="fraction", policy=logged)
    assert one_step(share)[0] == pytest.approx(2 / 3)
    own = CodeEnv([task], verifier=ScriptedVerifier(default=two), reward=quarter, policy=logged)
    assert one_step(own)[0] == 0.25
    masked = CodeEnv([task], verifier=ScriptedVerifier(default=two), reward=lambda t, v: None)
    assert one_step(masked)[1]["reward_valid"] is False
    with pytest.raises(ConfigError):
        one_step(CodeEnv([task], verifier=ScriptedVerifier(default=two), reward="best"))
    with pytest.raises(ConfigError):
        one_step(CodeEnv([task], verifier=ScriptedVerifier(default=two), reward=lambda t, v: float("inf")))


WHOLE = "def add(a, b):\n    return a + b\n"


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("", "empty"),
        ("  \n", "empty"),
        (PATCH, "diff"),
        ("\n" + PATCH, "diff"),
        (f"Here it is:\n```diff\n{PATCH}```\nDone.", "fenced-diff"),
        (f"```\n{PATCH}```", "fenced-diff"),
        (f"<think>```diff\nnonsense\n```</think>\n```patch\r\n{PATCH}```", "fenced-diff"),
        (f"I changed\n{PATCH}", "diff"),
        (f"First\n```python\ndef helper(): pass\n```\nso\n```python\n{WHOLE}```", "code"),
        (WHOLE, "code"),
        ("    return a + b\n", "completion"),
        ("I don't know.", "unreadable"),
        ("```python\ndef other(): pass\n```", "unreadable"),
        ("\ud800\udfff", "unreadable"),
    ],
)
def test_submissions_are_read_by_the_documented_rules(text: str, form: str) -> None:
    found = read_submission(TASK, text)
    assert found.form == form
    found.patch.digest.encode()
    if form in {"code", "completion"}:
        assert "+    return a + b" in found.patch.text
        assert "-from typing" not in found.patch.text, "the stub's imports stay"
    if form == "fenced-diff":
        assert found.patch.text == PATCH
    if form == "empty":
        assert found.patch.is_empty


def test_code_is_not_read_for_repository_tasks() -> None:
    repo = at.Task(task_id="r", dataset="d", prompt="", suite=TASK.suite, gold_patch="", image="x")
    assert read_submission(repo, WHOLE).form == "unreadable"
    assert read_submission(repo, f"```diff\n{PATCH}```").form == "fenced-diff"


def test_text_space_holds_any_text_within_its_bound() -> None:
    space = TextSpace(100, seed=1)
    assert all(space.sample() in space for _ in range(50))
    assert "héllo\x0c字𝄞\x00" in space
    assert "x" * 101 not in space
    assert b"bytes" not in space
    twins = TextSpace(100, seed=5), TextSpace(100, seed=5)
    assert twins[0] == twins[1]
    assert twins[0].sample() == twins[1].sample()
    assert len(clip("y" * 1000, 100)) == 100
    assert clip("short", 100) == "short"


def test_a_verifier_that_was_given_stays_open() -> None:
    verifier = ScriptedVerifier()
    CodeEnv([TASK], verifier=verifier).close()
    assert not verifier.closed
    with pytest.raises(ConfigError):
        CodeEnv([TASK], verifier=verifier, sandbox="fake")
    with pytest.raises(ConfigError):
        CodeEnv([])


def test_with_the_real_verifier_the_contract_holds_and_gold_is_paid_the_same_twice() -> None:
    """Deterministic `info`, twin's choice included; wall times and logs are not compared."""
    from gymnasium.utils.env_checker import data_equivalence

    task = next(t for t in at.load_tasks("toy") if t.task_id == "toy/add_sound")
    env = gymnasium.make("acidtest/Code-v0", tasks=[task], sandbox="local")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        check_env(env.unwrapped)
    steps = []
    for _ in range(2):
        env.reset(seed=1)
        steps.append(env.step(task.gold_patch))
    assert steps[0][1] == 1.0
    assert data_equivalence(steps[0], steps[1])
    env.close()


def test_async_vector_env_without_shared_memory() -> None:
    """Gymnasium's own vector environment in processes; text does not fit into shared memory."""
    from gymnasium.vector import AsyncVectorEnv, AutoresetMode

    def make() -> CodeEnv:
        return CodeEnv([TASK], verifier=ScriptedVerifier({PATCH: at.Outcome.RESOLVED}))

    envs = AsyncVectorEnv([make] * 2, shared_memory=False, autoreset_mode=AutoresetMode.DISABLED)
    envs.reset(seed=0)
    _, rewards, terminated, _, infos = envs.step((PATCH, "nothing"))
    assert rewards.tolist() == [1.0, 0.0]
    assert terminated.all()
    assert list(infos["outcome"]) == ["resolved", "unresolved"]
    envs.close()
