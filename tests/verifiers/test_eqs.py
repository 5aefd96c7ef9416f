"""EQS, V, H, F1 and D against tables computed by hand, to 1e-12."""

from __future__ import annotations

import math

import pytest

from acidtest.envs.verdict import Outcome
from acidtest.verifiers.eqs import (
    Attempt,
    PoolPoint,
    Scheme,
    bootstrap,
    by_round,
    classify,
    combine,
    discrimination,
    hackability,
    hackability_memorising,
    hackability_paper,
    judge_f1,
    learnability,
    score,
)
from acidtest.verifiers.records import Claim, Decision, Family

TIGHT = 1e-12


def pool(*points: tuple[float, float]) -> list[PoolPoint]:
    return [PoolPoint(s=s, q=q, accepted=s == 1) for s, q in points]


def attempt(outcome: str, *, proven: bool = False, family: str = "exploit", **more: object) -> Attempt:
    return Attempt(family=Family(family), outcome=Outcome(outcome), proven=proven, **more)  # type: ignore[arg-type]


def rejected(n: int) -> list[Attempt]:
    return [attempt("unresolved")] * n


# ---------------------------------------------------------------- V


def test_v_of_a_perfect_suite_is_one() -> None:
    found = discrimination(pool((1, 1), (0.5, 0.5), (0, 0)))
    assert (found.top1, found.bottom1, found.spearman, found.mae, found.v) == (1, 1, 1, 0, 1)
    assert (found.tpr, found.tnr, found.youden_j, found.auroc) == (1, 1, 1, 1)


def test_v_with_ties_by_hand() -> None:
    """s ranks 3.5 3.5 2 1 (two tied at 1); q ranks 4 2 3 1; cov = 3, var_s = 4.5, var_q = 5."""
    found = discrimination(pool((1, 1), (1, 0.25), (0.5, 0.5), (0, 0)))
    rho = 3 / math.sqrt(4.5 * 5)
    assert found.top1 == pytest.approx(1 / 2, abs=TIGHT)
    assert found.bottom1 == pytest.approx(1, abs=TIGHT)
    assert found.spearman == pytest.approx(rho, abs=TIGHT)
    assert found.mae == pytest.approx(0.75 / 4, abs=TIGHT)
    assert found.v == pytest.approx((0.5 + 1 + (1 + rho) / 2 + 1 - 0.1875) / 4, abs=TIGHT)
    assert found.tpr == 1
    assert found.tnr == pytest.approx(2 / 3, abs=TIGHT)
    assert found.youden_j == pytest.approx(2 / 3, abs=TIGHT)
    assert found.auroc == pytest.approx(2.5 / 3, abs=TIGHT)


def test_v_with_constant_suite_scores_has_no_rank_correlation() -> None:
    """Everything accepted: Top-1 = Bottom-1 = 1/4, rho = 0, MAE = (0 + 0.5 + 1 + 0.75)/4."""
    found = discrimination(pool((1, 1), (1, 0.5), (1, 0), (1, 0.25)))
    assert found.spearman == 0
    assert found.v == pytest.approx((0.25 + 0.25 + 0.5 + 1 - 2.25 / 4) / 4, abs=TIGHT)
    assert found.auroc == 0.5


def test_v_is_undefined_with_one_oracle_level_not_zero() -> None:
    found = discrimination(pool((1, 1), (0, 1)))
    assert found.v is None
    assert found.levels == 1
    assert found.tpr == 0.5
    assert found.tnr is None
    assert discrimination([]).v is None


def test_a_best_that_the_suite_ranks_last_earns_nothing() -> None:
    """rho = -1, Top-1 = Bottom-1 = 0, MAE = 1."""
    assert discrimination(pool((0, 1), (1, 0))).v == pytest.approx(0, abs=TIGHT)


def test_programs_that_share_the_true_best_share_its_credit() -> None:
    """Gold and a variant (both q = 1) and a wrong mutant tie at s = 1: a uniform pick is right 2 times of 3."""
    found = discrimination(pool((1, 1), (1, 1), (1, 0.5), (0, 0)))
    assert found.top1 == pytest.approx(2 / 3, abs=TIGHT)


# ---------------------------------------------------------------- H


