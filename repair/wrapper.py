"""`HardenedSuiteWrapper`: serve an environment's tasks with their hardened suites, one switch away from the original ones."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any, SupportsFloat

import gymnasium

from ..envs.errors import ConfigError, LockError
from ..envs.protocols import SandboxBackend
from ..envs.task import Task
from .lock import Lock, hardened, load_lock


class HardenedSuiteWrapper(gymnasium.Wrapper[str, str, str, str]):
    """Swaps the suite of every task of a `CodeEnv` or `ShellEnv` for its hardened one, before any episode.

    lock: a loaded lock, a lockfile, or the run folder that holds one. backend: where images lie, to compare their
    content ids with the locked ones. missing: what to do with tasks that the lock does not hold: ``"refuse"``
    (LockError), ``"drop"``, or ``"keep"`` (served with their original suite, and `info["hardened"]` is False).
    `info` of reset and step gets `hardened` and `original_digest`; both suites' rewards are there already.
    Raises LockError, naming both digests, when a task or image is not the one that was hardened.
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        lock: Lock | str | Path,
        *,
        backend: SandboxBackend | None = None,
        missing: str = "refuse",
    ) -> None:
        if missing not in {"refuse", "drop", "keep"}:
            raise ConfigError(f"missing is {missing!r}.", mend="There are: refuse, drop, keep.")
        super().__init__(env)
        self.lock = lock if isinstance(lock, Lock) else load_lock(lock)
        self._hardened = tuple(serve(self._tasks, self.lock, backend=backend, missing=missing))
        self.use_hardened()

    @property
    def _tasks(self) -> tuple[Task, ...]:
        tasks = getattr(self.env.unwrapped, "tasks", None)
        if tasks is None or not hasattr(self.env.unwrapped, "set_tasks"):
            raise ConfigError("HardenedSuiteWrapper needs an environment with tasks: CodeEnv or ShellEnv.")
        return tuple(tasks)

    def use_original(self) -> None:
        """The switch back: from the next reset on the original suites judge."""
        self._set(task.with_suite(task.suite.original) for task in self._hardened)

    def use_hardened(self) -> None:
        self._set(self._hardened)

    def _set(self, tasks: Iterable[Task]) -> None:
        env: Any = self.env.unwrapped
        env.set_tasks(tuple(tasks))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        obs, info = self.env.reset(seed=seed, options=options)
        return obs, info | self._facts()

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        obs, reward, terminated, truncated, info = self.env.step(action)
        return obs, reward, terminated, truncated, info | self._facts()

    def _facts(self) -> dict[str, Any]:
        task: Task | None = getattr(self.env.unwrapped, "task", None)
        if task is None:
            return {"hardened": False, "original_digest": ""}
        return {"hardened": task.suite.added is not None, "original_digest": task.suite.original.digest}


def serve(
    tasks: Iterable[Task],
    lock: Lock | str | Path,
    *,
    backend: SandboxBackend | None = None,
    missing: str = "refuse",
) -> list[Task]:
    """The tasks with hardened suites swapped in; `missing` as in the wrapper."""
    held = lock if isinstance(lock, Lock) else load_lock(lock)
    served = []
    for task in tasks:
        if task.task_id in held or missing == "refuse":
            served.append(hardened(task, held, backend=backend))
        elif missing == "keep":
            served.append(task)
    if not served:
        raise LockError(
            "None of these tasks is in the lock.", mend="Repair them, or serve the original suites."
        )
    return served
