"""R2E-style tasks in Docker: images from source trees, rows, both rewards, leaks found and shut."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs import r2e_rule
from acidtest.envs.datasets import r2e_gym
from acidtest.envs.errors import ConfigError, TaskError
from acidtest.envs.leaks import audit_leaks
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.sandboxes import docker
from acidtest.envs.task import Task
from acidtest.envs.verify import Verifier
from acidtest.scripts.images_r2e import build, read_spec

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "r2e"
SOURCE = "def double(x):\n    return x + x\n\n\ndef triple(x):\n    return x * 4\n"
SPEC = '''
repo_name = "doubler"
source = "tree"
issue = "`double` must give twice its argument."
[[change]]
path = "doubler/core.py"
fixed = "    return x + x\\n"
broken = "    return x\\n"
[tests]
"test_1.py" = """
import unittest
from doubler.core import double, triple

def test_double():
    assert double(2) == 4

class TestTriple(unittest.TestCase):
    def test_triple(self):
        self.assertEqual(triple(1), 3)

def test_zero():
    assert double(0) == 0
"""
'''


def spec_file(folder: Path, text: str = SPEC) -> Path:
    (folder / "tree" / "doubler").mkdir(parents=True, exist_ok=True)
    (folder / "tree" / "doubler" / "__init__.py").write_text("")
    (folder / "tree" / "doubler" / "core.py").write_text(SOURCE)
    path = folder / "doubler.toml"
    path.write_text(text)
    return path


@pytest.fixture(scope="module")
def row(engine: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, Any]]:
    import docker as sdk

    made = build(read_spec(spec_file(tmp_path_factory.mktemp("r2e"))))
    yield made
    client = sdk.from_env()
    client.images.remove(made["docker_image"], force=True)
    client.close()


@pytest.fixture(scope="module")
def task(row: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("rows") / "rows.jsonl"
    path.write_text(json.dumps(row) + "\n")
    return load_tasks(path)[0]


@pytest.fixture(scope="module")
def verifier(engine: str) -> Iterator[Verifier]:
    with Verifier(sandbox="docker") as opened:
        yield opened


def both(verifier: Verifier, task: Task, text: str | None) -> tuple[float | None, float | None]:
    """(strict, original) reward of the tree with this text in core.py; None is the no-op."""
    before = SOURCE.replace("return x + x", "return x")
    patch = Patch() if text is None else Patch.writing({"doubler/core.py": text}, {"doubler/core.py": before})
    verdict = verifier.verify(task, patch)
    assert verdict.run is not None
    return verdict.reward, r2e_rule.original_reward(verdict.run, task.metadata["expected"])


@pytest.mark.docker
def test_the_row_says_what_was_observed(row: dict[str, Any], task: Task) -> None:
    assert json.loads(row["expected_output_json"]) == {
        "TestTriple.test_triple": "FAILED",
        "test_double": "PASSED",
        "test_zero": "PASSED",
    }
    assert task.suite.fail_to_pass == ("r2e_tests/test_1.py::test_double",)
    assert task.suite.pass_to_pass == ("r2e_tests/test_1.py::test_zero",)
    assert task.metadata["expected_failing"] == ["r2e_tests/test_1.py::TestTriple::test_triple"]


@pytest.mark.docker
@pytest.mark.parametrize(
    ("text", "strict", "original"),
    [
        (SOURCE, 1.0, 1.0),
        (None, 0.0, 0.0),
        (SOURCE.replace("x * 4", "x * 3"), 1.0, 0.0),
        (SOURCE.replace("x + x", "4"), 0.0, 0.0),
        (SOURCE.replace("    return x + x", "    if x:\n        raise RuntimeError('PASSED')\n    return 0"), 0.0, 1.0),
        (SOURCE + "\n\nimport os; os._exit(0)\n", 0.0, 0.0),
    ],
    ids=["gold", "no-op", "better than gold", "constant", "message says PASSED", "exit"],
)  # fmt: skip
def test_both_rewards(
    verifier: Verifier, task: Task, text: str | None, strict: float, original: float
) -> None:
    """The original rule refuses a patch that mends more than gold did; ours asks only for what must pass."""
    assert both(verifier, task, text) == (strict, original)


@pytest.mark.docker
def test_leaks_are_found_and_shut(engine: str, task: Task, tmp_path: Path) -> None:
    with_engine = docker.backend(spares=0, run="r2e-tests")
    try:
        found = audit_leaks(task, backend=with_engine, cache=tmp_path)
        after = audit_leaks(task, backend=with_engine, cache=tmp_path, shut=True)
    finally:
        with_engine.close()
    assert {finding.check for finding in found.leaks} == {"L01", "L04"}
    assert "Fix the issue" in found.leaks[0].evidence
    assert after.leaks == ()


def test_specs_that_cannot_be_built_say_why(tmp_path: Path) -> None:
    bad = tmp_path / "bad.toml"
    bad.write_text("repo_name = 1")
    with pytest.raises(ConfigError, match="no field 'source'"):
        read_spec(bad)
    bad.write_text("repo_name = ")
    with pytest.raises(ConfigError, match=r"bad\.toml"):
        read_spec(bad)


@pytest.mark.docker
def test_the_fixed_text_must_stand_in_the_tree_once(engine: str, tmp_path: Path) -> None:
    path = spec_file(tmp_path, SPEC.replace('fixed = "    return x + x', 'fixed = "    return x - x'))
    with pytest.raises(TaskError, match=r"stands 0 times in doubler/core\.py"):
        build(read_spec(path))


@pytest.mark.campaign
@pytest.mark.docker
def test_campaign_eight_tasks_from_three_source_distributions(engine: str, tmp_path: Path) -> None:
    """Builds examples/r2e (needs an index for pip once) and prints both rewards of gold and no-op."""
    specs = [read_spec(path) for path in sorted(EXAMPLES.glob("*.toml"))]
    rows = [build(spec) for spec in specs]
    assert len(rows) >= 8
    assert len({spec.source for spec in specs}) == 3
    failing = [
        row for row in rows if {"FAILED", "ERROR"} & set(json.loads(row["expected_output_json"]).values())
    ]
    assert len(failing) >= 3
    with Verifier(sandbox="docker") as verifier:
        for number, entry in enumerate(rows):
            one = r2e_gym.task_of(entry, f"row {number}")
            for patch, want in ((Patch(one.gold_patch), 1.0), (Patch(), 0.0)):
                verdict = verifier.verify(one, patch)
                assert verdict.run is not None
                original = r2e_rule.original_reward(verdict.run, one.metadata["expected"])
                print(
                    f"{one.task_id}: {'gold' if want else 'no-op'} strict {verdict.reward} original {original}"
                )
                assert (verdict.reward, original) == (want, want)
