"""Many scorings at once on a real engine: some suites hang, some containers are killed, some lose the engine."""

from __future__ import annotations

import os
import threading
import time
import uuid
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

import acidtest as at
from acidtest.envs.faults import Fault, FaultPlan, FaultyBackend
from acidtest.envs.patch import Patch
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.verify import Verifier
from acidtest.training_hooks.scorer import Scorer

pytestmark = pytest.mark.docker

SORTS = {
    "gold": ("def add(a, b):\n    return a + b\n", 1.0),
    "wrong": ("def add(a, b):\n    return a - b\n", 0.0),
    "hangs": ("import time\n\n\ndef add(a, b):\n    time.sleep(600)\n", 0.0),
    "killed": ("import time\n\n\ndef add(a, b):\n    time.sleep(0.5)\n    return a + b\n", None),
    "no engine": ("def add(a, b):\n    return a + b\n", None),
    "full": ("def add(a, b):\n    return a + b\n", None),
}
"""`killed` takes its time: a blow that comes when the suite is over harms nobody."""
FAULTS = {"killed": Fault.KILLED, "no engine": Fault.ENGINE_UNAVAILABLE, "full": Fault.DISK_FULL}


class Routed:
    """Sends a submission to the verifier whose backend has the fault that its marker names. One real engine below all."""

    def __init__(self, run: str) -> None:
        self.backend = open_backend("docker", run=run)
        broken = {
            name: FaultyBackend(self.backend, FaultPlan(share={fault: 1.0})) for name, fault in FAULTS.items()
        }
        self.verifiers = {name: Verifier(sandbox=faulty, retries=1) for name, faulty in broken.items()}
        self.verifiers[""] = Verifier(sandbox=self.backend)

    def verify(self, task: at.Task, patch: Patch) -> at.Verdict:
        chosen = next((name for name in FAULTS if f"# {name} " in patch.text), "")
        return self.verifiers[chosen].verify(task, patch)

    def close(self) -> None:
        for verifier in self.verifiers.values():
            verifier.close()
        self.backend.close()


def descriptors() -> int:
    return len(os.listdir(f"/proc/{os.getpid()}/fd"))


def score_many(count: int, folder: Path) -> None:
    import docker

    (task,) = at.load_tasks("toy", task_ids=["toy/add_weak"])
    task = replace(task, timeout_s=3.0)
    names = [list(SORTS)[i % len(SORTS)] for i in range(count)]
    stub = dict(task.files)
    patches = [
        Patch.writing({"solution.py": f"{SORTS[name][0]}# {name} {i}\n"}, stub)
        for i, name in enumerate(names)
    ]
    threads, files = set(threading.enumerate()), descriptors()
    run = uuid.uuid4().hex
    with Scorer([task], verifier=lambda: Routed(run), max_concurrent=8) as scorer:
        scores = scorer.score([(task.task_id, patch) for patch in patches])
    assert [s.patch for s in scores] == [p.text for p in patches], "order is kept"
    got = [(name, s.reward) for name, s in zip(names, scores, strict=True)]
    assert got == [(name, SORTS[name][1]) for name in names], Counter(got)
    assert {s.outcome for name, s in zip(names, scores, strict=True) if name == "hangs"} == {"timed_out"}
    assert all(s.error for s in scores if s.masked)
    client = docker.from_env()
    try:
        left = client.containers.list(all=True, filters={"label": f"acidtest.run={run}"})
    finally:
        client.close()
    assert left == []
    until = time.monotonic() + 5
    while time.monotonic() < until and (set(threading.enumerate()) - threads or descriptors() > files):
        time.sleep(0.05)
    assert set(threading.enumerate()) <= threads
    assert descriptors() <= files


def test_a_mixed_batch_is_right_or_masked_and_leaves_nothing(engine: str, tmp_path: Path) -> None:
    score_many(18, tmp_path)


@pytest.mark.campaign
def test_64_at_once(engine: str, tmp_path: Path) -> None:
    start = time.monotonic()
    score_many(64, tmp_path)
    print(f"64 scorings, 8 at once: {time.monotonic() - start:.1f} s")
