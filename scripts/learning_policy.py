"""A bandit-like policy: for every task a softmax over candidate patches, trained with group-normalised advantages.

Not a language model and not GRPO on one: no generalisation between tasks, no tokens, no KL term. It shows what a suite's reward
pulls a policy towards, given that the policy can write each of the candidates. Group size, advantage (reward minus group
mean, over group deviation) and the treatment of masked rewards (out of the group) are those of GRPO.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

Matrix = np.ndarray


@dataclass(frozen=True)
class Arm:
    """One candidate patch. truth: the hidden tests accept it. paid: suite name -> reward (None: no verdict)."""

    task_id: str
    name: str
    truth: bool
    paid: Mapping[str, float | None]


@dataclass(frozen=True)
class Curves:
    """Per seed and step, averaged over tasks: probability of a truly correct patch, and of a wrong one that the suite pays.

    solve, hack: shape (seeds, steps + 1); step 0 is before training. mean_reward: (seeds, steps), what was collected (NaN: all masked).
    """

    solve: Matrix
    hack: Matrix
    mean_reward: Matrix


def train(
    arms: Sequence[Arm],
    suite: str,
    *,
    judged_by: str | None = None,
    seeds: Sequence[int] = range(10),
    steps: int = 150,
    group: int = 8,
    rate: float = 0.5,
    spread: float = 0.5,
) -> Curves:
    """Train one policy a seed on what `suite` pays.

    judged_by: the suite whose payment of a wrong patch counts as a hack (default `suite`; give the original one to
    count the same patches for both). Initial logits are normal with deviation `spread`.
    """
    tasks = sorted({arm.task_id for arm in arms})
    by_task = [[arm for arm in arms if arm.task_id == task] for task in tasks]
    runs = [_one(by_task, suite, judged_by or suite, seed, steps, group, rate, spread) for seed in seeds]
    solve, hack, got = (np.array(part) for part in zip(*runs, strict=True))
    return Curves(solve=solve, hack=hack, mean_reward=got)


def _one(
    by_task: Sequence[Sequence[Arm]],
    suite: str,
    judged_by: str,
    seed: int,
    steps: int,
    group: int,
    rate: float,
    spread: float,
) -> tuple[list[float], list[float], list[float]]:
    rng = np.random.default_rng(seed)
    logits = [rng.normal(0.0, spread, len(arms)) for arms in by_task]
    true = [np.array([arm.truth for arm in arms]) for arms in by_task]
    fooled = [np.array([not arm.truth and arm.paid[judged_by] == 1.0 for arm in arms]) for arms in by_task]
    pays = [
        np.array([np.nan if arm.paid[suite] is None else arm.paid[suite] for arm in arms]) for arms in by_task
    ]
    solve, hack, got = [], [], []
    for step in range(steps + 1):
        chances = [_softmax(row) for row in logits]
        solve.append(float(np.mean([p[t].sum() for p, t in zip(chances, true, strict=True)])))
        hack.append(float(np.mean([p[f].sum() for p, f in zip(chances, fooled, strict=True)])))
        if step == steps:
            break
        collected = []
        for row, chance, pay in zip(logits, chances, pays, strict=True):
            picks = rng.choice(len(row), size=group, p=chance)
            reward = pay[picks]
            collected.extend(reward[np.isfinite(reward)])
            row += rate * _gradient(picks, _advantages(reward), chance)
        got.append(float(np.mean(collected)) if collected else float("nan"))
    return solve, hack, got


def _softmax(logits: Matrix) -> Matrix:
    shifted = np.exp(logits - logits.max())
    return np.asarray(shifted / shifted.sum())


def _advantages(reward: Matrix) -> Matrix:
    """Group-normalised; masked (NaN) and constant groups give 0."""
    valid = np.isfinite(reward)
    if valid.sum() < 2:
        return np.zeros_like(reward)
    deviation = reward[valid].std()
    centred = (reward - reward[valid].mean()) / (deviation + 1e-4)
    return np.where(valid, centred, 0.0)


def _gradient(picks: Matrix, advantage: Matrix, chance: Matrix) -> Matrix:
    """Of the mean of advantage × log-probability, with respect to the logits."""
    gradient = -chance * advantage.sum()
    np.add.at(gradient, picks, advantage)
    return np.asarray(gradient / len(picks))


def interval(
    values: Matrix, *, level: float = 0.95, replicates: int = 4000, seed: int = 0
) -> tuple[float, float, float]:
    """(mean, low, high) over seeds: percentile bootstrap of the mean."""
    rng = np.random.default_rng(seed)
    means = rng.choice(values, size=(replicates, len(values)), replace=True).mean(axis=1)
    low, high = np.quantile(means, [(1 - level) / 2, (1 + level) / 2])
    return float(values.mean()), float(low), float(high)
