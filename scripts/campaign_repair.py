"""The repair campaign on function tasks, one command: `python -m acidtest.scripts.campaign_repair OUT --source humaneval`.

Audits the source, repairs every task with a proven finding, and measures what the product's own loop is worth on
programs it never saw: for each task the operator kinds of its proven wrong programs are split in two, tests are
proposed and gated from one half, with inputs of another seed than those that proved them, and the other half is executed
against them.
Memorising programs are never learned from here. `--domains` (JSON Lines with `task_id` and `independent_solution`)
executes independent correct solutions against the hardened suites. Rows are written as they are measured, and a call goes
on where an earlier one ended: OUT/audit.jsonl, repairs.jsonl, held_out.jsonl, independent.jsonl.
Not covered: memorising programs of kinds that neither `verifiers/attackers/memorise.py` makes nor `repair/fallbacks.py`
anticipates. The choice of inputs looks for what such programs do outside the visible tests.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from ..envs.errors import SandboxError, TaskError
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
from ..repair.records import Try
from ..repair.repair import repair
from ..repair.report import RepairReport, rate
from ..repair.variants import variants_of
from ..verifiers.audit import Audit, audit
from ..verifiers.audit_record import AuditRecord
from ..verifiers.records import Candidate, Family, Finding, Standing
from ..verifiers.stats import clustered_wilson

T = TypeVar("T")
R = TypeVar("R", bound=Record)

HELD_OUT, INDEPENDENT = "held_out.jsonl", "independent.jsonl"
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
    memorising_survivors: tuple[str, ...] = field(default=())


@dataclass(frozen=True, kw_only=True)
class IndependentRow(Record):
    """A correct solution written by others: whether the original suite pays it, and the hardened one (its digest)."""

    task_id: str
    paid: bool
    paid_hardened: bool
    hardened_digest: str

    @property
    def refused(self) -> bool:
        return self.paid and not self.paid_hardened


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
        independent = (
            independents(options.domains, audited, report, verifier, out, jobs=options.jobs)
            if report and options.domains
            else []
        )
    lines = [] if report is None else report.lines()
    for line in [*lines, *summary(held, independent)]:
        print(line)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out")
    parser.add_argument("--source", default="humaneval")
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("-j", "--jobs", type=int, default=2)
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
    done = {r.task_id: r for r in read_held_out(out)}
    tasks = {task.task_id: task for task in audited.tasks}
    todo = [r for r in audited.records if r.task_id not in done and _proven(r, memorising=False)]
    for one in _written(out / HELD_OUT, lambda r: _one(tasks[r.task_id], r, verifier, seed), todo, jobs):
        done[one.task_id] = one
    return [done[r.task_id] for r in audited.records if r.task_id in done]


def _written(path: Path, work: Callable[[T], R | None], todo: Sequence[T], jobs: int) -> Iterator[R]:
    """The rows of `todo`, each written as soon as it is there; None (infrastructure failed) writes nothing.

    A line that an earlier call left cut is ended first, so that it spoils no other.
    """
    cut = path.is_file() and not path.read_bytes().endswith(b"\n") and path.stat().st_size > 0
    with ThreadPoolExecutor(jobs) as pool, path.open("a", encoding="utf-8") as file:
        file.write("\n" if cut else "")
        for future in as_completed([pool.submit(work, item) for item in todo]):
            if (row := future.result()) is not None:
                file.write(row.to_json() + "\n")
                file.flush()
                yield row


def read_held_out(out: Path) -> list[HeldOut]:
    """What an earlier call measured; a cut line is left out."""
    return _read(out / HELD_OUT, HeldOut)


def _read(path: Path, kind: type[R]) -> list[R]:
    rows = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.is_file() else []:
        try:
            rows.append(kind.from_json(line))
        except TaskError:
            continue  # cut by a kill: that task is measured again
    return rows


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
    by_heart, known = _refused(bench, added, [(c.kind, c.patch) for c in memorising])
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
        memorising_survivors=known,
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


def independents(
    domains: str, audited: Audit, report: RepairReport, verifier: Verifier, out: Path, *, jobs: int = 2
) -> list[IndependentRow]:
    """A row for each hardened task that the file has an independent correct solution of; one a suite is kept."""
    entries = {r.task_id: r.hardened for r in report.records if r.hardened is not None}
    tasks = {task.task_id: task for task in audited.tasks}
    done = {(r.task_id, r.hardened_digest): r for r in _read(out / INDEPENDENT, IndependentRow)}
    given = {}
    for line in Path(domains).read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        if row["task_id"] in entries and row["task_id"] in tasks:
            given[str(row["task_id"])] = str(row["independent_solution"])

    def work(task_id: str) -> IndependentRow | None:
        task, entry = tasks[task_id], entries[task_id]
        patch = independent_patch(task, given[task_id])
        try:
            first, second = verifier.verify(task, patch), verifier.verify(task, patch, entry.suite)
        except SandboxError as error:
            print(f"{task_id}: {type(error).__name__}: {error}")
            return None
        return IndependentRow(
            task_id=task_id,
            paid=first.resolved,
            paid_hardened=second.resolved,
            hardened_digest=entry.hardened_digest,
        )

    todo = [i for i in given if (i, entries[i].hardened_digest) not in done]
    for one in _written(out / INDEPENDENT, work, todo, jobs):
        done[one.task_id, one.hardened_digest] = one
    return [done[key] for i in given if (key := (i, entries[i].hardened_digest)) in done]


def independent_patch(task: Task, body: str) -> Patch:
    """A solution given as a function body, put in the place of the stub's `raise NotImplementedError`."""
    path = str(task.metadata["solution_file"])
    stub = task.files[path]
    head, found, tail = stub.rpartition("    raise NotImplementedError\n")
    if not found:
        raise ValueError(f"{task.task_id}: the stub does not end in raise NotImplementedError")
    return Patch.writing({path: head + body.strip("\n") + "\n" + tail}, dict(task.files))


