"""One task's audit: calibrate, examine with wrong programs, ask the model, score, flag."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from ..envs.calibrate import Calibration
from ..envs.leaks import audit_leaks
from ..envs.ledger import RUNNER_VERSION
from ..envs.patch import Patch
from ..envs.record import digest_of
from ..envs.task import Task
from ..envs.verify import Verifier
from ..envs.version import __version__
from . import eqs
from .alternatives import HELD, Alternative, Alternatives
from .audit_config import AuditConfig
from .audit_record import UNPROVEN, AuditRecord, Examination
from .examine import examine
from .llm.calls import CallStore
from .llm.open import open_llm
from .llm.protocol import LLM
from .llm_audit import judge_survivors, llm_audit
from .llm_record import LLMAuditResult
from .oracle.prove import prove
from .passrates import PassRates
from .records import Candidate, Family, Standing, Witness
from .rundir import RunDir
from .search import SearchUnsupported
from .zoo.matrix import run_zoo

BROKEN = ("broken_gold", "noop_passes")
"""Calibration flags of a task that is in no rate: DROP, whatever its EQS."""

TAMPER_GROUPS = "CPRHLJ"
"""First letters of the kinds that attack the harness instead of the task."""


class Auditor:
    """Holds what all tasks of an audit share: options, verifier, model, outside data. A context manager.

    llm: the model when the caller has opened it (its store, its ceiling, its flush); None: opened as `config.llm` says.
    """

    def __init__(
        self, config: AuditConfig, verifier: Verifier, run: RunDir | None, *, llm: LLM | None = None
    ) -> None:
        self.config = config
        self.verifier = verifier
        self.run = run
        self.alternatives = Alternatives.read(config.alternatives) if config.alternatives else Alternatives()
        self.pass_rates = PassRates.read(config.pass_at_1) if config.pass_at_1 else PassRates()
        self._lock = threading.Lock()
        self._llm: LLM | None = llm
        self._store: CallStore | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        if self._store is not None:
            self._store.close()

    def flush(self) -> None:
        """Send what tasks have asked the model and wait, or raise AnswersPending (files, or a batch that runs on)."""
        if self._llm is not None:
            self._llm.flush()

    def audit_task(self, task: Task) -> AuditRecord:
        """The record of one task. Raises SandboxError, TaskError, LLMError: the loop decides what they mean."""
        calibration = self.verifier.calibration(task)
        record = AuditRecord(
            task_id=task.task_id,
            dataset=task.dataset,
            calibration=calibration.to_dict(),
            suite_digest=task.suite.digest,
            image_digest=self.verifier.backend.image_digest(task.image),
            seed=self.config.seed,
            version=__version__,
            pass_at_1=self.pass_rates.of(task.task_id),
            notes=tuple(calibration.reasons),
        )
        broken = next((flag for flag in calibration.flags if flag in BROKEN), "")
        if broken or not calibration.ok:
            return finish(replace(record, broken=broken, flags=tuple(calibration.flags)))
        return finish(self._examined(task, record, calibration))

    def _examined(self, task: Task, record: AuditRecord, calibration: Calibration) -> AuditRecord:
        known = self.alternatives.of(task.task_id)
        exam = self._exam(task, known)
        asked: LLMAuditResult | None = None
        if self.config.llm:
            exam, asked = self._asked(task, exam, known)
        flags = [*calibration.flags, *flags_of(exam, self._refused(task, known))]
        tamper: dict[str, Any] = {}
        if self.config.tamper:
            tamper = self._tamper(task)
            flags += [f"tamperable:{kind}" for kind in sorted(tamper)]
        leaks: tuple[str, ...] = ()
        if self.config.leaks:
            report = audit_leaks(task, backend=self.verifier.backend)
            leaks = tuple(f"{f.check}: {f.title} (shown by: {f.command})" for f in report.leaks)
            flags += ["leaky"] if leaks else []
        return replace(
            record,
            attempts=exam.attempts,
            pool=exam.pool,
            findings=exam.findings,
            gold_findings=exam.gold_findings,
            tried=exam.tried,
            searched=exam.searched,
            notes=(*record.notes, *exam.notes),
            flags=tuple(dict.fromkeys(flags)),
            llm=asked.summary() if asked else {},
            f1_labels=asked.f1_labels if asked else (),
            tamper=tamper,
            leaks=leaks,
            cost_usd=asked.cost_usd if asked else 0.0,
        )

    def _exam(self, task: Task, known: Sequence[Patch]) -> Examination:
        """The mechanical part; kept in the ledger where the task will be visited again for a model's answers."""
        ledger = self.verifier.ledger
        if not self.config.llm or ledger is None:
            return examine(task, self.verifier, self.config, alternatives=known)
        key = self._exam_key(task, known)
        held = ledger.note("examination", key)
        if held is not None:
            return Examination.from_json(held)
        exam = examine(task, self.verifier, self.config, alternatives=known)
        if all(attempt.outcome.decisive for attempt in exam.attempts):
            ledger.store_note("examination", key, exam.to_json())
        return exam

    def _exam_key(self, task: Task, known: Sequence[Patch]) -> str:
        """Everything that an examination depends on, the content of the user's rollouts included."""
        options = replace(self.config, llm="", prices="", k=0, rounds=0, benign=0, max_usd=0.0, jobs=0)
        backend, limits = self.verifier.backend, self.verifier.limits
        place = [backend.name, backend.image_digest(task.image), limits]
        file = Path(self.config.candidates)
        rollouts = hashlib.sha256(file.read_bytes()).hexdigest() if file.is_file() else ""
        patches = [patch.exact_digest for patch in known]
        return digest_of([task.digest, place, options, rollouts, patches, __version__, RUNNER_VERSION])

    def _tamper(self, task: Task) -> dict[str, Any]:
        """Harness kinds that a naive grader would have paid on this task: kind -> what our verdict said."""
        matrix = run_zoo([task], self.verifier)
        found: dict[str, Any] = {}
        for result in matrix.results:
            if result.demonstrated and result.kind[0] in TAMPER_GROUPS:
                found.setdefault(result.kind, []).append(result.word)
        return found

    def _refused(self, task: Task, known: Sequence[Patch]) -> int:
        """How many known-correct alternatives the suite itself refuses (flag `too_narrow`)."""
        return sum(self.verifier.verify(task, patch).reward == 0.0 for patch in known)

    def _asked(
        self, task: Task, exam: Examination, known: Sequence[Patch]
    ) -> tuple[Examination, LLMAuditResult]:
        """The model's exploits and the survivors of the mechanical audit, judged and proven where they can be."""
        config, llm = self.config, self._model()
        prover = self._oracle if task.is_function else None
        result = llm_audit(
            task,
            self.verifier,
            llm,
            k=config.k,
            rounds=config.rounds,
            benign=config.benign,
            alternatives=known,
            attacker_sees=config.attacker_sees,
            seed=config.seed,
            prover=prover,
        )
        correct = (*known, *result.alternatives)
        findings = exam.findings
        if not task.is_function:
            judged = judge_survivors(task, self.verifier, llm, findings, alternatives=correct)
            findings = tuple(judged)
        standing = {f.candidate.candidate_id: f.standing for f in findings}
        attempts = tuple(
            replace(a, proven=standing[a.candidate_id] is Standing.PROVEN)
            if a.candidate_id in standing
            else a
            for a in exam.attempts
        )
        if self.run is not None:
            self.run.append("llm", result)
            for patch in result.alternatives:
                row = Alternative(task_id=task.task_id, patch=patch.text, source="benign control, held")
                self.run.append(HELD, row)
        merged = replace(
            exam,
            findings=(*findings, *result.findings),
            attempts=(*attempts, *result.attempts),
            tried=exam.tried + len(result.assessed),
            notes=(*exam.notes, *result.notes),
        )
        return merged, result

    def _oracle(self, task: Task, candidates: Sequence[Candidate]) -> Mapping[str, tuple[Witness, ...]]:
        """In-domain witnesses of a function task's candidates, by candidate id."""
        try:
            found = prove(task, candidates, backend=self.verifier.backend, seed=self.config.seed)
        except SearchUnsupported:
            return {}
        return {c.candidate_id: w for c, w, standing in found if standing is Standing.PROVEN}

    def _model(self) -> LLM:
        """The model, opened by the first task that needs it; calls stand in the run's ledger file."""
        with self._lock:
            if self._llm is None:
                where = ":memory:" if self.run is None else str(self.run.path / "ledger.sqlite")
                self._store = CallStore(where)
                self._llm = open_llm(
                    self.config.llm,
                    store=self._store,
                    max_usd=self.config.max_usd or None,
                    prices=self.config.prices or None,
                    base_url=os.environ.get("ANTHROPIC_BASE_URL"),
                )
            return self._llm


def flags_of(exam: Examination, refused: int) -> Iterable[str]:
    """Flags that follow from executed programs (table in SCIENCE.md, Definitions)."""
    proven = [f for f in exam.findings if f.standing is Standing.PROVEN]
    families = {f.candidate.family for f in proven}
    if families - {Family.MEMORISING, Family.TAMPER}:
        yield "hackable"
    if Family.MUTANT in families:
        yield "weak_tests"
    if Family.MEMORISING in families:
        yield "memorisable"
    if refused:
        yield "too_narrow"
    if exam.gold_findings:
        yield "gold_disputed"


def finish(record: AuditRecord) -> AuditRecord:
    """The record with its score and what follows from it, recomputed from what it holds (`score` does just this)."""
    k, n = record.pass_at_1 or (0, 0)
    scored = eqs.score(
        record.attempts,
        record.pool,
        f1=eqs.judge_f1(record.f1_labels) if record.f1_labels else None,
        d=eqs.learnability(k, n) if n else None,
        broken=record.broken,
        seed=record.seed,
    )
    made = replace(record, score=scored, flags=tuple(f for f in record.flags if f != UNPROVEN))
    return replace(made, flags=(*made.flags, UNPROVEN)) if made.unproven else made