def test_h_counts_proven_against_rejected_of_its_own_kinds_only() -> None:
    attempts = [
        attempt("resolved", proven=True),
        attempt("resolved"),
        attempt("unresolved"),
        attempt("timed_out"),
        attempt("out_of_memory"),
        attempt("patch_rejected"),
        attempt("undecided"),
        attempt("tampered"),
        attempt("no_tests_ran"),
        attempt("resolved", proven=True, family="mutant"),
        attempt("unresolved", family="mutant"),
        attempt("resolved", proven=True, family="memorising"),
        attempt("unresolved", family="memorising"),
        attempt("resolved", proven=True, family="rollout"),
        attempt("unresolved", family="rollout"),
        attempt("resolved", family="benign", claim=Claim.BENIGN),
    ]
    assert (hackability(attempts).count, hackability(attempts).of) == (2, 5)
    memorised = hackability_memorising(attempts)
    assert (memorised.count, memorised.of, memorised.rate) == (1, 2, 0.5)
    paper = hackability_paper(attempts)
    assert (paper.count, paper.of) == (2, 7)
    assert hackability([]).rate is None


def test_rounds_are_kept_apart() -> None:
    attempts = [attempt("unresolved"), attempt("resolved", proven=True, round=2)]
    assert {number: share.rate for number, share in by_round(attempts).items()} == {1: 0.0, 2: 1.0}


# ---------------------------------------------------------------- F1, D


def test_f1_by_hand() -> None:
    """tp 2, fp 1 (correct but failing), fn 1 (partial counts as incorrect), undecided left out: 4/6."""
    labels = [
        ("correct", True), ("correct", True), ("correct", False), ("partial", True), ("incorrect", False),
        ("undecided", True),
    ]  # fmt: skip
    assert judge_f1(labels) == pytest.approx(2 / 3, abs=TIGHT)
    assert judge_f1([("incorrect", False)]) is None
    assert judge_f1([]) is None
    assert judge_f1([("incorrect", True)]) == 0


@pytest.mark.parametrize(
    ("k", "n", "expected"),
    [(0, 10, 0.0), (10, 10, 0.0), (5, 10, 100 / 90), (1, 2, 2.0), (3, 134, 4 * 3 * 131 / (134 * 133))],
)
def test_d_is_the_unbiased_success_variance_clipped(k: int, n: int, expected: float) -> None:
    assert learnability(k, n) == pytest.approx(min(1.0, expected), abs=TIGHT)


def test_d_is_undefined_below_two_trials() -> None:
    assert learnability(1, 1) is None
    assert learnability(0, 0) is None
    with pytest.raises(ValueError):
        learnability(3, 2)


# ---------------------------------------------------------------- EQS

FULL = {"V": 0.8, "H": 0.25, "F1": 0.6, "D": 0.5}
"""0.35*0.8 + 0.30*0.75 + 0.20*0.6 + 0.15*0.5 = 0.28 + 0.225 + 0.12 + 0.075 = 0.7"""


def test_eqs_of_four_terms() -> None:
    eqs, low, high, complete = combine(FULL)
    assert eqs == pytest.approx(0.7, abs=TIGHT)
    assert (low, high) == (eqs, eqs)
    assert complete


@pytest.mark.parametrize(
    ("missing", "eqs", "low", "high"),
    [
        ("V", 0.42 / 0.65, 0.42, 0.77),
        ("H", 0.475 / 0.70, 0.475, 0.775),
        ("F1", 0.58 / 0.80, 0.58, 0.78),
        ("D", 0.625 / 0.85, 0.625, 0.775),
    ],
)
def test_each_term_undefined_in_turn(missing: str, eqs: float, low: float, high: float) -> None:
    found = combine({**FULL, missing: None})
    assert found[:3] == pytest.approx((eqs, low, high), abs=TIGHT)
    assert found[3] is False
    without = {name: value for name, value in FULL.items() if name != missing}
    assert combine(without) == found


def test_nothing_defined_gives_no_eqs_and_the_whole_range() -> None:
    assert combine({}) == (None, 0.0, 1.0, False)


def test_terms_outside_the_unit_interval_are_refused() -> None:
    with pytest.raises(ValueError):
        combine({"V": 1.5})


