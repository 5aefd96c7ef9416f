"""Data with a known truth, to find out what the tests are worth.

`rasch_null`: submissions and tasks drawn from a Rasch model without any effect of the flags. `plant`: a given
effect put into a real matrix. `rejections`: how often each test rejects over many flag sets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from ...envs.record import Record
from .bootstrap import two_way_bootstrap
from .data import Array, Codes, Flags
from .permutation import permutation_test
from .pooling import pool
from .stratified import Design, risk_differences


@dataclass(frozen=True, kw_only=True)
class Rejections(Record):
    """Counts over `sets` flag sets at alpha: two-sided pooled (DL), two- and one-sided permutation; coverage.

    covered: bootstrap intervals that hold the true difference. median_i2: of the pooled analyses, in percent.
    """

    sets: int
    alpha: float
    pooled: int
    permutation: int
    permutation_greater: int
    covered: int
    median_i2: float
    median_q_over_df: float
    mean_estimate: float


def rasch_null(
    submissions: int, tasks: int, *, ability_sd: float = 1.0, difficulty_sd: float = 1.5, seed: int = 0
) -> Array:
    """(S, T) outcomes with logit P = ability - difficulty, both normal: flags have no effect at all."""
    rng = np.random.default_rng(seed)
    logit = rng.normal(0, ability_sd, (submissions, 1)) - rng.normal(0, difficulty_sd, (1, tasks))
    solved: Array = (rng.random((submissions, tasks)) < 1 / (1 + np.exp(-logit))).astype(float)
    return solved


def random_flags(tasks: int, flagged: int, count: int, *, seed: int = 0) -> list[Flags]:
    """`count` sets of `flagged` tasks drawn without regard to anything."""
    rng = np.random.default_rng(seed)
    sets = []
    for _ in range(count):
        flags = np.zeros(tasks, dtype=bool)
        flags[rng.choice(tasks, flagged, replace=False)] = True
        sets.append(flags)
    return sets


def plant(solved: Array, flags: Flags, points: float, *, seed: int = 0) -> Array:
    """The matrix with unsolved cells of flagged tasks turned solved, each with the same chance.

    The chance is such that the mean over all tasks would rise by `points` (0.15), so for flagged tasks drawn at
    random the rise is `points` in expectation (more on harder tasks, less on easier ones).
    """
    rng = np.random.default_rng(seed)
    room = 1 - solved.mean()
    lift = rng.random(solved.shape) < min(1.0, points / room)
    result: Array = np.where(flags[None, :] & lift, 1.0, solved)
    return result


def rejections(
    cases: Iterable[tuple[Array, Flags]],
    codes: Codes,
    cells: Codes,
    *,
    alpha: float = 0.05,
    permutations: int = 2_000,
    replicates: int = 500,
    truth: float = 0.0,
    progress: Callable[[int], None] | None = None,
) -> Rejections:
    """Run all tests on each (matrix, flags). `truth`: the difference that the bootstrap should cover."""
    pooled = two_sided = greater = covered = number = 0
    i2, ratio, estimates = [], [], []
    for number, (solved, flags) in enumerate(cases, start=1):
        design = Design.of(flags, codes)
        y, v = risk_differences(solved, design)
        meta = pool(y[v > 0], v[v > 0], "DL")
        test = permutation_test(solved.mean(0), design, cells, permutations=permutations, seed=number)
        interval = two_way_bootstrap(solved, design, replicates=replicates, seed=number)
        pooled += meta.p_two_sided < alpha
        two_sided += test.p_two_sided < alpha
        greater += test.p_greater < alpha
        covered += interval.low <= truth <= interval.high
        i2.append(meta.i2)
        ratio.append(meta.q_over_df)
        estimates.append(test.observed)
        if progress:
            progress(number)
    return Rejections(
        sets=number,
        alpha=alpha,
        pooled=pooled,
        permutation=two_sided,
        permutation_greater=greater,
        covered=covered,
        median_i2=float(np.median(i2)),
        median_q_over_df=float(np.median(ratio)),
        mean_estimate=float(np.mean(estimates)),
    )
