"""A private engine is stopped and started in mid-run: typed errors, then everything works again, nothing is left."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.errors import SandboxDied, SandboxError
from acidtest.envs.protocols import Limits, SandboxSpec
from acidtest.envs.sandboxes import docker
from acidtest.scripts.private_engine import PrivateEngine, usable

SPEC = SandboxSpec(image=None, workdir="/testbed")
pytestmark = [pytest.mark.docker, pytest.mark.campaign]


@pytest.fixture
def private(base_image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateEngine]:
    if why := usable():
        pytest.skip(why)
    with PrivateEngine() as engine:
        engine.load(base_image)
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL], ids=["restart", "crash"])
def test_engine_restarted_in_mid_run(private: PrivateEngine, number: int) -> None:
    backend = docker.backend(spares=2, timeout_s=20)
    seen: Counter[str] = Counter()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            try:
                with backend.open(SPEC) as box:
                    assert box.exec("sleep 0.1; echo ok").output == b"ok\n"
                    seen["fine"] += 1
            except SandboxError as error:
                seen[type(error).__name__] += 1
                time.sleep(0.2)

    workers = [threading.Thread(target=work) for _ in range(3)]
    for worker in workers:
        worker.start()
    for _ in range(3):
        time.sleep(2)
        private.stop(number)
        time.sleep(0.5)
        private.start()
    before = seen["fine"]
    time.sleep(4)
    stop.set()
    for worker in workers:
        worker.join()
    print(dict(seen))
    assert seen["fine"] > before, "it goes on after the last restart"
    assert seen[SandboxDied.__name__] + seen["EngineUnavailable"] > 0
    backend.close()
    engine = docker.Engine()
    try:
        assert engine.ours() == {}
    finally:
        engine.close()


def test_memory_that_the_machine_lacks_is_no_verdict(
    base_image: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A kill below the sandbox's own limit (here: all containers together have 128 MiB) is infrastructure, never a 0."""
    parent = Path(f"/sys/fs/cgroup/memory/acidtest-{os.getpid()}")
    if usable() or not (parent.parent / "memory.oom_control").exists():
        pytest.skip(usable() or "needs cgroup version 1")
    parent.mkdir()
    (parent / "memory.limit_in_bytes").write_text(str(128 << 20))
    try:
        with PrivateEngine(cgroup_parent=f"/{parent.name}") as engine:
            engine.load(base_image)
            monkeypatch.setenv("DOCKER_HOST", engine.host)
            backend = docker.backend(spares=0)
            greedy = "python3 -c 'x = bytearray(700 << 20); x[::4096] = bytes(len(x[::4096]))'"
            with backend.open(SPEC) as box, pytest.raises(SandboxDied, match="below the sandbox's own limit"):
                box.exec(greedy)
            with backend.open(replace(SPEC, limits=Limits(memory_mib=64))) as box:
                assert box.exec(greedy).out_of_memory, "its own limit is its own fault"
            backend.close()
    finally:
        parent.rmdir()