@pytest.mark.parametrize(
    ("eqs", "decision"),
    [
        (0.7, "FIX"),
        (0.7 + 1e-9, "KEEP"),
        (0.7 - 1e-9, "FIX"),
        (0.4, "FIX"),
        (0.4 - 1e-9, "DROP"),
        (0.4 + 1e-9, "FIX"),
    ],
)
def test_both_thresholds_from_both_sides(eqs: float, decision: str) -> None:
    assert classify(eqs) is Decision(decision)


def test_rounding_noise_does_not_move_a_task_across_a_threshold() -> None:
    assert classify(0.1 + 0.2 + 0.4) is Decision.FIX  # 0.7000000000000001
    assert classify(0.28 + 0.225 + 0.12 + 0.075) is Decision.FIX


def test_score_puts_it_together() -> None:
    """V of the tie table, H = 1/6, no F1, no D: renormalised over 0.65."""
    points = pool((1, 1), (1, 0.25), (0.5, 0.5), (0, 0))
    v = discrimination(points).v or 0
    found = score([attempt("resolved", proven=True), *rejected(5)], points)
    assert found.eqs == pytest.approx((0.35 * v + 0.3 * 5 / 6) / 0.65, abs=TIGHT)
    assert found.eqs_low == pytest.approx(0.35 * v + 0.25, abs=TIGHT)
    assert found.eqs_high == pytest.approx(0.35 * v + 0.25 + 0.35, abs=TIGHT)
    assert (found.eqs_complete, found.attempts, found.decision) == (False, 6, Decision.KEEP)
    assert found.decision_firm is False
    assert found.interval is not None
    assert found.interval[0] <= found.eqs <= found.interval[1]


def test_firm_when_the_missing_terms_cannot_change_the_class() -> None:
    found = score(rejected(5), pool((1, 1), (0, 0)), f1=0.9)
    assert found.eqs_low == pytest.approx(0.83, abs=TIGHT)
    assert (found.decision, found.decision_firm) == (Decision.KEEP, True)


def test_too_few_attempts_is_undecided() -> None:
    points = pool((1, 1), (0, 0))
    assert score(rejected(4), points).decision is Decision.UNDECIDED
    assert score([*rejected(4), attempt("undecided"), attempt("patch_rejected")], points).attempts == 4
    assert score(rejected(4), points, scheme=Scheme(min_attempts=4)).decision is Decision.KEEP
    assert score(rejected(4), points).decision_firm is False


def test_v_and_h_both_undefined_is_undecided() -> None:
    found = score([attempt("resolved")] * 6, pool((1, 1)), f1=1.0, d=1.0)
    assert found.decision is Decision.UNDECIDED
    assert found.eqs == 1.0


def test_a_broken_task_is_dropped_whatever_its_eqs() -> None:
    found = score(rejected(9), pool((1, 1), (0, 0)), f1=1.0, d=1.0, broken="gold fails its own suite")
    assert found.eqs == 1.0
    assert (found.decision, found.decision_firm, found.broken) == (Decision.DROP, True, True)
    assert "gold fails" in found.reasons[0]


def test_weights_and_thresholds_are_one_table() -> None:
    scheme = Scheme(weights={"V": 1, "H": 0, "F1": 0, "D": 0}, keep=0.9, drop=0.8)
    assert combine({"V": 0.85, "H": 1.0}, scheme)[0] == pytest.approx(0.85, abs=TIGHT)
    assert classify(0.85, scheme) is Decision.FIX
    with pytest.raises(ValueError):
        Scheme(weights={"V": 1.0})
    with pytest.raises(ValueError):
        Scheme(keep=0.3)


def test_bootstrap_is_deterministic_under_a_seed_and_undefined_without_data() -> None:
    attempts = [attempt("resolved", proven=True), *rejected(9)]
    points = pool((1, 1), (1, 0.5), (0, 0), (0.5, 0.2))
    assert bootstrap(attempts, points, seed=3) == bootstrap(attempts, points, seed=3)
    assert bootstrap(attempts, points, seed=3) != bootstrap(attempts, points, seed=4)
    assert bootstrap([], []) is None


def test_records_survive_json() -> None:
    found = score(rejected(5), pool((1, 1), (0, 0)))
    assert type(found).from_json(found.to_json()) == found
