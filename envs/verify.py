"""`verify(task, patch) -> Verdict`: the judgement of one patch, in fresh sandboxes, layer by layer.

    check the diff → fresh sandbox → apply → place trusted tests → run → account for every id
        → beacons → sabotaged twin → comparison probe → typed outcome

A bad patch is data (a Verdict); bad infrastructure is a SandboxError, retried, then raised: never an outcome.
"""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from types import TracebackType
from typing import Self

from . import frameworks, sandboxes
from .defence import Defence, defence_of
from .errors import SandboxError
from .judge_run import Judge, Prepared
from .ledger import RUNNER_VERSION, Ledger
from .patch import Patch
from .protocols import Framework, Limits, SandboxBackend
from .record import digest_of
from .reference import Reference
from .registry import find
from .resolve_suite import resolve
from .task import Suite, Task
from .verdict import Verdict


class Verifier:
    """Judges patches; keeps what is the same between them (trusted tests, gold's reference, the engine). Thread-safe.

    sandbox: a backend, its name, or None (docker where an engine answers, else local). defence: "strict", "fast" or
    a `Defence`. seed: of every random choice. ledger: verdict cache. retries: further tries after a retryable
    SandboxError. limits: of each sandbox.
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
        self._lock = threading.Lock()
        self._locks: dict[str, threading.Lock] = {}
        self._prepared: dict[str, Prepared] = {}
        self._references: dict[str, Reference | None] = {}

    def verify(
        self, task: Task, patch: Patch, suite: Suite | None = None, *, defence: str | Defence | None = None
    ) -> Verdict:
        """Judge one patch under the task's suite (or another). Raises SandboxError after retries, TaskError."""
        layers = self.defence if defence is None else defence_of(defence)
        suite = task.suite if suite is None else suite
        key = self._key(task, patch, suite, layers)
        if self.ledger is not None and (hit := self.ledger.verdict(key)) is not None:
            return hit
        verdict = self._retried(task, lambda: self._judge(task, patch, suite, layers))
        if self.ledger is not None:
            self.ledger.store_verdict(key, verdict)
        return verdict

    def close(self) -> None:
        """Close the backend, if this verifier opened it."""
        if self._owned:
            self.backend.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
