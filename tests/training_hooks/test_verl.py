"""verl's contract, and verl 0.9.1's own loader and reward manager where it is installed.

Tested with ``pip install --no-deps verl==0.9.1 ray tensordict pyvers omegaconf antlr4-python3-runtime==4.9.3 codetiming
hydra-core`` beside CPU torch 2.13 (verl's own dependencies would bring CUDA).
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import acidtest as at
from acidtest.envs.errors import SandboxDied, UnknownName
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.training_hooks import verl_reward
from acidtest.training_hooks.scorer import Scorer

GOLD = "```python\ndef add(a, b):\n    return a + b\n```"
FOOLED = "```python\ndef add(a, b):\n    return 4\n```"
LOST = "```python\ndef add(a, b):\n    return lost\n```"


@pytest.fixture
def kwargs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[dict[str, Any]]:
    """reward_kwargs over the toy set, the verifier replaced by a script."""

    def script(task: at.Task, patch: at.Patch) -> Any:
        if "lost" in patch.text:
            return SandboxDied("gone")
        if "return 4" in patch.text:
            return (at.Outcome.UNRESOLVED, at.Outcome.RESOLVED)
        return at.Outcome.RESOLVED if "+    return a + b" in patch.text else at.Outcome.UNRESOLVED

    def scripted(tasks: Any, **options: Any) -> Scorer:
        return Scorer(tasks, verifier=ScriptedVerifier(script), **options)

    monkeypatch.setattr(verl_reward, "Scorer", scripted)
    yield {"source": "toy", "incidents": str(tmp_path / "i.jsonl"), "max_concurrent": 4}
    verl_reward.close()


def task_id() -> str:
    return next(t.task_id for t in at.load_tasks("toy") if "add" in t.task_id)


async def score(text: str, kwargs: dict[str, Any]) -> dict[str, Any]:
    return await verl_reward.compute_score(
        data_source="acidtest", solution_str=text, ground_truth=task_id(), extra_info={"index": 0}, **kwargs
    )


async def test_every_sample_has_the_same_keys_and_types(kwargs: dict[str, Any]) -> None:
    rows = [await score(text, kwargs) for text in (GOLD, FOOLED, "no idea", "")]
    assert [row["score"] for row in rows] == [1.0, 0.0, 0.0, 0.0]
    assert rows[1]["incident"] == "false_pass"
    assert (rows[1]["reward_original"], rows[1]["reward_hardened"]) == (1.0, 0.0)
    shapes = {tuple((k, type(v)) for k, v in row.items()) for row in rows}
    assert len(shapes) == 1
    assert len(Path(kwargs["incidents"]).read_text().splitlines()) == 1


async def test_no_verdict_is_raised_never_scored(kwargs: dict[str, Any]) -> None:
    with pytest.raises(verl_reward.InvalidReward, match="SandboxDied"):
        await score(LOST, kwargs)


async def test_one_scorer_a_process_and_unknown_tasks_are_loud(kwargs: dict[str, Any]) -> None:
    await score(GOLD, kwargs)
    assert verl_reward.scorer_of(**kwargs) is verl_reward.scorer_of(**kwargs)
    with pytest.raises(UnknownName):
        await verl_reward.compute_score("acidtest", GOLD, "nobody", **kwargs)


def test_rows_point_at_tasks_and_leak_nothing() -> None:
    tasks = at.load_tasks("toy")
    rows = at.to_dataset(tasks, "verl")
    assert rows.num_rows == len(tasks)
    assert {"data_source", "prompt", "reward_model", "extra_info", "agent_name"} <= set(rows.column_names)
    for row, task in zip(rows, tasks, strict=True):
        assert row["reward_model"]["ground_truth"] == task.task_id
        for text in task.suite.test_files.values():
            assert text not in str(row)


HAS_VERL = importlib.util.find_spec("verl") is not None


@pytest.mark.skipif(not HAS_VERL, reason="verl is not installed")
@pytest.mark.filterwarnings("ignore")
async def test_verls_own_loader_and_reward_manager(kwargs: dict[str, Any]) -> None:
    import numpy as np
    import torch
    from omegaconf import OmegaConf

    loader = importlib.import_module("verl.trainer.ppo.reward")
    proto = importlib.import_module("verl").DataProto
    naive = importlib.import_module("verl.experimental.reward_loop.reward_manager.naive").NaiveRewardManager
    config = OmegaConf.create(
        {
            "reward": {
                "custom_reward_function": {
                    "path": "pkg://acidtest.training_hooks.verl_reward",
                    "name": "compute_score",
                    "reward_kwargs": kwargs,
                }
            }
        }
    )
    compute = loader.get_custom_reward_fn(config)

    class Tokenizer:
        def decode(self, ids: Any, skip_special_tokens: bool) -> str:
            return (GOLD, FOOLED)[int(ids[0])]

    manager = naive(config, Tokenizer(), compute)
    paid = []
    for k in range(2):
        data = proto.from_dict(
            tensors={
                "responses": torch.tensor([[k]]),
                "attention_mask": torch.tensor([[1, 1]]),
            },
            non_tensors={
                "data_source": np.array(["acidtest"], dtype=object),
                "reward_model": np.array([{"ground_truth": task_id()}], dtype=object),
                "extra_info": np.array([{"index": k}], dtype=object),
            },
        )
        paid.append(await manager.run_single(data))
    assert [p["reward_score"] for p in paid] == [1.0, 0.0]
    assert paid[1]["reward_extra_info"]["incident"] == "false_pass"
