"""ShellEnv in real containers: hostile episodes each get the right outcome, and nothing survives them."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import gymnasium
import pytest
from gymnasium.utils.env_checker import check_env

import acidtest as at
from acidtest.envs.errors import ConfigError, SandboxDied
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import Limits, SandboxBackend
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.shell_env import ShellEnv

STUB = "def add(a, b):\n    return 0\n"
TEST = "from solution import add\n\n\ndef test_check():\n    assert add(2, 3) == 5\n"
TASK = at.Task(
    task_id="add",
    dataset="unit",
    prompt="Make add(a, b) return the sum.",
    suite=at.Suite(
        command="python test_solution.py",
        framework="plain",
        test_files={"test_solution.py": TEST},
        fail_to_pass=("test_solution.py::test_check",),
    ),
    gold_patch=Patch.writing(
        {"solution.py": "def add(a, b):\n    return a + b\n"}, {"solution.py": STUB}
    ).text,
    files={
        "solution.py": STUB,
        "docs/notes.txt": "old\n",
        "tests/test_visible.py": "def test_x():\n    pass\n",
    },
    metadata={"entry_point": "add", "solution_file": "solution.py", "hidden_paths": ["secret_solution.py"]},
)
LEAKY = replace(TASK, files={**TASK.files, "secret_solution.py": "ANSWER = 'a + b'\n"})
SOLVE = "printf 'def add(a, b):\\n    return a + b\\n' > solution.py"

pytestmark = pytest.mark.docker


@pytest.fixture(scope="module")
def backend(engine: str) -> Iterator[SandboxBackend]:
    opened = open_backend("docker")
    yield opened
    opened.close()


class Recorder(ScriptedVerifier):
    """Judges by the text of the patch alone, and keeps it."""

    def __init__(self) -> None:
        self.patches: list[Patch] = []

        def answer(task: at.Task, patch: Patch) -> at.Outcome:
            self.patches.append(patch)
            return at.Outcome.RESOLVED if "+    return a + b" in patch.text else at.Outcome.UNRESOLVED

        super().__init__(answer)


def episode(
    backend: SandboxBackend, *commands: str, task: at.Task = LEAKY, **options: Any
) -> tuple[Recorder, list[Any]]:
    """Run commands, then submit; gives the recorder and the last step's result plus every observation."""
    judge = Recorder()
    env = ShellEnv([task], sandbox=backend, verifier=judge, **options)
    try:
        env.reset(seed=0)
        seen: list[Any] = []
        for command in [*commands, "submit"]:
            step = env.step(command)
            seen.append(step)
            if step[2] or step[3]:
                break
        return judge, seen
    finally:
        env.close()


def test_an_honest_episode_is_paid_for_its_source_diff(backend: SandboxBackend) -> None:
    judge, seen = episode(
        backend, "cat solution.py", SOLVE, "rm docs/notes.txt", "mkdir pkg; echo 'x = 1' > pkg/new.py"
    )
    assert "return 0" in seen[0][0]
    assert seen[0][0].startswith("[exit code 0]")
    _, reward, terminated, truncated, info = seen[-1]
    assert (reward, terminated, truncated) == (1.0, True, False)
    text = judge.patches[0].text
    assert "+    return a + b" in text
    assert "deleted file mode" in text
    assert "new file mode" in text
    assert "secret" not in text
    assert info["reward_valid"]


def test_no_change_is_the_empty_patch(backend: SandboxBackend) -> None:
    judge, _ = episode(backend, "ls -la", "python3 -c 'import solution'")
    assert judge.patches[0].is_empty


def test_check_env(engine: str) -> None:
    env = gymnasium.make("acidtest/Shell-v0", tasks=[TASK], sandbox="docker", verifier=ScriptedVerifier())
    check_env(env.unwrapped)
    env.close()


