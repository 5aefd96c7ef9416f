"""The whole repair: hackable tasks are hardened, nothing that was paid wrongly is paid, and everything resumes."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import acidtest
from acidtest.envs.errors import ConfigError, LockError
from acidtest.envs.patch import Patch
from acidtest.envs.verify import Verifier
from acidtest.repair.lock import LOCK_NAME, hardened, load_lock
from acidtest.repair.records import RepairRecord, RepairStatus
from acidtest.repair.repair import repair
from acidtest.verifiers.audit import Audit
from acidtest.verifiers.rundir import RunDir

ROOT = Path(__file__).resolve().parents[2]


def adding(expression: str, task_files: dict[str, str]) -> Patch:
    return Patch.writing({"solution.py": f"def add(a, b):\n    return {expression}\n"}, task_files)


def test_no_wrong_program_is_paid_after_repair_and_every_correct_one_is(run_folder: Path) -> None:
    report = repair(run_folder, task_ids=["toy/add_weak"])
    (record,) = report.records
    assert record.status is RepairStatus.REPAIRED, record.reason
    assert set(record.blocked) == set(record.targets) != set()
    assert record.after["eqs"] > record.before["eqs"]
    assert "hackable" not in record.after["flags"]
    audit = Audit.read(run_folder)
    task = next(t for t in audit.tasks if t.task_id == "toy/add_weak")
    served = hardened(task, load_lock(run_folder))
    files = dict(task.files)
    with Verifier(sandbox="local") as verifier:
        for expression in ("a * b", "a ** b", "4", "2 * a", "a + a"):
            verdict = verifier.verify(served, adding(expression, files))
            assert (verdict.reward, verdict.original_reward) == (0.0, 1.0), expression
            assert verdict.failed_added, expression
        for expression in ("a + b", "b + a", "sum((a, b))", "a - -b"):
            assert verifier.verify(served, adding(expression, files)).reward == 1.0, expression
        assert verifier.verify(served.with_suite(served.suite.original), adding("a * b", files)).reward == 1.0
    assert record.hardened is not None
    proof = record.hardened.proof
    assert proof["gold"] == proof["runs"] == 2
    assert not proof["paid"]
    assert not proof["refused"]


def test_the_package_is_the_verb_and_a_second_call_does_nothing_again(repaired_folder: Path) -> None:
    lines = (repaired_folder / "repairs.jsonl").read_text()
    lock = (repaired_folder / LOCK_NAME).read_bytes()
    again = acidtest.repair(repaired_folder, reaudit=False)  # type: ignore[operator]
    assert sorted(r.task_id for r in again.records) == ["toy/add_again", "toy/add_weak"]
    assert (repaired_folder / "repairs.jsonl").read_text() == lines
    assert (repaired_folder / LOCK_NAME).read_bytes() == lock
    assert "2 tried -> 2 hackable (proven) -> 2 repaired" in "\n".join(again.lines())


def test_narrowing_by_task_and_decision(run_folder: Path) -> None:
    assert repair(run_folder, decision="DROP").records == []
    assert repair(run_folder, decision="DROP", memorisable=True).records == []
    with pytest.raises(ConfigError, match="no task nothing"):
        repair(run_folder, task_ids=["nothing"])


def test_a_changed_suite_file_stops_the_next_use(repaired_folder: Path) -> None:
    (file,) = (repaired_folder / "suites" / "toy_add_weak").iterdir()
    file.write_text(file.read_text() + "# changed\n")
    with pytest.raises(LockError, match="was locked as"):
        load_lock(repaired_folder)


SCRIPT = "import sys; from acidtest.repair.repair import repair; repair(sys.argv[1], reaudit=False, jobs=1)"


def start(folder: Path) -> subprocess.Popen[bytes]:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    return subprocess.Popen([sys.executable, "-c", SCRIPT, str(folder)], env=env, start_new_session=True)


@pytest.mark.slow
def test_kill_9_and_resume_gives_what_an_undisturbed_run_gives(run_folder: Path, repaired: Path) -> None:
    process = start(run_folder)
    deadline = time.monotonic() + 300
    while not (run_folder / LOCK_NAME).exists() and time.monotonic() < deadline:
        assert process.poll() is None, "the run ended before it could be killed"
        time.sleep(0.05)
    time.sleep(0.4)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    with (run_folder / "repairs.jsonl").open("a") as file:
        file.write('{"task_id": "toy/add_ag')
    load_lock(run_folder)
    repair(run_folder, reaudit=False, jobs=1)
    held = list(RunDir.read(run_folder).records("repairs", RepairRecord))
    assert sorted(record.task_id for record in held) == ["toy/add_again", "toy/add_weak"], "each task once"
    assert load_lock(run_folder).entries.keys() == load_lock(repaired).entries.keys()
    for task_id, entry in load_lock(repaired).entries.items():
        assert load_lock(run_folder).entries[task_id].suite == entry.suite
        assert load_lock(run_folder).entries[task_id].hardened_digest == entry.hardened_digest
    assert not list(run_folder.rglob("*.part"))


def test_the_command_line_repairs_and_exports(repaired_folder: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    command = [sys.executable, "-m", "acidtest.scripts.cli"]

    def call(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*command, *words], env=env, capture_output=True, text=True, timeout=500, check=False
        )

    done = call("repair", str(repaired_folder), "--no-reaudit", "-t", "toy/add_weak", "--quiet")
    assert done.returncode == 0, done.stderr
    assert "toy/add_weak: repaired" in done.stdout
    exported = call("export", str(repaired_folder))
    assert exported.returncode == 0, exported.stderr
    rows = [json.loads(line) for line in (repaired_folder / "overlay.jsonl").read_text().splitlines()]
    assert [row["task_id"] for row in rows] == ["toy/add_again", "toy/add_weak"]
    lock = repaired_folder / LOCK_NAME
    lock.write_text(lock.read_text().replace("python test_hardened", "python  test_hardened"))
    refused = call("export", str(repaired_folder))
    assert refused.returncode == 5
    assert refused.stderr.count("\n") == 1
