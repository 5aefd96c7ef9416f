"""`verify(task, patch) -> Verdict`: the judgement of one patch, in fresh sandboxes, layer by layer.

    check the diff → fresh sandbox → apply → place trusted tests → run → account for every id
        → beacons → sabotaged twin → comparison probe → typed outcome

A bad patch is data (a Verdict); bad infrastructure is a SandboxError, retried, then raised: never an outcome.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import TracebackType
from typing import Self, TypeVar

from . import sandboxes
from .calibrate import Calibration, Calibrator, Flag, broken_suite
from .defence import STRICT, Defence, defence_of
from .diff_policy import plan
from .errors import SandboxError, TaskError, UnknownName
from .judge import Judge
from .ledger import RUNNER_VERSION, Ledger
from .patch import Patch
from .prepared import Part, Prepared, added_part, original_part
from .probe import identity
from .protocols import Limits, SandboxBackend
from .record import digest_of
from .reference import Reference
from .reference_run import make_reference
from .task import Suite, Task
from .verdict import Verdict

T = TypeVar("T")


class Stopped(SandboxError):
    """Asked of a verifier that was stopped: there is no verdict, and none is coming."""

    retryable = False


class Verifier:
    """Judges patches; keeps what is the same between them (trusted tests, gold's reference, the engine). Thread-safe.

    sandbox: a backend, its name, or None (docker where an engine answers, else local). defence: "strict", "fast" or
    a `Defence`. seed: of every random choice. ledger: verdict cache. retries: further tries after a retryable
    SandboxError. limits: of each sandbox. gold_runs: of a calibration, in the suite's own order (None: by its time).
    """

    def __init__(
        self,
        *,
        sandbox: str | SandboxBackend | None = None,
        defence: str | Defence = "strict",
        seed: int = 0,
        ledger: Ledger | None = None,
        retries: int = 2,
        limits: Limits | None = None,
        gold_runs: int | None = None,
    ) -> None:
        self._owned = sandbox is None or isinstance(sandbox, str)
        self.backend: SandboxBackend = (
            sandboxes.open_backend(sandbox) if sandbox is None or isinstance(sandbox, str) else sandbox
        )
        self.defence = defence_of(defence)
        self.seed = seed
        self.ledger = ledger
        self.retries = retries
        self.limits = limits
        self.gold_runs = gold_runs
        self._judges = Judge(self.backend, limits=limits, seed=seed)
        self._stopped = threading.Event()
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._parts: dict[str, Part] = {}
        self._alarms: dict[str, frozenset[str]] = {}
        self._calibrations: dict[str, Calibration] = {}
        self._references: dict[str, Reference | None] = {}

    def verify(
        self, task: Task, patch: Patch, suite: Suite | None = None, *, defence: str | Defence | None = None
    ) -> Verdict:
        """Judge one patch under the task's suite (or another). Raises SandboxError after retries, TaskError."""
        layers = self.defence if defence is None else defence_of(defence)
        chosen = task.suite if suite is None else suite
        return self._retried(task, "verify", lambda: self._verified(task, patch, chosen, layers))

    def _verified(self, task: Task, patch: Patch, suite: Suite, layers: Defence) -> Verdict:
        """The kept verdict, or a new one. Asks the engine for the image's digest, so it is retried as a whole."""
        if self.ledger is None:
            return self._judge(task, patch, suite, layers)
        key = self._key(task, patch, suite, layers)
        if (hit := self.ledger.verdict(key)) is not None:
            return hit
        suite_key = self._suite_key(task, task.suite)
        verdict = self._judge(task, patch, suite, layers)
        if not self._is_flaky(suite_key):
            self.ledger.store_verdict(key, verdict)
        return verdict

    def prepared(self, task: Task, suite: Suite) -> Prepared:
        """Trusted files of the suite, resolved once per task, suite and image."""
        key = self._suite_key(task, suite.original)
        with self._lock_of("p" + key):
            if key not in self._parts:
                self._parts[key] = original_part(self.backend, task, suite.original, self.limits)
        return Prepared(original=self._parts[key], added=added_part(task, suite))

    def reference(self, task: Task, suite: Suite | None = None) -> Reference | None:
        """What gold shows under the suite's original tests; None for a task without gold patch. Kept in the ledger.

        Raises SandboxError after retries.
        """
        return self._retried(task, "reference", lambda: self._reference(task, suite or task.suite))

    def _reference(self, task: Task, suite: Suite) -> Reference | None:
        suite = suite.original
        if not task.gold_patch.strip():
            return None
        key = self._suite_key(task, suite)
        with self._lock_of("r" + key):
            if key not in self._references:
                self._references[key] = self._load_reference(key, task, suite)
        return self._references[key]

    def calibration(self, task: Task) -> Calibration:
        """Whether the task can be used, and what was found; kept in memory and in the ledger.

        A suite that cannot be prepared is a flag (`broken_suite`), not an error. Raises SandboxError after retries.
        """
        key = self._retried(task, "calibrate", lambda: self._suite_key(task, task.suite))
        with self._lock_of("c" + key):
            if key in self._calibrations:
                return self._calibrations[key]
            kept = self.ledger.note("calibration", key) if self.ledger is not None else None
            if kept is not None:
                made = Calibration.from_json(kept)
            else:
                made = self._retried(task, "calibrate", lambda: self._calibrate(task))
                if self.ledger is not None:
                    self.ledger.store_note("calibration", key, made.to_json())
            return self._calibrations.setdefault(key, made)

    def stop(self) -> None:
        """What is being judged goes on; whatever is asked from now on raises SandboxError. For a run that was interrupted."""
        self._stopped.set()

    def close(self) -> None:
        """Close the backend, if this verifier opened it."""
        if self._owned:
            self.backend.close()

    def _judge(self, task: Task, patch: Patch, suite: Suite, defence: Defence) -> Verdict:
        prepared = self.prepared(task, suite)
        reference = self._reference(task, suite) if defence.accounting else None
        alarms = partial(self._gold_alarms, task, suite, prepared) if task.gold_patch.strip() else None
        return self._judges.judge(task, patch, suite, defence, prepared, reference, alarms)

    def _gold_alarms(self, task: Task, suite: Suite, prepared: Prepared) -> frozenset[str]:
        """Identities of the probe alarms that gold raises itself: looked up when a submission raises any."""
        key = self._suite_key(task, suite)
        with self._lock_of("a" + key):
            if key not in self._alarms:
                planned = plan(task, Patch(task.gold_patch), suite, STRICT, prepared.paths)
                self._alarms[key] = frozenset(map(identity, self._judges.alarms(task, planned, prepared)))
            return self._alarms[key]

    def _calibrate(self, task: Task) -> Calibration:
        suite = task.suite.original
        try:
            part = self.prepared(task, suite).original
            reference = self._reference(task, suite)
            made = Calibrator(
                self.backend,
                task,
                suite,
                part,
                reference,
                limits=self.limits,
                seed=self.seed,
                gold_runs=self.gold_runs,
            ).run()
            made = replace(made, suite_digest=task.suite.digest)
            if task.suite.added is None or not made.ok:
                return made
            verdict = self._judge(task, Patch(task.gold_patch), task.suite, STRICT)
        except SandboxError:
            raise
        except (TaskError, UnknownName) as error:
            return broken_suite(task, task.suite, error)
        if verdict.resolved:
            return made
        why = f"gold does not pass the added tests: {', '.join(verdict.failed_added or verdict.evidence)}"
        return replace(made, ok=False, flags=(*made.flags, Flag.BROKEN_GOLD), reasons=(*made.reasons, why))

    def _load_reference(self, key: str, task: Task, suite: Suite) -> Reference:
        kept = self.ledger.note("reference", key) if self.ledger is not None else None
        if kept is not None:
            return Reference.from_json(kept)
        part = self.prepared(task, suite).original
        made = make_reference(self.backend, task, suite, part, self.limits)
        if (
            self.ledger is not None and made.finished
        ):  # one that ran into its limit may fare better another time
            self.ledger.store_note("reference", key, made.to_json())
        return made

    def _retried(self, task: Task, what: str, action: Callable[[], T]) -> T:
        """Do it, again after a retryable SandboxError. The last error is raised with the task's name."""
        for left in range(self.retries, -1, -1):
            if self._stopped.is_set():
                raise Stopped(f"{task.task_id}: the run is ending.", mend="Run the same command to go on.")
            try:
                return action()
            except SandboxError as error:
                if self.ledger is not None:
                    self.ledger.attempt(task.task_id, what, type(error).__name__, detail=str(error))
                if not error.retryable or not left:
                    raise
        raise AssertionError("unreachable")

    def _suite_key(self, task: Task, suite: Suite) -> str:
        """All that trusted files, reference and calibration depend on; the prompt and the metadata do not count."""
        image = self.backend.image_digest(task.image)
        base = "" if task.image else getattr(self.backend, "base_image", "")
        facts = [
            task.task_id,
            [self.backend.name, image, base, self.limits],
            task.workdir,
            task.gold_patch,
            suite.digest,
            task.timeout_s,
            RUNNER_VERSION,
        ]
        return digest_of(
            [*facts, sorted(task.files.items()), task.protected_paths, task.metadata.get("repo", "")]
        )

    def _key(self, task: Task, patch: Patch, suite: Suite, defence: Defence) -> str:
        return digest_of([self._suite_key(task, suite), patch.exact_digest, defence, self.seed])

    def _is_flaky(self, key: str) -> bool:
        """Whether a calibration, made here or kept in the ledger, found the suite flaky: its verdicts are not kept."""
        found = self._calibrations.get(key)
        if found is None and self.ledger is not None and (kept := self.ledger.note("calibration", key)):
            found = Calibration.from_json(kept)
        return found is not None and Flag.FLAKY in found.flags

    def _lock_of(self, key: str) -> threading.Lock:
        with self._lock:
            return self._locks.setdefault(key, threading.Lock())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def verify(
    task: Task,
    patch: Patch,
    suite: Suite | None = None,
    *,
    sandbox: str | SandboxBackend | None = None,
    defence: str | Defence = "strict",
    seed: int = 0,
    ledger: Ledger | None = None,
    retries: int = 2,
    limits: Limits | None = None,
) -> Verdict:
    """The one-shot form of `Verifier.verify`; opens and closes a backend where none is given."""
    with Verifier(
        sandbox=sandbox, defence=defence, seed=seed, ledger=ledger, retries=retries, limits=limits
    ) as verifier:
        return verifier.verify(task, patch, suite)
