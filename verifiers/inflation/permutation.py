"""The primary test: are the *flags* exchangeable among tasks of the same stratum?

Submissions share the tasks, so one easy task lifts all of them at once, and tests that take submissions as
independent are far too sure. The unit of randomisation here is the task: flags are shuffled within strata, and
the mean risk difference over submissions is compared with its shuffled values. Exact up to Monte Carlo error
whatever the dependence between submissions (Phipson & Smyth 2010 for the +1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...envs.record import Record
from .data import Array, Codes, Flags
from .pooling import dersimonian_laird
from .stratified import Design, from_counts

CHUNK = 2_000
HISTOGRAM_BINS = 60


@dataclass(frozen=True, kw_only=True)
class Permutation(Record):
    """Result of one permutation test.

    observed: the mean risk difference. null_mean: its mean under shuffling (not 0 when cells are finer than the
    strata of the estimate). exchangeable: tasks in cells with both kinds; only their flags can move.
    edges, counts: histogram of the shuffled values.
    """

    within: tuple[str, ...]
    observed: float
    p_greater: float
    p_two_sided: float
    null_mean: float
    null_sd: float
    permutations: int
    seed: int
    exchangeable: int
    flagged_exchangeable: int
    edges: tuple[float, ...] = ()
    counts: tuple[int, ...] = ()

    @property
    def beyond_null(self) -> float:
        """The observed difference minus what shuffling within the cells gives on average."""
        return self.observed - self.null_mean


def shuffled_flags(flags: Flags, cells: Codes, count: int, rng: np.random.Generator) -> Flags:
    """(count, T) flags, each row a shuffle within cells; every cell keeps its number of flags."""
    result = np.repeat(flags[None, :], count, axis=0)
    for cell in np.unique(cells):
        place = np.flatnonzero(cells == cell)
        chosen = int(flags[place].sum())
        if 0 < chosen < len(place):
            order = rng.random((count, len(place))).argpartition(chosen - 1, axis=1)[:, :chosen]
            block = np.zeros((count, len(place)), dtype=bool)
            np.put_along_axis(block, order, True, axis=1)
            result[:, place] = block
    return result


def statistic_weights(design: Design, rates: Array) -> tuple[Array, Array]:
    """(T, …) g and (…) constant with mean risk difference = flags · g + constant.

    rates: (T, …) share of submissions that solve each task. Holds for any flags that keep the number of
    flagged tasks in every stratum, which shuffles within (or finer than) the strata do.
    """
    use = design.weight > 0
    share = design.weight / design.weight.sum()
    one = np.divide(share, design.flagged, out=np.zeros_like(share), where=use)
    zero = np.divide(share, design.unflagged, out=np.zeros_like(share), where=use)
    shape = (-1, *([1] * (rates.ndim - 1)))
    return rates * (one + zero)[design.codes].reshape(shape), -np.tensordot(
        zero[design.codes], rates, axes=(0, 0)
    )


def permutation_test(
    rates: Array,
    design: Design,
    cells: Codes,
    *,
    permutations: int = 20_000,
    seed: int = 0,
    within: tuple[str, ...] = (),
) -> Permutation:
    """Shuffle flags within `cells` (which must be `design`'s strata or finer).

    rates: (T,) share of submissions that solve each task.
    """
    rng = np.random.default_rng(seed)
    weights, constant = statistic_weights(design, rates)
    observed = float(design.flags @ weights + constant)
    values = np.concatenate(
        [
            shuffled_flags(design.flags, cells, size, rng) @ weights + constant
            for size in _chunks(permutations)
        ]
    )
    centre = float(values.mean())
    slack = 1e-12 + 1e-9 * abs(observed)
    counts, edges = np.histogram(values, bins=HISTOGRAM_BINS)
    movable = _movable(design.flags, cells)
    return Permutation(
        within=within,
        observed=observed,
        p_greater=(1 + int((values >= observed - slack).sum())) / (permutations + 1),
        p_two_sided=(1 + int((np.abs(values - centre) >= abs(observed - centre) - slack).sum()))
        / (permutations + 1),
        null_mean=centre,
        null_sd=float(values.std()),
        permutations=permutations,
        seed=seed,
        exchangeable=int(movable.sum()),
        flagged_exchangeable=int((movable & design.flags).sum()),
        edges=tuple(float(edge) for edge in edges),
        counts=tuple(int(count) for count in counts),
    )


def pooled_test_size(
    solved: Array, design: Design, *, permutations: int = 1_000, seed: int = 0, alpha: float = 0.05
) -> float:
    """How often the pooled (DL) two-sided test rejects when the flags are shuffled on *these* data.

    A valid test gives alpha. Submissions without variance under a shuffle are given a tiny weight.
    """
    from scipy import stats

    rng = np.random.default_rng(seed)
    flags = shuffled_flags(design.flags, design.codes, permutations, rng).astype(float)
    strata = len(design.weight)
    solved_flagged = np.empty((permutations, len(solved), strata))
    for k in range(strata):
        place = design.codes == k
        solved_flagged[:, :, k] = flags[:, place] @ solved[:, place].T
    total = np.stack([solved[:, design.codes == k].sum(1) for k in range(strata)], axis=1)
    y, v = from_counts(solved_flagged, total[None] - solved_flagged, design)
    floor = np.where(v > 0, v, 1e6)
    estimate, se = dersimonian_laird(y, floor)
    return float((np.abs(estimate / se) > stats.norm.ppf(1 - alpha / 2)).mean())


def _movable(flags: Flags, cells: Codes) -> Flags:
    flagged = np.bincount(cells[flags], minlength=int(cells.max()) + 1)
    total = np.bincount(cells, minlength=int(cells.max()) + 1)
    mask: Flags = ((flagged > 0) & (flagged < total))[cells]
    return mask


def _chunks(total: int) -> list[int]:
    return [min(CHUNK, total - start) for start in range(0, total, CHUNK)]
