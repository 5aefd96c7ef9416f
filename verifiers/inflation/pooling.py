"""Random-effects pooling of k estimates y with known variances v (intercept only).

Our own few lines over SciPy, because they are called thousands of times and must agree with reference values
to 1e-6: DerSimonian & Laird 1986 (DL), restricted maximum likelihood (REML), Paule & Mandel
1982 (PM); Hartung & Knapp 2001 / Sidik & Jonkman 2002 standard errors; Q-profile intervals (Viechtbauer 2007);
prediction interval (Higgins et al. 2009, degrees of freedom as in metafor). The tests compare them with
metafor, statsmodels and PyMARE.
Not covered: moderators inside the model, correlated estimates (that is what the permutation test is for).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...envs.errors import ConfigError
from ...envs.record import Record
from .data import Array

METHODS = ("DL", "REML", "PM")


@dataclass(frozen=True, kw_only=True)
class Pooled(Record):
    """One pooled estimate. Intervals are 95 % unless said otherwise; p values are against 0."""

    method: str
    hartung_knapp: bool
    estimate: float
    se: float
    low: float
    high: float
    p_two_sided: float
    p_greater: float
    tau2: float
    tau2_low: float
    tau2_high: float
    i2: float
    i2_low: float
    i2_high: float
    q: float
    df: int
    q_p: float
    predict_low: float
    predict_high: float
    units: int

    @property
    def q_over_df(self) -> float:
        """1 when the spread is what the variances promise; far below 1 is a sign that units are not independent."""
        return self.q / self.df if self.df else float("nan")


def pool(
    y: Array, v: Array, method: str = "DL", *, hartung_knapp: bool = False, level: float = 0.95
) -> Pooled:
    """Pool y (k,) with variances v (k,), all positive. I² and its interval are in percent."""
    from scipy import stats

    _check(y, v, method)
    df = len(y) - 1
    tau2 = tau_squared(y, v, method)
    w = 1 / (v + tau2)
    estimate = float((w * y).sum() / w.sum())
    se = float(1 / np.sqrt(w.sum()))
    law: Any = stats.norm()
    if hartung_knapp:
        se *= float(np.sqrt((w * (y - estimate) ** 2).sum() / df))
        law = stats.t(df)
    reach = float(law.ppf(0.5 + level / 2))
    spread = reach * float(np.hypot(se, np.sqrt(tau2)))
    low, high = tau_squared_interval(y, v, level)
    q = cochran_q(y, v)
    z = estimate / se
    return Pooled(
        method=method,
        hartung_knapp=hartung_knapp,
        estimate=estimate,
        se=se,
        low=estimate - reach * se,
        high=estimate + reach * se,
        p_two_sided=float(2 * law.sf(abs(z))),
        p_greater=float(law.sf(z)),
        tau2=tau2,
        tau2_low=low,
        tau2_high=high,
        i2=i_squared(tau2, v),
        i2_low=i_squared(low, v),
        i2_high=i_squared(high, v),
        q=q,
        df=df,
        q_p=float(stats.chi2.sf(q, df)),
        predict_low=estimate - spread,
        predict_high=estimate + spread,
        units=len(y),
    )


def cochran_q(y: Array, v: Array, tau2: float = 0.0) -> float:
    """Generalised Q: the weighted sum of squares about the weighted mean, at a given tau²."""
    w = 1 / (v + tau2)
    return float((w * (y - (w * y).sum() / w.sum()) ** 2).sum())


def tau_squared(y: Array, v: Array, method: str) -> float:
    """Between-unit variance, truncated at 0."""
    if method == "DL":
        w = 1 / v
        return max(0.0, (cochran_q(y, v) - (len(y) - 1)) / float(w.sum() - (w**2).sum() / w.sum()))
    if method == "PM":
        return _profile_root(y, v, float(len(y) - 1))
    return _reml(y, v)


def tau_squared_interval(y: Array, v: Array, level: float = 0.95) -> tuple[float, float]:
    """Q-profile interval: the tau² at which the generalised Q equals the chi² quantiles."""
    from scipy import stats

    df = len(y) - 1
    return (
        _profile_root(y, v, float(stats.chi2.ppf(0.5 + level / 2, df))),
        _profile_root(y, v, float(stats.chi2.ppf(0.5 - level / 2, df))),
    )


def i_squared(tau2: float, v: Array) -> float:
    """Percent of total variance that lies between units, against the typical within-unit variance."""
    w = 1 / v
    typical = (len(v) - 1) * w.sum() / (w.sum() ** 2 - (w**2).sum())
    return float(100 * tau2 / (tau2 + typical))


def dersimonian_laird(y: Array, v: Array) -> tuple[Array, Array]:
    """Estimates and standard errors for many pools at once: y, v of shape (…, k)."""
    w = 1 / v
    sum_w = w.sum(-1)
    fixed = (w * y).sum(-1) / sum_w
    q = (w * (y - fixed[..., None]) ** 2).sum(-1)
    tau2 = np.maximum(0.0, (q - (y.shape[-1] - 1)) / (sum_w - (w**2).sum(-1) / sum_w))
    w = 1 / (v + tau2[..., None])
    return (w * y).sum(-1) / w.sum(-1), 1 / np.sqrt(w.sum(-1))


def _check(y: Array, v: Array, method: str) -> None:
    if method not in METHODS:
        raise ConfigError(f"No pooling method {method!r}.", mend=f"There are: {', '.join(METHODS)}.")
    if len(y) < 2 or len(y) != len(v) or not (np.isfinite(y).all() and (v > 0).all()):
        raise ConfigError("Pooling needs at least two finite estimates with positive variances.")


def _profile_root(y: Array, v: Array, target: float) -> float:
    """The tau² >= 0 at which the generalised Q falls to `target` (0 when it starts below)."""
    return _root(lambda tau2: cochran_q(y, v, tau2) - target, float(np.var(y) + v.max()))


def _root(f: Callable[[float], float], scale: float) -> float:
    """Root of a decreasing function on [0, infinity), 0 when f(0) <= 0."""
    from scipy.optimize import brentq

    if f(0.0) <= 0:
        return 0.0
    high = scale
    while f(high) > 0:
        high *= 4
    return float(brentq(f, 0.0, high, xtol=1e-15, rtol=1e-14))


def _reml(y: Array, v: Array) -> float:
    """The highest peak of the restricted likelihood: found on a grid, then the root of its score.

    (Fisher scoring alone oscillates when variances differ by orders of magnitude, as they do when some
    submissions solve next to nothing.)
    """
    from scipy.optimize import brentq

    scale = float(np.var(y) + v.max())
    grid = np.concatenate([[0.0], np.geomspace(1e-9 * scale, 100 * scale, 400)])
    best = int(np.argmax([_restricted_likelihood(y, v, float(tau2)) for tau2 in grid]))
    low, high = float(grid[max(best - 1, 0)]), float(grid[min(best + 1, len(grid) - 1)])
    if _restricted_score(y, v, low) <= 0:
        return 0.0
    return float(brentq(lambda tau2: _restricted_score(y, v, tau2), low, high, xtol=1e-15, rtol=1e-14))


def _restricted_likelihood(y: Array, v: Array, tau2: float) -> float:
    w = 1 / (v + tau2)
    return float(np.log(w).sum() - np.log(w.sum()) - cochran_q(y, v, tau2)) / 2


def _restricted_score(y: Array, v: Array, tau2: float) -> float:
    """Twice the derivative of the restricted log-likelihood by tau²."""
    w = 1 / (v + tau2)
    total = w.sum()
    residual = y - (w * y).sum() / total
    return float(((w * residual) ** 2).sum() - total + (w**2).sum() / total)
