"""A Docker engine of our own that may be stopped, killed, frozen and filled up: own data, own socket, own network namespace.

Needs root, dockerd and the docker command. The network namespace matters: a daemon that starts without a bridge removes
the `docker0` of whoever shares its namespace. With `size_mib` the data lie on a tmpfs of that size, so that a full disk
is a real one. Close it: what a killed daemon leaves (containerd, shims, mounts) is ended and unmounted by folder.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Self

from ..envs.errors import EngineUnavailable

START_S = 120.0


def usable() -> str:
    """Why no private engine can be started here ("" when it can)."""
    if os.geteuid() != 0:
        return "a private engine needs root"
    missing = [name for name in ("dockerd", "docker", "unshare", "mount") if not shutil.which(name)]
    return f"a private engine needs {', '.join(missing)}" if missing else ""


class PrivateEngine:
    """A context manager: started inside, gone afterwards. `host` is the value for DOCKER_HOST."""

    def __init__(self, *, size_mib: int = 0, cgroup_parent: str = "") -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="ae-"))  # short: socket paths are bounded
        self.data, self.size_mib = self.folder / "data", size_mib
        self.cgroup_parent = cgroup_parent
        self.host = f"unix://{self.folder}/engine.sock"
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        try:
            if self.size_mib:
                mount_tmpfs(self.data, self.size_mib)
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def start(self) -> None:
        """Returns when it answers. Raises EngineUnavailable with the end of its log."""
        self._forget_containerd()
        argv = ["unshare", "--net", "dockerd", "--data-root", str(self.data), "-H", self.host]
        argv += ["--exec-root", f"{self.folder}/exec", "--pidfile", f"{self.folder}/pid"]
        argv += ["--bridge=none", "--iptables=false"]
        argv += ["--cgroup-parent", self.cgroup_parent] if self.cgroup_parent else []
        with (self.folder / "log").open("ab") as log:
            self.process = subprocess.Popen(argv, stdout=log, stderr=log, start_new_session=True)
        end = time.monotonic() + START_S
        while self._run("version").returncode:
            if time.monotonic() > end or self.process.poll() is not None:
                said = (self.folder / "log").read_text(errors="replace")[-600:]
                raise EngineUnavailable(f"The private engine does not start: {said}")
            time.sleep(0.1)

    def _forget_containerd(self) -> None:
        """A killed daemon's containerd dies with it; where nobody reaps it, the next daemon takes the zombie for alive."""
        mark = self.folder / "exec" / "containerd" / "containerd.pid"
        end = time.monotonic() + 5
        while mark.exists():
            state = Path(f"/proc/{mark.read_text().strip()}/stat")
            if not state.exists() or state.read_text().rpartition(")")[2].split()[0] in "ZX":
                mark.unlink()
            elif time.monotonic() > end:  # it lives on: the next daemon will use it
                return
            time.sleep(0.05)

    def stop(self, number: int = signal.SIGTERM) -> None:
        """End it by a signal and wait. SIGTERM ends its containers; after SIGKILL they run on until the next start."""
        assert self.process
        self.process.send_signal(number)
        self.process.wait(60)

    def freeze(self, seconds: float) -> None:
        """The daemon does nothing for a while; its containers run on."""
        assert self.process
        self.process.send_signal(signal.SIGSTOP)
        try:
            time.sleep(seconds)
        finally:
            self.process.send_signal(signal.SIGCONT)

    def load(self, image: str) -> None:
        """Copy an image from the engine of this process's own DOCKER_HOST."""
        saved = subprocess.Popen(["docker", "save", image], stdout=subprocess.PIPE)
        assert saved.stdout
        with saved.stdout:
            done = subprocess.run(
                ["docker", "-H", self.host, "load"], stdin=saved.stdout, capture_output=True
            )
        if saved.wait() or done.returncode:
            raise EngineUnavailable(
                f"{image} cannot be loaded: {done.stderr.decode(errors='replace')[-300:]}"
            )

    def do(self, *arguments: str) -> str:
        """A docker command against this engine; what it printed. Raises EngineUnavailable when it fails."""
        done = self._run(*arguments)
        if done.returncode:
            raise EngineUnavailable(f"docker {' '.join(arguments)}: {done.stderr.decode().strip()[-300:]}")
        return done.stdout.decode()

    def close(self) -> None:
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGCONT)
            self.stop()
        self._end_leftovers()
        mounts = [line.split()[1] for line in Path("/proc/mounts").read_text().splitlines()]
        for mount in sorted(mounts, reverse=True):
            if mount.startswith(f"{self.folder}/"):
                subprocess.run(["umount", "-l", mount], check=True)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _end_leftovers(self) -> None:
        """What a killed daemon left: its containerd and shims, found by their folder."""
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                with contextlib.suppress(OSError):  # it ended while we looked
                    words = (entry / "cmdline").read_text().split("\0")
                    if "containerd" in words[0] and any(str(self.folder) in word for word in words):
                        os.kill(int(entry.name), signal.SIGKILL)

    def _run(self, *arguments: str) -> subprocess.CompletedProcess[bytes]:
        argv = ["docker", "-H", self.host, *arguments]
        return subprocess.run(argv, capture_output=True, check=False, timeout=120)


def mount_tmpfs(folder: Path, size_mib: int) -> None:
    """Put a tmpfs of that size on a folder (made where it is missing)."""
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size_mib}m", "acidtest", str(folder)], check=True)


def unmount(folder: Path) -> None:
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Write a file there until the disk is full; the file. Remove it to have the space back."""
    ballast = folder / "ballast"
    with ballast.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(1 << 16))
    with ballast.open("ab", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    return ballast
