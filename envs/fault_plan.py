"""What shall go wrong, how often and in which order: the plan file, its dice, and the log of what fired.

    seed = 7
    inner = "docker"      # the sandbox underneath ("": what `open_backend` takes)
    [options]             # of that sandbox
    timeout_s = 3.0
    [share]               # inside the run: probability per occasion, an opening (o) or a script (s)
    killed = 0.05
    [at_most]             # ceilings of those, over all processes that write the same log
    killed = 12
    [times]               # from outside, over the whole run (`scripts/storm.py`)
    daemon_restarted = 12

| kind | strikes | what happens |
| --- | --- | --- |
| engine_unavailable, image_missing | o | the error is raised |
| engine_timeout, disk_full | o, s | the error is raised |
| slow | o, s | the engine answers up to 0.5 s later; nothing fails |
| clock_jump | o, s | this process's wall clock (`time.time`) jumps by up to 30 days, forwards or backwards |
| killed, removed, agent_killed | s | done to the real container while the script runs (docker); raised elsewhere |
| oom_killed | s | the kernel kills the real container's agent for memory (docker on this machine, as root); raised elsewhere |
| daemon_restarted, engine_hung, image_removed, disk_filled, ledger_locked, suspended, sigterm, kill_9 | outside | done for real by `scripts/storm.py`, which says how |
"""

from __future__ import annotations

import json
import os
import random
import threading
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path
from typing import Any

from .errors import ConfigError

STARTED = "started"
"""Counted in the log beside the kinds: how many processes opened a faulty sandbox."""


class Fault(StrEnum):
    ENGINE_UNAVAILABLE = "engine_unavailable"
    ENGINE_TIMEOUT = "engine_timeout"
    IMAGE_MISSING = "image_missing"
    DISK_FULL = "disk_full"
    SLOW = "slow"
    CLOCK_JUMP = "clock_jump"
    KILLED = "killed"
    REMOVED = "removed"
    AGENT_KILLED = "agent_killed"
    OOM_KILLED = "oom_killed"
    DAEMON_RESTARTED = "daemon_restarted"
    ENGINE_HUNG = "engine_hung"
    IMAGE_REMOVED = "image_removed"
    DISK_FILLED = "disk_filled"
    LEDGER_LOCKED = "ledger_locked"
    SUSPENDED = "suspended"
    SIGTERM = "sigterm"
    KILL_9 = "kill_9"


AT_OPEN = (
    Fault.ENGINE_UNAVAILABLE,
    Fault.ENGINE_TIMEOUT,
    Fault.IMAGE_MISSING,
    Fault.DISK_FULL,
    Fault.SLOW,
    Fault.CLOCK_JUMP,
)
VIOLENT = (Fault.KILLED, Fault.REMOVED, Fault.AGENT_KILLED, Fault.OOM_KILLED)
AT_SCRIPT = (Fault.ENGINE_TIMEOUT, Fault.DISK_FULL, Fault.SLOW, Fault.CLOCK_JUMP, *VIOLENT)
HARMLESS = (Fault.SLOW, Fault.CLOCK_JUMP)
INSIDE = tuple(kind for kind in Fault if kind in AT_OPEN or kind in AT_SCRIPT)
OUTSIDE = tuple(kind for kind in Fault if kind not in INSIDE)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """share: kind -> probability per occasion; at_most: kind -> ceiling (missing: none); times: kind -> how often.

    inner, options: the sandbox that `--sandbox faulty` opens underneath. The seed fixes the draws.
    """

    seed: int = 0
    inner: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)
    share: Mapping[Fault, float] = field(default_factory=dict)
    at_most: Mapping[Fault, int] = field(default_factory=dict)
    times: Mapping[Fault, int] = field(default_factory=dict)

    @classmethod
    def even(cls, share: float, *, seed: int = 0, at_most: int | None = None) -> FaultPlan:
        """Every kind that strikes inside with the same share and ceiling."""
        ceiling = {} if at_most is None else dict.fromkeys(INSIDE, at_most)
        return cls(seed=seed, share=dict.fromkeys(INSIDE, share), at_most=ceiling)

    @classmethod
    def from_file(cls, path: str | Path) -> FaultPlan:
        """Read a TOML plan. Raises ConfigError that names the file and the entry."""
        try:
            data = tomllib.loads(Path(path).read_text())
            return cls(
                seed=int(data.get("seed", 0)),
                inner=str(data.get("inner", "")),
                options=dict(data.get("options", {})),
                share={_kind(name, INSIDE): float(value) for name, value in data.get("share", {}).items()},
                at_most={_kind(name, INSIDE): int(value) for name, value in data.get("at_most", {}).items()},
                times={_kind(name, OUTSIDE): int(value) for name, value in data.get("times", {}).items()},
            )
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError(
                f"{path}: {error}.",
                mend=f"Kinds are {', '.join(INSIDE)}; and in [times] {', '.join(OUTSIDE)}.",
            ) from error

    def after(self, fired: Mapping[str, int]) -> FaultPlan:
        """What is left of the plan for the next process: other draws (what kills it would do so again), lower ceilings."""
        left = {kind: max(0, most - fired.get(kind, 0)) for kind, most in self.at_most.items()}
        return replace(self, seed=self.seed + 1000 * fired.get(STARTED, 0), at_most=left)


def _kind(name: str, among: Iterable[Fault]) -> Fault:
    kind = Fault(name)
    if kind not in among:
        raise ValueError(f"{name} has no place in that table")
    return kind


class FaultLog:
    """Counts of what fired, a JSON line each as it fires, so that they outlive a killed process. path None: none kept."""

    def __init__(self, path: str | Path | None) -> None:
        self.path = None if path is None else Path(path)

    def add(self, name: str) -> None:
        if self.path is not None:
            descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
            try:
                os.write(descriptor, f"{json.dumps({name: 1})}\n".encode())
            finally:
                os.close(descriptor)

    def counts(self) -> Counter[str]:
        found: Counter[str] = Counter()
        if self.path is not None and self.path.exists():
            for line in self.path.read_text().splitlines():
                found.update(json.loads(line))
        return found


class Dice:
    """Thread-safe draws of one plan, and counts of what fired."""

    def __init__(self, plan: FaultPlan, log: FaultLog | None = None) -> None:
        self._plan, self._random, self._log = plan, random.Random(plan.seed), log or FaultLog(None)
        self._lock = threading.Lock()
        self._promised: Counter[str] = Counter()
        self.fired: Counter[str] = Counter()

    def draw(self, kinds: Iterable[Fault]) -> Fault | None:
        """At most one fault for this occasion. Say `hit` or `missed` afterwards: until then it takes up its ceiling."""
        with self._lock:
            point = self._random.random()
            for kind in kinds:
                share = self._plan.share.get(kind, 0.0)
                if point < share:
                    if self._promised[kind] >= self._plan.at_most.get(kind, 1 << 60):
                        return None
                    self._promised[kind] += 1
                    return kind
                point -= share
        return None

    def hit(self, kind: Fault) -> None:
        with self._lock:
            self.fired[kind] += 1
            self._log.add(kind)

    def missed(self, kind: Fault) -> None:
        """The blow came too late: the script had ended."""
        with self._lock:
            self._promised[kind] -= 1

    def uniform(self, low: float, high: float) -> float:
        with self._lock:
            return self._random.uniform(low, high)
