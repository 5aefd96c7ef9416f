"""The task-level analysis: what permutation, bootstrap and sensitivity promise, and the traps they are there for."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from acidtest.envs.errors import ConfigError
from acidtest.verifiers.inflation import data, simulate, text
from acidtest.verifiers.inflation.analysis import Inflation, analyse
from acidtest.verifiers.inflation.bootstrap import two_way_bootstrap
from acidtest.verifiers.inflation.data import Results
from acidtest.verifiers.inflation.permutation import permutation_test, shuffled_flags, statistic_weights
from acidtest.verifiers.inflation.plots import forest_plot, permutation_plot, save, svg
from acidtest.verifiers.inflation.stratified import Design, risk_differences


def made_up(submissions: int = 20, tasks: int = 60, seed: int = 0) -> Results:
    solved = simulate.rasch_null(submissions, tasks, seed=seed)
    return Results(
        solved=solved,
        submissions=tuple(f"s{i}" for i in range(submissions)),
        tasks=tuple(f"r{i % 3}__p-{i}" for i in range(tasks)),
        columns={
            "difficulty": tuple("easy" if i % 2 else "hard" for i in range(tasks)),
            "repo": tuple(f"r{i % 3}/p" for i in range(tasks)),
        },
        submission_columns={
            "date": tuple(f"2025-{1 + i % 12:02d}-01" for i in range(submissions)),
            "board": tuple("verified" if i % 3 else "bash-only" for i in range(submissions)),
        },
    )


@pytest.fixture(scope="module")
def found() -> Inflation:
    results = made_up()
    return analyse(results, results.tasks[:12], permutations=500, replicates=300)


def test_risk_difference_is_the_weighted_mean_of_stratum_differences() -> None:
    flags = np.array([1, 1, 0, 0, 1, 0, 0], bool)
    codes = np.array([0, 0, 0, 0, 1, 1, 2])
    solved = np.array([[1, 0, 0, 0, 1, 0, 1.0]])
    design = Design.of(flags, codes)
    estimate, variance = risk_differences(solved, design)
    weight = np.array([2 * 2 / 4, 1 * 1 / 2])
    assert estimate[0] == pytest.approx((weight * [0.5, 1.0]).sum() / weight.sum())
    assert (solved @ design.contrast)[0] == pytest.approx(estimate[0])
    assert variance[0] > 0
    assert not design.informative[6], "a stratum with one kind says nothing"


def test_sato_variance_is_right_where_the_older_one_is_not() -> None:
    """One flagged task a stratum: Monte Carlo variance of the estimate against the formula's mean."""
    rng = np.random.default_rng(0)
    strata = 40
    codes = np.repeat(np.arange(strata), 3)
    flags = np.tile([True, False, False], strata)
    design = Design.of(flags, codes)
    solved = (rng.random((4000, 3 * strata)) < 0.4).astype(float)
    estimate, variance = risk_differences(solved, design)
    assert variance.mean() == pytest.approx(estimate.var(), rel=0.06)


def test_shuffles_keep_every_cell_and_are_uniform() -> None:
    flags = np.array([1, 0, 0, 0, 1, 1, 0, 1], bool)
    cells = np.array([0, 0, 0, 0, 1, 1, 1, 2])
    rows = shuffled_flags(flags, cells, 20_000, np.random.default_rng(0))
    for cell in range(3):
        assert (rows[:, cells == cell].sum(1) == flags[cells == cell].sum()).all()
    assert rows.mean(0) == pytest.approx([0.25] * 4 + [2 / 3] * 3 + [1], abs=0.015)


def test_linear_statistic_equals_the_mean_of_risk_differences() -> None:
    results = made_up()
    flags = results.mask(results.tasks[:9])
    codes, _ = results.codes(("difficulty",))
    design = Design.of(flags, codes)
    weights, constant = statistic_weights(design, results.solved.mean(0))
    for row in shuffled_flags(flags, codes, 5, np.random.default_rng(1)):
        direct = risk_differences(results.solved, Design.of(row, codes))[0].mean()
        assert row @ weights + constant == pytest.approx(direct)


def test_permutation_finds_a_planted_effect_and_is_seeded() -> None:
    results = made_up(tasks=200)
    flags = np.arange(200) % 5 == 0
    codes, _ = results.codes(("difficulty",))
    lifted = simulate.plant(results.solved, flags, 0.4, seed=2)
    design = Design.of(flags, codes)
    test = permutation_test(lifted.mean(0), design, codes, permutations=999, seed=3)
    assert test.p_greater == 1 / 1000
    assert test == permutation_test(lifted.mean(0), design, codes, permutations=999, seed=3)
    null = permutation_test(results.solved.mean(0), design, codes, permutations=999, seed=3)
    assert null.p_two_sided > 0.05


def test_the_pooled_test_is_the_trap_and_the_permutation_is_not() -> None:
    """No effect at all, 134 × 49 Rasch data: the pooled test rejects most of the time, the permutation does not."""
    cases = []
    for i in range(60):
        solved = simulate.rasch_null(134, 49, seed=i)
        cases.append((solved, simulate.random_flags(49, 14, 1, seed=i)[0]))
    one = np.zeros(49, dtype=np.int64)
    counts = simulate.rejections(cases, one, one, permutations=400, replicates=200)
    assert counts.pooled >= 30, counts
    assert counts.permutation <= 8, counts
    assert counts.covered >= 51, counts
    assert counts.median_i2 < 25, "agreement between submissions is no evidence: they share the tasks"


