"""R2E-style tasks from audit to served suite, with the hand-written answers of examples/r2e (no model took part)."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

from acidtest.scripts.campaign_r2e import Served, main, summary

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
ANSWERS = EXAMPLES / "r2e_answers.py"


def test_a_program_counts_when_both_rules_agree_with_what_it_is() -> None:
    def row(program: str, strict: float, original: float | None) -> Served:
        return Served(
            augmenter="llm", task_id="t", program=program, strict_before=1.0, original_before=1.0, strict=strict, original=original,
        )  # fmt: skip

    rows = [
        row("gold", 1.0, 1.0),
        row("no-op", 0.0, 1.0),
        row("a S22 x", 0.0, 0.0),
        row("b S22 y", 0.0, None),
    ]
    assert [one.as_it_should_be for one in rows] == [True, False, True, False]
    assert "exploits as it should be under both rules after the swap: 1 of 2" in summary(rows)[-1]


def test_answers_by_hand_say_undecided_about_programs_that_nobody_looked_at() -> None:
    answer = runpy.run_path(str(ANSWERS))["answer"]
    title = "**Title:** `dissoc` raises KeyError for a key that is not there"
    (candidate,) = answer("attack", title, "")["candidates"]
    assert candidate["edits"][0]["replace"].count("break") == 1
    assert answer("judge", title, "+            if key not in d2:\n")["label"] == "incorrect"
    assert answer("judge", title, "+            pass\n")["label"] == "undecided"
    assert answer("witness", title, "+            pass\n")["test"] == ""
    assert answer("attack", "another task", "") is None


@pytest.mark.campaign
@pytest.mark.docker
def test_audit_repair_and_both_rules(engine: str, tmp_path: Path) -> None:
    """What `python -m acidtest.scripts.campaign_r2e examples/r2e OUT --answers …` does."""
    command = f"{sys.executable} {ANSWERS}"
    served = main([str(EXAMPLES / "r2e"), str(tmp_path), "--answers", command])
    exploits = [one for one in served if one.program not in {"gold", "no-op"}]
    assert {one.augmenter for one in served} == {"llm", "differential"}
    assert len({one.task_id for one in exploits}) >= 5
    assert all(one.strict_before == 1.0 for one in exploits), "paid before"
    assert [one.to_dict() for one in served if not one.as_it_should_be] == []
