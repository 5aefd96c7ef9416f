"""A fault injector: a sandbox backend whose engine, disk and containers fail on plan, and that counts what fired.

    backend = FaultyBackend(open_backend("docker"), FaultPlan.from_file("faults.toml"))
    Verifier(sandbox=backend) …; backend.fired        # {"killed": 12, "disk_full": 10, …}

A plan is a seed, a share of occasions per kind, and optionally a ceiling per kind:

    seed = 7
    [share]          # of every opening (o) or script (s) that the kind can strike
    killed = 0.05
    [at_most]
    image_missing = 10

| kind | strikes | what happens |
| --- | --- | --- |
| engine_unavailable, image_missing | o | the error is raised |
| engine_timeout, disk_full | o, s | the error is raised |
| slow | o, s | the engine answers up to 0.5 s later; nothing fails |
| killed, removed, agent_killed | s | done to the real container while the script runs (docker); raised elsewhere |
| oom_killed | s | the container ends as if the kernel had killed its agent for memory |

Not covered here: a restarted daemon and a hung socket (tests do those to a private engine), the ledger, the clock.
"""

from __future__ import annotations

import os
import random
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from .errors import (
    ConfigError,
    DiskFull,
    EngineTimeout,
    EngineUnavailable,
    ImageMissing,
    SandboxDied,
    SandboxError,
)
from .protocols import ExecResult, Op, OpResult, Sandbox, SandboxBackend, SandboxSpec

LATE_S = 0.5
T = TypeVar("T")


class Fault(StrEnum):
    ENGINE_UNAVAILABLE = "engine_unavailable"
    ENGINE_TIMEOUT = "engine_timeout"
    IMAGE_MISSING = "image_missing"
    DISK_FULL = "disk_full"
    SLOW = "slow"
    KILLED = "killed"
    REMOVED = "removed"
    AGENT_KILLED = "agent_killed"
    OOM_KILLED = "oom_killed"


AT_OPEN = (Fault.ENGINE_UNAVAILABLE, Fault.ENGINE_TIMEOUT, Fault.IMAGE_MISSING, Fault.DISK_FULL, Fault.SLOW)
AT_SCRIPT = (
    Fault.ENGINE_TIMEOUT,
    Fault.DISK_FULL,
    Fault.SLOW,
    Fault.KILLED,
    Fault.REMOVED,
    Fault.AGENT_KILLED,
    Fault.OOM_KILLED,
)
VIOLENT = (Fault.KILLED, Fault.REMOVED, Fault.AGENT_KILLED)


@dataclass(frozen=True, kw_only=True)
class FaultPlan:
    """share: kind -> probability per occasion; at_most: kind -> ceiling (missing: none). The seed fixes the draws."""

    seed: int = 0
    share: Mapping[Fault, float] = field(default_factory=dict)
    at_most: Mapping[Fault, int] = field(default_factory=dict)

    @classmethod
    def even(cls, share: float, *, seed: int = 0, at_most: int | None = None) -> FaultPlan:
        """Every kind with the same share and ceiling."""
        ceiling = {} if at_most is None else dict.fromkeys(Fault, at_most)
        return cls(seed=seed, share=dict.fromkeys(Fault, share), at_most=ceiling)

    @classmethod
    def from_file(cls, path: str | Path) -> FaultPlan:
        """Read a TOML plan. Raises ConfigError that names the file and the entry."""
        try:
            data = tomllib.loads(Path(path).read_text())
            share = {Fault(name): float(value) for name, value in data.get("share", {}).items()}
            at_most = {Fault(name): int(value) for name, value in data.get("at_most", {}).items()}
            return cls(seed=int(data.get("seed", 0)), share=share, at_most=at_most)
        except (OSError, ValueError, TypeError, AttributeError) as error:
            raise ConfigError(f"{path}: {error}.", mend=f"Kinds are {', '.join(Fault)}.") from error


class Dice:
    """Thread-safe draws and counts of one plan."""

    def __init__(self, plan: FaultPlan) -> None:
        self._plan, self._random = plan, random.Random(plan.seed)
        self._lock = threading.Lock()
        self.fired: Counter[str] = Counter()

    def draw(self, kinds: Iterable[Fault]) -> Fault | None:
        """At most one fault for this occasion; it counts as fired at once, see `take_back`."""
        with self._lock:
            point = self._random.random()
            for kind in kinds:
                share = self._plan.share.get(kind, 0.0)
                if point < share:
                    if self.fired[kind] >= self._plan.at_most.get(kind, 1 << 60):
                        return None
                    self.fired[kind] += 1
                    return kind
                point -= share
        return None

    def take_back(self, kind: Fault) -> None:
        """The blow came too late: the script had ended."""
        with self._lock:
            self.fired[kind] -= 1

    def uniform(self, top: float) -> float:
        with self._lock:
            return self._random.uniform(0, top)


