"""Thousands of verdicts in one driver: its memory, descriptors and threads over time, and the containers it leaves.

    python -m acidtest.scripts.measure_endurance --rows endurance.jsonl [--local 9000] [--docker 1000] [--jobs 2]

The task is toy/add_sound; every patch is another program (nothing comes from the cache), nine in ten are wrong, and every
verdict is checked. Local and Docker verdicts alternate, with one ledger file for all. After every 250 verdicts the
driver rests, and one row is written: resident MiB, descriptors (less one for each spare container that waits), threads,
containers. The summary gives, after the first
tenth, the spread of each and its trend (least squares, per 1,000 verdicts). Exit code 1 for a wrong verdict, a cached one, more than
50 MiB of spread, descriptors or threads that grow (in the last quarter never as low as in the first), or a container left.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import tempfile
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from ..envs.ledger import Ledger
from ..envs.load import load_tasks
from ..envs.patch import Patch
from ..envs.sandboxes import open_backend
from ..envs.sandboxes._engine import Engine
from ..envs.sandboxes._owner import owner
from ..envs.sandboxes.docker import DockerBackend
from ..envs.task import Task
from ..envs.verify import Verifier

Row = dict[str, Any]
TASK = "toy/add_sound"
RIGHT_EVERY = 10
REST_S = 1.0
"""After a batch: time for closed containers to be removed and spares to be made."""
SPREAD_MIB = 50.0


def program(task: Task, number: int) -> tuple[Patch, bool]:
    """(patch, whether it is right): no two numbers give the same text."""
    right = number % RIGHT_EVERY == 0
    body = f"a + b  # {number}" if right else f"a + b + {number}"
    stub = task.files["solution.py"]
    text = stub.replace("raise NotImplementedError", f"return {body}")
    assert text != stub
    return Patch.writing({"solution.py": text}, task.files), right


class Endurance:
    """Verifiers of both sandboxes over one ledger. wrong, cached: numbers of verdicts that were not as they must be."""

    def __init__(self, stack: ExitStack, *, docker: bool) -> None:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="acidtest-endurance-")))
        self.task = load_tasks("toy", task_ids=[TASK])[0]
        ledger = stack.enter_context(Ledger(folder / "ledger.sqlite"))
        self.verifiers: dict[str, Verifier] = {}
        for name in ("local", "docker") if docker else ("local",):
            backend = open_backend(name)
            stack.callback(backend.close)
            self.verifiers[name] = Verifier(sandbox=backend, ledger=ledger)
        self.wrong: list[str] = []
        self.cached = 0

    def one(self, ask: tuple[str, int]) -> None:
        name, number = ask
        patch, right = program(self.task, number)
        verdict = self.verifiers[name].verify(self.task, patch)
        self.cached += verdict.cached
        if verdict.reward != float(right):
            self.wrong.append(f"{name} {number}: {verdict.outcome}")

    def now(self, done: int, began: float) -> Row:
        gc.collect()
        row: Row = {"verdicts": done, "seconds": round(time.monotonic() - began, 1), **process()}
        backend = self.verifiers["docker"].backend if "docker" in self.verifiers else None
        if isinstance(backend, DockerBackend):
            row["containers"] = list(backend.engine.ours().values()).count(owner())
            row["descriptors"] -= row[
                "containers"
            ]  # a spare that waits has its socket; how many wait is chance
        return row


def process() -> Row:
    """Resident MiB, descriptors and threads of this process."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_mib": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 2),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


def endure(local: int, docker: int, *, jobs: int, every: int, rows: Path) -> Row:
    """Run it all; the summary. Raises SandboxError."""
    samples: list[Row] = []
    began = time.monotonic()
    with ExitStack() as stack:
        run = Endurance(stack, docker=docker > 0)
        pool = stack.enter_context(ThreadPoolExecutor(jobs))
        total = local + docker
        asks = [("docker" if place(n, docker, total) else "local", n) for n in range(1, total + 1)]
        for start in range(0, total, every):
            list(pool.map(run.one, asks[start : start + every]))
            time.sleep(REST_S)
            samples.append(run.now(min(start + every, total), began))
            with rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(samples[-1]) + "\n")
            print(json.dumps(samples[-1]), flush=True)
        wrong, cached = run.wrong, run.cached
    return {
        "local": local,
        "docker": docker,
        "jobs": jobs,
        "seconds": round(time.monotonic() - began),
        "wrong verdicts": wrong,
        "cached verdicts": cached,
        **{name: course(samples, name) for name in ("rss_mib", "descriptors", "threads")},
        "after closing": process(),
        "containers left": containers_left() if docker else 0,
    }


def place(number: int, docker: int, total: int) -> bool:
    """Whether this one goes to Docker: `docker` of `total`, spread evenly."""
    return number * docker // total > (number - 1) * docker // total


def course(samples: Sequence[Row], name: str) -> Row:
    """First, last, lowest and highest value after the first tenth, and the trend per 1,000 verdicts of all and of the second half."""
    late = samples[len(samples) // 10 :]
    values = [float(row[name]) for row in late]
    half = late[len(late) // 2 :]
    quarter = max(1, len(values) // 4)
    return {
        "first": values[0],
        "last": values[-1],
        "lowest": min(values),
        "highest": max(values),
        "highest of the first quarter": max(values[:quarter]),
        "lowest of the last quarter": min(values[-quarter:]),
        "trend": round(trend(late, name), 3),
        "trend of the second half": round(trend(half, name), 3),
    }


def trend(samples: Sequence[Row], name: str) -> float:
    if len(samples) < 2:
        return 0.0
    fit = statistics.linear_regression(
        [row["verdicts"] / 1000 for row in samples], [row[name] for row in samples]
    )
    return float(fit.slope)


def containers_left() -> int:
    """Containers of this process that the engine still has."""
    raw = Engine()
    try:
        return list(raw.ours().values()).count(owner())
    finally:
        raw.close()


def problems(found: Row) -> list[str]:
    """What is not as it must be."""
    said = [f"wrong: {line}" for line in found["wrong verdicts"]]
    if found["cached verdicts"]:
        said.append(f"{found['cached verdicts']} verdicts came from the cache")
    memory = found["rss_mib"]
    if memory["highest"] - memory["lowest"] > SPREAD_MIB:
        said.append(f"memory moved by {memory['highest'] - memory['lowest']:.1f} MiB")
    said += [f"{name} grew" for name in ("descriptors", "threads") if grew(found[name])]
    return said + ([f"{found['containers left']} containers left"] if found["containers left"] else [])


def grew(course: Row) -> bool:
    """Never again as low as it was: what comes and goes (a call's connection, a spare's socket) is no growth."""
    return bool(course["lowest of the last quarter"] > course["highest of the first quarter"])


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--local", type=int, default=9000)
    parser.add_argument("--docker", type=int, default=1000)
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--every", type=int, default=250)
    options = parser.parse_args(argv)
    found = endure(options.local, options.docker, jobs=options.jobs, every=options.every, rows=options.rows)
    found["problems"] = problems(found)
    print(json.dumps(found, indent=1))
    return int(bool(found["problems"]))


if __name__ == "__main__":
    raise SystemExit(main())
