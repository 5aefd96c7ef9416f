"""Rows of the repair campaign: written as they come, read again after a kill, and summed with clustered intervals."""

from __future__ import annotations

from pathlib import Path

from acidtest.scripts.campaign_repair import (
    HELD_OUT,
    HeldOut,
    IndependentRow,
    _written,
    clustered,
    read_held_out,
    summary,
)


def row(name: str) -> HeldOut:
    return HeldOut(task_id=name, wrong=(3, 4), memorising=(5, 5), survivors=("S22",))


def test_rows_survive_a_cut_line_and_failed_infrastructure(tmp_path: Path) -> None:
    path = tmp_path / HELD_OUT
    assert len(list(_written(path, row, ["a", "b"], jobs=2))) == 2
    path.write_text(path.read_text() + row("c").to_json()[:20])
    assert {one.task_id for one in read_held_out(tmp_path)} == {"a", "b"}
    made = list(_written(path, lambda name: None if name == "d" else row(name), ["c", "d"], jobs=2))
    assert [one.task_id for one in made] == ["c"], "d failed: nothing is written, it is measured again"
    assert {one.task_id for one in read_held_out(tmp_path)} == {"a", "b", "c"}


def test_the_summary_names_pairs_tasks_and_what_got_through() -> None:
    fair = IndependentRow(task_id="a", paid=True, paid_hardened=False, hardened_digest="x")
    lines = summary([row("a"), row("b"), HeldOut(task_id="c", gate="gold passes")], [fair])
    assert lines[0] == "split: 3 tasks, 2 with tests through the gates"
    assert "6 of 8 in 2 tasks (75.0%, Wilson 95 % clustered by task" in lines[1]
    assert "10 of 10 in 2 tasks" in lines[2]
    assert lines[3].endswith("0 of 0")
    assert "  a: left S22" in lines
    assert "  c: no tests, gold passes" in lines
    assert "solution: 1 of 1" in lines[-2]


def test_perfect_tasks_count_as_tasks_and_not_as_programs() -> None:
    assert "34.2% to 100.0%" in clustered([(40, 40), (40, 40)])
