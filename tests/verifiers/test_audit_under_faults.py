"""An audit under fire, run again until it is complete, ends with the records of a calm one."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import SandboxError
from acidtest.envs.fault_plan import STARTED, Fault, FaultLog, FaultPlan
from acidtest.envs.load import load_tasks
from acidtest.scripts import campaign_faults
from acidtest.scripts.private_engine import usable
from acidtest.verifiers.audit import Audit, audit
from acidtest.verifiers.same_records import differences

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "faults.toml"
NAMED = (
    Fault.DAEMON_RESTARTED,
    Fault.OOM_KILLED,
    Fault.DISK_FILLED,
    Fault.ENGINE_HUNG,
    Fault.IMAGE_REMOVED,
    Fault.LEDGER_LOCKED,
    Fault.CLOCK_JUMP,
    Fault.SIGTERM,
    Fault.KILL_9,
)
"""The kinds that must strike at least ten times each; all but the clock's are real."""
OPTIONS: dict[str, Any] = {"seed": 1, "jobs": 2, "calibration_runs": 2, "repo_mutants": 4}
PLAN = """
seed = 3
inner = "local"
[share]
engine_unavailable = 0.03
engine_timeout = 0.03
image_missing = 0.02
disk_full = 0.02
clock_jump = 0.05
killed = 0.03
oom_killed = 0.03
[at_most]
engine_unavailable = 2
engine_timeout = 2
image_missing = 1
disk_full = 1
clock_jump = 3
killed = 2
oom_killed = 2
"""


def test_a_toy_audit_under_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = load_tasks("toy", task_ids=["toy/add_weak"])
    calm = audit(tasks, out=tmp_path / "calm", sandbox="local", **OPTIONS).records
    (tmp_path / "plan.toml").write_text(PLAN)
    monkeypatch.setenv("ACIDTEST_FAULT_PLAN", str(tmp_path / "plan.toml"))
    monkeypatch.setenv("ACIDTEST_FAULT_LOG", str(tmp_path / "fired"))
    for _ in range(30):
        try:
            made = audit(tasks, out=tmp_path / "stormy", sandbox="faulty", **OPTIONS)
        except SandboxError:
            continue
        if not any(record.error for record in made.records):
            break
    fired = FaultLog(tmp_path / "fired").counts()
    assert sum(fired.values()) - fired[STARTED] >= 4
    assert differences(calm, made.records) == []


def test_a_difference_is_named(tmp_path: Path) -> None:
    """What the comparison leaves out is times and logs, nothing else."""
    tasks = load_tasks("toy", task_ids=["toy/add_weak"])
    (one,) = audit(tasks, sandbox="local", **OPTIONS).records
    first = one.findings[0]
    other = replace(one, findings=(replace(first, reasons=("another",)), *one.findings[1:]), seconds=99.0)
    (found,) = differences([one], [other])
    assert found.startswith("toy/add_weak.findings[0].reasons")
    flipped = replace(first.verdict, outcome="unresolved", cached=True, seconds={"total": 9.0})  # type: ignore[arg-type]
    (found,) = differences(
        [one], [replace(one, findings=(replace(first, verdict=flipped), *one.findings[1:]))]
    )
    assert found == "toy/add_weak.findings[0].verdict.outcome: resolved | unresolved"
    assert differences([one], [replace(one, flags=(*one.flags, "slow"), notes=("gold takes 2.1 s",))]) == []
    assert len(differences([one], [replace(one, flags=(*one.flags, "flaky"))])) == 1
    assert differences([one], []) == ["toy/add_weak: only on one side"]


@pytest.mark.docker
@pytest.mark.campaign
@pytest.mark.timeout(3600)
def test_two_hundred_faults_over_an_audit(base_image: str, tmp_path: Path) -> None:
    """Must show: at least 200 faults, at least 10 of each kind, differences from the calm run: 0, containers left: 0."""
    if why := usable():
        pytest.skip(why)
    out = tmp_path / "faults"
    assert campaign_faults.main([str(EXAMPLE), "--out", str(out)]) == 0
    found = json.loads((out / "storm.json").read_text())
    assert found["faults"] >= 200
    assert {kind: count for kind in NAMED if (count := found["fired"].get(str(kind), 0)) < 10} == {}
    assert found["differences"] == []
    assert len(Audit.read(out / "records").records) == found["tasks"]
    assert FaultPlan.from_file(out / "plan.toml") == FaultPlan.from_file(EXAMPLE)
