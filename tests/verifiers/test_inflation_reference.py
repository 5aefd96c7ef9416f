"""Estimators against reference values: metafor 3.8-1 on R 4.2.2 (tolerances of its solvers set to 1e-14).

Data: dat.bcg (Colditz et al. 1994, log risk ratios) and dat.normand1999 (standardised mean differences), and
dat.hine1989 for risk differences; all from metafor. statsmodels and PyMARE are compared where installed.
"""

from __future__ import annotations

import numpy as np
import pytest

from acidtest.envs.errors import ConfigError
from acidtest.verifiers.inflation.data import Array
from acidtest.verifiers.inflation.pooling import METHODS, dersimonian_laird, pool
from acidtest.verifiers.inflation.stratified import Design, from_counts, greenland_robins

BCG = np.fromstring(
    """4 119 11 128  6 300 29 274  3 228 11 209  62 13536 248 12619  33 5036 47 5761  180 1361 372 1079
    8 2537 10 619  505 87886 499 87892  29 7470 45 7232  17 1699 65 1600  186 50448 141 27197
    5 2493 3 2338  27 16886 29 17825""",
    sep=" ",
).reshape(13, 4)
HINE = np.fromstring("39 43 2 1 44 44 4 4 107 110 6 4 103 100 7 5 110 106 7 3 154 146 11 4", sep=" ").reshape(
    6, 4
)
NORMAND_Y = "-0.35516964094010689 -0.34794002273909852 -2.31756916016373049 -1.88798225293684663 -0.38396414116970129 0.17214866906959103 0.27205207385293190 -0.42459627189426086 0.28955623008075509"
NORMAND_V = "0.013064675541529683 0.064468876098856681 0.045812110280182811 0.160617735936173484 0.205433278392224222 0.036910570000361909 0.060267125836432664 0.014863038419332694 0.036271734158054549"

FIELDS = (
    "estimate",
    "se",
    "low",
    "high",
    "p_two_sided",
    "tau2",
    "i2",
    "q",
    "predict_low",
    "predict_high",
    "tau2_low",
    "tau2_high",
    "i2_low",
    "i2_high",
)
REFERENCE = """
bcg DL z -0.71411722207323 0.1787420895354 -1.0644452800841 -0.3637891640624 6.462924304704e-05 0.30876026286238 92.117346854562 152.23300808237 -1.8581537527322 0.42991930858571 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
bcg DL knha -0.71411722207323 0.18069662833555 -1.1078213541683 -0.32041308997813 0.0019207667670474 0.30876026286238 92.117346854562 152.23300808237 -1.9872069634307 0.55897251928429 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
bcg REML z -0.71453234215814 0.17978151610521 -1.0668976388104 -0.36216704550593 7.0542581016416e-05 0.31324325813648 92.221384521269 152.23300808237 -1.8666922179029 0.43762753358661 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
bcg REML knha -0.71453234215814 0.18079174409285 -1.1084437136856 -0.32062097063073 0.0019200150960573 0.31324325813648 92.221384521269 152.23300808237 -1.9960168341962 0.56695214987992 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
bcg PM z -0.71496815349344 0.18089219153762 -1.0695103339917 -0.36042597299518 7.7353646079027e-05 0.31806845220502 92.330337954153 152.23300808237 -1.875807082484 0.44587077549713 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
bcg PM knha -0.71496815349344 0.18089219153762 -1.1090983812022 -0.32083792578465 0.001919271831278 0.31806845220502 92.330337954153 152.23300808237 -2.0054259229281 0.57548961594121 0.11971836114126 1.1114790840609 81.920574558597 97.678074957887
normand DL z -0.53073731061598 0.25921860567686 -1.0387964418653 -0.022678179366644 0.040613854610901 0.53971437482021 93.534270655511 123.72927435972 -2.057634368919 0.99615974768702 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
normand DL knha -0.53073731061598 0.30865825528106 -1.242504523659 0.18102990242705 0.12383981554034 0.53971437482021 93.534270655511 123.72927435972 -2.3682974995703 1.3068228783383 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
normand REML z -0.53710825843296 0.30866149027869 -1.1420736627937 0.067857145927731 0.081837820577362 0.79084291375077 95.494937073421 123.72927435972 -2.3820943362353 1.3078778193694 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
normand REML knha -0.53710825843296 0.30928563385651 -1.2503222090653 0.17610569219939 0.12066453219501 0.79084291375077 95.494937073421 123.72927435972 -2.7083069988769 1.634090482011 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
normand PM z -0.53717196365269 0.30929136828332 -1.1433719062171 0.069027978911736 0.082425496148398 0.7943301809629 95.513827913636 123.72927435972 -2.3861892838984 1.311845356593 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
normand PM knha -0.53717196365269 0.30929136828332 -1.250399137897 0.17605521059161 0.12063267813615 0.7943301809629 95.513827913636 123.72927435972 -2.7126413193058 1.6382973920005 0.32538444118473 3.1084034026151 89.713412253232 98.813980685649
"""
ROWS = [line.split() for line in REFERENCE.strip().splitlines()]


def log_risk_ratios() -> tuple[Array, Array]:
    a, b, c, d = BCG.T
    return np.log(a / (a + b) / (c / (c + d))), 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)