def test_leaks_are_shut(backend: SandboxBackend) -> None:
    """No future in .git, no hidden tests, no solution, no network."""
    _, seen = episode(
        backend,
        "git log --all --oneline | wc -l; git reflog | wc -l; git status --short | wc -l",
        "ls; ls -a / /tmp; find / -name 'test_solution.py' -o -name 'secret_solution.py' 2>/dev/null",
        "grep -rs 'return a + b' /testbed /tmp /root /home /opt /srv /var/tmp -l; true",
        "python3 -c \"import socket; socket.create_connection(('1.1.1.1', 53), 2)\"",
        "env",
    )
    assert seen[0][0].split()[-3:] == ["1", "1", "0"]
    assert "test_solution.py" not in seen[1][0]
    assert "secret_solution" not in seen[1][0]
    assert ".py" not in seen[2][0]
    assert "[exit code 1]" in seen[3][0]
    assert "add" not in seen[4][0].lower()


def test_processes_left_behind_are_killed_and_late_files_do_not_count(backend: SandboxBackend) -> None:
    late = "nohup setsid sh -c 'sleep 1; printf \"def add(a, b):\\n    return a + b\\n\" > solution.py' >/dev/null 2>&1 &"
    judge, seen = episode(backend, late, "sleep 2; cat solution.py; ps ax | grep -c '[s]leep 1'")
    assert "return 0" in seen[1][0], "the planted process was killed with its command"
    assert judge.patches[0].is_empty
    judge, seen = episode(backend, late)
    assert (seen[-1][1], judge.patches[0].is_empty) == (0.0, True)


@pytest.mark.parametrize(
    "command",
    [
        "python3 - <<'E'\nimport os\nfor _ in range(10000):\n    try:\n        if os.fork() == 0:\n            import time; time.sleep(60); os._exit(0)\n    except OSError: pass\nE",
        "head -c 200M /dev/zero > big.bin; head -c 1G /dev/zero > /tmp/big; true",
        "for i in $(seq 2000); do echo x > junk$i.txt; done",
    ],
    ids=["10,000 forks", "disk filled", "2,000 files"],
)
def test_exhaustion_ends_with_the_command(backend: SandboxBackend, command: str) -> None:
    limits = Limits(memory_mib=512, pids=128, tmpfs_mib=64)
    judge, seen = episode(backend, SOLVE, command, "echo still here", limits=limits, command_timeout_s=20.0)
    outcome = seen[-1][4]
    if outcome["outcome"] == "infrastructure":
        assert outcome["reward_valid"] is False, "a container that broke down is masked, never 0"
        return
    assert seen[-1][1] == 1.0
    assert len(judge.patches[0].text) < 100_000


def test_sleeping_past_the_limits(backend: SandboxBackend) -> None:
    start = time.monotonic()
    _, seen = episode(backend, "sleep 100", command_timeout_s=1.0)
    assert "still running after its time limit" in seen[0][0]
    assert seen[0][4]["timed_out"]
    _, seen = episode(backend, "sleep 100", max_seconds=1.5)
    assert (seen[-1][2], seen[-1][3]) == (False, True)
    assert seen[-1][4]["outcome"] == "truncated"
    assert time.monotonic() - start < 30


def test_truncation_by_steps_pays_nothing_or_what_the_work_is_worth(backend: SandboxBackend) -> None:
    judge, seen = episode(backend, SOLVE, "true", "true", max_steps=3)
    assert (len(seen), seen[-1][1], seen[-1][3], judge.calls) == (3, 0.0, True, 0)
    judge, seen = episode(backend, SOLVE, "true", "true", max_steps=3, grade_at_limit=True)
    assert (len(seen), seen[-1][1], seen[-1][3], judge.calls) == (3, 1.0, True, 1)


