"""The bench times every arm and says what it left out; its figures are those of the timings."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.scripts.bench import Bench, Timing, bench, plot


def timing(arm: str, *seconds: float, task: str = "t", paid: bool | None = True) -> Timing:
    return Timing(task_id=task, arm=arm, seconds=seconds, paid=paid)


def test_figures_from_timings() -> None:
    found = Bench(
        timings=(
            timing("bare", 1.0, 2.0, 3.0),
            timing("strict", 4.0, 4.0, 5.0),
            timing("bare", 0.1, 0.1, 0.1, task="u"),
            timing("strict", 0.3, 0.3, 0.3, task="u"),
            timing("swebench", 20.0, 20.0, 20.0, paid=False),
        )
    )
    assert found.ratio("strict") == pytest.approx((2.0 + 3.0) / 2)
    assert found.ratio("strict", over_s=1.0) == pytest.approx(2.0)
    assert found.per_minute("strict") == pytest.approx(60 * 2 / 4.3)
    assert sorted(found.overheads("strict")) == pytest.approx([0.2, 0.2, 0.2, 2.0, 2.0, 3.0])
    assert found.disagreements() == ["t: swebench refused"]


def test_toy_tasks_on_the_local_sandbox(tmp_path: Path) -> None:
    tasks = load_tasks("toy", task_ids=["toy/add_sound"])
    found = bench(tasks, rounds=2, sandbox="local")
    assert set(found.arms) == {"bare", "warm", "fast", "strict", "cached"}
    assert set(found.left_out) == {"cold", "docker-run", "swebench"}
    assert found.disagreements() == []
    assert found.of("cached")["toy/add_sound"].median < found.of("strict")["toy/add_sound"].median
    plot(found, tmp_path / "bench.png")
    assert (tmp_path / "bench.png").stat().st_size > 1000
