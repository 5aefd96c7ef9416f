"""An audit under fire, run again until it is complete, ends with the records of a calm one."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import SandboxError
from acidtest.envs.load import load_tasks
from acidtest.envs.task import Task
from acidtest.verifiers.audit import audit
from acidtest.verifiers.audit_record import AuditRecord

SKIPPED = {"seconds", "durations", "log", "log_truncated", "cached", "isolation", "time", "times", "notes"}
KINDS = [
    "engine_unavailable",
    "engine_timeout",
    "image_missing",
    "disk_full",
    "slow",
    "killed",
    "removed",
    "agent_killed",
    "oom_killed",
]


def bare(value: Any) -> Any:
    """A record without times and logs."""
    if isinstance(value, dict):
        return {key: bare(item) for key, item in value.items() if key not in SKIPPED}
    return [bare(item) for item in value] if isinstance(value, list) else value


def differences(calm: list[AuditRecord], stormy: list[AuditRecord]) -> list[str]:
    """Fields that differ, by task."""
    found = []
    for one, other in zip(calm, stormy, strict=True):
        left, right = bare(json.loads(one.to_json())), bare(json.loads(other.to_json()))
        found += [f"{one.task_id}.{name}" for name in left if left[name] != right[name]]
    return found


def under_fire(tasks: list[Task], out: Path, *, passes: int, **options: Any) -> list[AuditRecord]:
    """Audit again and again into the same folder until no record carries an error."""
    for _ in range(passes):
        try:
            made = audit(tasks, out=out, sandbox="faulty", **options)
        except SandboxError:
            continue
        if len(made.records) == len(tasks) and not any(record.error for record in made.records):
            return made.records
    raise AssertionError(f"not complete after {passes} passes")


def storm(
    tasks: list[Task],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    *,
    inner: str,
    share: float,
    at_most: int,
) -> tuple[Counter[str], list[str]]:
    """What fired, and what differs from the calm run."""
    shares = "".join(f"{kind} = {share}\n" for kind in KINDS)
    ceilings = "".join(f"{kind} = {at_most}\n" for kind in KINDS)
    options: dict[str, Any] = {"seed": 1, "jobs": 2, "calibration_runs": 2, "repo_mutants": 4}
    calm = audit(tasks, out=folder / "calm", sandbox=inner, **options).records
    fired: Counter[str] = Counter()
    monkeypatch.setenv("ACIDTEST_FAULT_INNER", inner)
    monkeypatch.setenv("ACIDTEST_FAULT_LOG", str(folder / "fired.jsonl"))
    for round_ in range(rounds):
        plan = folder / f"plan{round_}.toml"
        plan.write_text(f"seed = {round_}\n[share]\n{shares}[at_most]\n{ceilings}")
        monkeypatch.setenv("ACIDTEST_FAULT_PLAN", str(plan))
        stormy = under_fire(tasks, folder / f"stormy{round_}", passes=200, **options)
        found = differences(calm, stormy)
        fired = Counter()
        for line in (folder / "fired.jsonl").read_text().splitlines():
            fired.update(json.loads(line))
        if found or min(fired[kind] for kind in KINDS) >= at_most:
            return fired, found
    return fired, found


def test_a_toy_audit_under_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = load_tasks("toy", limit=1)
    fired, found = storm(tasks, tmp_path, monkeypatch, inner="local", share=0.03, at_most=1, rounds=1)
    assert found == []
    assert sum(fired.values()) >= 3, fired


@pytest.mark.docker
@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_two_hundred_faults_over_an_audit(
    base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Must show: at least 200 faults, at least 10 of each kind, differences from the calm run: 0."""
    tasks = load_tasks("toy", limit=6)
    fired, found = storm(tasks, tmp_path, monkeypatch, inner="docker", share=0.01, at_most=23, rounds=40)
    print(f"{sum(fired.values())} faults: {dict(fired)}; differences: {len(found)} {found}")
    assert found == []
    assert sum(fired.values()) >= 200
    assert all(fired[kind] >= 10 for kind in KINDS)