def test_traps_for_the_extraction(backend: SandboxBackend) -> None:
    """Links, hooks, odd names, replaced interpreter and git: the submission is text of plain files, or nothing."""
    judge, seen = episode(
        backend,
        "ln -s /etc/passwd stolen.py; ln -sf /etc/shadow docs/notes.txt; printf 'a\\0b' > bin.dat; printf '\\xff' > latin.txt",
        "touch $'new\\nline.py' 'quo\"te.py'; mkfifo pipe; mkdir -p sub/.git/hooks; echo evil > sub/.git/hooks/x",
        "printf '[core]\\n\\tfsmonitor = \"touch /tmp/pwned\"\\n' >> .git/config; printf '#!/bin/sh\\nexit 0\\n' > .git/hooks/pre-commit",
        SOLVE,
    )
    text = judge.patches[0].text
    assert seen[-1][1] == 1.0
    assert "root:" not in text
    assert ".git" not in text
    assert "evil" not in text
    assert {"stolen.py", "docs/notes.txt", "bin.dat", "latin.txt", "pipe"} <= set(seen[-1][4]["dropped"])
    fake = "rm -f /usr/bin/python3; printf '#!/bin/sh\\necho not json\\n' > /usr/bin/python3; chmod +x /usr/bin/python3; cp /usr/bin/python3 /usr/local/bin/python3"
    judge, seen = episode(backend, SOLVE, fake)
    assert (seen[-1][1], judge.patches[0].is_empty) == (0.0, True), (
        "whoever breaks the listing submits nothing"
    )
    lie = 'printf \'#!/bin/sh\\necho \\\'{"../../etc/passwd": "%064d", "/etc/hostname": "%064d"}\\\'\\n\' > /usr/bin/python3; chmod +x /usr/bin/python3; cp /usr/bin/python3 /usr/local/bin/python3'
    judge, seen = episode(backend, lie)
    assert "etc" not in judge.patches[0].text


def test_an_agent_that_kills_its_container_is_masked(backend: SandboxBackend) -> None:
    _, seen = episode(
        backend,
        SOLVE,
        "kill -9 -1; kill -9 1; for p in $(ls /proc | grep '^[0-9]'); do kill -9 $p; done",
        "true",
    )
    last = seen[-1]
    if last[4]["outcome"] == "infrastructure":
        assert (last[1], last[3], last[4]["reward_valid"]) == (0.0, True, False)
        assert "Sandbox" in last[4]["error"]
    else:
        assert last[1] == 1.0, "the container held, the episode went on"


def test_nothing_survives(engine: str) -> None:
    import docker

    run = uuid.uuid4().hex
    own = open_backend("docker", run=run)
    env = ShellEnv([TASK], sandbox=own, verifier=ScriptedVerifier())
    for _ in range(3):
        env.reset(seed=1)
        env.step("setsid sleep 300 & disown")
    env.close()
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("ls")
    own.close()
    client = docker.from_env()
    try:
        assert client.containers.list(all=True, filters={"label": f"acidtest.run={run}"}) == []
    finally:
        client.close()


def test_a_plain_process_is_refused_as_isolation() -> None:
    class Plain:
        name = "plain"

        def open(self, spec: object) -> Any:
            import contextlib
            from types import SimpleNamespace

            return contextlib.nullcontext(SimpleNamespace(isolation="none (plain process)"))

        def close(self) -> None: ...

    env = ShellEnv([TASK], sandbox=Plain(), verifier=ScriptedVerifier())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="isolation"):
        env.reset()
    env.close()


def test_a_lost_engine_masks_the_step() -> None:
    class Dying:
        name = "dying"

        def open(self, spec: object) -> Any:
            import contextlib
            from types import SimpleNamespace

            from acidtest.envs.protocols import ExecResult

            calls = iter([ExecResult(exit_code=0), ExecResult(exit_code=0, output=b"{}")])

            def script(ops: object) -> tuple[ExecResult]:
                try:
                    return (next(calls),)
                except StopIteration:
                    raise SandboxDied("the engine lost it") from None

            return contextlib.nullcontext(SimpleNamespace(isolation="docker", script=script))

        def close(self) -> None: ...

    env = ShellEnv([TASK], sandbox=Dying(), verifier=ScriptedVerifier())  # type: ignore[arg-type]
    env.reset()
    _, reward, terminated, truncated, info = env.step("ls")
    assert (reward, terminated, truncated, info["reward_valid"]) == (0.0, False, True, False)
    with pytest.raises(gymnasium.error.ResetNeeded):
        env.step("ls")
    env.close()
