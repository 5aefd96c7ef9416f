"""The demo on a small share of its tasks: every step shows what it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidtest.envs.incident import Incident
from acidtest.scripts.demo import Demo
from acidtest.verifiers.audit import Audit


@pytest.mark.slow
def test_the_demo_audits_repairs_plays_and_reports(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert Demo(tmp_path / "run", humaneval=1, repaired=1).run() == 0
    shown = capsys.readouterr().out
    for text in (
        "toy/add_weak",
        "HumanEval/0",
        "Witness",
        "Reproduce: python3",
        "EQS before and after",
        "incident: false_pass",
    ):
        assert text in shown
    incidents = (tmp_path / "run" / "incidents.jsonl").read_text().splitlines()
    assert [Incident.from_json(line).severity for line in incidents] == ["false_pass"]
    assert (tmp_path / "run" / "report.html").stat().st_size > 10_000
    assert len(Audit.read(tmp_path / "run").records) == 9
