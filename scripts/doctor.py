"""What of this machine acidtest needs, one finding per fact, each with what to do about it."""

from __future__ import annotations

import importlib.metadata
import os
import platform
import resource
import shutil
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from ..envs.errors import EngineUnavailable, SandboxError
from ..envs.sandboxes import docker, local
from ..envs.sandboxes._engine import Engine
from ..envs.sandboxes._owner import is_dead
from .image_check import MACHINES

DISK_GB = 10
MEMORY_GIB = 4
SKEW_S = 30
PACKAGES = ("gymnasium", "docker", "numpy", "datasets", "anthropic", "wandb")
KEYS = ("ANTHROPIC_API_KEY", "WANDB_API_KEY", "HF_TOKEN")


class Level(StrEnum):
    OK = "ok"
    NOTE = "note"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True)
class Finding:
    """One fact. WARN: some things will not work; FAIL: nothing will. mend: what to do ("" when all is well)."""

    name: str
    level: Level
    detail: str
    mend: str = ""


def diagnose(*, docker_required: bool = False) -> list[Finding]:
    """Look at this machine; changes nothing, raises nothing. docker_required: its absence is a FAIL."""
    found = [*_python(), *_machine()]
    try:
        engine = Engine(timeout_s=10)
    except SandboxError as error:
        found.append(_no_engine(error, docker_required))
    else:
        try:
            found += _engine(engine)
        except SandboxError as error:
            found.append(Finding("engine", Level.FAIL, error.message, error.mend))
        finally:
            engine.close()
    found += _local(any(f.name == "engine" and f.level is Level.OK for f in found))
    return [*found, *_keys()]


