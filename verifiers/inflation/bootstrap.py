"""Two-way (submission × task) bootstrap interval of the mean risk difference.

Rows and columns are drawn independently (the pigeonhole bootstrap, Owen 2007): submissions with replacement,
and tasks with replacement within each stratum and flag, so that the strata's sizes stay. Small groups are
widened by sqrt(n/(n-1)), since a drawn group of n varies by the factor (n-1)/n too little; a group of one task
cannot vary at all, and borrows the spread of its stratum's other side (of all tasks where that has one too).
The percentile interval is stretched about the estimate by t/z, with as many degrees of freedom as the smaller
side has tasks less informative strata: percentiles alone are too narrow for a dozen flagged tasks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...envs.record import Record
from .data import Array
from .stratified import Design

CHUNK = 1_000


@dataclass(frozen=True, kw_only=True)
class Bootstrap(Record):
    """Interval (95 % unless `level` says otherwise) and standard error of the mean risk difference."""

    low: float
    high: float
    se: float
    level: float
    replicates: int
    seed: int


def two_way_bootstrap(
    solved: Array, design: Design, *, replicates: int = 4_000, level: float = 0.95, seed: int = 0
) -> Bootstrap:
    """Interval for the mean over submissions of the Mantel–Haenszel difference; solved (S, T)."""
    rng = np.random.default_rng(seed)
    values = np.concatenate(
        [
            _replicates(solved, design, min(CHUNK, replicates - start), rng)
            for start in range(0, replicates, CHUNK)
        ]
    )
    estimate = float(solved.mean(0) @ design.contrast)
    low, high = np.quantile(values, [0.5 - level / 2, 0.5 + level / 2]) - estimate
    stretch = _stretch(design, level)
    return Bootstrap(
        low=estimate + stretch * float(low),
        high=estimate + stretch * float(high),
        se=float(values.std(ddof=1)),
        level=level,
        replicates=replicates,
        seed=seed,
    )


def _stretch(design: Design, level: float) -> float:
    from scipy import stats

    use = design.weight > 0
    smaller = min(design.flagged[use].sum(), design.unflagged[use].sum())
    df = max(1.0, float(smaller - use.sum()))
    return float(stats.t.ppf(0.5 + level / 2, df) / stats.norm.ppf(0.5 + level / 2))


def _replicates(solved: Array, design: Design, count: int, rng: np.random.Generator) -> Array:
    submissions = len(solved)
    drawn = rng.multinomial(submissions, np.full(submissions, 1 / submissions), size=count)
    rates = drawn @ solved / submissions
    share = design.weight / design.weight.sum()
    total = np.zeros(count)
    for stratum in np.flatnonzero(design.weight > 0):
        groups = [np.flatnonzero((design.codes == stratum) & side) for side in (design.flags, ~design.flags)]
        means = [
            _resampled_mean(rates[:, group], rates[:, other], rates, rng)
            for group, other in (groups, groups[::-1])
        ]
        total += share[stratum] * (means[0] - means[1])
    return total


def _resampled_mean(rates: Array, other: Array, everything: Array, rng: np.random.Generator) -> Array:
    """(B,) mean over tasks drawn with replacement; rates is (B, n)."""
    count, size = rates.shape
    mean = rates.mean(1)
    if size > 1:
        weights = rng.multinomial(size, np.full(size, 1 / size), size=count) / size
        result: Array = mean + ((weights * rates).sum(1) - mean) * np.sqrt(size / (size - 1))
        return result
    pool = other if other.shape[1] > 1 else everything
    pick = rng.integers(pool.shape[1], size=count)
    moved: Array = mean + (pool[np.arange(count), pick] - pool.mean(1))
    return moved