class FaultyBackend:
    """Wraps a backend. `fired`: kind -> how often it struck."""

    def __init__(self, inner: SandboxBackend, plan: FaultPlan) -> None:
        self.inner, self.plan, self.name = inner, plan, inner.name
        self._dice = Dice(plan)

    @property
    def fired(self) -> dict[str, int]:
        return {str(kind): self._dice.fired[kind] for kind in Fault}

    def open(self, spec: SandboxSpec) -> FaultySandbox:
        fault = self._dice.draw(AT_OPEN)
        if fault is Fault.SLOW:
            time.sleep(self._dice.uniform(LATE_S))
        elif fault is not None:
            raise _error(fault, f"opening a sandbox of {spec.image}")
        inner: Any = self.inner.open(spec)
        return FaultySandbox(inner, self._dice, getattr(self.inner, "engine", None))

    def image_digest(self, image: str | None) -> str:
        return self.inner.image_digest(image)

    def close(self) -> None:
        self.inner.close()


class FaultySandbox:
    """Wraps a sandbox. `engine`: the docker backend's, to do real harm with; None raises the error instead."""

    def __init__(self, inner: Sandbox, dice: Dice, engine: Any) -> None:
        self.inner, self._dice, self._engine = inner, dice, engine
        self.workdir, self.scratch, self.isolation = inner.workdir, inner.scratch, inner.isolation

    def script(self, ops: Sequence[Op]) -> tuple[OpResult, ...]:
        return self._struck(lambda: self.inner.script(ops))

    def exec(self, command: str | tuple[str, ...], *, timeout_s: float = 60.0) -> ExecResult:
        return self._struck(lambda: self.inner.exec(command, timeout_s=timeout_s))

    def write(self, files: Mapping[str, bytes]) -> None:
        self._struck(lambda: self.inner.write(files))

    def read(self, path: str, *, limit: int = 10_000_000) -> bytes:
        return self._struck(lambda: self.inner.read(path, limit=limit))

    def close(self) -> None:
        self.inner.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _struck(self, action: Callable[[], T]) -> T:
        fault = self._dice.draw(AT_SCRIPT)
        if fault in VIOLENT and self._engine is not None:
            return self._harmed(fault, action)
        if fault is Fault.SLOW:
            time.sleep(self._dice.uniform(LATE_S))
        elif fault is not None:
            if fault in (*VIOLENT, Fault.OOM_KILLED):
                self.inner.close()
            raise _error(fault, "a running sandbox")
        return action()

    def _harmed(self, fault: Fault, action: Callable[[], T]) -> T:
        """Strike the container while the action runs. An action that is faster than the blow is left alone."""
        container, struck = str(getattr(self.inner, "container", "")), list[bool]()

        def strike() -> None:
            struck.append(True)
            harm(self._engine, container, fault)

        timer = threading.Timer(self._dice.uniform(0.05), strike)
        timer.start()
        try:
            return action()
        finally:
            timer.cancel()
            timer.join()
            if not struck:
                self._dice.take_back(fault)


def harm(engine: Any, container: str, fault: Fault) -> None:
    """Really do it: kill or remove the container, or kill the agent's process on this machine."""
    if fault is Fault.REMOVED:
        engine.remove(container)
    elif fault is Fault.AGENT_KILLED and engine.local and os.geteuid() == 0:
        pid = engine.state(container).get("Pid", 0)
        if pid:
            os.kill(pid, 9)
    else:
        engine.kill(container)


def _error(fault: Fault, what: str) -> SandboxError:
    text, mend = f"Injected fault ({fault}) while {what}.", "It was injected on purpose."
    kinds: dict[Fault, type[SandboxError]] = {
        Fault.ENGINE_UNAVAILABLE: EngineUnavailable,
        Fault.ENGINE_TIMEOUT: EngineTimeout,
        Fault.IMAGE_MISSING: ImageMissing,
        Fault.DISK_FULL: DiskFull,
    }
    return kinds.get(fault, SandboxDied)(text, mend=mend)
