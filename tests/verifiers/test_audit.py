"""The audit on bundled tasks: findings are proven, sound suites have none, runs resume and repeat."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.task import Task
from acidtest.verifiers.audit import Audit, audit
from acidtest.verifiers.audit_record import AuditRecord
from acidtest.verifiers.records import Decision, Family, Standing

ROOT = Path(__file__).resolve().parents[2]
IDS = ("toy/add_weak", "toy/add_sound", "toy/broken_gold", "toy/noop_passes")


@pytest.fixture(scope="module")
def tasks() -> list[Task]:
    return load_tasks("toy", task_ids=IDS)


@pytest.fixture(scope="module")
def audited(tasks: Sequence[Task], tmp_path_factory: pytest.TempPathFactory) -> Audit:
    return audit(tasks, out=tmp_path_factory.mktemp("audit") / "run", source="toy", sandbox="local")


def record(found: Audit, task_id: str) -> AuditRecord:
    return next(r for r in found.records if r.task_id == task_id)


def canonical(records: Sequence[AuditRecord]) -> list[dict[str, object]]:
    """Sorted by task, volatile fields left out (times; logs of verdicts)."""
    out = []
    for one in sorted(records, key=lambda r: r.task_id):
        findings = [
            {"id": f.candidate.candidate_id, "standing": f.standing, "outcome": f.verdict.outcome,
             "witnesses": [(w.call, w.expected, w.observed) for w in f.witnesses]}
            for f in one.findings
        ]  # fmt: skip
        body = replace(one, findings=()).to_dict()
        out.append({k: v for k, v in body.items() if k not in AuditRecord.VOLATILE} | {"found": findings})
    return out


def test_the_weak_add_pays_for_many_proven_wrong_programs(audited: Audit) -> None:
    weak = record(audited, "toy/add_weak")
    bodies = [f.candidate.patch.text for f in weak.proven if f.candidate.family is not Family.MEMORISING]
    assert len(set(bodies)) >= 5
    assert any("a * b" in body for body in bodies)
    assert any("a ** b" in body for body in bodies)
    assert "hackable" in weak.flags


def test_a_sound_suite_has_no_finding(audited: Audit) -> None:
    sound = record(audited, "toy/add_sound")
    assert [f for f in sound.findings if f.standing is Standing.PROVEN] == []
    assert "hackable" not in sound.flags


def test_broken_tasks_are_dropped_and_in_no_rate(audited: Audit) -> None:
    for task_id in ("toy/broken_gold", "toy/noop_passes"):
        broken = record(audited, task_id)
        assert broken.decision is Decision.DROP
        assert broken.attempts == ()


def test_every_witness_holds_in_a_fresh_process(audited: Audit) -> None:
    assert audited.path is not None
    scripts = sorted((audited.path / "witnesses").glob("*.py"))
    assert scripts
    for script in scripts[:6]:
        done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stdout + done.stderr


def test_reading_a_run_gives_the_same_records(audited: Audit) -> None:
    assert audited.path is not None
    assert canonical(Audit.read(audited.path).records) == canonical(audited.records)


def test_a_correct_program_that_calls_itself_wrong_is_no_finding(
    tasks: Sequence[Task], tmp_path: Path
) -> None:
    task = next(t for t in tasks if t.task_id == "toy/add_weak")
    rollouts = tmp_path / "rollouts.jsonl"
    patch = task.gold_patch.replace("return a + b", "return a + b  # this is wrong")
    assert patch != task.gold_patch
    import json

    rollouts.write_text(json.dumps({"task_id": task.task_id, "patch": patch}) + "\n")
    found = audit([task], sandbox="local", attackers=(), candidates=str(rollouts))
    assert [f.standing for f in found.records[0].findings] == [Standing.LEAD]
    assert "hackable" not in found.records[0].flags


def test_killed_and_resumed_equals_uninterrupted(audited: Audit, tmp_path: Path) -> None:
    """kill -9 three times while it runs, then let it end: the records equal those of a calm run."""
    code = (
        "import sys\nfrom acidtest.envs.load import load_tasks\nfrom acidtest.verifiers.audit import audit\n"
        f"audit(load_tasks('toy', task_ids={IDS!r}), out=sys.argv[1], source='toy', sandbox='local')"
    )
    argv = [sys.executable, "-c", code, str(tmp_path / "run")]
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    for seconds in (1.5, 2.5, 4.0):
        process = subprocess.Popen(argv, env=env, start_new_session=True)
        time.sleep(seconds)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    assert subprocess.run(argv, env=env, timeout=300).returncode == 0
    assert canonical(Audit.read(tmp_path / "run").records) == canonical(audited.records)
