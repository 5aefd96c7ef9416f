"""ShellEnv on a repository image whose `.git` holds the fix: the future is gone, honest work still comes out."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator

import pytest

import acidtest as at
from acidtest.envs.patch import Patch
from acidtest.envs.shell_env import ShellEnv

pytestmark = pytest.mark.docker

BEFORE = "def area(w, h):\n    return w + h\n"
AFTER = "def area(w, h):\n    return w * h\n"
BUILD = r"""
set -e
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
mkdir -p /testbed/pkg /r2e_tests && cd /testbed && git init -q .
printf 'def area(w, h):\n    return w + h\n' > pkg/shapes.py; touch pkg/__init__.py
git add -A && git commit -qm before
printf 'def area(w, h):\n    return w * h\n' > pkg/shapes.py
git commit -qam 'THE FIX' && git tag fixed && git checkout -q HEAD~1
echo 'assert area(2, 5) == 10' > /r2e_tests/hidden.py; ln -s /r2e_tests /testbed/r2e_tests
"""


@pytest.fixture(scope="module")
def image(engine: str) -> Iterator[str]:
    import docker

    client = docker.from_env()
    name = f"acidtest-test-leaky:{uuid.uuid4().hex[:8]}"
    base = os.environ.get("ACIDTEST_BASE_IMAGE") or "acidtest-base:bookworm"
    try:
        container = client.containers.create(base, ["bash", "-c", BUILD], network_mode="none")
        container.start()
        assert container.wait()["StatusCode"] == 0, container.logs()
        container.commit(*name.split(":"))
        container.remove(force=True)
        yield name
        client.images.remove(name, force=True)
    finally:
        client.close()


def test_the_fix_in_git_is_out_of_reach_and_work_is_graded(image: str) -> None:
    suite = at.Suite(
        command="python test_area.py",
        framework="plain",
        test_files={
            "test_area.py": "from pkg.shapes import area\n\n\ndef test_area():\n    assert area(2, 5) == 10\n"
        },
        fail_to_pass=("test_area.py::test_area",),
    )
    gold = Patch.writing({"pkg/shapes.py": AFTER}, {"pkg/shapes.py": BEFORE})
    task = at.Task(
        task_id="leaky",
        dataset="unit",
        prompt="area is wrong",
        suite=suite,
        gold_patch=gold.text,
        image=image,
        metadata={"hidden_paths": ["/r2e_tests", "r2e_tests"]},
    )
    env = ShellEnv([task], sandbox="docker")
    try:
        env.reset(seed=0)
        looks = [
            "git log --all --format=%s; git reflog; git tag; git fsck --lost-found",
            "find / -xdev -path '*/.git/objects/*' -name '*.pack' 2>/dev/null; ls .git/refs/tags",
            "ls -la /testbed /r2e_tests 2>&1; find / -name hidden.py 2>/dev/null",
            "git diff --stat; git status --short",
        ]
        seen = [env.step(look)[0] for look in looks]
        assert "FIX" not in seen[0]
        assert "fixed" not in seen[0]
        assert seen[1].split("\n", 1)[1].strip() == ""
        assert "hidden.py" not in seen[2]
        assert "r2e_tests ->" not in seen[2]
        assert seen[3].strip() == "[exit code 0]", "the tree is clean for the agent's own git"
        env.step("sed -i 's/w + h/w * h/' pkg/shapes.py")
        _, reward, terminated, _, info = env.step("submit")
        assert (reward, terminated, info["outcome"]) == (1.0, True, "resolved"), info["error"]
        assert info["patch"] == gold.text, (
            "only the source change; what was hidden is no deletion of the agent's"
        )
        env.reset()
        assert env.step("submit")[1] == 0.0
    finally:
        env.close()
