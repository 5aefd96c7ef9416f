"""`acidtest bench`: what a verdict costs above the tests themselves, against other ways, interleaved in one run.

Arms, each on the gold patch of every task, in a new order every round:
bare: the data set's own command in an open container, gold applied, tests in place (the floor).
warm: a verdict without twin and probe, spare containers ready. fast, strict: the two named defences, warm.
cold: like warm, but no spare containers. cached: a strict verdict from the ledger.
docker-run: `docker run --rm` per verdict, patch, tests and command in one shell, judged by exit code.
swebench: swebench's own `run_instance` on the same image, where swebench is installed.

Wall seconds on a machine that may be busy: compare ratios of one run, never figures of two.
"""

from __future__ import annotations

import random
import shlex
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..envs.defence import STRICT, Defence
from ..envs.ledger import Ledger
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.sandboxes import open_backend
from ..envs.task import Task
from ..envs.verify import Verifier
from .bare import bare_run, docker_run

WARM = Defence(name="", twin=0.0, probe=False)
SPARE_WAIT_S = 1.0
"""Before a warm verdict: time for the spare containers to be started, outside what is timed."""


@dataclass(frozen=True, kw_only=True)
class Timing(Record):
    """One task under one arm. seconds: wall, one a round. paid: what the arm's verdict was (None: it has none)."""

    task_id: str
    arm: str
    seconds: tuple[float, ...]
    paid: bool | None = None
    note: str = ""

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)


@dataclass(frozen=True, kw_only=True)
class Bench(Record):
    """All timings of a run. left_out: arm -> why it was not run."""

    timings: tuple[Timing, ...] = ()
    rounds: int = 0
    seed: int = 0
    isolation: str = ""
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def arms(self) -> list[str]:
        return list(dict.fromkeys(t.arm for t in self.timings))

    def of(self, arm: str) -> dict[str, Timing]:
        return {t.task_id: t for t in self.timings if t.arm == arm}

    def overheads(self, arm: str) -> list[float]:
        """Seconds above the bare command, one a round and task (each against that task's median bare time)."""
        bare = self.of("bare")
        return [s - bare[i].median for i, t in self.of(arm).items() if i in bare for s in t.seconds]

    def ratio(self, arm: str, *, over_s: float = 0.0) -> float | None:
        """Mean over tasks of median arm ÷ median bare, for tasks whose bare time is at least `over_s`."""
        bare = self.of("bare")
        found = [
            t.median / bare[i].median
            for i, t in self.of(arm).items()
            if i in bare and bare[i].median >= over_s
        ]
        return statistics.fmean(found) if found else None

    def per_minute(self, arm: str) -> float:
        """Verdicts a minute of one worker: tasks ÷ the sum of their medians."""
        timings = self.of(arm).values()
        return 60 * len(timings) / sum(t.median for t in timings)

    def disagreements(self) -> list[str]:
        """Tasks on which an arm with a verdict says something else than strict."""
        ours = self.of("strict")
        return [
            f"{t.task_id}: {t.arm} {'paid' if t.paid else 'refused'}"
            for t in self.timings
            if t.paid is not None and t.task_id in ours and t.paid != ours[t.task_id].paid
        ]


def bench(
    tasks: Sequence[Task],
    *,
    rounds: int = 3,
    sandbox: str = "",
    seed: int = 0,
    progress: Callable[[str], None] = lambda note: None,
) -> Bench:
    """Time every arm on every task, `rounds` times, interleaved. Raises SandboxError, TaskError."""
    rng = random.Random(seed)
    with ExitStack() as stack:
        yard = _Yard(stack, sandbox, seed)
        left_out = yard.left_out(tasks)
        arms = {name: run for name, run in yard.arms().items() if name not in left_out}
        times: dict[tuple[str, str], list[float]] = {}
        paid: dict[tuple[str, str], bool | None] = {}
        notes: dict[tuple[str, str], str] = {}
        for task in tasks:
            yard.prepare(task)
            for _ in range(rounds):
                for name in rng.sample(list(arms), len(arms)):
                    seconds, verdict, note = arms[name](task)
                    times.setdefault((task.task_id, name), []).append(seconds)
                    paid[task.task_id, name] = verdict
                    notes[task.task_id, name] = note
            progress(task.task_id)
        timings = tuple(
            Timing(
                task_id=task_id,
                arm=arm,
                seconds=tuple(found),
                paid=paid[task_id, arm],
                note=notes[task_id, arm],
            )
            for (task_id, arm), found in sorted(times.items())
        )
        return Bench(
            timings=timings, rounds=rounds, seed=seed, isolation=yard.warm.backend.name, left_out=left_out
        )


Outcome = tuple[float, bool | None, str]
"""(wall seconds, paid or None, note)"""


