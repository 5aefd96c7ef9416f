"""OpenRLHF, SkyRL-gym and NeMo Gym by contract."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator

import pytest

import acidtest as at
from acidtest.envs.errors import SandboxDied
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.training_hooks.plain_rewards import SkyRLEpisode, first_prompt, nemo_verify, openrlhf
from acidtest.training_hooks.scorer import Scorer

TASK = at.Task(
    task_id="t",
    dataset="unit",
    prompt="p",
    suite=at.Suite(command="true", framework="plain", fail_to_pass=("t::a",)),
    gold_patch="",
)


@pytest.fixture
def scorer() -> Iterator[Scorer]:
    script = {
        "--- a\n+++ good": at.Outcome.RESOLVED,
        "--- a\n+++ fooled": (at.Outcome.UNRESOLVED, at.Outcome.RESOLVED),
        "--- a\n+++ lost": SandboxDied("gone"),
    }
    with Scorer([TASK], verifier=ScriptedVerifier(script)) as made:
        yield made


@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="torch is not installed")
def test_openrlhf(scorer: Scorer) -> None:
    texts = [f"--- a\n+++ {name}" for name in ("good", "fooled", "lost")]
    found = openrlhf(scorer)(["P" + text for text in texts], ["P"] * 3, ["t"] * 3)
    assert found["rewards"][:2].tolist() == [1.0, 0.0]
    assert found["rewards"][2].isnan()
    assert found["scores"].tolist() == [1.0, 0.0, 0.0]
    assert found["extra_logs"]["false_pass"].tolist() == [0.0, 1.0, 0.0]
    assert found["extra_logs"]["masked"].tolist() == [0.0, 0.0, 1.0]


def test_skyrl(scorer: Scorer) -> None:
    episode = SkyRLEpisode(scorer, "t")
    assert episode.init("hello") == ("hello", {"task_id": "t"})
    done = episode.step("--- a\n+++ fooled")
    assert (done["reward"], done["done"], done["metadata"]["incident"]) == (0.0, True, "false_pass")
    assert episode.step("--- a\n+++ lost")["metadata"]["mask"] is True


async def test_nemo_masks(scorer: Scorer) -> None:
    good = await nemo_verify(scorer, "t", "--- a\n+++ good")
    assert (good["reward"], good["mask_sample"], good["failure_kind"]) == (1.0, False, "")
    lost = await nemo_verify(scorer, "t", "--- a\n+++ lost")
    assert (lost["mask_sample"], lost["failure_kind"]) == (True, "infrastructure")
    assert "SandboxDied" in lost["failure_reason"]


def test_first_prompt() -> None:
    assert first_prompt(TASK)[0]["content"].startswith("p\n\nAnswer with one unified diff")