def summary(held: Sequence[HeldOut], independent: Sequence[IndependentRow]) -> list[str]:
    def total(name: str) -> str:
        return clustered([getattr(one, name) for one in held])

    stopped = [one for one in held if one.gate]
    lines = [
        f"split: {len(held)} tasks, {len(held) - len(stopped)} with tests through the gates",
        f"held-out wrong programs (other operator kinds, another seed) refused: {total('wrong')}",
        f"memorising programs refused (none was learned from): {total('memorising')}",
        f"behaviour-preserving variants refused: {total('variants')}",
    ]
    lines += [
        f"  {one.task_id}: left {', '.join([*one.survivors, *(f'memorising {m}' for m in one.memorising_survivors)])}"
        for one in held
        if one.survivors or one.memorising_survivors
    ]
    lines += [f"  {one.task_id}: no tests, {one.gate}" for one in stopped]
    fair = [one for one in independent if one.paid]
    if fair:
        bad = sorted(one.task_id for one in fair if one.refused)
        lines.append(
            f"hardened tasks that refuse an independent correct solution: {rate(len(bad), len(fair))}"
        )
        lines += [f"  {task_id}" for task_id in bad]
    return lines


def clustered(pairs: Sequence[tuple[int, int]]) -> str:
    """`part of whole in n tasks (x %, Wilson 95 % clustered by task a to b)`."""
    part, whole = sum(p for p, _ in pairs), sum(w for _, w in pairs)
    interval = clustered_wilson(pairs)
    if interval is None:
        return "0 of 0"
    tasks = sum(bool(w) for _, w in pairs)
    span = f"{interval[0]:.1%} to {interval[1]:.1%}"
    return f"{part} of {whole} in {tasks} tasks ({part / whole:.1%}, Wilson 95 % clustered by task {span})"


if __name__ == "__main__":
    main()
