"""How much rests on one task, and on the flags being right.

Leave-one-task-out: the estimate without each task. Label error: every flag is dropped with the probability that
an accusation is false (measure it by the benign control), every other task is flagged with the probability that
the audit missed it; estimate and permutation p are recomputed for each draw.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...envs.errors import ConfigError
from ...envs.record import Record
from .data import Array, Codes, Flags
from .permutation import shuffled_flags, statistic_weights
from .stratified import Design


@dataclass(frozen=True, kw_only=True)
class LeaveOneOut(Record):
    """Range of the mean risk difference when one task is left out.

    influential: (task, estimate without it), strongest first. flagged_p_greater_max: the largest one-sided
    permutation p when one *flagged* task is left out.
    """

    low: float
    high: float
    influential: tuple[tuple[str, float], ...]
    flagged_p_greater_max: float
    flagged_p_task: str


@dataclass(frozen=True, kw_only=True)
class LabelError(Record):
    """Distribution over draws of corrected flags: estimate quantiles (2.5, 50, 97.5 %) and share with p < 0.05."""

    false_accusation: float
    missed: float
    draws: int
    low: float
    median: float
    high: float
    share_p_below: float
    undefined: int
    seed: int


def leave_one_out(
    rates: Array,
    design: Design,
    cells: Codes,
    tasks: tuple[str, ...],
    *,
    permutations: int = 2_000,
    seed: int = 0,
    top: int = 5,
) -> LeaveOneOut:
    """rates: (T,) share of submissions that solve each task."""
    full = float(rates @ design.contrast)
    without = np.full(len(tasks), full)
    p_values: dict[str, float] = {}
    for i in np.flatnonzero(design.informative):
        keep = np.arange(len(tasks)) != i
        smaller = _design(design.flags[keep], design.codes[keep])
        if smaller is None:
            without[i] = np.nan
            continue
        without[i] = rates[keep] @ smaller.contrast
        if design.flags[i]:
            p_values[tasks[i]] = _p_greater(rates[keep], smaller, cells[keep], permutations, seed)
    order = np.argsort(-np.abs(np.nan_to_num(without, nan=full) - full), kind="stable")[:top]
    worst = max(p_values, key=lambda task: p_values[task], default="")
    return LeaveOneOut(
        low=float(np.nanmin(without)),
        high=float(np.nanmax(without)),
        influential=tuple((tasks[i], float(without[i])) for i in order if without[i] != full),
        flagged_p_greater_max=p_values.get(worst, float("nan")),
        flagged_p_task=worst,
    )


def label_error(
    rates: Array,
    design: Design,
    cells: Codes,
    *,
    false_accusation: float,
    missed: float = 0.0,
    draws: int = 300,
    permutations: int = 500,
    seed: int = 0,
    alpha: float = 0.05,
) -> LabelError:
    """Redraw the flags `draws` times; draws that leave no stratum with both kinds are counted as undefined."""
    if not (0 <= false_accusation <= 1 and 0 <= missed <= 1):
        raise ConfigError("Label error rates are probabilities.", mend="Give values from 0 to 1.")
    rng = np.random.default_rng(seed)
    estimates, p_values = [], []
    for draw in range(draws):
        chance = rng.random(len(rates))
        flags = np.where(design.flags, chance >= false_accusation, chance < missed)
        redrawn = _design(flags, design.codes)
        if redrawn is None:
            continue
        estimates.append(float(rates @ redrawn.contrast))
        p_values.append(_p_greater(rates, redrawn, cells, permutations, seed + draw))
    low, median, high = np.quantile(estimates, [0.025, 0.5, 0.975]) if estimates else [float("nan")] * 3
    return LabelError(
        false_accusation=false_accusation,
        missed=missed,
        draws=draws,
        low=float(low),
        median=float(median),
        high=float(high),
        share_p_below=float(np.mean(np.array(p_values) < alpha)) if p_values else float("nan"),
        undefined=draws - len(estimates),
        seed=seed,
    )


def _design(flags: Flags, codes: Codes) -> Design | None:
    """The design, or None where no stratum holds both kinds any more."""
    try:
        return Design.of(flags, codes)
    except ConfigError:
        return None


def _p_greater(rates: Array, design: Design, cells: Codes, permutations: int, seed: int) -> float:
    rng = np.random.default_rng(seed)
    weights, constant = statistic_weights(design, rates)
    observed = design.flags @ weights + constant
    values = shuffled_flags(design.flags, cells, permutations, rng) @ weights + constant
    return (1 + int((values >= observed - 1e-12).sum())) / (permutations + 1)
