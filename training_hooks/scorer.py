"""`Scorer`: many submissions at once, in order, within limits. Every trainer hook is a thin face on this.

Guarantees: answers come in the order of the questions; never more than `max_concurrent` verdicts run at once, whoever
asks; what cannot be judged is masked (`Score.reward` None), never 0; `close` leaves no thread behind and closes the
verifier that the Scorer opened. Usable from threads, from asyncio, and after a fork (a child starts its own threads, and its
own verifier unless one was given as an object). Not covered: killing a verdict that hangs. Its slot stays taken until the
verifier gives up on its own (every sandbox call has a deadline); the caller is answered at the Scorer's deadline.
"""

from __future__ import annotations

import asyncio
import os
import queue
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping, Sequence
from concurrent.futures import Future, InvalidStateError
from dataclasses import dataclass, field
from typing import Any

from ..envs.errors import AcidtestError, ConfigError, UnknownName
from ..envs.incident import incident_of
from ..envs.patch import Patch
from ..envs.reward import Policy, RewardMode, reward_of
from ..envs.submission import Submission, read_submission
from ..envs.task import Task
from ..envs.task_env import Judge, check_verifier, open_verifier
from ..envs.verdict import Outcome, Verdict
from .incidents import IncidentLog
from .records import Score

Ask = tuple[str | Task, str | Patch]
CACHED_LOG_CHARS = 64_000_000
"""How much printed text the cached verdicts may hold altogether: one suite's log may have 200,000 characters."""
_CACHED = {
    Outcome.RESOLVED,
    Outcome.UNRESOLVED,
    Outcome.PATCH_REJECTED,
    Outcome.NO_TESTS_RAN,
    Outcome.TAMPERED,
}


@dataclass(eq=False)
class _Job:
    """One verdict to make, and everybody who waits for it."""

    key: tuple[str, str]
    task: Task
    patch: Patch
    asked: float
    started: float | None = None
    waiters: list[Callable[[Verdict | None, str, BaseException | None], None]] = field(default_factory=list)
    answered: bool = False


