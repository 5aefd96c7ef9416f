"""verl: a custom reward function. Written against verl 0.9.

    reward.custom_reward_function.path=pkg://acidtest.training_hooks.verl_reward
    reward.custom_reward_function.name=compute_score
    +reward.custom_reward_function.reward_kwargs.source=toy
    +reward.custom_reward_function.reward_kwargs.hardened=runs/toy

Rows: `acidtest.to_dataset(tasks, "verl")`; the ground truth of a row is its task id. Every sample gets the same keys. verl has no value
for "no valid reward": the verdict is tried again (`tries`), then `InvalidReward` is raised, which fails that batch loudly instead of
teaching it a 0. Nothing of verl is imported here.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import threading
from typing import Any

from ..envs.errors import AcidtestError
from .curate import load_tasks
from .incidents import open_log
from .records import Score
from .scorer import Scorer

TASK_OPTIONS = (
    "split",
    "limit",
    "task_ids",
    "audit",
    "hardened",
    "min_eqs",
    "decision",
    "flags",
    "firm",
    "allow_hackable",
)


class InvalidReward(AcidtestError):
    """No verdict after all tries; verl has no way to mask a sample."""


_SCORERS: dict[str, Scorer] = {}
_LOCK = threading.Lock()


def scorer_of(source: str, incidents: Any = None, **options: Any) -> Scorer:
    """The Scorer of these options, one a process. Options of `load_tasks` and of `Scorer`."""
    key = json.dumps([source, incidents, options], sort_keys=True, default=str)
    with _LOCK:
        if key not in _SCORERS:
            chosen = {k: v for k, v in options.items() if k in TASK_OPTIONS}
            rest = {k: v for k, v in options.items() if k not in TASK_OPTIONS}
            tasks = load_tasks(source, **chosen)
            _SCORERS[key] = Scorer(tasks, known=tasks.known, log=open_log(incidents), **rest)
        return _SCORERS[key]


async def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: dict[str, Any] | None = None,
    *,
    source: str = "toy",
    tries: int = 2,
    incidents: Any = None,
    reward_router_address: Any = None,
    reward_model_tokenizer: Any = None,
    **options: Any,
) -> dict[str, Any]:
    """``{"score": float, …}`` for one sample; the extra keys land in verl's reward_extra_info.

    ground_truth: the task id. source and further options: of `load_tasks` and `Scorer` (in ``reward_kwargs``).
    reward_router_address, reward_model_tokenizer: passed by verl, not used. Raises InvalidReward when there is no verdict after `tries`.
    """
    scorer = await asyncio.to_thread(scorer_of, source, incidents, **options)
    step = (extra_info or {}).get("global_step")
    for _ in range(max(1, tries)):
        (score,) = await scorer.ascore([(ground_truth, solution_str)], step=step)
        if not score.masked:
            return row_of(score)
    raise InvalidReward(
        f"No verdict on {ground_truth!r} after {tries} tries: {score.error or score.outcome}.",
        mend="verl cannot mask a sample; mend the machine and resume from the last checkpoint.",
    )


def row_of(score: Score) -> dict[str, Any]:
    """The same keys and types for every sample."""
    return {
        "score": float(score.reward or 0.0),
        "outcome": score.outcome,
        "incident": score.severity,
        "kind": score.kind,
        "reward_original": float(score.reward_original or 0.0),
        "reward_hardened": float(score.reward_hardened or 0.0),
    }


def close() -> None:
    """Close every Scorer of this process (done at exit)."""
    with _LOCK:
        while _SCORERS:
            _SCORERS.popitem()[1].close()


atexit.register(close)
