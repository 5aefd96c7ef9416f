"""An audit under fire against the same audit in calm weather: the records must be equal.

    python -m acidtest.scripts.campaign_faults examples/faults.toml --out runs/faults [--seed 8] [--limit 10]

Tasks: bundled toy tasks (those whose verdicts are a matter of chance or of time left out) and the first HumanEval tasks.
A private engine (root, dockerd), one calm audit on it, then one audit under the plan's faults, started again in the same
folder whenever it ends, until every record is final (`storm.py`). Prints what fired per kind, how the processes ended, which errors the
audit met, containers left, and every difference between the two; storm.json keeps them. Exit code 1 for a difference or
a container left.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..envs.fault_plan import OUTSIDE, STARTED, FaultPlan
from ..envs.load import load_tasks
from ..envs.sandboxes._engine import Engine
from ..envs.sandboxes.docker import BASE_IMAGE
from ..envs.task import Task
from ..verifiers.audit import Audit
from ..verifiers.same_records import differences
from .private_engine import PrivateEngine, mount_tmpfs, unmount, usable
from .storm import Storm, Weather, driver_env

CHANCE = ("toy/flaky", "toy/slow", "toy/order_dependent")
"""Their calibration throws a coin, measures seconds, or shuffles."""
DATA_MIB, RUN_MIB = 1024, 128


def tasks_of(limit: int, only: Sequence[str] = ()) -> list[Task]:
    toy = [task for task in load_tasks("toy") if task.task_id not in CHANCE]
    every = [*toy, *(load_tasks("humaneval", limit=limit) if limit else [])]
    return [task for task in every if not only or task.task_id in only]


def audit_argv(source: Path, out: Path, sandbox: str) -> list[str]:
    argv = [sys.executable, "-m", "acidtest.scripts.cli", "audit", str(source), "-o", str(out), "--quiet"]
    return [
        *argv,
        "--sandbox",
        sandbox,
        "--jobs",
        "2",
        "--seed",
        "1",
        "--repo-mutants",
        "4",
        "--calibration-runs",
        "3",
    ]


def compare(plan: FaultPlan, tasks: Sequence[Task], folder: Path) -> dict[str, Any]:
    """Both audits; the figures. Raises RuntimeError when one cannot be brought to its end."""
    folder.mkdir(parents=True, exist_ok=True)
    source, planned, log = folder / "tasks.jsonl", folder / "plan.toml", folder / "fired.jsonl"
    source.write_text("".join(task.to_json() + "\n" for task in tasks), encoding="utf-8")
    planned.write_text(toml_of(plan), encoding="utf-8")
    image = os.environ.get("ACIDTEST_BASE_IMAGE") or BASE_IMAGE
    calm, stormy = folder / "calm", folder / "stormy"
    mount_tmpfs(stormy, RUN_MIB)
    try:
        with PrivateEngine(size_mib=DATA_MIB) as engine:
            engine.load(image)
            env = driver_env(planned, log, engine.host)
            began = time.monotonic()
            with (folder / "calm.log").open("ab") as said:
                subprocess.run(
                    audit_argv(source, calm, "docker"), env=env, check=True, stdout=said, stderr=said
                )
            calm_s = time.monotonic() - began
            print(f"calm: {calm_s:.0f} s", flush=True)
            argv = audit_argv(source, stormy, "faulty")
            storm = Storm(
                plan, engine, argv, env=env, out=stormy, log=log, image=image, say=lambda line: print(line, flush=True)
            )  # fmt: skip
            weather = storm.run()
            left = containers_left(engine)
        found = figures(plan, weather, storm.lives, calm, stormy)
        shutil.copytree(stormy, folder / "records", dirs_exist_ok=True)
    finally:
        unmount(stormy)
    return {**found, "containers left": left, "calm seconds": round(calm_s), "tasks": len(tasks)}


def figures(plan: FaultPlan, weather: Weather, lives: int, calm: Path, stormy: Path) -> dict[str, Any]:
    one, other = Audit.read(calm).records, Audit.read(stormy).records
    fired = {kind: count for kind, count in sorted(weather.fired.items()) if kind != STARTED}
    return {
        "seed": plan.seed,
        "faults": sum(fired.values()),
        "fired": fired,
        "unfired": dict(weather.unfired),
        "starts": lives,
        "exits": {str(code): count for code, count in sorted(weather.exits.items())},
        "seconds from SIGTERM to the end": weather.slow_ends,
        "errors met": errors_met(stormy),
        "seconds": round(weather.seconds),
        "records": len(other),
        "differences": differences(one, other),
    }


def errors_met(run: Path) -> dict[str, int]:
    """Class of infrastructure error -> how often: tries inside a verdict, and records that were made again."""
    found: Counter[str] = Counter()
    ledger = sqlite3.connect(run / "ledger.sqlite")
    try:
        found.update(
            {f"try: {name}": n for name, n in ledger.execute("SELECT outcome, count(*) FROM attempts GROUP BY 1")}
        )  # fmt: skip
    finally:
        ledger.close()
    for line in (run / "audit.jsonl").read_text(encoding="utf-8").splitlines():
        error = json.loads(line).get("error", "")
        found.update([f"record: {error.split(':')[0]}"] if error else [])
    return dict(sorted(found.items()))


def containers_left(engine: PrivateEngine) -> int:
    """Containers of ours at the private engine after the reaper of one more run."""
    before = os.environ.get("DOCKER_HOST")
    os.environ["DOCKER_HOST"] = engine.host
    try:
        raw = Engine()
        try:
            raw.reap()
            return len(raw.ours())
        finally:
            raw.close()
    finally:
        if before is None:
            del os.environ["DOCKER_HOST"]
        else:
            os.environ["DOCKER_HOST"] = before


def toml_of(plan: FaultPlan) -> str:
    import tomli_w

    tables: dict[str, Mapping[Any, Any]] = {
        "options": plan.options, "share": plan.share, "at_most": plan.at_most, "times": plan.times
    }  # fmt: skip
    plain = {name: {str(key): value for key, value in table.items()} for name, table in tables.items()}
    return tomli_w.dumps({"seed": plan.seed, "inner": plan.inner, **plain})


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("plan", type=Path)
    parser.add_argument("--out", type=Path, required=True, help="a new folder")
    parser.add_argument("--limit", type=int, default=8, help="HumanEval tasks beside the toy ones")
    parser.add_argument("-t", "--task", action="append", default=[], help="only these of them")
    parser.add_argument("--seed", type=int, help="another seed than the plan's")
    options = parser.parse_args(argv)
    if why := usable():
        parser.error(why)
    if options.out.exists():
        parser.error(f"{options.out} exists: give a new folder")
    plan = FaultPlan.from_file(options.plan)
    plan = plan if options.seed is None else replace(plan, seed=options.seed)
    signal.signal(signal.SIGTERM, _interrupt)  # the engine and the mounts are put away on the way out
    found = compare(plan, tasks_of(options.limit, options.task), options.out.resolve())
    text = json.dumps(found, indent=1)
    (options.out / "storm.json").write_text(text + "\n", encoding="utf-8")
    print(text)
    rare = [str(kind) for kind in OUTSIDE if found["fired"].get(str(kind), 0) < plan.times.get(kind, 0)]
    if rare:
        print(f"the audit was done before all of these had struck: {', '.join(rare)}; give a higher --limit")
    return int(bool(found["differences"] or found["containers left"]))


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    raise SystemExit(main())
