"""Intervals and agreement: Wilson, Jeffreys, bootstrap over clusters, Fleiss' kappa.

Every function takes counts or plain numbers and returns floats; everything random takes a seed. A rate is
always shown as its pair (numerator, denominator) beside these intervals, and the interval is named.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from statistics import NormalDist
from typing import TypeVar

T = TypeVar("T")
Interval = tuple[float, float]


def wilson(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Wilson score interval of a proportion; None without trials.

    Source: E. B. Wilson, JASA 22 (1927) 209-212. No continuity correction.
    """
    _check(successes, trials, level)
    return _wilson(successes / trials, trials, level) if trials else None


def clustered_wilson(pairs: Iterable[tuple[int, int]], level: float = 0.95) -> Interval | None:
    """Wilson interval of a proportion whose trials come in clusters (tasks); None without trials.

    pairs: (successes, trials) of each cluster. The trials count as so many fewer as the between-cluster variance of the
    ratio is larger than the binomial one (design effect, at least 1). A share of 0 or 1 shows no variance: there each
    cluster counts as wholly correlated in itself (Kish: the square of the total over the sum of squares).
    Source: Wilson as above, on the effective sample size of Korn & Graubard (Survey Methodology 24, 1998).
    """
    held = [(part, whole) for part, whole in pairs if whole]
    for part, whole in held:
        _check(part, whole, level)
    total = sum(whole for _, whole in held)
    if not total:
        return None
    share, count = sum(part for part, _ in held) / total, len(held)
    size = total * total / sum(whole * whole for _, whole in held)
    if 0 < share < 1 and count > 1:
        spread = sum((part - share * whole) ** 2 for part, whole in held) * count / (count - 1) / total**2
        size = total / max(1.0, spread * total / (share * (1 - share)))
    return _wilson(share, size, level)


def _wilson(share: float, trials: float, level: float) -> Interval:
    z = NormalDist().inv_cdf(0.5 + level / 2)
    centre = share + z * z / (2 * trials)
    spread = z * math.sqrt(share * (1 - share) / trials + z * z / (4 * trials * trials))
    scale = 1 + z * z / trials
    low = 0.0 if share == 0 else (centre - spread) / scale
    high = 1.0 if share == 1 else (centre + spread) / scale
    return low, high


def jeffreys(successes: int, trials: int, level: float = 0.95) -> Interval | None:
    """Equal-tailed Jeffreys interval (Beta(1/2, 1/2) prior); None without trials.

    The lower end is 0 at 0 successes and the upper end 1 at `trials` successes (Brown, Cai, DasGupta 2001).
    """
    _check(successes, trials, level)
    if trials == 0:
        return None
    from scipy.stats import beta

    tail = (1 - level) / 2
    a, b = successes + 0.5, trials - successes + 0.5
    low = 0.0 if successes == 0 else float(beta.ppf(tail, a, b))
    high = 1.0 if successes == trials else float(beta.ppf(1 - tail, a, b))
    return low, high


def cluster_bootstrap(
    items: Iterable[T],
    cluster: Callable[[T], Hashable],
    statistic: Callable[[Sequence[T]], float | None],
    *,
    draws: int = 1000,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Percentile interval of `statistic` when whole clusters (tasks) are drawn with replacement.

    Draws on which the statistic is undefined (None) are left out; None when more than half of them are.
    Not covered: bias correction; with fewer than about ten clusters the interval is too narrow.
    """
    groups: dict[Hashable, list[T]] = {}
    for item in items:
        groups.setdefault(cluster(item), []).append(item)
    if not groups:
        return None
    keys = sorted(groups, key=repr)
    rng = random.Random(seed)
    values: list[float] = []
    for _ in range(draws):
        drawn = [item for key in rng.choices(keys, k=len(keys)) for item in groups[key]]
        value = statistic(drawn)
        if value is not None:
            values.append(value)
    return percentile_interval(values, level) if len(values) * 2 > draws else None


def percentile_interval(values: Sequence[float], level: float = 0.95) -> Interval | None:
    """The central `level` share of the values (linear interpolation between order statistics)."""
    if not values:
        return None
    ordered = sorted(values)
    return _quantile(ordered, (1 - level) / 2), _quantile(ordered, (1 + level) / 2)


def fleiss_kappa(ratings: Sequence[Mapping[str, int]]) -> float | None:
    """Fleiss' kappa of items rated by the same number of raters; one mapping label -> votes per item.

    None when there is no item, fewer than 2 raters, or only one label is ever used (chance agreement is 1).
    Raises ValueError when the numbers of raters differ. Source: J. L. Fleiss, Psychol. Bull. 76 (1971).
    """
    if not ratings:
        return None
    raters = {sum(votes.values()) for votes in ratings}
    if len(raters) != 1:
        raise ValueError(f"every item needs the same number of raters, got {sorted(raters)}")
    (n,) = raters
    if n < 2:
        return None
    labels = sorted({label for votes in ratings for label in votes})
    total = n * len(ratings)
    shares = [sum(votes.get(label, 0) for votes in ratings) / total for label in labels]
    chance = math.fsum(share * share for share in shares)
    agreed = math.fsum(
        (sum(count * count for count in votes.values()) - n) / (n * (n - 1)) for votes in ratings
    ) / len(ratings)
    return None if 1 - chance < 1e-15 else (agreed - chance) / (1 - chance)


def _quantile(ordered: Sequence[float], q: float) -> float:
    place = q * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (place - below)


def _check(successes: int, trials: int, level: float) -> None:
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is no proportion")
    if not 0 < level < 1:
        raise ValueError(f"the level {level} does not lie between 0 and 1")
