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


class Storm:
    """Audits under a plan whose seed changes with every attempt; counts everything that fired."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, *, inner: str, share: float) -> None:
        self.plan, self.log, self.share, self.attempts = folder / "plan.toml", folder / "fired", share, 0
        monkeypatch.setenv("ACIDTEST_FAULT_INNER", inner)
        monkeypatch.setenv("ACIDTEST_FAULT_PLAN", str(self.plan))
        monkeypatch.setenv("ACIDTEST_FAULT_LOG", str(self.log))

    def audit(
        self, tasks: list[Task], out: Path, *, at_most: int, passes: int, **options: Any
    ) -> list[AuditRecord]:
        """Audit again and again into the same folder until no record carries an error."""
        for _ in range(passes):
            self.attempts += 1
            shares = "".join(f"{kind} = {self.share}\n" for kind in KINDS)
            ceilings = "".join(f"{kind} = {at_most}\n" for kind in KINDS)
            self.plan.write_text(f"seed = {self.attempts}\n[share]\n{shares}[at_most]\n{ceilings}")
            try:
                made = audit(tasks, out=out, sandbox="faulty", **options)
            except SandboxError:
                continue
            if len(made.records) == len(tasks) and not any(record.error for record in made.records):
                return made.records
        raise AssertionError(f"not complete after {passes} passes")

    @property
    def fired(self) -> Counter[str]:
        total: Counter[str] = Counter()
        for line in self.log.read_text().splitlines() if self.log.exists() else []:
            total.update(json.loads(line))
        return total


OPTIONS: dict[str, Any] = {"seed": 1, "jobs": 2, "calibration_runs": 2, "repo_mutants": 4}


def test_a_toy_audit_under_faults(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks = load_tasks("toy", limit=1)
    calm = audit(tasks, out=tmp_path / "calm", sandbox="local", **OPTIONS).records
    storm = Storm(tmp_path, monkeypatch, inner="local", share=0.03)
    stormy = storm.audit(tasks, tmp_path / "stormy", at_most=1, passes=30, **OPTIONS)
    assert differences(calm, stormy) == []
    assert sum(storm.fired.values()) >= 1


@pytest.mark.docker
@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_two_hundred_faults_over_an_audit(
    base_image: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Must show: at least 200 faults, at least 10 of each kind, differences from the calm run: 0."""
    tasks = load_tasks("toy", limit=4)
    calm = audit(tasks, out=tmp_path / "calm", sandbox="docker", **OPTIONS).records
    storm = Storm(tmp_path, monkeypatch, inner="docker", share=0.02)
    rounds, found = 0, []
    while min(storm.fired[kind] for kind in KINDS) < 10 or sum(storm.fired.values()) < 200:
        rounds += 1
        stormy = storm.audit(tasks, tmp_path / f"stormy{rounds}", at_most=5, passes=60, **OPTIONS)
        found += differences(calm, stormy)
        print(f"round {rounds}, {storm.attempts} attempts: {sum(storm.fired.values())} faults", flush=True)
    print(
        f"{sum(storm.fired.values())} faults {dict(storm.fired)} in {rounds} audits of {len(tasks)} tasks, ",
        end="",
    )
    print(f"{storm.attempts} attempts; differences: {len(found)} {found}")
    assert found == []
