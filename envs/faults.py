"""A fault injector: a sandbox backend whose engine, disk and containers fail on plan, and that counts what fired.

    backend = FaultyBackend(open_backend("docker"), FaultPlan.from_file("faults.toml"))
    Verifier(sandbox=backend) …; backend.fired        # {"killed": 12, "disk_full": 10, …}

`fault_plan.py` has the kinds and the plan file. Faults from outside the process (a restarted daemon, a locked ledger,
signals …) are done by `scripts/storm.py`, which runs an audit on this backend.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Self, TypeVar

from .errors import DiskFull, EngineTimeout, EngineUnavailable, ImageMissing, SandboxDied, SandboxError
from .fault_plan import AT_OPEN, AT_SCRIPT, HARMLESS, INSIDE, VIOLENT, Dice, Fault, FaultLog, FaultPlan
from .harm import blow
from .protocols import ExecResult, Op, OpResult, Sandbox, SandboxBackend, SandboxSpec

__all__ = ["AT_OPEN", "AT_SCRIPT", "INSIDE", "VIOLENT", "Fault", "FaultPlan", "FaultyBackend", "WallClock"]
LOG = logging.getLogger("acidtest.sandbox")
LATE_S = 0.5
JUMP_S = 30 * 86400.0
T = TypeVar("T")


class WallClock:
    """Stands in for `time.time` and `time.time_ns` of this process; `jump` moves it. `restore` puts the real ones back."""

    def __init__(self) -> None:
        self._real, self._real_ns, self.offset = time.time, time.time_ns, 0.0

    def jump(self, seconds: float) -> None:
        self.offset += seconds
        time.time = self._now
        time.time_ns = self._now_ns

    def restore(self) -> None:
        time.time, time.time_ns = self._real, self._real_ns

    def _now(self) -> float:
        return self._real() + self.offset

    def _now_ns(self) -> int:
        return self._real_ns() + int(self.offset * 1e9)


class FaultyBackend:
    """Wraps a backend. `fired`: kind -> how often it struck. log: where each strike is written down too."""

    def __init__(self, inner: SandboxBackend, plan: FaultPlan, *, log: FaultLog | None = None) -> None:
        self.inner, self.plan, self.name = inner, plan, inner.name
        self._dice = Dice(plan, log)
        self.clock = WallClock()

    @property
    def fired(self) -> dict[str, int]:
        return {str(kind): self._dice.fired[kind] for kind in INSIDE}

    @property
    def base_image(self) -> str:
        return str(getattr(self.inner, "base_image", ""))

    def open(self, spec: SandboxSpec) -> FaultySandbox:
        fault = self._dice.draw(AT_OPEN)
        if fault is not None:
            self._dice.hit(fault)
            pass_or_raise(fault, f"opening a sandbox of {spec.image}", self._dice, self.clock)
        inner: Any = self.inner.open(spec)
        return FaultySandbox(inner, self._dice, self.clock, getattr(self.inner, "engine", None))

    def image_digest(self, image: str | None) -> str:
        return self.inner.image_digest(image)

    def close(self) -> None:
        self.clock.restore()
        self.inner.close()


class FaultySandbox:
    """Wraps a sandbox. `engine`: the docker backend's, to do real harm with; None raises the error instead."""

    def __init__(self, inner: Sandbox, dice: Dice, clock: WallClock, engine: Any) -> None:
        self.inner, self._dice, self._clock, self._engine = inner, dice, clock, engine
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
        if fault is None:
            return action()
        if fault in VIOLENT and self._engine is not None:
            return self._harmed(fault, action)
        self._dice.hit(fault)
        if fault in VIOLENT:
            self.inner.close()
        pass_or_raise(fault, "a running sandbox", self._dice, self._clock)
        return action()

    def _harmed(self, fault: Fault, action: Callable[[], T]) -> T:
        """Strike the container while the action runs. A blow counts when it was dealt and the action failed: an action
        or a container that had ended before is left alone."""
        container, dealt, failed = str(getattr(self.inner, "container", "")), False, True

        def strike() -> None:
            nonlocal dealt
            try:
                dealt = do()
            except (SandboxError, OSError) as error:
                LOG.info("%s of %s came to nothing: %s", fault, container[:12], error)

        try:
            do = blow(self._engine, container, fault)
        except (SandboxError, OSError) as error:
            LOG.info("%s of %s came to nothing: %s", fault, container[:12], error)
            self._dice.missed(fault)
            return action()
        striker = threading.Thread(target=strike, name="acidtest-fault")
        striker.start()
        try:
            result = action()
            failed = False
            return result
        finally:
            striker.join()
            (self._dice.hit if dealt and failed else self._dice.missed)(fault)


def pass_or_raise(fault: Fault, what: str, dice: Dice, clock: WallClock) -> None:
    """What a fault that needs no container does: a pause, another time of day, or its error."""
    if fault is Fault.SLOW:
        time.sleep(dice.uniform(0, LATE_S))
    elif fault is Fault.CLOCK_JUMP:
        clock.jump(dice.uniform(-JUMP_S, JUMP_S))
    assert (fault in HARMLESS) != (fault in _ERRORS)
    if fault in _ERRORS:
        raise _ERRORS[fault](f"Injected fault ({fault}) while {what}.", mend="It was injected on purpose.")


_ERRORS: dict[Fault, type[SandboxError]] = {
    Fault.ENGINE_UNAVAILABLE: EngineUnavailable,
    Fault.ENGINE_TIMEOUT: EngineTimeout,
    Fault.IMAGE_MISSING: ImageMissing,
    Fault.DISK_FULL: DiskFull,
    **dict.fromkeys(VIOLENT, SandboxDied),
}
