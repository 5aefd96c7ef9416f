"""The full measurements behind docs/measurements.md (`make campaign`); long, hence outside the default tests."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.verify import Verifier
from acidtest.repair.bench import VerifierBench
from acidtest.repair.correct import correct_programs
from acidtest.repair.gates import run_gates
from acidtest.repair.gates.trial import Trial
from acidtest.repair.lock import file_digest, hardened, load_lock, task_digest, write_lock
from acidtest.repair.proposals import ProposalLine, read_proposals
from acidtest.repair.prove import prove
from acidtest.repair.records import HardenedSuite
from acidtest.repair.trying import PASSES, tasks_for, try_proposals
from acidtest.scripts import campaign_repair
from acidtest.verifiers.alternatives import Alternatives

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

pytestmark = pytest.mark.campaign


def shares(held: list[campaign_repair.HeldOut], name: str) -> tuple[int, int]:
    pairs = [getattr(one, name) for one in held]
    return sum(p[0] for p in pairs), sum(p[1] for p in pairs)


@pytest.mark.data
def test_humaneval_without_a_model(
    data_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Held-out wrong programs, memorising ones, variants, and the independent solutions of the even tasks."""
    with capsys.disabled():
        campaign_repair.main(
            [str(tmp_path), "--domains", str(data_dir / "humaneval_domains_dev.jsonl"), "--no-reaudit"]
        )
    held = campaign_repair.read_held_out(tmp_path)
    wrong, of = shares(held, "wrong")
    assert wrong >= 0.75 * of > 0
    known, all_of_them = shares(held, "memorising")
    assert known >= 0.99 * all_of_them > 0
    assert shares(held, "variants")[0] == 0


def adopt(line: ProposalLine, verifier: Verifier, data: Path, folder: Path) -> None:
    """Gate, prove, lock and swap in one proposal; gold and every alternative resolve, every wrong program does not."""
    task = tasks_for([line], f"sdists:{data}")[line.task_id]
    known = Alternatives.read(data / "alternatives_dev.jsonl").of(task.task_id)
    correct = correct_programs(task, verifier, alternatives=known)
    bench = VerifierBench(task, verifier)
    targets = line.wrong_candidates(task)
    assert all(verifier.verify(task, c.patch).resolved for c in targets), "the official suite pays them"
    added = bench.with_executed_ids(line.proposal(task).added)
    trial = Trial(
        task=task,
        proposal=replace(line.proposal(task), added=added),
        bench=bench,
        targets=targets,
        correct=correct.patches,
        suite_seconds=bench.suite_seconds(),
    )
    assert run_gates(trial).passed
    proof = prove(bench, added, targets, correct.patches)
    assert proof.holds
    assert not proof.paid
    suite = replace(task.suite, added=added)
    entry = HardenedSuite(
        task_id=task.task_id,
        original_digest=task.suite.digest,
        hardened_digest=suite.digest,
        image_digest=verifier.backend.image_digest(task.image),
        suite=suite,
        files={path: file_digest(text) for path, text in added.test_files.items()},
        task_digest=task_digest(task),
    )
    write_lock(folder, [entry])
    served = hardened(task, load_lock(folder), backend=verifier.backend)
    for patch in (Patch(task.gold_patch), *known):
        assert verifier.verify(served, patch).resolved


@pytest.mark.docker
@pytest.mark.data
def test_real_rows_in_docker(engine: str, data_dir: Path, tmp_path: Path) -> None:
    """Tests written for real rows: the wrong programs are paid by the official suites and refused after the swap."""
    lines = read_proposals(EXAMPLES / "verified_proposals.jsonl")
    tasks = tasks_for(lines, f"sdists:{data_dir}")
    known = Alternatives.read(data_dir / "alternatives_dev.jsonl")
    with Verifier(sandbox="docker") as verifier:
        tried = list(try_proposals(lines, tasks, verifier, alternatives=known))
        assert [one.label for one in tried if not one.agrees] == []
        for number, line in enumerate(lines):
            if line.expect == PASSES:
                adopt(line, verifier, data_dir, tmp_path / str(number))


def test_every_toy_task_that_is_hackable_is_repaired(tmp_path: Path) -> None:
    from acidtest.repair.repair import repair
    from acidtest.verifiers.audit import audit

    result = audit(load_tasks("toy"), out=tmp_path, source="toy", sandbox="local")
    report = repair(result)
    assert {r.task_id for r in report.repaired} == {r.task_id for r in result.hackable} != set()
