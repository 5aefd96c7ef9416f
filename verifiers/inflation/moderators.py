"""Does the difference depend on the submission: its date, its board, its Pass@1?

For each group of submissions: mean risk difference, two-way bootstrap interval, and the task-level permutation
p of the difference *between* groups (flags shuffled, groups kept; the statistic is the weighted variance of the
groups' differences). Pass@1 moves the difference mechanically: a submission that solves nearly nothing, or
nearly everything, has no room for one.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from ...envs.record import Record
from .bootstrap import two_way_bootstrap
from .data import Array, Codes, Results
from .permutation import shuffled_flags, statistic_weights
from .stratified import Design


@dataclass(frozen=True, kw_only=True)
class Group(Record):
    label: str
    submissions: int
    estimate: float
    low: float
    high: float


@dataclass(frozen=True, kw_only=True)
class Moderator(Record):
    """One moderator: its groups, and the permutation p of their differences being equal."""

    name: str
    groups: tuple[Group, ...]
    p_between: float
    permutations: int
    seed: int


def groupings(results: Results) -> dict[str, tuple[str, ...]]:
    """Label per submission for every moderator these results have; quarters of the Pass@1 on these tasks."""
    found: dict[str, tuple[str, ...]] = {}
    columns = results.submission_columns
    if "date" in columns:
        found["half-year"] = tuple(_half_year(date) for date in columns["date"])
    if "board" in columns:
        found["board"] = columns["board"]
    score = results.solved.mean(1)
    cuts = np.quantile(score, [0.25, 0.5, 0.75])
    place = np.searchsorted(cuts, score, side="left")
    found["Pass@1 quartile"] = tuple(f"Q{i + 1}" for i in place)
    return {name: labels for name, labels in found.items() if len(set(labels)) > 1}


def moderate(
    solved: Array,
    design: Design,
    cells: Codes,
    labels: Mapping[str, tuple[str, ...]],
    *,
    permutations: int = 5_000,
    replicates: int = 1_000,
    seed: int = 0,
) -> tuple[Moderator, ...]:
    """One `Moderator` for each labelling of the submissions."""
    return tuple(
        _moderator(name, solved, design, cells, np.array(values), permutations, replicates, seed)
        for name, values in labels.items()
    )


def _moderator(
    name: str,
    solved: Array,
    design: Design,
    cells: Codes,
    labels: np.typing.NDArray[np.str_],
    permutations: int,
    replicates: int,
    seed: int,
) -> Moderator:
    known = sorted(set(labels.tolist()))
    rates = np.stack([solved[labels == label].mean(0) for label in known], axis=1)
    sizes = np.array([(labels == label).sum() for label in known], dtype=float)
    weights, constant = statistic_weights(design, rates)
    rng = np.random.default_rng(seed)
    shuffled = shuffled_flags(design.flags, cells, permutations, rng) @ weights + constant
    centre = shuffled.mean(0)
    observed = _spread((design.flags @ weights + constant - centre)[None, :], sizes)[0]
    at_least = int((_spread(shuffled - centre, sizes) >= observed - 1e-15).sum())
    groups = []
    for place, label in enumerate(known):
        interval = two_way_bootstrap(solved[labels == label], design, replicates=replicates, seed=seed)
        groups.append(
            Group(
                label=label,
                submissions=int(sizes[place]),
                estimate=float(rates[:, place] @ design.contrast),
                low=interval.low,
                high=interval.high,
            )
        )
    return Moderator(
        name=name,
        groups=tuple(groups),
        p_between=(1 + at_least) / (permutations + 1),
        permutations=permutations,
        seed=seed,
    )


def _spread(values: Array, sizes: Array) -> Array:
    """(B,) variance of the groups' values about their mean, weighted by the groups' sizes."""
    share = sizes / sizes.sum()
    mean = values @ share
    result: Array = ((values - mean[:, None]) ** 2) @ share
    return result


def _half_year(date: str) -> str:
    year, month = date[:4], date[5:7]
    return f"{year}-H{1 if month <= '06' else 2}" if month else year or "unknown"
