"""The whole analysis: `analyse(results, flagged, audited) -> Inflation`, a record that text, plots and report read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from ...envs.errors import ConfigError
from ...envs.record import Record
from .bootstrap import Bootstrap, two_way_bootstrap
from .data import Array, Codes, Results
from .moderators import Moderator, groupings, moderate
from .permutation import Permutation, permutation_test, pooled_test_size
from .pooling import Pooled, pool
from .sensitivity import LabelError, LeaveOneOut, label_error, leave_one_out
from .stratified import Design, risk_differences

PRIMARY_CELLS = ("difficulty", "repo")


@dataclass(frozen=True, kw_only=True)
class Stratum(Record):
    """One stratum: its counts, the mean solve rates of its flagged and unflagged tasks, its weight (sums to 1)."""

    label: str
    flagged: int
    unflagged: int
    rate_flagged: float | None
    rate_unflagged: float | None
    weight: float


@dataclass(frozen=True, kw_only=True)
class Unit(Record):
    """One submission: risk difference with its standard error; Pass@1 on the compared tasks."""

    submission: str
    name: str
    estimate: float
    se: float
    pass_at_1: float


@dataclass(frozen=True, kw_only=True)
class Inflation(Record):
    """Everything the analysis found. Differences are in risk units (0.14 is 14 points).

    primary: permutation of flags within the finest cells asked for. by_strata: within the strata of the estimate.
    pooled_size: how often the pooled test rejects when the flags are shuffled on these data (should be 0.05).
    sign: positive, negative, zero submissions and the one-sided sign test's p.
    """

    audited: int
    flagged: int
    submissions: int
    strata: tuple[str, ...]
    cells: tuple[str, ...]
    estimate: float
    primary: Permutation
    by_strata: Permutation
    interval: Bootstrap
    pooled: tuple[Pooled, ...]
    pooled_size: float
    sign: tuple[int, int, int, float]
    left_out: LeaveOneOut
    label_error: tuple[LabelError, ...]
    moderators: tuple[Moderator, ...]
    table: tuple[Stratum, ...]
    units: tuple[Unit, ...]
    flagged_tasks: tuple[str, ...]
    without_variance: int = 0
    outside: int = 0
    seed: int = 0
    inputs: dict[str, str] = field(default_factory=dict)

    def pooled_by(self, method: str, *, hartung_knapp: bool = False) -> Pooled:
        return next(p for p in self.pooled if p.method == method and p.hartung_knapp is hartung_knapp)


def analyse(
    results: Results,
    flagged: Iterable[str],
    audited: Iterable[str] | None = None,
    *,
    strata: tuple[str, ...] = ("difficulty",),
    cells: tuple[str, ...] | None = None,
    permutations: int = 20_000,
    replicates: int = 4_000,
    false_accusation: Iterable[float] = (0.05, 0.169),
    missed: float = 0.0,
    seed: int = 0,
) -> Inflation:
    """Compare flagged with unflagged among the audited tasks (None: all of the matrix).

    strata: columns the estimate is stratified by. cells: columns the primary permutation shuffles within; they
    are crossed with the strata (None: difficulty × repository as far as the table has them).
    Raises ConfigError when nothing can be compared.
    """
    flags_of = set(flagged)
    outside = 0
    if audited is not None:
        chosen = set(audited)
        outside = len(flags_of - chosen)
        results = results.restricted(chosen)
    flags = results.mask(flags_of)
    if not results.tasks or not flags.any() or flags.all():
        raise ConfigError(
            f"Nothing to compare: {int(flags.sum())} of {len(flags)} audited tasks are flagged.",
            mend="An audit with both flagged and unflagged tasks is needed.",
        )
    names = tuple(n for n in (PRIMARY_CELLS if cells is None else cells) if n in results.columns)
    finest = tuple(dict.fromkeys((*strata, *names)))
    codes, labels = results.codes(strata)
    cell_codes, _ = results.codes(finest)
    design = Design.of(flags, codes)
    rates = results.solved.mean(0)
    y, v = risk_differences(results.solved, design)
    use = v > 0
    positive, negative = int((y > 0).sum()), int((y < 0).sum())
    return Inflation(
        audited=len(results.tasks),
        flagged=int(flags.sum()),
        submissions=len(results.submissions),
        strata=strata,
        cells=finest,
        estimate=float(y.mean()),
        primary=permutation_test(
            rates, design, cell_codes, permutations=permutations, seed=seed, within=finest
        ),
        by_strata=permutation_test(rates, design, codes, permutations=permutations, seed=seed, within=strata),
        interval=two_way_bootstrap(results.solved, design, replicates=replicates, seed=seed),
        pooled=_pooled(y[use], v[use]),
        pooled_size=pooled_test_size(results.solved, design, seed=seed),
        sign=(positive, negative, len(y) - positive - negative, _sign_p(positive, negative)),
        left_out=leave_one_out(rates, design, cell_codes, results.tasks, seed=seed),
        label_error=tuple(
            label_error(rates, design, cell_codes, false_accusation=rate, missed=missed, seed=seed)
            for rate in false_accusation
        ),
        moderators=moderate(results.solved, design, codes, groupings(results), seed=seed),
        table=_table(rates, design, labels),
        units=_units(results, y, v),
        flagged_tasks=tuple(task for task, flag in zip(results.tasks, flags, strict=True) if flag),
        without_variance=int((~use).sum()),
        outside=outside,
        seed=seed,
    )


def _pooled(y: Array, v: Array) -> tuple[Pooled, ...]:
    if len(y) < 2:
        return ()
    return tuple(
        pool(y, v, method, hartung_knapp=knapp) for method in ("DL", "REML", "PM") for knapp in (False, True)
    )


def _sign_p(positive: int, negative: int) -> float:
    from scipy import stats

    if positive + negative == 0:
        return 1.0
    return float(stats.binomtest(positive, positive + negative, alternative="greater").pvalue)


def _table(rates: Array, design: Design, labels: tuple[str, ...]) -> tuple[Stratum, ...]:
    share = design.weight / design.weight.sum()
    rows = []
    for k, label in enumerate(labels):
        here: Codes = design.codes == k
        yes, no = rates[here & design.flags], rates[here & ~design.flags]
        rows.append(
            Stratum(
                label=label,
                flagged=len(yes),
                unflagged=len(no),
                rate_flagged=float(yes.mean()) if len(yes) else None,
                rate_unflagged=float(no.mean()) if len(no) else None,
                weight=float(share[k]),
            )
        )
    return tuple(rows)


def _units(results: Results, y: Array, v: Array) -> tuple[Unit, ...]:
    names = results.submission_columns.get("name", results.submissions)
    score = results.solved.mean(1)
    return tuple(
        Unit(
            submission=results.submissions[i],
            name=names[i],
            estimate=float(y[i]),
            se=float(np.sqrt(v[i])),
            pass_at_1=float(score[i]),
        )
        for i in range(len(y))
    )
