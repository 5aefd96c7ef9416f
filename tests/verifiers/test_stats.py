"""Intervals and agreement against published or hand-computed values."""

from __future__ import annotations

import pytest

from acidtest.verifiers.stats import (
    cluster_bootstrap,
    clustered_wilson,
    fleiss_kappa,
    jeffreys,
    percentile_interval,
    wilson,
)


def test_wilson_matches_hand_computation() -> None:
    low, high = wilson(1, 10) or (0, 0)
    assert (low, high) == pytest.approx((0.017876213095072896, 0.40415002679523837), abs=1e-12)
    assert wilson(0, 0) is None
    assert (wilson(0, 5) or (1, 0))[0] == 0.0
    assert (wilson(5, 5) or (0, 0))[1] == 1.0


def test_clusters_that_agree_in_themselves_count_once_each() -> None:
    whole = clustered_wilson([(10, 10), (0, 10), (10, 10), (0, 10)])
    assert whole == pytest.approx(wilson(3, 6, 0.95) or (), abs=0.15), "near 4 trials, not 40"
    assert whole is not None
    assert whole[1] - whole[0] > 0.6
    assert clustered_wilson([(1, 1)] * 30 + [(0, 1)] * 10) == pytest.approx(wilson(30, 40) or (), abs=0.01)
    assert clustered_wilson([(5, 5)] * 4) == wilson(4, 4), "no variance to be seen: a cluster is one trial"
    assert clustered_wilson([(3, 4), (2, 4), (3, 4)]) == pytest.approx(wilson(8, 12) or (), abs=1e-12)
    assert clustered_wilson([(0, 0)]) is None
    with pytest.raises(ValueError):
        clustered_wilson([(3, 2)])


def test_jeffreys_uses_the_beta_quantiles_and_closed_ends() -> None:
    low, high = jeffreys(14, 49) or (0, 0)
    assert (low, high) == pytest.approx((0.1737, 0.4222), abs=2e-3)
    assert (jeffreys(0, 20) or (1, 0)) == pytest.approx((0.0, 0.1172), abs=2e-3)
    assert (jeffreys(20, 20) or (0, 0))[1] == 1.0
    assert jeffreys(0, 0) is None


@pytest.mark.parametrize(("k", "n", "level"), [(3, 2, 0.95), (-1, 2, 0.95), (1, 2, 1.0)])
def test_impossible_counts_and_levels_are_refused(k: int, n: int, level: float) -> None:
    with pytest.raises(ValueError):
        wilson(k, n, level)
    with pytest.raises(ValueError):
        jeffreys(k, n, level)


def test_cluster_bootstrap_draws_whole_clusters() -> None:
    """Within a task all candidates agree: the interval is that of 2 tasks, not of 200 candidates."""
    items = [("a", 1)] * 100 + [("b", 0)] * 100

    def rate(drawn: object) -> float:
        values = [value for _, value in drawn]  # type: ignore[attr-defined]
        return sum(values) / len(values)

    assert cluster_bootstrap(items, lambda item: item[0], rate, seed=1) == (0.0, 1.0)
    assert cluster_bootstrap(items, lambda item: item[0], rate, seed=1) == (0.0, 1.0)
    assert cluster_bootstrap([], lambda item: item, lambda drawn: 1.0) is None
    assert cluster_bootstrap(items, lambda item: item[0], lambda drawn: None) is None


def test_percentile_interval_interpolates() -> None:
    assert percentile_interval([float(i) for i in range(101)], 0.9) == pytest.approx((5.0, 95.0))
    assert percentile_interval([]) is None


def test_fleiss_kappa_on_the_published_example() -> None:
    """Fleiss 1971, as tabulated widely: 10 subjects, 14 raters, 5 categories, kappa 0.210."""
    table = [
        (0, 0, 0, 0, 14), (0, 2, 6, 4, 2), (0, 0, 3, 5, 6), (0, 3, 9, 2, 0), (2, 2, 8, 1, 1),
        (7, 7, 0, 0, 0), (3, 2, 6, 3, 0), (2, 5, 3, 2, 2), (6, 5, 2, 1, 0), (0, 2, 2, 3, 7),
    ]  # fmt: skip
    kappa = fleiss_kappa([{str(i): c for i, c in enumerate(row)} for row in table])
    assert kappa == pytest.approx(0.20993070442195522, abs=1e-12)


def test_fleiss_kappa_is_undefined_without_variety_and_refuses_uneven_raters() -> None:
    assert fleiss_kappa([{"correct": 3}, {"correct": 3}]) is None
    assert fleiss_kappa([{"correct": 1}]) is None
    assert fleiss_kappa([]) is None
    assert fleiss_kappa([{"a": 2, "b": 0}, {"b": 2}]) == pytest.approx(1.0)
    with pytest.raises(ValueError):
        fleiss_kappa([{"a": 2}, {"a": 3}])
