"""Run a command while faults strike it from outside; start it again whenever it ends, until it ends well.

The command is an audit on `--sandbox faulty` (faults from inside: `envs/faults.py`) against a private engine. Three
lanes strike side by side, each in an order and at moments drawn from the plan's seed:

driver  sigterm, kill_9: the signal to the audit's process. suspended: SIGSTOP for longer than the engine's deadline.
engine  daemon_restarted: SIGTERM and SIGKILL in turn, then a new daemon on the same data. engine_hung: SIGSTOP of the
        daemon for longer than the deadline. image_removed: the name is taken away, and given back after seconds.
        disk_filled (every other): the engine's data folder, a tmpfs, is filled to the last block.
run     ledger_locked: another process holds a write transaction on the ledger, for seconds, twice for longer than the
        ledger waits. disk_filled (every other): the run's folder, a tmpfs, is filled to the last block.

A fault counts when the audit had opened its sandbox before and was alive when it began.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from ..envs.fault_plan import STARTED, Fault, FaultLog, FaultPlan
from .private_engine import PrivateEngine, fill

END_S = 90.0
"""How long an audit may take to end after SIGTERM, in seconds."""
PAUSE_S = (0.3, 2.5)
"""Between two faults of a lane."""
LONG_LOCK_S = 33.0
LONG_LOCKS = 2
KEPT = "acidtest-storm:kept"
LANES = {
    "driver": (Fault.SIGTERM, Fault.KILL_9, Fault.SUSPENDED),
    "engine": (Fault.DAEMON_RESTARTED, Fault.ENGINE_HUNG, Fault.IMAGE_REMOVED, Fault.DISK_FILLED),
    "run": (Fault.LEDGER_LOCKED, Fault.DISK_FILLED),
}
_HOLDER = """
import sqlite3, sys, time
db = sqlite3.connect(sys.argv[1], timeout=20, isolation_level=None)
db.execute("BEGIN IMMEDIATE")
print("held", flush=True)
time.sleep(float(sys.argv[2]))
db.execute("ROLLBACK")
"""


@dataclass
class Weather:
    """What a storm did. exits: how the command's processes ended (exit code, or minus the signal) -> how often.

    fired: of both sides. unfired: planned from outside, but the command was done before. slow_ends: seconds from SIGTERM
    to the end of the process. errors: what the lanes themselves met.
    """

    exits: Counter[int] = field(default_factory=Counter)
    fired: Counter[str] = field(default_factory=Counter)
    unfired: Counter[str] = field(default_factory=Counter)
    slow_ends: list[float] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    seconds: float = 0.0


class Storm:
    """argv, env: the command. out: its run folder; log: the fault log that it appends to; image: its sandboxes' image."""

    def __init__(
        self,
        plan: FaultPlan,
        engine: PrivateEngine,
        argv: Sequence[str],
        *,
        env: dict[str, str],
        out: Path,
        log: Path,
        image: str,
        say: Callable[[str], None] = lambda line: None,
    ) -> None:
        self.plan, self.engine, self.argv, self.env = plan, engine, list(argv), env
        self.out, self.log, self.image, self.say = out, FaultLog(log), image, say
        self.deadline_s = float(plan.options.get("timeout_s", 60.0))
        self.weather = Weather()
        self.process: subprocess.Popen[bytes] | None = None
        self.lives = self.opened_before = 0
        self._calm = threading.Event()
        self._one_driver = threading.Lock()
        self._lock = threading.Lock()

    def run(self, *, lives: int = 400) -> Weather:
        """Returns when the command has ended with code 0. Raises RuntimeError after so many starts, or for a lane's error."""
        started = time.monotonic()
        self.engine.do("tag", self.image, KEPT)
        lanes = [
            threading.Thread(target=self._lane, args=(name, kinds), name=name)
            for name, kinds in LANES.items()
        ]
        for lane in lanes:
            lane.start()
        try:
            while self._live() != 0:
                if self.lives >= lives or self.weather.errors:
                    raise RuntimeError(f"not complete after {self.lives} starts: {self.weather.errors}")
        finally:
            self._calm.set()
            for lane in lanes:
                lane.join()
            if self.process is not None and self.process.poll() is None:  # we were interrupted
                self.process.kill()
                self.process.wait()
        if self.weather.errors:
            raise RuntimeError(f"a lane gave up: {self.weather.errors}")
        self.weather.fired.update(self.log.counts())
        self.weather.seconds = time.monotonic() - started
        return self.weather

    def _live(self) -> int:
        """Start the command and wait for its end; its exit code."""
        self.opened_before = self.log.counts()[STARTED]
        with (self.out.parent / "driver.log").open("ab") as said:
            self.process = subprocess.Popen(
                self.argv, env=self.env, stdout=said, stderr=said, start_new_session=True
            )
        self.lives += 1
        code = self.process.wait()
        self.weather.exits[code] += 1
        if code > 0:
            time.sleep(0.5)
        return code

    def _at_work(self) -> subprocess.Popen[bytes] | None:
        """The command's process, when it has opened its sandbox and is alive."""
        process = self.process
        if process is None or process.poll() is not None or self.log.counts()[STARTED] <= self.opened_before:
            return None
        return process

    def _lane(self, name: str, kinds: Sequence[Fault]) -> None:
        rng = random.Random(f"{self.plan.seed}:{name}")
        todo = [kind for kind in kinds for _ in range(self._share(name, kind))]
        rng.shuffle(todo)
        numbers: Counter[Fault] = Counter()
        try:
            while todo and not self._calm.wait(rng.uniform(*PAUSE_S)):
                process = self._at_work()
                if process is None or not self._strike(name, todo[-1], numbers[todo[-1]], process, rng):
                    continue
                kind = todo.pop()
                numbers[kind] += 1
                with self._lock:
                    self.weather.fired[kind] += 1
                    total = sum(self.weather.fired.values()) + sum(self.log.counts().values())
                self.say(f"{kind} ({total - self.log.counts()[STARTED]} faults, {self.lives} starts)")
        except Exception as error:
            self.weather.errors.append(f"{name}: {type(error).__name__}: {error}")
        self.weather.unfired.update(todo)

    def _share(self, lane: str, kind: Fault) -> int:
        """How many of a kind a lane does: the two lanes that fill disks halve them."""
        times = self.plan.times.get(kind, 0)
        if kind is not Fault.DISK_FILLED:
            return times
        return times // 2 if lane == "engine" else times - times // 2

    def _strike(
        self, lane: str, kind: Fault, number: int, process: subprocess.Popen[bytes], rng: random.Random
    ) -> bool:
        """Do it; whether it struck."""
        if kind is Fault.LEDGER_LOCKED:
            return self._lock_ledger(process, LONG_LOCK_S if number < LONG_LOCKS else rng.uniform(1.0, 4.0))
        if lane == "driver":
            with self._one_driver:
                return process.poll() is None and self._signal(kind, process)
        if kind is Fault.DAEMON_RESTARTED:
            self.engine.stop(signal.SIGKILL if number % 2 else signal.SIGTERM)
            time.sleep(rng.uniform(0.1, 1.0))
            self.engine.start()
        elif kind is Fault.ENGINE_HUNG:
            self.engine.freeze(self.deadline_s + rng.uniform(0.5, 2.0))
        elif kind is Fault.IMAGE_REMOVED:
            self.engine.do("rmi", self.image)
            time.sleep(rng.uniform(1.0, 3.0))
            self.engine.do("tag", KEPT, self.image)
        else:
            ballast = fill(self.engine.data if lane == "engine" else self.out)
            time.sleep(rng.uniform(1.0, 3.0))
            ballast.unlink()
        return True

    def _signal(self, kind: Fault, process: subprocess.Popen[bytes]) -> bool:
        if kind is Fault.SUSPENDED:
            process.send_signal(signal.SIGSTOP)
            time.sleep(self.deadline_s + 1.0)
            process.send_signal(signal.SIGCONT)
            return True
        began = time.monotonic()
        process.send_signal(signal.SIGTERM if kind is Fault.SIGTERM else signal.SIGKILL)
        while process.poll() is None:
            if time.monotonic() - began > END_S:
                process.kill()
                raise RuntimeError(f"the audit goes on {END_S:.0f} s after {kind}")
            time.sleep(0.05)
        if kind is Fault.SIGTERM:
            self.weather.slow_ends.append(round(time.monotonic() - began, 2))
        return True

    def _lock_ledger(self, process: subprocess.Popen[bytes], seconds: float) -> bool:
        """Hold the ledger's write lock in a process of its own. A long hold keeps the driver lane away."""
        path = self.out / "ledger.sqlite"
        if not path.exists():
            return False
        if seconds >= LONG_LOCK_S:
            with self._one_driver:
                return self._hold(path, seconds) and process.poll() is None
        return self._hold(path, seconds)

    def _hold(self, path: Path, seconds: float) -> bool:
        argv = [sys.executable, "-c", _HOLDER, str(path), str(seconds)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as holder:
            assert holder.stdout
            held = holder.stdout.readline() == b"held\n" and self._at_work() is not None
            holder.wait(seconds + 60)
        return held


def driver_env(plan: Path, log: Path, host: str) -> dict[str, str]:
    """The environment in which `acidtest … --sandbox faulty` runs on that plan and engine."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(entry for entry in sys.path if entry),
        "DOCKER_HOST": host,
        "ACIDTEST_FAULT_PLAN": str(plan),
        "ACIDTEST_FAULT_LOG": str(log),
    }
