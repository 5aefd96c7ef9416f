"""Repairs one task at a time for `repair()`: what all tasks share is held here. A context manager, thread-safe."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import Any, Self

from ..envs.registry import find
from ..envs.task import AddedTests, Suite, Task
from ..envs.verify import Verifier
from ..envs.version import __version__
from ..verifiers.alternatives import Alternatives
from ..verifiers.audit_config import AuditConfig
from ..verifiers.audit_record import AuditRecord
from ..verifiers.rundir import RunDir
from .bench import VerifierBench
from .correct import Correct, correct_programs
from .gates.trial import GateLimits
from .lock import file_digest, task_digest
from .loop import Augmenter, Job, Vote, repair_task
from .options import RepairOptions
from .prove import Proof
from .reaudit import audited_again, held_out_findings, refused_of, summary_of
from .records import HardenedSuite, RepairRecord
from .variants import variants_of

AUGMENTERS = "acidtest.repair.augmenters"


class Worker:
    """options: of the repair. verifier: shared. config: of the audit, for auditing again. llm: spec or `LLM`."""

    def __init__(
        self,
        options: RepairOptions,
        verifier: Verifier,
        config: AuditConfig,
        *,
        alternatives: Alternatives,
        llm: Any = "",
    ) -> None:
        self.options, self.verifier, self.config = options, verifier, config
        self.alternatives = alternatives
        self.llm: Any = None if isinstance(llm, str) else llm
        self._stack = ExitStack()
        self.augmenters: dict[str, Augmenter] = {
            name: find(AUGMENTERS, name).propose for name in options.augmenters
        }

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def open_llm(self, run: RunDir | None, max_usd: float | None) -> None:
        """Open the model of `options.llm` over the run's ledger; nothing when there is none or one was given."""
        if self.llm is not None or not self.options.llm:
            return
        from ..verifiers.llm.calls import CallStore
        from ..verifiers.llm.open import open_llm

        where = ":memory:" if run is None else run.path / "ledger.sqlite"
        store = self._stack.enter_context(CallStore(where))
        self.llm = open_llm(self.options.llm, store=store, max_usd=max_usd)
        self._stack.callback(self.llm.close)

    def flush(self) -> None:
        """Send what was asked so far. Raises AnswersPending."""
        if self.llm is not None:
            self.llm.flush()

    def repair(self, task: Task, record: AuditRecord) -> RepairRecord:
        """The whole repair of one task: proposals, gates, proof, lock entry, audit of the hardened suite.

        Raises SandboxError and AnswersPending; nothing is kept of a task that ends so.
        """
        original = task.with_suite(task.suite.original)
        correct = self._correct(original)
        job = Job(
            task=original,
            findings=record.findings,
            bench=VerifierBench(original, self.verifier, existing=self._existing(original)),
            augmenters=self.augmenters,
            correct=correct.patches,
            iterations=self.options.iterations,
            limits=GateLimits(
                gold_runs=self.options.gold_runs,
                block_runs=self.options.block_runs,
                allow_unspecified=self.options.allow_unspecified,
            ),
            suite_seconds=suite_seconds(record),
            options=self._options(original),
            vote=self._vote(original),
            seed=self.options.seed,
        )
        done, added, proof = repair_task(job)
        done = replace(done, before=summary_of(record))
        if added is None or proof is None:
            return done
        entry = self._entry(original, added, proof, done, correct)
        done = replace(done, hardened=entry)
        if not self.options.reaudit:
            return done
        seed = self.config.seed + self.options.seed
        after = audited_again(original, entry.suite, self.verifier, self.config, seed, self.llm)
        held_out: dict[str, tuple[int, int]] = {}
        if original.is_function:
            fresh = held_out_findings(original, record, self.verifier, self.config, seed)
            held_out = refused_of(job.bench, added, fresh)
        return replace(done, after=summary_of(after), held_out=held_out)

    def _correct(self, task: Task) -> Correct:
        variants = variants_of(task, limit=self.options.variants, seed=self.options.seed)
        return correct_programs(
            task, self.verifier, alternatives=self.alternatives.of(task.task_id), variants=variants
        )

    def _existing(self, task: Task) -> str:
        from .tree import existing_tests

        return existing_tests(task, self.verifier.backend)

    def _options(self, task: Task) -> Mapping[str, Any]:
        return {
            "backend": self.verifier.backend,
            "seed": self.options.seed,
            "max_asserts": self.options.max_asserts,
            "allow_unspecified": self.options.allow_unspecified,
            "llm": self.llm,
        }

    def _vote(self, task: Task) -> Vote | None:
        if self.llm is None:
            return None
        from .vote import votes_of

        return lambda _, proposal, findings: votes_of(task, proposal, findings, self.llm)

    def _entry(
        self, task: Task, added: AddedTests, proof: Proof, done: RepairRecord, correct: Correct
    ) -> HardenedSuite:
        suite: Suite = replace(task.suite, added=added)
        kept = [one for one in done.tries if one.result.passed]
        return HardenedSuite(
            task_id=task.task_id,
            original_digest=task.suite.digest,
            hardened_digest=suite.digest,
            image_digest=self.verifier.backend.image_digest(task.image),
            suite=suite,
            files={path: file_digest(text) for path, text in added.test_files.items()},
            gates=tuple(one.result for one in kept),
            votes={one.result.proposal_digest: list(one.votes) for one in kept if one.votes},
            proof={**proof.to_dict(), "left_out": dict(correct.left_out)},
            cost_usd=done.cost_usd,
            version=__version__,
            task_digest=task_digest(task),
        )


def suite_seconds(record: AuditRecord) -> float:
    """The original suite's own wall time under gold, from the calibration; 0 when it is not known."""
    seconds = record.calibration.get("seconds", {})
    return float(seconds.get("gold", 0.0)) if isinstance(seconds, Mapping) else 0.0
