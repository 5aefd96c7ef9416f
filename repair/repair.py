"""`repair(audit)`: harden the suite of every hackable task, lock what holds, say what did not.

One line a task in `repairs.jsonl`, written when the task is done; `suites/` and `suites.lock.json` are made from those
lines after each. kill -9 at any moment loses the task in flight at most: the next call goes on where this one ended,
and what the task in flight had executed or asked a model comes from the ledger.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..envs.errors import AnswersPending, ConfigError, SandboxError
from ..envs.task import Task
from ..envs.verify import Verifier
from ..verifiers.alternatives import HELD, Alternatives
from ..verifiers.audit import TASKS, Audit
from ..verifiers.audit_record import AuditRecord
from ..verifiers.records import Decision
from ..verifiers.rundir import RunDir
from .lock import Lock, load_lock, write_lock
from .options import RepairOptions
from .records import RepairRecord, RepairStatus
from .report import RepairReport
from .worker import Worker

RECORDS = "repairs"
Progress = Callable[[RepairRecord], None]


def repair(
    audit: Audit | str | Path,
    *,
    iterations: int = 5,
    llm: Any = "",
    max_usd: float | None = None,
    task_ids: Iterable[str] | None = None,
    decision: str | Sequence[str] | None = None,
    augmenters: Sequence[str] | None = None,
    alternatives: str | Path | Alternatives | None = None,
    verifier: Verifier | None = None,
    sandbox: str | None = None,
    jobs: int = 0,
    memorisable: bool = False,
    progress: Progress | None = None,
    **options: Any,
) -> RepairReport:
    """Repair an audit (or the run folder of one): every task with a proven finding of a hackable kind.

    iterations, max_usd: the budget of each task, and of all model calls. llm: as `--llm`, or an `LLM`. task_ids,
    decision: take only these. alternatives: known-correct programs (default: the file of the audit, and what its benign control established). options: further
    fields of `RepairOptions`. Raises ConfigError, EngineUnavailable. A spent model budget and pending answers end it
    early, in `stopped`: the same call goes on. memorisable: also take tasks whose only proven findings memorise the tests.
    """
    held = audit if isinstance(audit, Audit) else Audit.read(audit)
    spec = llm if isinstance(llm, str) else getattr(llm, "model", "llm")
    names = tuple(augmenters) if augmenters else ("differential", *(("llm",) if spec else ()))
    settings = RepairOptions(iterations=iterations, llm=spec, augmenters=names, **options)
    with ExitStack() as stack:
        run = None
        if held.path is not None:
            run = stack.enter_context(RunDir.create(held.path, RunDir.read(held.path).config))
        ledger = run.ledger if run is not None else None
        judge = verifier or stack.enter_context(
            Verifier(sandbox=sandbox or held.config.sandbox or None, ledger=ledger)
        )
        worker = stack.enter_context(
            Worker(settings, judge, held.config, alternatives=_alternatives(alternatives, held), llm=llm)
        )
        worker.open_llm(run, max_usd)
        work = _Work(held, settings, worker, run, progress or (lambda record: None))
        return work.go(_chosen(held, task_ids, decision, memorisable), jobs or len(os.sched_getaffinity(0)))


def _alternatives(given: str | Path | Alternatives | None, audit: Audit) -> Alternatives:
    source = given if given is not None else audit.config.alternatives
    if isinstance(source, Alternatives):
        return source
    known = Alternatives.read(source) if source else Alternatives()
    established = None if audit.path is None else audit.path / f"{HELD}.jsonl"
    return known.plus(Alternatives.read(established)) if established and established.is_file() else known


def _chosen(
    audit: Audit,
    task_ids: Iterable[str] | None,
    decision: str | Sequence[str] | None,
    memorisable: bool = False,
) -> list[AuditRecord]:
    wanted = None if task_ids is None else set(task_ids)
    classes = {decision} if isinstance(decision, str) else set(decision or ())
    unknown = (wanted or set()) - {record.task_id for record in audit.records}
    if odd := sorted(classes - {*Decision}):
        raise ConfigError(f"No decision is named {odd[0]!r}.", mend=f"There are: {', '.join(Decision)}.")
    if unknown:
        raise ConfigError(f"The audit has no task {', '.join(sorted(unknown)[:5])}.")
    return [
        record
        for record in audit.records
        if (record.hackable or (memorisable and record.proven and not record.broken))
        and (wanted is None or record.task_id in wanted)
        and (not classes or str(record.decision) in classes)
    ]


class _Work:
    """Hands tasks out, keeps records and lock in step, and gives the result in the audit's order."""

    def __init__(
        self, audit: Audit, options: RepairOptions, worker: Worker, run: RunDir | None, progress: Progress
    ) -> None:
        self.audit, self.options, self.worker, self.run, self.progress = audit, options, worker, run, progress
        self.records = {} if run is None else run.latest(RECORDS, RepairRecord)
        self.tasks = {task.task_id: task for task in self._tasks()}
        self.errors: dict[str, str] = {}
        self.pending: list[AuditRecord] = []
        self.stopped = ""

    def _tasks(self) -> Iterator[Task]:
        if self.audit.tasks or self.run is None:
            yield from self.audit.tasks
        else:
            yield from self.run.latest(TASKS, Task).values()

    def go(self, chosen: list[AuditRecord], jobs: int) -> RepairReport:
        todo = [record for record in chosen if not self._final(record)]
        for record in chosen:
            if self._final(record):
                self.progress(self.records[record.task_id])
        while todo:
            self._drain(todo, jobs)
            todo, self.pending = self.pending, []
            if todo and (self.stopped or not self._answered()):
                break
        lock = self._write_lock()
        return RepairReport(
            records=[self.records[r.task_id] for r in chosen if r.task_id in self.records],
            lock=lock,
            path=None if self.run is None else self.run.path,
            tried=len(self.audit.records),
            hackable=len(self.audit.hackable),
            errors=self.errors,
            stopped=self.stopped,
        )

    def _final(self, record: AuditRecord) -> bool:
        """Done for good: wholly repaired, or tried with these very options, on this very suite."""
        held = self.records.get(record.task_id)
        if held is None or held.suite_digest != record.suite_digest:
            return False
        return held.status is RepairStatus.REPAIRED or held.options_digest == self.options.digest

    def _answered(self) -> bool:
        """Send what was asked of the model; whether answers are there now."""
        try:
            self.worker.flush()
        except AnswersPending as error:
            self.stopped = str(error)
            return False
        return True

    def _drain(self, todo: Iterable[AuditRecord], jobs: int) -> None:
        running: dict[Future[RepairRecord], AuditRecord] = {}
        source = iter(todo)
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="repair") as pool:
            try:
                while True:
                    while len(running) < jobs and not self.stopped:
                        record = next(source, None)
                        if record is None:
                            break
                        task = self.tasks[record.task_id]
                        running[pool.submit(self.worker.repair, task, record)] = record
                    if not running:
                        return
                    done, _ = wait(running, return_when=FIRST_COMPLETED)
                    for future in done:
                        self._settle(running.pop(future), future)
            except BaseException:
                pool.shutdown(wait=False, cancel_futures=True)
                raise

    def _settle(self, audited: AuditRecord, future: Future[RepairRecord]) -> None:
        try:
            record = future.result()
        except AnswersPending:
            self.pending.append(audited)
            return
        except SandboxError as error:
            self.errors[audited.task_id] = f"{type(error).__name__}: {error}"
            return
        record = replace(record, options_digest=self.options.digest, suite_digest=audited.suite_digest)
        self.records[record.task_id] = record
        if self.run is not None:
            self.run.append(RECORDS, record)
            self._write_lock()
        if record.budget_spent:
            self.stopped = record.reason
        self.progress(record)

    def _write_lock(self) -> Lock:
        """The lock of everything that is hardened, earlier calls included; in memory when nothing is kept."""
        entries = {i: r.hardened for i, r in self.records.items() if r.hardened is not None}
        if self.run is None:
            return Lock(entries)
        if not entries and not (self.run.path / "suites.lock.json").exists():
            return Lock({})
        write_lock(self.run.path, entries.values())
        return load_lock(self.run.path)
