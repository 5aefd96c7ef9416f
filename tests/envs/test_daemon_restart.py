"""A private engine is stopped and started in mid-run: typed errors, then everything works again, nothing is left."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.errors import SandboxDied, SandboxError
from acidtest.envs.protocols import SandboxSpec
from acidtest.envs.sandboxes import docker

SPEC = SandboxSpec(image=None, workdir="/testbed")
pytestmark = [pytest.mark.docker, pytest.mark.campaign]


class PrivateEngine:
    """A dockerd of our own: own data folder and socket, no network set up."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.host = folder, f"unix://{folder}/engine.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        argv = ["dockerd", "--data-root", f"{self.folder}/data", "--exec-root", f"{self.folder}/exec"]
        argv += ["--pidfile", f"{self.folder}/pid", "-H", self.host, "--bridge=none", "--iptables=false"]
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + 120
        while subprocess.run(
            ["docker", "-H", self.host, "version"], capture_output=True, check=False
        ).returncode:
            assert time.monotonic() < end, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.1)

    def stop(self, number: int = signal.SIGTERM) -> None:
        assert self.process
        self.process.send_signal(number)
        self.process.wait(60)

    def clean(self) -> None:
        """End what a killed daemon left (its containerd and shims, by their folder), unmount, remove the folder."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    words = (entry / "cmdline").read_text().split("\0")
                    if "containerd" in words[0] and any(str(self.folder) in word for word in words):
                        os.kill(int(entry.name), signal.SIGKILL)
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted(mounts, reverse=True):
            if mount.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def load(self, image: str) -> None:
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        subprocess.run(
            ["docker", "-H", self.host, "load"], stdin=saved.stdout, check=True, capture_output=True
        )
        assert saved.stdout
        saved.stdout.close()
        assert saved.wait() == 0


@pytest.fixture
def private(base_image: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[PrivateEngine]:
    if os.geteuid() != 0 or not shutil.which("dockerd"):
        pytest.skip("needs root and dockerd")
    engine = PrivateEngine(Path(tempfile.mkdtemp(prefix="ae-")))  # short: socket paths are bounded
    engine.start()
    try:
        engine.load(base_image)
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine
    finally:
        engine.stop()
        engine.clean()


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