class Scorer:
    """Scores submissions against tasks.

    tasks: what can be asked about, by task_id. verifier: a `Verifier` (shared, stays open), a factory, or None: a
    one of its own with these options (`open_verifier`: fail-fast under ``reward="resolved"``). max_concurrent: verdicts at once, a hard limit. deadline_s: wall seconds a
    running verdict may take before its askers get a mask. wait_s: the same from the moment of asking, time in the queue
    included. cache_size: decisive verdicts kept in memory (timeouts, out-of-memory, UNDECIDED and errors never are),
    fewer where their logs are long (CACHED_LOG_CHARS).
    reward, policy, known: as in the environments. log: where incidents and metrics go.
    """

    def __init__(
        self,
        tasks: Iterable[Task],
        *,
        verifier: Judge | Callable[[], Judge] | None = None,
        max_concurrent: int = 8,
        deadline_s: float | None = None,
        wait_s: float | None = None,
        reward: RewardMode = "resolved",
        policy: Policy | None = None,
        known: Mapping[str, str] | None = None,
        log: IncidentLog | None = None,
        cache_size: int = 10_000,
        **verifier_options: Any,
    ) -> None:
        if max_concurrent < 1:
            raise ConfigError(f"max_concurrent must be at least 1, not {max_concurrent}.")
        check_verifier(verifier, verifier_options)
        self.tasks: dict[str, Task] = {}
        for task in tasks:
            if task.task_id in self.tasks:
                raise ConfigError(f"Two tasks are called {task.task_id!r}.")
            self.tasks[task.task_id] = task
        self.max_concurrent, self.deadline_s, self.wait_s = max_concurrent, deadline_s, wait_s
        self.reward_mode, self.policy, self.known = reward, policy or Policy(), dict(known or {})
        self.log, self.cache_size = log, cache_size
        self._make = verifier if callable(verifier) else None
        self._verifier: Judge | None = None if callable(verifier) else verifier
        self._own, self._options = self._verifier is None, verifier_options
        self._digests: dict[int, tuple[Task, str]] = {}
        self._cache: OrderedDict[tuple[str, str], Verdict] = OrderedDict()
        self._cached_chars = 0
        self._closed = False
        self._reset_threads()
        _SCORERS.add(self)

    # ---- asking

    def submit(self, task: str | Task, text: str | Patch) -> Future[Score]:
        """Ask for one score. `text` is what the policy wrote, or a Patch. The future never fails for want of a verdict."""
        task = self._task(task)
        found = Submission(text, "patch") if isinstance(text, Patch) else read_submission(task, text)
        answer: Future[Score] = Future()
        asked = time.monotonic()

        def done(verdict: Verdict | None, error: str, raised: BaseException | None) -> None:
            _resolve(
                answer, lambda: self._score(task, found, verdict, error, time.monotonic() - asked), raised
            )

        self._enqueue(task, found.patch, asked, done)
        return answer

    def score(self, asks: Sequence[Ask], *, step: int | None = None) -> list[Score]:
        """Scores in the order of `asks`; blocks. step: the trainer's global step, for the log."""
        return self._logged([f.result() for f in [self.submit(*ask) for ask in asks]], step)

    async def ascore(self, asks: Sequence[Ask], *, step: int | None = None) -> list[Score]:
        """`score` for asyncio: does not block the loop."""
        futures = [asyncio.wrap_future(self.submit(*ask)) for ask in asks]
        return self._logged(list(await asyncio.gather(*futures)), step)

    def rewards(
        self, task_ids: Sequence[str], texts: Sequence[str], *, step: int | None = None
    ) -> list[float | None]:
        """Only the rewards, None where masked."""
        return [s.reward for s in self.score(list(zip(task_ids, texts, strict=True)), step=step)]

    def _logged(self, scores: list[Score], step: int | None) -> list[Score]:
        if self.log is not None:
            self.log.batch(scores, step)
        return scores

    def _task(self, task: str | Task) -> Task:
        if isinstance(task, Task):
            return task
        if task not in self.tasks:
            known = ", ".join(list(self.tasks)[:8])
            raise UnknownName(f"No task {task!r} in this Scorer.", mend=f"There are: {known} …")
        return self.tasks[task]

    def _score(
        self, task: Task, found: Submission, verdict: Verdict | None, error: str, seconds: float
    ) -> Score:
        incident = incident_of(found.patch, verdict, known=self.known) if verdict else None
        reward = self.policy.apply(reward_of(task, verdict, self.reward_mode), incident) if verdict else None
        return Score(
            task_id=task.task_id,
            reward=reward,
            patch=found.patch.text,
            form=found.form,
            verdict=verdict,
            incident=incident,
            error=error,
            seconds=seconds,
        )

    # ---- working

    def _enqueue(self, task: Task, patch: Patch, asked: float, done: Callable[..., None]) -> None:
        key = (self._digest(task), patch.exact_digest)
        with self._lock:
            if self._closed:
                raise ConfigError("This Scorer is closed.")
            cached = self._cache.get(key)
            if cached is None:
                job = self._inflight.get(key)
                if job is None:
                    job = self._inflight[key] = _Job(key, task, patch, asked)
                    self._queue.put(job)
                    self._start_threads()
                job.waiters.append(done)
                self._wake.notify_all()
                return
            self._cache.move_to_end(key)
        done(cached, "", None)

    def _work(self) -> None:
        while (job := self._queue.get()) is not None:
            with self._lock:
                if job.answered:
                    continue
                job.started = time.monotonic()
                self._wake.notify_all()
            try:
                verdict = self._judge().verify(job.task, job.patch)
            except AcidtestError as error:
                self._answer(job, None, f"{type(error).__name__}: {error}")
            except BaseException as error:
                self._answer(job, None, "", error)
            else:
                self._remember(job.key, verdict)
                self._answer(job, verdict, "; ".join(verdict.evidence) if verdict.reward is None else "")

    def _answer(
        self, job: _Job, verdict: Verdict | None, error: str, raised: BaseException | None = None
    ) -> None:
        with self._lock:
            if job.answered:
                return
            job.answered = True
            if self._inflight.get(job.key) is job:
                del self._inflight[job.key]
            waiters, job.waiters = job.waiters, []
            self._wake.notify_all()
        for waiter in waiters:
            waiter(verdict, error, raised)

    def _watch(self) -> None:
        """Answer overdue jobs with a mask."""
        while True:
            with self._lock:
                if self._closed:
                    return
                due = [(at, job) for job in self._inflight.values() if (at := self._due(job)) is not None]
                now = time.monotonic()
                late = [job for at, job in due if at <= now]
                if not late:
                    self._wake.wait(min((at for at, _ in due), default=now + 3600) - now)
                    continue
            for job in late:
                self._answer(job, None, "deadline passed before there was a verdict")

    def _due(self, job: _Job) -> float | None:
        times = []
        if self.wait_s is not None:
            times.append(job.asked + self.wait_s)
        if self.deadline_s is not None and job.started is not None:
            times.append(job.started + self.deadline_s)
        return min(times, default=None)

    def _judge(self) -> Judge:
        with self._opening:
            if self._verifier is None and self._make:
                self._verifier = self._make()
            if self._verifier is None:
                self._verifier = open_verifier(self.reward_mode, **self._options)
            return self._verifier

    def _remember(self, key: tuple[str, str], verdict: Verdict) -> None:
        if verdict.outcome in _CACHED and self.cache_size:
            with self._lock:
                self._cached_chars += _log_size(verdict) - _log_size(self._cache.get(key))
                self._cache[key] = verdict
                while len(self._cache) > self.cache_size or self._cached_chars > CACHED_LOG_CHARS:
                    self._cached_chars -= _log_size(self._cache.popitem(last=False)[1])

    def _digest(self, task: Task) -> str:
        known = self._digests.get(id(task))
        if known is None:
            known = self._digests[id(task)] = (task, task.digest)
        return known[1]

    # ---- living and dying

    def _reset_threads(self) -> None:
        self._lock = threading.RLock()
        self._wake = threading.Condition(self._lock)
        self._opening = threading.Lock()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._inflight: dict[tuple[str, str], _Job] = {}
        self._threads: list[threading.Thread] = []

    def _start_threads(self) -> None:
        """One worker more while there is work for it, up to the limit; the watch when there is a deadline."""
        wants = min(self.max_concurrent, len(self._inflight))
        watched = self.deadline_s is not None or self.wait_s is not None
        while len(self._threads) < wants + watched:
            target = self._watch if watched and not self._threads else self._work
            thread = threading.Thread(target=target, name="acidtest-scorer", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _after_fork(self) -> None:
        if not self._closed:
            self._reset_threads()
            if self._own:
                self._verifier = None

    def close(self) -> None:
        """Mask what waits, let running verdicts end, join every thread, close an own verifier and the log. Idempotent."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            waiting = [job for job in self._inflight.values() if job.started is None]
            self._wake.notify_all()
        for job in waiting:
            self._answer(job, None, "the Scorer was closed")
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()
        self._threads.clear()
        if self._own and self._verifier is not None:
            self._verifier.close()
            self._verifier = None
        if self.log is not None:
            self.log.close()

    def __enter__(self) -> Scorer:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _log_size(verdict: Verdict | None) -> int:
    return len(verdict.run.log) if verdict is not None and verdict.run is not None else 0


def _resolve(future: Future[Score], make: Callable[[], Score], raised: BaseException | None) -> None:
    """Set the future's result; a cancelled one is left alone, a reward function that raises fails it."""
    try:
        if raised is not None:
            future.set_exception(raised)
            return
        try:
            score = make()
        except Exception as error:
            future.set_exception(error)
        else:
            future.set_result(score)
    except InvalidStateError:
        return


_SCORERS: weakref.WeakSet[Scorer] = weakref.WeakSet()


def _fork_child() -> None:
    for scorer in list(_SCORERS):
        scorer._after_fork()


os.register_at_fork(after_in_child=_fork_child)
