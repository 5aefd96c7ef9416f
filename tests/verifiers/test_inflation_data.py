"""Inflation on the real matrix (147 submissions × 500 Verified tasks): the command, its time, and what it is worth."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from acidtest.scripts.cli import build
from acidtest.verifiers.inflation import simulate
from acidtest.verifiers.inflation.analysis import Inflation
from acidtest.verifiers.inflation.data import Results, load_results

pytestmark = pytest.mark.data


@pytest.fixture(scope="module")
def results(data_dir: Path) -> Results:
    return load_results(data_dir / "verified_matrix.parquet")


def chosen(results: Results, count: int = 26, seed: int = 0) -> list[str]:
    place = np.random.default_rng(seed).choice(len(results.tasks), count, replace=False)
    return [results.tasks[i] for i in sorted(place)]


def test_the_matrix_is_read_with_its_side_tables(results: Results) -> None:
    assert results.solved.shape == (147, 500)
    assert set(results.columns["difficulty"]) == {"<15 min fix", "15 min - 1 hour", "1-4 hours", ">4 hours"}
    assert set(results.submission_columns["board"]) == {"verified", "bash-only"}


def test_one_command_from_a_file_of_ids(results: Results, data_dir: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("\n".join(chosen(results)))
    command = ["inflation", "--results", str(data_dir / "verified_matrix.parquet"), "--flags", str(ids)]
    start = time.monotonic()
    first = CliRunner().invoke(build(), [*command, "--audited", "all", "--out", str(tmp_path / "one")])
    assert first.exit_code == 0, first.output
    assert time.monotonic() - start < 60
    assert "submissions share their tasks" in " ".join(first.output.split())
    again = CliRunner().invoke(
        build(), [*command, "--audited", "all", "--out", str(tmp_path / "two"), "--json"]
    )
    assert Inflation.from_json(again.output) == Inflation.from_json(
        (tmp_path / "one/inflation.json").read_text()
    )
    assert (tmp_path / "one/forest.svg").read_bytes() == (tmp_path / "two/forest.svg").read_bytes()


def test_a_bare_list_does_not_say_what_was_audited(data_dir: Path, tmp_path: Path) -> None:
    ids = tmp_path / "ids.txt"
    ids.write_text("django__django-11099\n")
    command = ["inflation", "--results", str(data_dir / "verified_matrix.parquet"), "--flags", str(ids)]
    result = CliRunner().invoke(build(), command)
    assert "--audited all" in str(result.exception)


def measure(
    results: Results, sets: int, permutations: int, replicates: int
) -> dict[str, simulate.Rejections]:
    codes, _ = results.codes(("difficulty",))
    cells, _ = results.codes(("difficulty", "repo"))
    flags = simulate.random_flags(len(results.tasks), 26, sets, seed=1)
    options = {"permutations": permutations, "replicates": replicates}
    lifted = [(simulate.plant(results.solved, f, 0.15, seed=i), f) for i, f in enumerate(flags)]
    null = [(results.solved, f) for f in flags]
    return {
        "null, shuffled within difficulty": simulate.rejections(null, codes, codes, **options),
        "null, shuffled within difficulty × repo": simulate.rejections(null, codes, cells, **options),
        "+15 points, shuffled within difficulty": simulate.rejections(
            lifted, codes, codes, truth=0.15, **options
        ),
        "+15 points, shuffled within difficulty × repo": simulate.rejections(
            lifted, codes, cells, truth=0.15, **options
        ),
    }


def test_random_flags_fool_the_pooled_test_only(results: Results) -> None:
    """40 of the campaign's 200 sets; bounds are 99.9 % binomial limits around what the campaign measured."""
    found = measure(results, 40, 400, 200)
    null = found["null, shuffled within difficulty"]
    assert null.pooled >= 24
    assert null.permutation <= 7
    assert null.covered >= 33
    assert found["+15 points, shuffled within difficulty"].permutation_greater >= 24


@pytest.mark.campaign
def test_campaign_200_random_flag_sets(results: Results) -> None:
    found = measure(results, 200, 2_000, 1_000)
    for name, row in found.items():
        print(
            f"{name}: pooled rejects {row.pooled}/{row.sets}, permutation two-sided {row.permutation}/{row.sets}, "
            f"one-sided {row.permutation_greater}/{row.sets}, bootstrap covers {row.covered}/{row.sets}, "
            f"median I² {row.median_i2:.1f} %, median Q/df {row.median_q_over_df:.2f}, mean {100 * row.mean_estimate:+.2f} points"
        )
    for name in ("null, shuffled within difficulty", "null, shuffled within difficulty × repo"):
        assert found[name].pooled > 100
        assert 4 <= found[name].permutation <= 16, "5 ± 3 % of 200"
