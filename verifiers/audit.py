"""`audit(tasks)`: for every task calibrate, execute wrong programs, prove, score, flag; append one record each.

Tasks are independent and run side by side in threads (the work happens in sandboxes). A record is on disk before
the next step is taken, so kill -9 loses at most the tasks in flight; the same command then goes on, retrying
those whose record carries an error. A task that meets passing trouble is tried again at once (its verdicts stand in
the ledger), and an engine that went away is waited for (`patience.py`).
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ..envs import registry
from ..envs.errors import AcidtestError, AnswersPending, BudgetExceeded, EngineUnavailable
from ..envs.ledger import Ledger
from ..envs.task import Task
from ..envs.verify import Verifier
from .attackers import rollouts
from .audit_config import AuditConfig
from .audit_record import AuditRecord
from .audit_task import Auditor
from .examine import ATTACKERS
from .patience import Patience
from .rundir import RunDir

RECORDS = "audit"
TASKS = "tasks"
WITNESSES = "witnesses"
Progress = Callable[[str], None]


@dataclass
class Audit:
    """The outcome of an audit: records in the order of the tasks, and where they are on disk (None: nowhere).

    pending: tasks that wait for model answers (`--llm files:` and `batch:`); waiting: where they wait. stopped: why the audit ended before
    all tasks were done ("" when it did not); running it again with the same options goes on.
    """

    records: list[AuditRecord]
    config: AuditConfig
    path: Path | None = None
    tasks: list[Task] = field(default_factory=list)
    pending: int = 0
    waiting: str = ""
    stopped: str = ""

    @property
    def hackable(self) -> list[AuditRecord]:
        return [r for r in self.records if r.hackable]

    @classmethod
    def read(cls, path: str | Path) -> Audit:
        """An earlier audit from its run directory. Raises ConfigError when there is none."""
        run = RunDir.read(path)
        records = list(run.latest(RECORDS, AuditRecord).values())
        tasks = list(run.latest(TASKS, Task).values())
        return cls(records=records, config=AuditConfig.known(run.config), path=Path(path), tasks=tasks)


def audit(
    tasks: Sequence[Task],
    *,
    out: str | Path | None = None,
    config: AuditConfig | None = None,
    selection: Mapping[str, Any] | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> Audit:
    """Audit tasks and keep everything under `out` (nothing is kept when it is None).

    options: fields of `AuditConfig`. selection: how the tasks were chosen from the source (split, limit, task_ids), kept in
    the run for whoever resumes it. progress: called with a task's id when its record is done.
    Raises EngineUnavailable when no engine answers (in mid-run: for two minutes), RunConflict when `out` holds another run. A model budget that is
    spent and answers that are pending end the audit early, in `stopped` and `pending`: nothing is lost.
    """
    settings = replace(config or AuditConfig(), **options)
    _refuse_unusable(settings)
    with ExitStack() as stack:
        run = None
        ledger = stack.enter_context(Ledger()) if out is None else None
        if out is not None:
            run = stack.enter_context(RunDir.create(out, {**settings.to_dict(), **(selection or {})}))
            ledger = run.ledger
        verifier = stack.enter_context(
            Verifier(
                sandbox=settings.sandbox or None,
                defence=settings.defence,
                seed=settings.seed,
                ledger=ledger,
                gold_runs=settings.calibration_runs or None,
            )
        )
        auditor = stack.enter_context(Auditor(settings, verifier, run))
        return _Loop(list(tasks), settings, auditor, run, progress or (lambda note: None)).go()


def _refuse_unusable(config: AuditConfig) -> None:
    """Raise before anything is run or written where an attacker or a rollout row cannot be used."""
    for name in config.attackers:
        registry.find(ATTACKERS, name)
    if config.candidates:
        for _ in rollouts.read_rows(config.candidates):
            pass


class _Loop:
    """Runs the tasks that have no final record yet, keeps what ends the run early, and gives the result in order."""

    def __init__(
        self, tasks: list[Task], config: AuditConfig, auditor: Auditor, run: RunDir | None, progress: Progress
    ) -> None:
        self.tasks, self.config, self.auditor, self.run, self.progress = tasks, config, auditor, run, progress
        self.records = {} if run is None else run.latest(RECORDS, AuditRecord)
        self.waits: list[Task] = []
        self.waiting = ""
        self.stopped = ""
        self.ending = threading.Event()

    def go(self) -> Audit:
        self._keep_tasks()
        todo = [t for t in self.tasks if not self._final(t)]
        for task in self.tasks:
            if task not in todo:
                self.progress(task.task_id)
        jobs = self.config.jobs or len(os.sched_getaffinity(0))
        with ThreadPoolExecutor(max_workers=jobs, thread_name_prefix="audit") as pool:
            try:
                self._sweep(pool, todo, jobs)
            except BaseException:
                self.ending.set()
                self.auditor.verifier.stop()
                pool.shutdown(wait=False, cancel_futures=True)
                raise
        ids = [t.task_id for t in self.tasks]
        return Audit(
            records=[self.records[i] for i in ids if i in self.records],
            config=self.config,
            path=None if self.run is None else self.run.path,
            tasks=self.tasks,
            pending=len(self.waits),
            waiting=self.waiting,
            stopped=self.stopped,
        )

    def _sweep(self, pool: ThreadPoolExecutor, todo: list[Task], jobs: int) -> None:
        """Every task as far as the model's answers go; then all questions together; again with the answers."""
        while todo:
            self.waits = []
            self._drain(pool, iter(todo), jobs)
            if not self.waits or self.stopped:
                return
            try:
                self.auditor.flush()
            except AnswersPending as error:
                self.waiting = str(error)
                return
            except BudgetExceeded as error:
                self.stopped = str(error)
                return
            todo = sorted(self.waits, key=self.tasks.index)

    def _final(self, task: Task) -> bool:
        held = self.records.get(task.task_id)
        return held is not None and not held.error and held.suite_digest == task.suite.digest

    def _keep_tasks(self) -> None:
        """The tasks themselves stand in the run, so that repair and report need no source."""
        if self.run is None:
            return
        held = {i: t.digest for i, t in self.run.latest(TASKS, Task).items()}
        for task in self.tasks:
            if held.get(task.task_id) != task.digest:
                self.run.append(TASKS, task)

    def _drain(self, pool: ThreadPoolExecutor, todo: Iterable[Task], jobs: int) -> None:
        """At most `jobs` tasks are handed out at a time, so that stopping early leaves none queued."""
        running: dict[Future[AuditRecord], Task] = {}
        source = iter(todo)
        while True:
            while len(running) < jobs and not self.stopped:
                task = next(source, None)
                if task is None:
                    break
                running[pool.submit(self._one, task)] = task
            if not running:
                return
            done, _ = wait(running, return_when=FIRST_COMPLETED)
            for future in done:
                self._settle(running.pop(future), future)

    def _settle(self, task: Task, future: Future[AuditRecord]) -> None:
        try:
            record = future.result()
        except AnswersPending:
            self.waits.append(task)
            return
        except BudgetExceeded as error:
            self.stopped = str(error)
            return
        self.records[task.task_id] = record
        if self.run is not None:
            _write_witnesses(self.run.path / WITNESSES, record)
            self.run.append(RECORDS, record)
        self.progress(task.task_id)

    def _one(self, task: Task) -> AuditRecord:
        start = time.monotonic()
        try:
            record = Patience(self.ending).insist(lambda: self.auditor.audit_task(task))
        except (AnswersPending, BudgetExceeded, EngineUnavailable):
            raise
        except AcidtestError as error:
            record = AuditRecord(
                task_id=task.task_id,
                dataset=task.dataset,
                error=f"{type(error).__name__}: {error}",
                suite_digest=task.suite.digest,
                seed=self.config.seed,
            )
        return replace(record, seconds=round(time.monotonic() - start, 3))


def _write_witnesses(folder: Path, record: AuditRecord) -> None:
    """The best standalone witness of every proven finding, as a file anyone can run: `witnesses/<candidate id>.py`."""
    for finding in record.proven:
        text = next((w.script for w in finding.witnesses if w.script), "")
        if text:
            folder.mkdir(exist_ok=True)
            (folder / f"{finding.candidate.candidate_id}.py").write_text(text, encoding="utf-8")
