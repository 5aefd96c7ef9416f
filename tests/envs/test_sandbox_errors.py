"""Infrastructure trouble with the real engine: its class, one clear line with the mend, and the rest unharmed."""

from __future__ import annotations

import io
import os
import resource
import socket
import tarfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import (
    DiskFull,
    EngineTimeout,
    EngineUnavailable,
    ImageMissing,
    SandboxDied,
    SandboxError,
)
from acidtest.envs.protocols import Exec, ExecResult, Limits, SandboxSpec, Write
from acidtest.envs.sandboxes import docker, open_backend

SPEC = SandboxSpec(image=None, workdir="/testbed")


@pytest.fixture(scope="module")
def backend(base_image: str) -> Iterator[docker.DockerBackend]:
    found = docker.backend(spares=0)
    yield found
    found.close()


@pytest.fixture
def bystander(backend: docker.DockerBackend) -> Iterator[None]:
    """Another sandbox that is open all the while and must not notice anything."""
    with backend.open(SPEC) as box:
        box.write({"mine": b"1"})
        yield
        assert box.read("mine") == b"1"
        assert box.exec("echo fine").output == b"fine\n"


def one_line(error: BaseException) -> str:
    text = str(error)
    assert "\n" not in text
    assert isinstance(error, SandboxError)
    assert error.mend
    assert text.endswith(error.mend)
    assert error.exit_code == 4
    return text


def test_dead_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    with pytest.raises(EngineUnavailable, match=r"none\.sock") as caught:
        open_backend("docker")
    assert "doctor" in one_line(caught.value)
    assert caught.value.retryable
    fallback = open_backend()
    assert fallback.name == "local"


@pytest.mark.docker
def test_missing_image(backend: docker.DockerBackend, bystander: None) -> None:
    spec = SandboxSpec(image="acidtest/no-such-image:latest", workdir="/testbed")
    for attempt in (lambda: backend.open(spec), lambda: backend.image_digest(spec.image)):
        with pytest.raises(
            ImageMissing, match="acidtest/no-such-image:latest is not on this machine"
        ) as caught:
            attempt()
        assert "images build" in one_line(caught.value)
        assert not caught.value.retryable


@pytest.mark.docker
def test_image_without_python(backend: docker.DockerBackend, bystander: None) -> None:
    import docker as sdk

    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        tar.addfile(tarfile.TarInfo("empty"))
    client = sdk.APIClient(timeout=60)
    name = f"acidtest-test-empty-{os.getpid()}"
    try:
        client.import_image_from_data(out.getvalue(), repository=name)
        with pytest.raises(SandboxError, match="no python3 in it") as caught:
            backend.open(SandboxSpec(image=f"{name}:latest", workdir="/testbed"))
        assert name in one_line(caught.value)
        assert not caught.value.retryable
    finally:
        backend._disposal.close()
        client.remove_image(name, force=True)
        client.close()


@pytest.mark.docker
def test_full_disk(backend: docker.DockerBackend, bystander: None) -> None:
    with backend.open(SandboxSpec(image=None, workdir="/testbed", limits=Limits(tmpfs_mib=4))) as box:
        with pytest.raises(DiskFull, match="/tmp/big") as caught:
            box.script([Write(files={"/tmp/big": b"x" * 6_000_000})])
        assert "tmpfs_mib" in one_line(caught.value)
        assert box.exec("rm /tmp/big; echo usable again").output == b"usable again\n"
        suite = box.exec("head -c 6000000 /dev/zero > /tmp/big")
        assert suite.exit_code == 1, "the command's own full disk is its own result"


@pytest.mark.docker
def test_endless_suite(backend: docker.DockerBackend, bystander: None) -> None:
    with backend.open(SPEC) as box:
        start = time.monotonic()
        result = box.exec("while :; do :; done", timeout_s=1)
        assert result.timed_out
        assert result.exit_code is None
        assert time.monotonic() - start < 10
        assert box.exec("echo on").output == b"on\n"


@pytest.mark.docker
def test_a_gigabyte_of_output(backend: docker.DockerBackend, bystander: None) -> None:
    with backend.open(SPEC) as box:
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        result = box.exec("head -c 1000000000 /dev/zero | tr '\\0' x; echo; echo the end", timeout_s=120)
        assert result.exit_code == 0
        assert result.truncated
        assert result.output.endswith(b"the end\n")
        assert len(result.output) < 1_100_000
        assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 50_000, "KiB"