def test_bootstrap_is_wider_than_the_pooled_interval(found: Inflation) -> None:
    pooled = found.pooled_by("DL")
    assert found.interval.high - found.interval.low > 1.5 * (pooled.high - pooled.low)
    assert found.interval.low < found.estimate < found.interval.high


def test_bootstrap_survives_groups_of_one() -> None:
    solved = simulate.rasch_null(10, 8, seed=1)
    design = Design.of(np.array([1, 0, 1, 0, 0, 0, 0, 0], bool), np.array([0, 0, 1, 1, 1, 1, 2, 2]))
    interval = two_way_bootstrap(solved, design, replicates=200)
    assert np.isfinite([interval.low, interval.high, interval.se]).all()
    assert interval.se > 0


def test_record_round_trips_and_repeats(found: Inflation) -> None:
    assert Inflation.from_json(found.to_json()) == found
    results = made_up()
    assert analyse(results, results.tasks[:12], permutations=500, replicates=300) == found


def test_only_audited_tasks_are_compared() -> None:
    results = made_up()
    found = analyse(results, results.tasks[:12], results.tasks[6:40], permutations=200, replicates=100)
    assert (found.audited, found.flagged, found.outside) == (34, 6, 6)
    assert "6 flagged tasks are not among the audited" in text.summary(found)


def test_nothing_to_compare_is_an_error() -> None:
    results = made_up()
    with pytest.raises(ConfigError, match="0 of 60 audited tasks are flagged"):
        analyse(results, [])
    with pytest.raises(ConfigError, match="60 of 60"):
        analyse(results, results.tasks)
    with pytest.raises(ConfigError, match="No stratum column 'mood'"):
        analyse(results, results.tasks[:5], strata=("mood",))
    with pytest.raises(ConfigError, match="No stratum holds both"):
        analyse(results, [t for i, t in enumerate(results.tasks) if i % 2], strata=("difficulty",))


def test_leave_one_out_and_label_error(found: Inflation) -> None:
    out = found.left_out
    assert out.low <= found.estimate <= out.high
    assert len(out.influential) == 5
    strong = found.label_error[1]
    assert strong.low <= strong.median <= strong.high
    assert strong.high - strong.low > found.label_error[0].high - found.label_error[0].low


def test_moderators_have_groups_and_a_permutation_p(found: Inflation) -> None:
    names = {row.name: row for row in found.moderators}
    assert set(names) == {"half-year", "board", "Pass@1 quartile"}
    assert sum(group.submissions for group in names["board"].groups) == 20
    mean = sum(g.submissions * g.estimate for g in names["board"].groups) / 20
    assert mean == pytest.approx(found.estimate)


def test_text_warns_and_labels_pooled_figures(found: Inflation) -> None:
    words = text.summary(found)
    assert "submissions share their tasks" in words
    assert "conditional on these tasks" in words
    assert "An unaudited task is not a robust one" in words
    assert f"{100 * found.pooled_size:.0f} %" in words


def test_plots_are_written_and_reproducible(found: Inflation, tmp_path: Path) -> None:
    paths = save(found, tmp_path / "new")
    assert [p.name for p in paths] == ["forest.png", "forest.svg", "permutation.png", "permutation.svg"]
    assert paths[0].read_bytes()[:4] == b"\x89PNG"
    assert svg(permutation_plot(found)) == svg(permutation_plot(found))
    assert "pooled DL" in svg(forest_plot(found))


def test_flags_and_audited_are_read_from_a_run(tmp_path: Path) -> None:
    records = [
        {"task_id": "a", "flags": ["hackable"], "score": {"decision": "FIX"}},
        {"task_id": "b", "flags": [], "score": {"decision": "UNDECIDED"}},
        {"task_id": "c", "flags": [], "score": {"decision": "KEEP"}},
        {"task_id": "d", "flags": ["broken:gold"], "broken": "gold fails", "score": {"decision": "DROP"}},
        {"task_id": "f", "flags": [], "error": "engine gone", "score": None},
        {"task_id": "c", "flags": ["hackable", "weak_tests"], "score": {"decision": "DROP"}},
    ]
    lines = [json.dumps(record) for record in records]
    (tmp_path / "audit.jsonl").write_text("\n".join(lines) + '\n{"task_id": "e", "fl')
    assert data.read_flags(str(tmp_path), ()) == ("a", "c")
    assert data.read_audited(str(tmp_path), ()) == ("a", "c")


def test_lists_of_ids(tmp_path: Path) -> None:
    path = tmp_path / "ids.txt"
    path.write_text("# flagged by hand\na\n b  # twice\nb\n\n")
    assert data.read_flags(str(path), ("a", "b")) == ("a", "b")
    assert data.read_audited("all", ("a", "b")) == ("a", "b")
    with pytest.raises(ConfigError, match="1 tasks that the matrix does not have"):
        data.read_flags(str(path), ("a",))


def test_matrix_must_be_zero_or_one(tmp_path: Path) -> None:
    path = tmp_path / "m.csv"
    path.write_text("submission,a__b-1,a__b-2\nx,1,\ny,0,1\n")
    with pytest.raises(ConfigError, match="1 cells that are neither 0 nor 1"):
        data.load_results(path)
    path.write_text("submission,a__b-1,a__b-2\nx,1,0\ny,0,1\n")
    assert data.load_results(path).columns["repo"] == ("a/b", "a/b")
