"""The repair campaign on function tasks, one command: `python -m acidtest.scripts.campaign_repair OUT --source humaneval`.

Audits the source, repairs every task with a proven finding, and measures what the product's own loop is worth on
programs it never saw: for each task the operator kinds of its proven wrong programs are split in two, tests are
proposed and gated from one half, with inputs of another seed than those that proved them, and the other half is executed
against them.
Memorising programs are never learned from here. `--domains` (JSON Lines with `task_id` and `independent_solution`)
executes independent correct solutions against the hardened suites. Resumes: OUT/audit.jsonl, repairs.jsonl, held_out.jsonl.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from ..envs.errors import SandboxError
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.run import Status
from ..envs.task import AddedTests, Task
from ..envs.verify import Verifier
from ..repair.augmenters import differential
from ..repair.bench import VerifierBench
from ..repair.correct import correct_programs
from ..repair.gates.trial import AddedRun
from ..repair.loop import Job, gate
from ..repair.pool import wrong_programs
from ..repair.records import RepairStatus, Try
from ..repair.repair import repair
from ..repair.report import rate
from ..repair.variants import variants_of
from ..verifiers.audit import Audit, audit
from ..verifiers.audit_record import AuditRecord
from ..verifiers.records import Candidate, Family, Finding, Standing

HELD_OUT = "held_out.jsonl"
MOST = 40
"""Held-out programs executed per task and family."""


@dataclass(frozen=True, kw_only=True)
class HeldOut(Record):
    """One task's split. wrong, memorising: (refused, of) among held-out programs. variants: (refused, of), should be 0.

    learned: operator kinds proposals were made from. gate: the gate that stopped the proposals ("" when one passed).
    """

    task_id: str
    wrong: tuple[int, int] = (0, 0)
    memorising: tuple[int, int] = (0, 0)
    variants: tuple[int, int] = (0, 0)
    asserts: int = 0
    learned: tuple[str, ...] = ()
    gate: str = ""
    seconds: float = 0.0
    survivors: tuple[str, ...] = field(default=())


def main(arguments: Sequence[str] | None = None) -> None:
    options = _parser().parse_args(arguments)
    out = Path(options.out)
    audited = _audited(options, out)
    if options.split_only:
        report = None
    else:
        report = repair(
            audited,
            jobs=options.jobs,
            sandbox=options.sandbox,
            reaudit=not options.no_reaudit,
            memorisable=True,
        )
    with Verifier(sandbox=options.sandbox) as verifier:
        held = measure(audited, verifier, out, jobs=options.jobs, seed=options.seed)
        independent = _independents(options.domains, audited, report, verifier) if report else {}
    lines = [] if report is None else report.lines()
    for line in [*lines, *summary(held, independent)]:
        print(line)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--source", default="humaneval")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--domains", default="")
    parser.add_argument("--no-reaudit", action="store_true")
    parser.add_argument("--split-only", action="store_true", help="only the held-out measurement")
    return parser


def _audited(options: argparse.Namespace, out: Path) -> Audit:
    from ..envs.load import load_tasks

    tasks = load_tasks(options.source, limit=options.limit)
    return audit(tasks, out=out, source=options.source, sandbox=options.sandbox, jobs=options.jobs)


def measure(audited: Audit, verifier: Verifier, out: Path, *, jobs: int = 2, seed: int = 7) -> list[HeldOut]:
    """Every task with a proven non-memorising finding, those on disk left alone."""
    path = out / HELD_OUT
    done = {r.task_id: r for r in read_held_out(out)}
    tasks = {task.task_id: task for task in audited.tasks}
    todo = [r for r in audited.records if r.task_id not in done and _proven(r, memorising=False)]
    with ThreadPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as file:
        for one in pool.map(lambda r: _one(tasks[r.task_id], r, verifier, seed), todo):
            if one is not None:
                file.write(one.to_json() + "\n")
                file.flush()
                done[one.task_id] = one
    return [done[r.task_id] for r in audited.records if r.task_id in done]


def read_held_out(out: Path) -> list[HeldOut]:
    """What an earlier call measured; a cut last line is left out."""
    path = out / HELD_OUT
    if not path.is_file():
        return []
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    return [HeldOut.from_json(line) for line in lines if line.endswith("\n")]


def _proven(record: AuditRecord, *, memorising: bool) -> list[Finding]:
    proven = (f for f in record.findings if f.standing is Standing.PROVEN)
    return [f for f in proven if (f.candidate.family is Family.MEMORISING) == memorising]


def operator_of(candidate: Candidate) -> str:
    return str(candidate.metadata.get("operator") or candidate.kind)


def _one(task: Task, record: AuditRecord, verifier: Verifier, seed: int) -> HeldOut | None:
    """None when infrastructure failed: measured again by the next call."""
    started = time.monotonic()
    try:
        return _split(task, record, verifier, seed, started)
    except SandboxError as error:
        print(f"{task.task_id}: {type(error).__name__}: {error}")
        return None


def _split(task: Task, record: AuditRecord, verifier: Verifier, seed: int, started: float) -> HeldOut:
    proven = _proven(record, memorising=False)
    kinds = sorted({operator_of(f.candidate) for f in proven})
    random.Random(f"{seed}:{task.task_id}").shuffle(kinds)
    learned = set(kinds[::2])
    train = [f for f in proven if operator_of(f.candidate) in learned]
    held_kinds = set(kinds) - learned
    others = [
        c
        for c in wrong_programs(task)
        if operator_of(c) not in held_kinds and c.family is not Family.MEMORISING
    ]
    bench = VerifierBench(task, verifier)
    correct = correct_programs(task, verifier, variants=variants_of(task, limit=2)).patches
    job = Job(task=task, findings=train, bench=bench, augmenters={}, correct=correct)
    added, stopped = _proposed(job, others, verifier, seed)
    if added is None:
        return HeldOut(task_id=task.task_id, learned=tuple(sorted(learned)), gate=stopped)
    rest = [f.candidate for f in proven if operator_of(f.candidate) not in learned]
    memorising = [f.candidate for f in _proven(record, memorising=True)]
    wrong, survivors = _refused(bench, added, [(c.kind, c.patch) for c in rest])
    by_heart, _ = _refused(bench, added, [(c.kind, c.patch) for c in memorising])
    variants, _ = _refused(bench, added, [("variant", p) for p in variants_of(task, limit=8, seed=1)])
    return HeldOut(
        task_id=task.task_id,
        wrong=wrong,
        memorising=by_heart,
        variants=variants,
        asserts=len(added.test_ids),
        learned=tuple(sorted(learned)),
        seconds=round(time.monotonic() - started, 2),
        survivors=survivors,
    )


def _proposed(
    job: Job, programs: Sequence[Candidate], verifier: Verifier, seed: int
) -> tuple[AddedTests | None, str]:
    """What the differential augmenter gets through the gates within three rounds, and the last gate that said no."""
    rejected: list[Try] = []
    for _ in range(3):
        made = list(
            differential.propose(
                job.task, job.findings, rejected, backend=verifier.backend, programs=programs
            )
        )
        if not made:
            break
        one = gate(job, made[0], job.findings)
        if one.result.passed:
            return one.proposal.added, ""
        rejected.append(one)
    check = rejected[-1].result.failed_check if rejected else None
    return None, check.name if check else "nothing proposed"


def _refused(
    bench: VerifierBench, added: AddedTests, programs: Sequence[tuple[str, Patch]]
) -> tuple[tuple[int, int], tuple[str, ...]]:
    runs = [(name, bench.run(patch, added)) for name, patch in programs[:MOST]]
    left = tuple(name for name, run in runs if not refuses(run, added))
    return (len(runs) - len(left), len(runs)), left


def refuses(run: AddedRun, added: AddedTests) -> bool:
    return run.timed_out or any(run.statuses.get(i) in {Status.FAILED, Status.ERROR} for i in added.test_ids)


def _independents(domains: str, audited: Audit, report: object, verifier: Verifier) -> Mapping[str, bool]:
    """Task id -> whether the hardened suite refuses its independent correct solution (that the original suite pays)."""
    if not domains:
        return {}
    records = {r.task_id: r for r in getattr(report, "records", []) if r.hardened is not None}
    tasks = {task.task_id: task for task in audited.tasks}
    found: dict[str, bool] = {}
    for line in Path(domains).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        record, task = records.get(row["task_id"]), tasks.get(row["task_id"])
        if record is None or task is None or record.status is RepairStatus.SKIPPED:
            continue
        patch = independent_patch(task, str(row["independent_solution"]))
        if verifier.verify(task, patch).resolved:
            found[task.task_id] = not verifier.verify(task, patch, record.hardened.suite).resolved
    return found


def independent_patch(task: Task, body: str) -> Patch:
    """A solution given as a function body, put in the place of the stub's `raise NotImplementedError`."""
    path = str(task.metadata["solution_file"])
    stub = task.files[path]
    head, found, tail = stub.rpartition("    raise NotImplementedError\n")
    if not found:
        raise ValueError(f"{task.task_id}: the stub does not end in raise NotImplementedError")
    return Patch.writing({path: head + body.strip("\n") + "\n" + tail}, dict(task.files))


def summary(held: Sequence[HeldOut], independent: Mapping[str, bool]) -> list[str]:
    def total(name: str) -> str:
        pairs = [getattr(one, name) for one in held]
        return rate(sum(p[0] for p in pairs), sum(p[1] for p in pairs))

    stopped = [one for one in held if one.gate]
    lines = [
        f"split: {len(held)} tasks, {len(held) - len(stopped)} with tests through the gates",
        f"held-out wrong programs (other operator kinds, another seed) refused: {total('wrong')}",
        f"memorising programs refused (none was learned from): {total('memorising')}",
        f"behaviour-preserving variants refused: {total('variants')}",
    ]
    if independent:
        bad = sorted(task_id for task_id, refused in independent.items() if refused)
        lines.append(
            f"hardened tasks that refuse an independent correct solution: {rate(len(bad), len(independent))}"
        )
        lines += [f"  {task_id}" for task_id in bad]
    return lines


if __name__ == "__main__":
    main()
