"""A vector environment whose sub-environments step at the same time, in threads: verdicts wait for Docker, not for Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, SyncVectorEnv


class ThreadVectorEnv(SyncVectorEnv):
    """Like `SyncVectorEnv` with ``AutoresetMode.DISABLED``, but `reset` and `step` run all sub-environments at once.

    Tasks are one-shot: when an episode ends, reset it yourself (``options={"reset_mask": bool array}`` for some of them).
    Observations and actions are tuples of `num_envs` strings, rewards float64, `info` arrays as in Gymnasium. An exception in one
    sub-environment is raised after all have come back. Share one verifier among them (it is thread-safe); on_close is called
    after the last one is closed.
    """

    def __init__(
        self,
        env_fns: Sequence[Callable[[], gymnasium.Env[Any, Any]]],
        *,
        max_threads: int | None = None,
        on_close: Callable[[], None] | None = None,
    ) -> None:
        super().__init__(env_fns, copy=False, autoreset_mode=AutoresetMode.DISABLED)
        self._on_close = on_close
        self._pool = ThreadPoolExecutor(max_threads or self.num_envs, thread_name_prefix="acidtest-vector")

    def reset(
        self, *, seed: int | list[int | None] | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        seeds = (
            [seed + i for i in range(self.num_envs)]
            if isinstance(seed, int)
            else seed or [None] * self.num_envs
        )
        if len(seeds) != self.num_envs:
            raise ValueError(f"{len(seeds)} seeds for {self.num_envs} environments")
        options = dict(options or {})
        mask = np.asarray(options.pop("reset_mask", np.ones(self.num_envs, dtype=np.bool_)), dtype=np.bool_)
        chosen = [i for i in range(self.num_envs) if mask[i]]
        found = self._all(lambda i: self.envs[i].reset(seed=seeds[i], options=dict(options)), chosen)
        infos: dict[str, Any] = {}
        for i, (observation, info) in zip(chosen, found, strict=True):
            self._env_obs[i] = observation
            self._terminations[i] = self._truncations[i] = False
            infos = self._add_info(infos, info, i)
        return tuple(self._env_obs), infos

    def step(self, actions: Sequence[str]) -> tuple[Any, Any, Any, Any, dict[str, Any]]:
        if len(actions) != self.num_envs:
            raise ValueError(f"{len(actions)} actions for {self.num_envs} environments")
        found = self._all(lambda i: self.envs[i].step(actions[i]), range(self.num_envs))
        infos: dict[str, Any] = {}
        for i, (observation, reward, terminated, truncated, info) in enumerate(found):
            self._env_obs[i], self._rewards[i] = observation, reward
            self._terminations[i], self._truncations[i] = terminated, truncated
            infos = self._add_info(infos, info, i)
        return (
            tuple(self._env_obs),
            self._rewards.copy(),
            self._terminations.copy(),
            self._truncations.copy(),
            infos,
        )

    def _all(self, work: Callable[[int], Any], indices: Sequence[int] | range) -> list[Any]:
        futures = [self._pool.submit(work, i) for i in indices]
        errors = [error for f in futures if (error := f.exception()) is not None]
        if errors:
            raise errors[0]
        return [f.result() for f in futures]

    def close_extras(self, **kwargs: Any) -> None:
        self._pool.shutdown(wait=True)
        super().close_extras(**kwargs)
        if self._on_close is not None:
            self._on_close()
