"""Trainers whose contract is one plain function or class: OpenRLHF, SkyRL-gym, NeMo Gym.

Written from their documentation and sources (OpenRLHF 0.11, SkyRL-gym 0.4, NeMo Gym 0.7) and tested against the contract, not inside a run of
theirs. Nothing of theirs is imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..envs.task import Task
from .datasets import prompt_of
from .records import Score
from .scorer import Scorer


def openrlhf(scorer: Scorer) -> Callable[..., dict[str, Any]]:
    """``reward_func(queries, prompts, labels)`` for a file given to ``--remote_rm_url``; a label is a task id.

    Gives rewards (NaN where masked: filter them with ``--dynamic_filtering`` or retry), scores in [0, 1] and extra_logs, all
    torch tensors of shape (batch,).
    """

    def reward_func(
        queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **more: Any
    ) -> dict[str, Any]:
        import torch

        replies = [q[len(p) :] if q.startswith(p) else q for q, p in zip(queries, prompts, strict=True)]
        scores = scorer.score(list(zip(labels, replies, strict=True)))
        rewards = torch.tensor([float("nan") if s.reward is None else s.reward for s in scores])
        logs = {
            "false_pass": torch.tensor([float(s.severity == "false_pass") for s in scores]),
            "tamper": torch.tensor([float(s.severity == "tamper") for s in scores]),
            "masked": torch.tensor([float(s.masked) for s in scores]),
        }
        return {"rewards": rewards, "scores": torch.nan_to_num(rewards).clamp(0, 1), "extra_logs": logs}

    return reward_func


class SkyRLEpisode:
    """SkyRL-gym's `BaseTextEnv` by shape: `init(prompt)`, `step(action)` → observations, reward, done, metadata.

    One step. A masked episode has reward 0.0 and ``metadata["mask"]`` True: drop it in the generator.
    """

    def __init__(self, scorer: Scorer, task_id: str) -> None:
        self.scorer, self.task_id = scorer, task_id

    def init(self, prompt: Any) -> tuple[Any, dict[str, Any]]:
        return prompt, {"task_id": self.task_id}

    def step(self, action: str) -> dict[str, Any]:
        (score,) = self.scorer.score([(self.task_id, action)])
        return {
            "observations": [],
            "reward": 0.0 if score.reward is None else score.reward,
            "done": True,
            "metadata": metadata_of(score),
        }

    def close(self) -> None:
        """Nothing to close: the Scorer is shared."""


async def nemo_verify(scorer: Scorer, task_id: str, text: str) -> dict[str, Any]:
    """The body of NeMo Gym's ``verify``: reward, mask_sample, failure_kind, failure_reason."""
    (score,) = await scorer.ascore([(task_id, text)])
    return {
        "reward": 0.0 if score.reward is None else score.reward,
        "mask_sample": score.masked,
        "failure_kind": "infrastructure" if score.masked else "",
        "failure_reason": score.error if score.masked else "",
        **metadata_of(score),
    }


def metadata_of(score: Score) -> dict[str, Any]:
    return {
        "mask": score.masked,
        "outcome": score.outcome,
        "incident": score.severity,
        "kind": score.kind,
        "reward_original": score.reward_original,
        "reward_hardened": score.reward_hardened,
    }


def first_prompt(task: Task) -> list[dict[str, str]]:
    """The opening conversation of a task, for trainers that ask for one."""
    return [{"role": "user", "content": prompt_of(task)}]