def sample(name: str) -> tuple[Array, Array]:
    if name == "bcg":
        return log_risk_ratios()
    return np.array(NORMAND_Y.split(), float), np.array(NORMAND_V.split(), float)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: "-".join(row[:3]))
def test_pooling_equals_metafor(row: list[str]) -> None:
    name, method, test = row[:3]
    found = pool(*sample(name), method, hartung_knapp=test == "knha")
    for field, value in zip(FIELDS, row[3:], strict=True):
        assert getattr(found, field) == pytest.approx(float(value), abs=1e-6, rel=1e-6), field


def test_homogeneous_units_have_no_between_variance() -> None:
    """Risk differences of dat.hine1989: Q 0.859692677532 on 5 df, tau² 0 by every method."""
    n1, n2, a, c = HINE.T
    y, v = a / n1 - c / n2, a * (n1 - a) / n1**3 + c * (n2 - c) / n2**3
    for method in METHODS:
        found = pool(y, v, method)
        assert (found.tau2, found.i2, found.tau2_low) == (0, 0, 0)
        assert found.tau2_high == pytest.approx(3.16616732272e-05, abs=1e-12)
        assert found.q == pytest.approx(0.859692677532, abs=1e-9)
        assert found.estimate == pytest.approx(0.0294443203448, abs=1e-10)
        assert found.se == pytest.approx(0.0130683169698, abs=1e-10)


@pytest.mark.parametrize(
    ("table", "estimate", "se"),
    [
        (
            np.column_stack([BCG[:, 0], BCG[:, :2].sum(1), BCG[:, 2], BCG[:, 2:].sum(1)]),
            -0.003288181832613,
            0.000286656748527,
        ),
        (HINE[:, [2, 0, 3, 1]], 0.0280832651572, 0.0133343625043),
    ],
    ids=["bcg", "hine"],
)
def test_mantel_haenszel_equals_metafor(table: Array, estimate: float, se: float) -> None:
    a, n1, c, n0 = table.T
    weight = n1 * n0 / (n1 + n0)
    design = Design(np.zeros(0, bool), np.zeros(0, np.int64), n1, n0, weight)
    found, variance = from_counts(a, c, design)
    assert float(found) == pytest.approx(estimate, abs=1e-10)
    assert float(np.sqrt(variance)) == pytest.approx(se, abs=1e-10)
    assert float(np.sqrt(greenland_robins(a, c, design))) == pytest.approx(se, rel=0.03)


def test_statsmodels_agrees() -> None:
    meta = pytest.importorskip("statsmodels.stats.meta_analysis")
    y, v = log_risk_ratios()
    for ours, theirs in (("DL", "chi2"), ("PM", "iterated")):
        other = meta.combine_effects(y, v, method_re=theirs, use_t=True)
        found = pool(y, v, ours, hartung_knapp=True)
        assert found.tau2 == pytest.approx(other.tau2, abs=1e-8)
        assert found.estimate == pytest.approx(other.mean_effect_re, abs=1e-8)
        assert found.se == pytest.approx(other.sd_eff_w_re_hksj, abs=1e-8)


def test_pymare_agrees() -> None:
    """PyMARE minimises the likelihood numerically, so it is compared to the digits its optimiser gives."""
    pymare = pytest.importorskip("pymare")
    from pymare.estimators import VarianceBasedLikelihoodEstimator

    y, v = log_risk_ratios()
    other = VarianceBasedLikelihoodEstimator(method="REML").fit_dataset(
        pymare.Dataset(y[:, None], v[:, None])
    )
    assert pool(y, v, "REML").tau2 == pytest.approx(float(other.summary().tau2.item()), abs=1e-6)


def test_many_pools_at_once_equal_single_ones() -> None:
    rng = np.random.default_rng(0)
    y, v = rng.normal(0.1, 0.3, (5, 12)), rng.uniform(0.01, 0.1, (5, 12))
    estimates, errors = dersimonian_laird(y, v)
    for i in range(5):
        one = pool(y[i], v[i], "DL")
        assert (estimates[i], errors[i]) == pytest.approx((one.estimate, one.se), abs=1e-12)


def test_reml_settles_where_variances_differ_by_orders_of_magnitude() -> None:
    """Fisher scoring from the DL start oscillates here; the maximum is a root of the score."""
    rng = np.random.default_rng(1)
    v = np.concatenate([np.full(140, 0.008), np.full(7, 1e-6)])
    y = np.concatenate([rng.normal(0.06, 0.09, 140), rng.normal(0.0, 0.02, 7)])
    best = pool(y, v, "REML").tau2

    def likelihood(tau2: float) -> float:
        w = 1 / (v + tau2)
        mean = (w * y).sum() / w.sum()
        return float(np.log(w).sum() - np.log(w.sum()) - (w * (y - mean) ** 2).sum())

    assert all(likelihood(best) >= likelihood(best * factor) for factor in (0.25, 0.9, 1.1, 4))


def test_unknown_method_and_useless_input_are_refused() -> None:
    with pytest.raises(ConfigError, match="There are: DL, REML, PM"):
        pool(np.ones(3), np.ones(3), "ML")
    with pytest.raises(ConfigError, match="positive variances"):
        pool(np.ones(3), np.array([1.0, 0.0, 1.0]))
