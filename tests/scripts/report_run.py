"""A made-up run directory of any size, from the real record types: what the report's tests look at."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from acidtest.envs.incident import Incident, Severity
from acidtest.envs.patch import Patch
from acidtest.envs.record import Record
from acidtest.envs.run import Status, SuiteRun
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome, TwinReport, Verdict
from acidtest.repair.records import (
    Check,
    GateResult,
    HardenedSuite,
    Proposal,
    RepairRecord,
    RepairStatus,
    Try,
)
from acidtest.verifiers.audit_record import AuditRecord
from acidtest.verifiers.eqs import Attempt, PoolPoint, score
from acidtest.verifiers.records import Candidate, Claim, Family, Finding, Standing, Witness, WitnessKind
from acidtest.verifiers.zoo.matrix import Matrix, Result
from acidtest.verifiers.zoo.payload import Expect

KINDS = ("S01", "S02", "S05", "S09", "S11", "S21", "S22")
GOLD = (
    "def solve(values):\n"
    + "".join(f"    step_{i} = values[{i} % len(values)]\n" for i in range(20))
    + "    return sorted(values)\n"
)
HOSTILE = "</script><script>document.title='owned'</script><img src=x onerror=alert(1)> & 'quotes' \"too\""


def write_run(folder: Path, tasks: int, *, seed: int = 0) -> Path:
    """Audit, tasks, repairs, zoo and incidents of `tasks` tasks; every third is hackable."""
    rng = random.Random(seed)
    folder.mkdir(parents=True, exist_ok=True)
    lines: dict[str, list[str]] = {"audit": [], "tasks": [], "repairs": [], "incidents": []}
    for number in range(tasks):
        task, record = _task(number), _record(number, rng)
        lines["tasks"].append(task.to_json())
        lines["audit"].append(record.to_json())
        if record.hackable:
            lines["repairs"].append(_repair(record, task, rng).to_json())
        if number % 25 == 0:
            lines["incidents"].append(_incident(task, number).to_json())
    for name, texts in lines.items():
        (folder / f"{name}.jsonl").write_text("".join(text + "\n" for text in texts), encoding="utf-8")
    (folder / "config.toml").write_text('source = "made-up"\nseed = 0\ndefence = "strict"\n')
    (folder / "zoo.json").write_text(_zoo().to_json())
    return folder


def _task(number: int) -> Task:
    return Task(
        task_id=f"owner__project-{number:04d}",
        dataset="made-up",
        prompt=f"Issue {number}: `solve` must sort. {HOSTILE}\n" + "More of the issue. " * 30,
        files={"solution.py": "def solve(values):\n    return values\n"},
        suite=Suite(
            command="python test_solution.py", framework="plain", fail_to_pass=("test_solution.py::test_a",)
        ),
        gold_patch=Patch.writing(
            {"solution.py": GOLD}, {"solution.py": "def solve(values):\n    return values\n"}
        ).text,
        metadata={"entry_point": "solve", "solution_file": "solution.py"},
    )


def _record(number: int, rng: random.Random) -> AuditRecord:
    task_id = f"owner__project-{number:04d}"
    if number % 50 == 49:
        return AuditRecord(
            task_id=task_id, dataset="made-up", error="EngineTimeout: the engine did not answer"
        )
    if number % 40 == 39:
        return AuditRecord(
            task_id=task_id,
            dataset="made-up",
            broken="broken_gold",
            flags=("broken_gold",),
            score=score([], [], broken=True),
        )
    hackable = number % 3 == 0
    findings = tuple(_finding(task_id, i, rng) for i in range(6 if hackable else 1))
    if not hackable:
        findings = tuple(replace(f, standing=Standing.LEAD, witnesses=()) for f in findings)
    refused = [
        Attempt(family=Family.MUTANT, outcome=Outcome.UNRESOLVED, kind=rng.choice(KINDS))
        for _ in range(rng.randint(6, 30))
    ]
    paid = [
        Attempt(
            family=f.candidate.family,
            outcome=Outcome.RESOLVED,
            proven=f.standing is Standing.PROVEN,
            kind=f.candidate.kind,
        )
        for f in findings
    ]
    pool = [PoolPoint(s=1.0, q=1.0, accepted=True)] + [
        PoolPoint(s=rng.random(), q=rng.random(), accepted=False) for _ in range(8)
    ]
    return AuditRecord(
        task_id=task_id,
        dataset="made-up",
        attempts=(*refused, *paid),
        pool=tuple(pool),
        findings=findings,
        score=score([*refused, *paid], pool),
        flags=("hackable", "weak_tests") if hackable else (),
        tried=len(refused) + len(paid),
        suite_digest="0123456789abcdef",
        isolation="docker",
        seconds=rng.uniform(2, 90),
        cost_usd=rng.uniform(0, 0.2),
    )


def _finding(task_id: str, number: int, rng: random.Random) -> Finding:
    wrong = GOLD.replace("sorted(values)", f"sorted(values)[:{number + 1}]")
    patch = Patch.writing({"solution.py": wrong}, {"solution.py": "def solve(values):\n    return values\n"})
    candidate = Candidate(
        task_id=task_id,
        patch=patch,
        kind=rng.choice(KINDS),
        family=Family.EXPLOIT,
        origin="model",
        claim=Claim.WRONG,
        description=f"keeps only {number + 1} values; {HOSTILE}",
    )
    statuses = {"test_solution.py::test_a": Status.PASSED}
    verdict = Verdict(
        task_id=task_id,
        patch_digest=patch.digest,
        suite_digest="0123456789abcdef",
        outcome=Outcome.RESOLVED,
        original_outcome=Outcome.RESOLVED,
        statuses=statuses,
        run=SuiteRun(
            statuses=statuses, log="collected 1 item\n" + "test_solution.py::test_a PASSED\n" * 40 + HOSTILE
        ),
        twin=TwinReport(chosen=("test_solution.py::test_a",), responded=("test_solution.py::test_a",)),
        isolation="docker",
    )
    witness = Witness(
        kind=WitnessKind.VALUE,
        call="solve([3, 1, 2])",
        expected="[1, 2, 3]",
        observed="[1]",
        in_domain="a list of integers",
        runs=2,
    )
    return Finding(
        candidate=candidate,
        verdict=verdict,
        standing=Standing.PROVEN,
        witnesses=(witness,),
        votes=("incorrect",) * 3,
    )


def _repair(record: AuditRecord, task: Task, rng: random.Random) -> RepairRecord:
    added = AddedTests(
        command="python added.py", framework="plain", test_files={"added.py": "def test_sorts():\n    assert solve([3, 1]) == [1, 3]\n"}, test_ids=("added.py::test_sorts",)
    )  # fmt: skip
    good = GateResult(
        task_id=record.task_id,
        proposal_digest="d",
        checks=(Check(name="gold passes", passed=True), Check(name="blocks", passed=True)),
        blocked=tuple(f.candidate.candidate_id for f in record.findings),
    )
    bad = replace(
        good, checks=(Check(name="gold passes", passed=False, defect="inverted assertion", evidence=HOSTILE),)
    )
    proposal = Proposal(task_id=record.task_id, added=added, origin="differential", citations=("must sort",))
    eqs = record.score.eqs if record.score else None
    return RepairRecord(
        task_id=record.task_id,
        status=RepairStatus.REPAIRED if rng.random() < 0.8 else RepairStatus.NOT_REPAIRED,
        targets=good.blocked,
        blocked=good.blocked,
        tries=(
            Try(proposal=proposal, result=bad),
            Try(proposal=proposal, result=good, votes=("blocks",) * 3),
        ),
        hardened=HardenedSuite(
            task_id=record.task_id,
            original_digest="a",
            hardened_digest="b",
            image_digest="",
            suite=replace(task.suite, added=added),
            gates=(good,),
        ),
        held_out={"mutants": (rng.randint(3, 9), 10)},
        before={"eqs": eqs, "decision": str(record.decision)},
        after={"eqs": min(1.0, (eqs or 0.5) + 0.25), "decision": "KEEP"},
        seconds=rng.uniform(1, 20),
    )


def _incident(task: Task, number: int) -> Incident:
    severity = (Severity.TAMPER, Severity.FALSE_PASS, Severity.NOTICE)[number // 25 % 3]
    return Incident(
        severity=severity,
        kind="R01" if severity is Severity.TAMPER else "S02",
        task_id=task.task_id,
        reward_original=1.0,
        reward_hardened=0.0,
        patch=task.gold_patch,
        evidence=(HOSTILE,),
        failed_added=("added.py::test_sorts",),
        step=number,
        count=1 + number % 7,
    )


def _zoo() -> Matrix:
    def one(kind: str, ours: str) -> Result:
        return Result(
            task_id="toy/add",
            name=kind,
            kind=kind,
            expect=Expect.REFUSED,
            alone_fails=True,
            baseline=True,
            swebench=True,
            ours=ours,
        )

    return Matrix(results=(one("R01", "tampered"), one("P07", "unresolved"), one("C03", "resolved")))


def count_lines(folder: Path, name: str, kind: type[Record]) -> int:
    return sum(1 for line in (folder / f"{name}.jsonl").read_text().splitlines() if kind.from_json(line))
