"""A verifier that answers from a script: to test a training loop without sandboxes, and to test ours."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping

from .patch import Patch
from .task import Task
from .verdict import Outcome, Verdict

Answer = Outcome | tuple[Outcome, Outcome] | Exception | Verdict
Script = Mapping[str, Answer] | Callable[[Task, Patch], Answer]


class ScriptedVerifier:
    """`verify` answers from `script`; nothing is executed.

    script: patch text (or digest) -> answer, or a function of (task, patch). An answer is an Outcome, a pair (outcome,
    original_outcome), a whole Verdict, or an exception to raise. What the script lacks is `default`.
    calls, peak: how many verdicts were asked for, and how many at once at most. Thread-safe.
    """

    def __init__(
        self, script: Script | None = None, *, default: Answer = Outcome.UNRESOLVED, seconds: float = 0.0
    ) -> None:
        self.script: Script = {} if script is None else script
        self.default, self.seconds = default, seconds
        self.calls = self.peak = self._now = 0
        self.closed = False
        self._lock = threading.Lock()

    def verify(self, task: Task, patch: Patch) -> Verdict:
        with self._lock:
            self.calls += 1
            self._now += 1
            self.peak = max(self.peak, self._now)
        try:
            time.sleep(self.seconds)
            answer = self._answer(task, patch)
        finally:
            with self._lock:
                self._now -= 1
        if isinstance(answer, Exception):
            raise answer
        if isinstance(answer, Verdict):
            return answer
        outcome, original = answer if isinstance(answer, tuple) else (answer, answer)
        failed = outcome is Outcome.UNRESOLVED and original is Outcome.RESOLVED
        return Verdict(
            task_id=task.task_id,
            patch_digest=patch.digest,
            suite_digest=task.suite.digest,
            outcome=outcome,
            original_outcome=original,
            failed_added=task.suite.added.test_ids[:1] if failed and task.suite.added else (),
            evidence=("scripted",) if not outcome.decisive or outcome is Outcome.TAMPERED else (),
            defence="scripted",
        )

    def _answer(self, task: Task, patch: Patch) -> Answer:
        if callable(self.script):
            return self.script(task, patch)
        return self.script.get(patch.text, self.script.get(patch.digest, self.default))

    def __deepcopy__(self, memo: object) -> ScriptedVerifier:
        """Itself: `gymnasium.make` copies its arguments, and a verifier is one shared service."""
        return self

    def close(self) -> None:
        self.closed = True
