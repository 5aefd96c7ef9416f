"""Nothing is left behind: by closed sandboxes at once, by killed processes after the next run's start."""

from __future__ import annotations

import glob
import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import SandboxError
from acidtest.envs.faults import FaultPlan, FaultyBackend
from acidtest.envs.protocols import SandboxSpec
from acidtest.envs.sandboxes import docker, open_backend
from acidtest.envs.sandboxes._owner import is_dead, owner

DRIVER = """
import random, signal, sys, threading, time
signal.signal(signal.SIGINT, signal.default_int_handler)  # a background shell may have handed it down ignored
from acidtest.envs.protocols import SandboxSpec
from acidtest.envs.sandboxes import open_backend
options = {"bubblewrap": False} if sys.argv[1] == "local" else {}
backend = open_backend(sys.argv[1], **options)
def work(seed):
    dice = random.Random(seed)
    while True:
        with backend.open(SandboxSpec(image=None, workdir="/testbed", files={"a": "b"})) as box:
            box.exec(f"echo x > /tmp/y; (setsid sleep 300 &); sleep {dice.uniform(0, 0.3)}")
            print("done", flush=True)
for seed in range(3):
    threading.Thread(target=work, args=(seed,), daemon=True).start()
while True:
    time.sleep(0.1)
"""


class Driver:
    """A process that runs scripts on three threads until a signal ends it."""

    def __init__(self, backend: str) -> None:
        env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        argv = [sys.executable, "-c", DRIVER, backend]
        self.process = subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=env)

    def end(self, number: int, *, after: int = 1, delay: float = 0.0) -> int:
        """Signal it after so many scripts and a delay; how many scripts it did."""
        assert self.process.stdout
        for _ in range(after):
            assert self.process.stdout.readline() == b"done\n"
        time.sleep(delay)
        self.process.send_signal(number)
        rest = self.process.stdout.read().count(b"done")
        self.process.wait(30)
        self.process.stdout.close()
        return after + rest


def containers_of(raw: Any, pids: set[int]) -> list[str]:
    return [container for container, label in raw.ours().items() if int(label.split("/")[3]) in pids]


def temp_folders() -> set[str]:
    mine = set()
    for folder in glob.glob(os.path.join(tempfile.gettempdir(), "acidtest-*")):
        mark = Path(folder) / "owner"
        if mark.is_file() and is_dead(mark.read_text()):
            mine.add(folder)
    return mine


def after_the_next_run(raw: Any, pids: set[int]) -> list[str]:
    """What is left of them once another backend has been opened.

    Again for up to 20 s: the engine may still be busy with the last call of a killed process.
    """
    end = time.monotonic() + 20
    while True:
        open_backend("docker").close()
        left = containers_of(raw, pids)
        if not left or time.monotonic() > end:
            return left
        time.sleep(0.2)


@pytest.fixture
def raw(base_image: str) -> Iterator[Any]:
    found = docker.Engine()
    yield found
    found.close()


@pytest.mark.docker
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_the_next_run_removes_what_a_killed_one_left(raw: Any, number: int) -> None:
    driver = Driver("docker")
    driver.end(number, after=2, delay=0.1)
    if number != signal.SIGINT:  # Ctrl-C closes the backend on the way out
        assert containers_of(raw, {driver.process.pid})
    assert after_the_next_run(raw, {driver.process.pid}) == []


def test_temporary_folders_and_processes_of_a_killed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    Driver("local").end(signal.SIGKILL, after=2)
    end = time.monotonic() + 5
    while running("sleep\x00300", tmp_path) and time.monotonic() < end:
        time.sleep(0.05)
    assert running("sleep\x00300", tmp_path) == []
    assert temp_folders()
    backend = open_backend("local")
    assert temp_folders() == set()
    backend.close()


def running(command: str, folder: Path) -> list[int]:
    """Ids of live processes with these words in their command line that work below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if command in (entry / "cmdline").read_text() and os.readlink(entry / "cwd").startswith(
                    str(folder)
                ):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


@pytest.mark.docker
def test_the_reaper_touches_nothing_that_is_not_ours(raw: Any, base_image: str) -> None:
    """Neither unlabelled containers, nor those of other machines, nor those of a living process."""
    api = raw._api
    parts = owner().split("/")
    foreign = "/".join(["elsewhere", *parts[1:3], "1", "1"])
    dead = "/".join([*parts[:3], "999999", "1"])
    labels: list[dict[str, str]] = [
        {},
        {"acidtest.owner": foreign},
        {"acidtest.owner": owner()},
        {"acidtest.owner": dead},
    ]
    made = [api.create_container(base_image, ["true"], labels=label)["Id"] for label in labels]
    try:
        raw.reap()
        assert [bool(raw.state(container)) for container in made] == [True, True, True, False]
    finally:
        for container in made:
            raw.remove(container)


@pytest.mark.docker
def test_a_closed_backend_leaves_no_descriptor_thread_or_container(raw: Any) -> None:
    def once() -> None:
        backend = docker.backend(spares=2)
        for _ in range(3):
            with backend.open(SandboxSpec(image=None, workdir="/testbed")) as box:
                box.exec("true")
        backend.close()

    once()
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    once()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == (descriptors, threads)
    assert owner() not in raw.ours().values()


@pytest.mark.docker
@pytest.mark.campaign
@pytest.mark.timeout(3000)
def test_two_hundred_scripts_with_random_interruptions(raw: Any) -> None:
    """Must show: containers, volumes, descriptors and temporary files left: 0."""
    dice = random.Random(11)
    volumes = len(raw._api.volumes()["Volumes"] or [])
    descriptors, threads = len(os.listdir("/proc/self/fd")), threading.active_count()
    folders = temp_folders()
    scripts, pids = 0, set()
    while scripts < 140:
        number = dice.choice([signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
        driver = Driver("docker")
        pids.add(driver.process.pid)
        scripts += driver.end(number, after=dice.randint(1, 10), delay=dice.uniform(0, 0.3))
    backend = FaultyBackend(open_backend("docker"), FaultPlan.even(0.06, seed=3))
    for _ in range(80):
        try:
            with backend.open(SandboxSpec(image=None, workdir="/testbed")) as box:
                box.exec(f"sleep {dice.uniform(0, 0.2)}")
        except SandboxError:
            continue
    backend.close()
    print(f"{scripts} scripts in {len(pids)} interrupted drivers, 80 openings under faults: {backend.fired}")
    assert after_the_next_run(raw, {*pids, os.getpid()}) == []
    assert len(raw._api.volumes()["Volumes"] or []) == volumes
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == (descriptors, threads)
    assert temp_folders() == folders