@pytest.mark.docker
@pytest.mark.parametrize("how", ["kill", "remove"])
def test_container_ended_from_outside(backend: docker.DockerBackend, bystander: None, how: str) -> None:
    box = backend.open(SPEC)

    def end() -> None:
        if how == "kill":
            backend.engine.kill(box.container)
        else:
            backend.engine.remove(box.container)

    timer = threading.Timer(0.5, end)
    timer.start()
    start = time.monotonic()
    with box, pytest.raises(SandboxDied, match=f"{box.container[:12]} of acidtest-base") as caught:
        box.exec("sleep 60")
    timer.join()
    assert time.monotonic() - start < 10
    text = one_line(caught.value)
    assert "exit code 137" in text or (how == "remove" and "removed from outside" in text)
    assert caught.value.retryable
    with pytest.raises(SandboxDied):
        box.exec("true")


@pytest.mark.docker
def test_out_of_memory(backend: docker.DockerBackend, bystander: None) -> None:
    with backend.open(SandboxSpec(image=None, workdir="/testbed", limits=Limits(memory_mib=64))) as box:
        result = box.exec(("python", "-c", "x = bytearray(200 << 20)"))
        assert result.out_of_memory
        assert result.exit_code == -9
        again = box.exec("echo alive")
        assert (again.output, again.out_of_memory) == (b"alive\n", False)


@pytest.mark.docker
def test_fork_bomb_is_bounded(backend: docker.DockerBackend, bystander: None) -> None:
    with backend.open(SandboxSpec(image=None, workdir="/testbed", limits=Limits(pids=40))) as box:
        bomb = "import os\nwhile True:\n    try:\n        os.fork()\n    except OSError:\n        pass\n"
        assert box.exec(("python", "-c", bomb), timeout_s=2).timed_out
        assert box.exec("echo alive").output == b"alive\n"


class HangingEngine:
    """A proxy to the real engine's socket that stops passing anything on once `hang` is set."""

    def __init__(self, path: Path, real: str) -> None:
        self.hang = threading.Event()
        self._real = real
        self._server = socket.socket(socket.AF_UNIX)
        self._server.bind(str(path))
        self._server.listen(50)
        self._open: list[socket.socket] = [self._server]
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            engine = socket.socket(socket.AF_UNIX)
            engine.connect(self._real)
            self._open += [client, engine]
            for pair in ((client, engine), (engine, client)):
                self._threads.append(threading.Thread(target=self._pump, args=pair))
                self._threads[-1].start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        try:
            while data := source.recv(65536):
                if not self.hang.is_set():
                    sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)
        except OSError:
            return

    def close(self) -> None:
        for sock in self._open:
            try:
                sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                continue
        for thread in self._threads:
            thread.join()
        for sock in self._open:
            sock.close()


@pytest.mark.docker
def test_hung_engine(
    base_image: str, bystander: None, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Every call has a deadline: opening, running and closing, also when the engine hangs from the start."""
    real = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://")
    if not real.startswith("/"):
        pytest.skip("the engine is not on a unix socket")
    proxy = HangingEngine(tmp_path / "engine.sock", real)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/engine.sock")
    monkeypatch.setattr("acidtest.envs.sandboxes._session.GRACE_S", 1.0)
    found = docker.backend(timeout_s=1, spares=0)
    try:
        box: Any = found.open(SPEC)
        proxy.hang.set()
        with pytest.raises(EngineTimeout, match="no answer") as caught:
            box.script([Exec(command="true", timeout_s=0.5)])
        one_line(caught.value)
        with pytest.raises(EngineTimeout, match="did not answer in time") as caught:
            found.open(SPEC)
        one_line(caught.value)
        with pytest.raises(EngineTimeout):
            docker.backend(timeout_s=1)
        start = time.monotonic()
        box.close()
        assert time.monotonic() - start < 1, "closing waits for nothing"
    finally:
        proxy.hang.clear()
        found.close()
        proxy.close()
    assert isinstance(box, docker.DockerSandbox)


def test_results_are_exec_results() -> None:
    """Data, never an exception: what a command did is an ExecResult whatever its exit code."""
    with open_backend("local").open(SPEC) as box:
        assert isinstance(box.exec("exit 3"), ExecResult)
