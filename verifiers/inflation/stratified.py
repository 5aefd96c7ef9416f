"""Mantel–Haenszel risk differences: within strata, flagged minus unflagged, for every submission at once.

Shapes: S submissions, T tasks, K strata. Everything is in risk units (0.14 is 14 points).
Source: Sato, Greenland & Robins, Biometrics 1989 (variance valid for few large and for many small strata);
Greenland & Robins, Biometrics 1985 (large strata only; kept for comparison).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ...envs.errors import ConfigError
from .data import Array, Codes, Flags


@dataclass(frozen=True)
class Design:
    """Flags and strata of the tasks, with what depends on nothing else.

    flagged, unflagged: (K,) counts. weight: (K,) Mantel–Haenszel weights, 0 for strata with one side only.
    """

    flags: Flags
    codes: Codes
    flagged: Array
    unflagged: Array
    weight: Array

    @classmethod
    def of(cls, flags: Flags, codes: Codes) -> Design:
        """Raises ConfigError when no stratum holds both a flagged and an unflagged task."""
        strata = int(codes.max()) + 1 if len(codes) else 0
        flagged = np.bincount(codes[flags], minlength=strata).astype(float)
        unflagged = np.bincount(codes[~flags], minlength=strata).astype(float)
        total = flagged + unflagged
        weight = np.divide(flagged * unflagged, total, out=np.zeros(strata), where=total > 0)
        if not weight.sum() > 0:
            raise ConfigError(
                f"No stratum holds both flagged and unflagged tasks ({int(flags.sum())} of {len(flags)} flagged).",
                mend="Use fewer --strata, or audit more tasks.",
            )
        return cls(flags, codes, flagged, unflagged, weight)

    @property
    def informative(self) -> Flags:
        """(T,) tasks in strata that hold both kinds; the others carry no information."""
        mask: Flags = (self.weight > 0)[self.codes]
        return mask

    @property
    def contrast(self) -> Array:
        """(T,) c with risk difference of a submission = its row of the matrix · c."""
        share = self.weight / self.weight.sum()
        one = np.divide(share, self.flagged, out=np.zeros_like(share), where=self.flagged > 0)
        zero = np.divide(share, self.unflagged, out=np.zeros_like(share), where=self.unflagged > 0)
        result: Array = np.where(self.flags, one[self.codes], -zero[self.codes])
        return result


def risk_differences(solved: Array, design: Design) -> tuple[Array, Array]:
    """(S,) Mantel–Haenszel risk differences and their (S,) Sato variances."""
    a, c = stratum_counts(solved, design)
    return from_counts(a, c, design)


def stratum_counts(solved: Array, design: Design) -> tuple[Array, Array]:
    """(S, K) solved tasks among the flagged and among the unflagged of each stratum."""
    member = np.eye(len(design.weight))[design.codes]
    return solved @ (member * design.flags[:, None]), solved @ (member * ~design.flags[:, None])


def from_counts(a: Array, c: Array, design: Design) -> tuple[Array, Array]:
    """Risk differences and variances from (…, K) counts of solved flagged (a) and unflagged (c) tasks."""
    use = design.weight > 0
    n1, n0, w = design.flagged[use], design.unflagged[use], design.weight[use]
    a, c, n = a[..., use], c[..., use], design.flagged[use] + design.unflagged[use]
    total = w.sum()
    estimate = (w * (a / n1 - c / n0)).sum(-1) / total
    p = ((n1 / n) ** 2 * c - (n0 / n) ** 2 * a + w / n * (n0 - n1) / 2).sum(-1)
    q = (a * (n0 - c) + c * (n1 - a)) / (2 * n)
    variance = (estimate * p + q.sum(-1)) / total**2
    return estimate, np.maximum(variance, 0.0)


def greenland_robins(a: Array, c: Array, design: Design) -> Array:
    """The older variance, too small when strata are small (0 for a stratum with one flagged task)."""
    use = design.weight > 0
    n1, n0, w = design.flagged[use], design.unflagged[use], design.weight[use]
    a, c = a[..., use], c[..., use]
    terms = w**2 * (a * (n1 - a) / n1**3 + c * (n0 - c) / n0**3)
    result: Array = terms.sum(-1) / w.sum() ** 2
    return result
