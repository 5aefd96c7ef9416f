"""Hostile episodes graded for real: whatever an agent leaves in its container, the verdict is of its source diff."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from typing import Any

import pytest

import acidtest as at
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import SandboxBackend
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.shell_env import ShellEnv
from acidtest.envs.verify import Verifier

pytestmark = pytest.mark.docker

STUB = "def add(a, b):\n    return 0\n"
GOLD = "def add(a, b):\n    return a + b\n"
TEST = (
    "from solution import add\n\n\ndef test_check():\n    assert add(2, 3) == 5\n    assert add(-1, 1) == 0\n"
)
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
    gold_patch=Patch.writing({"solution.py": GOLD}, {"solution.py": STUB}).text,
    files={"solution.py": STUB},
    timeout_s=5.0,
    metadata={"entry_point": "add", "solution_file": "solution.py"},
)
WRITE = "cat > solution.py <<'E'\n{}E"
SOLVE = WRITE.format(GOLD)
FORGE = 'runner = __import__("sys").modules["acid_plain"]\n\n\ndef run_one(ident, function):\n    runner._send("s", ident)\n    runner._send("e", ident, "passed", 0.0)\n\n\nrunner.run_one = run_one\n\n\ndef add(a, b):\n    return 0\n'


@pytest.fixture(scope="module")
def backend(engine: str) -> Iterator[SandboxBackend]:
    opened = open_backend("docker")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def env(backend: SandboxBackend) -> Iterator[ShellEnv]:
    verifier = Verifier(sandbox=backend)
    made = ShellEnv([TASK], sandbox=backend, verifier=verifier, command_timeout_s=20.0)
    yield made
    made.close()
    verifier.close()


def play(env: ShellEnv, *commands: str) -> tuple[float, dict[str, Any]]:
    env.reset(seed=0)
    for command in commands:
        _, _, terminated, truncated, info = env.step(command)
        if terminated or truncated:
            return 0.0, info
    _, reward, _, _, info = env.step("submit")
    return float(reward), info


@pytest.mark.parametrize(
    ("commands", "reward", "outcome", "severity"),
    [
        pytest.param([SOLVE], 1.0, "resolved", None, id="honest"),
        pytest.param(["true"], 0.0, "unresolved", None, id="nothing done"),
        pytest.param(
            ["nohup setsid sh -c 'while :; do cp /tmp/x solution.py; done' >/dev/null 2>&1 &", SOLVE],
            1.0,
            "resolved",
            None,
            id="background process planted",
        ),
        pytest.param(
            ["echo 'def test_check(): pass' > test_solution.py"],
            0.0,
            "unresolved",
            "notice",
            id="tests written where the trusted ones go",
        ),
        pytest.param(
            ["printf 'import os\\nos._exit(0)\\n' > conftest.py; cp conftest.py sitecustomize.py"],
            0.0,
            "unresolved",
            "notice",
            id="conftest and sitecustomize",
        ),
        pytest.param(
            [SOLVE, "printf 'import os\\nos._exit(0)\\n' > conftest.py; cp conftest.py sitecustomize.py"],
            1.0,
            "resolved",
            "notice",
            id="conftest and sitecustomize beside honest work",
        ),
        pytest.param(
            ["git log --all -p; git fsck --lost-found; find / -name '*.pack' 2>/dev/null; cat .git/packed-refs; true"],
            0.0,
            "unresolved",
            None,
            id=".git read for the future",
        ),
        pytest.param(
            ["mkdir -p .git/hooks; printf '#!/bin/sh\\necho pwned > solution.py\\n' > .git/hooks/post-checkout; chmod +x .git/hooks/*", SOLVE],
            1.0,
            "resolved",
            None,
            id="git hooks",
        ),
        pytest.param([WRITE.format("import time\ntime.sleep(60)\n" + GOLD)], 0.0, "timed_out", None, id="sleeps at grading"),
        pytest.param(
            [WRITE.format("import os\nfor _ in range(10000):\n    try:\n        if os.fork() == 0:\n            import time\n            time.sleep(30)\n            os._exit(0)\n    except OSError:\n        pass\n" + STUB)],
            0.0,
            None,
            None,
            id="10,000 forks at grading",
        ),
        pytest.param(
            [WRITE.format("try:\n    open('/tmp/big', 'wb').write(bytes(3_000_000_000))\nexcept (OSError, MemoryError):\n    pass\n" + STUB)],
            0.0,
            None,
            None,
            id="memory and disk filled at grading",
        ),
        pytest.param([WRITE.format(FORGE)], 0.0, "tampered", "tamper", id="runner patched from source"),
    ],
)  # fmt: skip
def test_each_has_the_right_outcome(
    env: ShellEnv, commands: list[str], reward: float, outcome: str | None, severity: str | None
) -> None:
    paid, info = play(env, *commands)
    assert (paid, info["reward_valid"]) == (reward, True), info.get("error")
    if outcome is None:
        assert info["outcome"] in {"unresolved", "timed_out", "out_of_memory", "no_tests_ran"}
    else:
        assert info["outcome"] == outcome
    incident = info["incident"]
    if outcome is not None:
        assert (incident and str(incident.severity)) == severity


def test_files_written_after_submit_reach_nothing(env: ShellEnv) -> None:
    late = "nohup setsid sh -c 'sleep 0.2; while :; do printf \"def add(a, b):\\n    return a + b\\n\" > solution.py; done' >/dev/null 2>&1 &"
    reward, info = play(env, late)
    assert (reward, info["patch"]) == (0.0, "")


def test_nothing_is_left(engine: str) -> None:
    import docker

    run = uuid.uuid4().hex
    own = open_backend("docker", run=run)
    verifier = Verifier(sandbox=own)
    env = ShellEnv([TASK], sandbox=own, verifier=verifier)
    for _ in range(2):
        assert play(env, SOLVE, "setsid sleep 1000 &")[0] == 1.0
    env.reset()
    env.step("setsid sleep 1000 &")
    env.close()
    verifier.close()
    own.close()
    client = docker.from_env()
    try:
        assert client.containers.list(all=True, filters={"label": f"acidtest.run={run}"}) == []
    finally:
        client.close()