def _python() -> Iterator[Finding]:
    version = ".".join(map(str, sys.version_info[:3]))
    good = sys.version_info >= (3, 11)
    mend = "" if good else "Install Python 3.11 or newer."
    yield Finding("python", Level.OK if good else Level.FAIL, version, mend)
    missing = [name for name in PACKAGES if not _version(name)]
    there = ", ".join(f"{name} {_version(name)}" for name in ("acidtest", *PACKAGES) if _version(name))
    mend = f"pip install {' '.join(missing)}" if missing else ""
    yield Finding("packages", Level.FAIL if missing else Level.OK, there or "none", mend)


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _machine() -> Iterator[Finding]:
    good = sys.platform == "linux"
    yield Finding(
        "system",
        Level.OK if good else Level.FAIL,
        f"{platform.system()} {platform.release()}, {platform.machine()}, {os.cpu_count()} cores",
        "" if good else "Sandboxes need Linux; use a Linux machine or VM.",
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    yield _at_least("memory", memory, MEMORY_GIB, "GiB", "Lower Limits.memory_mib and --jobs.")
    yield _disk("disk", Path.cwd(), "Runs are written here: free some space.")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    mend = "ulimit -n 4096" if soft < 1024 else ""
    yield Finding("descriptors", Level.WARN if mend else Level.OK, f"{soft} (hard limit {hard})", mend)
    good = time.time() > datetime(2026, 1, 1).timestamp()
    mend = "" if good else "Set the clock: certificates and timestamps depend on it."
    yield Finding(
        "clock", Level.OK if good else Level.WARN, datetime.now().astimezone().isoformat("T", "seconds"), mend
    )


def _at_least(name: str, value: float, wanted: float, unit: str, mend: str) -> Finding:
    good = value >= wanted
    return Finding(name, Level.OK if good else Level.WARN, f"{value:.0f} {unit}", "" if good else mend)


def _disk(name: str, path: Path, mend: str) -> Finding:
    free = shutil.disk_usage(path).free / 1e9
    found = _at_least(name, free, DISK_GB, f"GB free at {path}", mend)
    return found if free >= 1 else Finding(name, Level.FAIL, found.detail, mend)


def _no_engine(error: SandboxError, required: bool) -> Finding:
    mend = error.mend
    if isinstance(error, EngineUnavailable):
        socket = Path(os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock").removeprefix("unix://"))
        if "Permission" in error.message:
            mend = f"Your user may not use {socket}: add it to the docker group (usermod -aG docker USER), log in anew."
        elif not socket.exists():
            mend = (
                "Install and start Docker (or Podman's socket), or set DOCKER_HOST. Repository tasks need it."
            )
        else:
            mend = f"Something is at {socket} but does not answer: start the engine."
    return Finding("engine", Level.FAIL if required else Level.WARN, error.message, mend)


def _engine(engine: Engine) -> Iterator[Finding]:
    info = engine.info()
    version = info["Version"]
    yield Finding("engine", Level.OK, f"{version.get('Version')} (API {version.get('ApiVersion')})")
    for look in (_storage, _cgroup, _architecture, _skew):
        yield look(info)
    root = Path(str(info.get("DockerRootDir", "")))
    if engine.local and root.is_dir():
        yield _disk(
            "engine disk", root, "Free space there (docker system prune), or move the engine's data folder."
        )
    base = os.environ.get("ACIDTEST_BASE_IMAGE") or docker.BASE_IMAGE
    mend = "" if engine.image(base) else "`acidtest images base` makes it from Debian packages."
    yield Finding(
        "base image", Level.NOTE if mend else Level.OK, base + (" is missing" if mend else ""), mend
    )
    left = sum(is_dead(label, local=engine.local) for label in engine.ours().values())
    mend = "The next run removes them." if left else ""
    yield Finding(
        "leftovers", Level.NOTE if left else Level.OK, f"{left} containers of ended processes", mend
    )


def _storage(info: dict[str, Any]) -> Finding:
    driver = str(info.get("Driver"))
    slow = driver in {"vfs", "devicemapper"}
    mend = "Use overlay2: this driver copies whole images for every container." if slow else ""
    return Finding("storage driver", Level.WARN if slow else Level.OK, driver, mend)


def _cgroup(info: dict[str, Any]) -> Finding:
    lacking = [name for key, name in LIMITS.items() if info.get(key) is False]
    mend = (
        f"The kernel gives no limit on {', '.join(lacking)}: enable those cgroup controllers."
        if lacking
        else ""
    )
    detail = f"version {info.get('CgroupVersion', '1')}, driver {info.get('CgroupDriver')}"
    return Finding("cgroup", Level.WARN if lacking else Level.OK, detail, mend)


LIMITS = {"MemoryLimit": "memory", "SwapLimit": "swap", "CpuCfsQuota": "CPU time", "PidsLimit": "processes"}


def _architecture(info: dict[str, Any]) -> Finding:
    machine = str(info.get("Architecture"))
    same = MACHINES.get(machine, machine) == "amd64"
    mend = (
        ""
        if same
        else "Published SWE-bench images are for x86_64: build them here (`acidtest images build`)."
    )
    return Finding("architecture", Level.OK if same else Level.WARN, machine, mend)


def _skew(info: dict[str, Any]) -> Finding:
    text = str(info.get("SystemTime", ""))
    try:
        then = datetime.fromisoformat(text[:19] + ("+00:00" if text.endswith("Z") else text[-6:]))
    except ValueError:
        return Finding("engine clock", Level.NOTE, f"unreadable: {text!r}")
    skew = abs(time.time() - then.timestamp())
    mend = "Synchronise the clocks of this machine and the engine's." if skew > SKEW_S else ""
    return Finding("engine clock", Level.WARN if mend else Level.OK, f"{skew:.0f} s apart", mend)


def _local(engine: bool) -> Iterator[Finding]:
    works = local.bubblewrap_works()
    if works:
        yield Finding("bubblewrap", Level.OK, "works: function tasks can run without an engine, isolated")
        return
    installed = shutil.which("bwrap")
    mend = (
        "Allow user namespaces (sysctl kernel.unprivileged_userns_clone=1)."
        if installed
        else "Install bubblewrap."
    )
    level = Level.NOTE if engine else Level.WARN
    yield Finding(
        "bubblewrap", level, "installed, but may not make namespaces" if installed else "not installed", mend
    )


def _keys() -> Iterator[Finding]:
    for name in KEYS:
        there = bool(os.environ.get(name))
        yield Finding(
            name,
            Level.OK if there else Level.NOTE,
            "set" if there else "not set",
            "" if there else NEED[name],
        )


NEED = {
    "ANTHROPIC_API_KEY": "Only needed for --llm MODEL; files: and replay: do without.",
    "WANDB_API_KEY": "Only needed to log online; WANDB_MODE=offline does without.",
    "HF_TOKEN": "Only needed for gated data sets.",
}