class _Yard:
    """The verifiers of all arms, and how each arm is run."""

    def __init__(self, stack: ExitStack, sandbox: str, seed: int) -> None:
        backend = open_backend(sandbox or None)
        stack.callback(backend.close)
        self.warm = stack.enter_context(Verifier(sandbox=backend, seed=seed))
        self.docker = backend.name == "docker"
        cold = open_backend("docker", spares=0) if self.docker else open_backend(backend.name)
        stack.callback(cold.close)
        self.cold = stack.enter_context(Verifier(sandbox=cold, seed=seed))
        self.cached = stack.enter_context(
            Verifier(sandbox=backend, seed=seed, ledger=stack.enter_context(Ledger()))
        )
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="acidtest-bench-")))

    def left_out(self, tasks: Sequence[Task]) -> dict[str, str]:
        found = {}
        if not self.docker or any(t.image is None for t in tasks):
            found["docker-run"] = "needs the docker sandbox and tasks with images"
        if "docker-run" in found:
            found["swebench"] = found["docker-run"]
        elif not _swebench():
            found["swebench"] = "swebench is not installed"
        elif any(not t.suite.test_patch for t in tasks):
            found["swebench"] = "needs rows with a test patch"
        if not self.docker:
            found["cold"] = "only the docker sandbox has spare containers"
        return found

    def arms(self) -> dict[str, Callable[[Task], Outcome]]:
        return {
            "bare": self._bare,
            "warm": lambda task: self._verdict(self.warm, task, WARM),
            "fast": lambda task: self._verdict(self.warm, task, "fast"),
            "strict": lambda task: self._verdict(self.warm, task, STRICT),
            "cold": lambda task: self._verdict(self.cold, task, WARM),
            "cached": lambda task: self._verdict(self.cached, task, STRICT),
            "docker-run": self._docker_run,
            "swebench": self._swebench,
        }

    def prepare(self, task: Task) -> None:
        """Once per task, outside what is timed: trusted tests, gold's reference, the cached verdict."""
        for verifier in (self.warm, self.cold, self.cached):
            verifier.reference(task)
        self.cached.verify(task, Patch(task.gold_patch), defence=STRICT)

    def _verdict(self, verifier: Verifier, task: Task, defence: str | Defence) -> Outcome:
        if verifier is self.warm and self.docker:
            time.sleep(SPARE_WAIT_S)
        start = time.perf_counter()
        verdict = verifier.verify(task, Patch(task.gold_patch), defence=defence)
        return time.perf_counter() - start, verdict.resolved, ""

    def _bare(self, task: Task) -> Outcome:
        part = self.warm.prepared(task, task.suite).original
        return (*bare_run(self.warm.backend, task, Patch(task.gold_patch), part), "")

    def _docker_run(self, task: Task) -> Outcome:
        part = self.warm.prepared(task, task.suite).original
        return (*docker_run(task, Patch(task.gold_patch), part, self.folder), "")

    def _swebench(self, task: Task) -> Outcome:
        import docker
        from swebench.harness import run_evaluation
        from swebench.harness.utils import make_test_spec

        spec = make_test_spec(swebench_row(task))
        prediction = {
            "instance_id": task.task_id,
            "model_name_or_path": "gold",
            "model_patch": task.gold_patch,
        }
        run_evaluation.RUN_EVALUATION_LOG_DIR = Path(tempfile.mkdtemp(dir=self.folder))
        client = docker.from_env(timeout=600)
        try:
            start = time.perf_counter()
            found = run_evaluation.run_instance(
                spec, prediction, client, "bench", timeout=int(task.timeout_s)
            )
            seconds = time.perf_counter() - start
        finally:
            client.close()
        report: Any = found[1] if isinstance(found, tuple) else found
        body = report.get(task.task_id, report) if isinstance(report, dict) else {}
        if not body:
            return seconds, None, "swebench made no report (its own log says why)"
        return seconds, bool(body.get("resolved")), ""


def swebench_row(task: Task) -> dict[str, Any]:
    """The task as a row that swebench 5 evaluates: our image and command, its script shape and log parser."""
    parsers = {"django": "parse_log_django", "sympy": "parse_log_sympy"}
    exports = [f"export {name}={shlex.quote(value)}" for name, value in task.suite.env.items()]
    script = [
        f"cd {task.workdir}",
        *exports,
        f"git apply -v - <<'EOF_114329324912'\n{task.suite.test_patch}\nEOF_114329324912",
        ": '>>>>> Start Test Output'",
        task.suite.command,
        ": '>>>>> End Test Output'",
    ]
    excluded = set(task.suite.exclude_ids)
    return {
        "instance_id": task.task_id,
        "image": task.image,
        "repo": str(task.metadata.get("repo", "")),
        "version": str(task.metadata.get("version", "")),
        "FAIL_TO_PASS": [i for i in task.suite.fail_to_pass if i not in excluded],
        "PASS_TO_PASS": [i for i in task.suite.pass_to_pass if i not in excluded],
        "log_parser": parsers.get(task.suite.framework, "parse_log_pytest"),
        "eval_type": "pass_and_fail",
        "eval_script": "\n".join(["#!/bin/bash", "set -uxo pipefail", *script]) + "\n",
    }


def _swebench() -> bool:
    from importlib.util import find_spec

    return find_spec("swebench") is not None


def plot(found: Bench, path: Path) -> None:
    """Median seconds per arm and task as grouped bars (PNG or SVG by the suffix)."""
    from matplotlib.figure import Figure

    arms = found.arms
    tasks = list(dict.fromkeys(t.task_id for t in found.timings))
    figure = Figure(figsize=(max(6.4, 1.2 + 1.1 * len(tasks)), 4.2), layout="constrained")
    axes = figure.subplots()
    width = 0.8 / len(arms)
    for number, arm in enumerate(arms):
        timings = found.of(arm)
        places = [i + number * width for i, task_id in enumerate(tasks) if task_id in timings]
        axes.bar(places, [timings[t].median for t in tasks if t in timings], width, label=arm)
    axes.set_xticks(
        [i + 0.4 - width / 2 for i in range(len(tasks))], tasks, rotation=30, ha="right", fontsize=7
    )
    axes.set_ylabel("seconds per verdict (median)")
    axes.set_yscale("log")
    axes.legend(fontsize=7, ncols=4, loc="upper center", bbox_to_anchor=(0.5, 1.18))
    figure.savefig(path, dpi=150)
