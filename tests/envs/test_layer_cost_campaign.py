"""Campaign: what each layer costs per framework, as a ratio to the bare test command, interleaved in one run.

Bare: the data set's own command, nothing attached, in an open sandbox with gold applied and tests in place. Then
verdicts on gold with layers added one after another. ACIDTEST_CAMPAIGN=FOLDER keeps `layers.json`; the table goes to
docs/measurements.md. ACIDTEST_REPEATS (3).
"""

from __future__ import annotations

import json
import os
import statistics
import time
from pathlib import Path

import pytest

from acidtest.envs.defence import Defence
from acidtest.envs.diff_policy import apply_op
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import Exec, ExecResult, SandboxSpec, Write
from acidtest.envs.run_suite import pinned
from acidtest.envs.task import Task
from acidtest.envs.verify import Verifier

pytestmark = [pytest.mark.campaign, pytest.mark.docker, pytest.mark.data, pytest.mark.timeout(0)]
REPEATS = int(os.environ.get("ACIDTEST_REPEATS", "3"))
ROWS = ("pallets__flask-5014", "django__django-16595", "sympy__sympy-23950")
LAYERS = {
    "accounting": Defence(name="", beacons=False, integrity=False, twin=0.0, probe=False),
    "+ beacons, integrity": Defence(name="", twin=0.0, probe=False),
    "+ twin": Defence(name="", probe=False),
    "+ probe (strict)": Defence(),
}


def bare_seconds(verifier: Verifier, task: Task) -> float:
    """Wall seconds of the data set's own command on gold."""
    part = verifier.prepared(task, task.suite).original
    with verifier.backend.open(SandboxSpec.of(task)) as sandbox:
        diff = f"{sandbox.scratch}/gold.diff"
        sandbox.script(
            [Write(files={diff: task.gold_patch.encode(), **part.plain}), apply_op(diff, sandbox.workdir)]
        )
        start = time.perf_counter()
        (done,) = sandbox.script(
            [Exec(command=task.suite.command, env=pinned(task.suite.env), timeout_s=600)]
        )
        assert isinstance(done, ExecResult)
        assert done.exit_code == 0, done.output[-500:]
        return time.perf_counter() - start


def verdict_seconds(verifier: Verifier, task: Task, defence: Defence) -> float:
    start = time.perf_counter()
    assert verifier.verify(task, Patch(task.gold_patch), defence=defence).resolved
    return time.perf_counter() - start


def test_cost_of_each_layer(engine: str, base_image: str, data_dir: Path, tmp_path: Path) -> None:
    tasks = list(load_tasks(str(data_dir), task_ids=list(ROWS)))
    tasks += load_tasks("toy", task_ids=["toy/tamperable", "toy/slug_unittest"])
    rows = []
    with Verifier(sandbox="docker") as verifier:
        for task in tasks:
            verifier.reference(task)
            times: dict[str, list[float]] = {"bare": []} | {name: [] for name in LAYERS}
            for _ in range(REPEATS):
                times["bare"].append(bare_seconds(verifier, task))
                for name, defence in LAYERS.items():
                    times[name].append(verdict_seconds(verifier, task, defence))
            medians = {name: statistics.median(values) for name, values in times.items()}
            rows.append(
                {"task": task.task_id, "framework": task.suite.framework, "median_s": medians, "all_s": times}
            )
    out = Path(os.environ.get("ACIDTEST_CAMPAIGN") or tmp_path)
    (out / "layers.json").write_text(json.dumps(rows, indent=1))
    print()
    for row in rows:
        bare = row["median_s"]["bare"]  # type: ignore[index]
        cells = [
            f"{s:.3f} s ({s / bare:.2f} ×, {1000 * (s - bare):+.0f} ms)"
            for s in list(row["median_s"].values())[1:]
        ]  # type: ignore[attr-defined]
        print(f"| {row['task']} | {row['framework']} | {bare:.3f} s | " + " | ".join(cells) + " |")
    assert len(rows) == 5
