"""Real harm to one container of a Docker engine: kill or remove it, kill its agent, or have the kernel kill it for memory."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from .fault_plan import Fault

SQUEEZED_MIB = 48
CGROUPS = Path("/sys/fs/cgroup")
_HOG = """
import os, sys, time
folder, agent, most = sys.argv[1], sys.argv[2], int(sys.argv[3])
with open(folder + "/cgroup.procs", "w") as file:
    file.write(str(os.getpid()))
print("ready", flush=True)
sys.stdin.readline()
held, end = [], time.monotonic() + 3
while os.path.exists("/proc/" + agent) and time.monotonic() < end:
    if len(held) < most:
        held.append(bytearray(os.urandom(1 << 16)) * 16)
    else:
        time.sleep(0.01)
"""


def blow(engine: Any, container: str, fault: Fault) -> Callable[[], bool]:
    """Make ready to do it; calling the result does it, and says whether it was done. Only containers of an engine on this
    machine, and only as root, can lose their agent or memory; others are killed instead. Both raise SandboxError, and
    OSError where the container has ended already."""
    here = engine.local and os.geteuid() == 0
    pid = int(engine.state(container).get("Pid", 0)) if here else 0
    if fault is Fault.OOM_KILLED and pid:
        return starvation(engine, container, pid)

    def strike() -> bool:
        if fault is Fault.REMOVED:
            engine.remove(container)
        elif fault is Fault.AGENT_KILLED and pid:
            os.kill(pid, 9)
        else:
            engine.kill(container)
        return True

    return strike


def starvation(engine: Any, container: str, pid: int) -> Callable[[], bool]:
    """Lower the container's memory limit and put a process of ours into its cgroup; called, that one fills it up. The
    kernel's choice is the agent (its score is raised), PID 1 of the container: with it everything inside ends.
    True when the engine says so."""
    folder = memory_cgroup(pid)
    engine.limit_memory(container, SQUEEZED_MIB)
    Path(f"/proc/{pid}/oom_score_adj").write_text("1000")
    argv = [sys.executable, "-I", "-S", "-c", _HOG, str(folder), str(pid), str(SQUEEZED_MIB + 16)]
    hog = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    assert hog.stdout
    hog.stdout.readline()

    def strike() -> bool:
        hog.communicate(b"\n", timeout=30)
        end = time.monotonic() + 2
        while not engine.state(container).get("OOMKilled") and time.monotonic() < end:
            time.sleep(0.05)
        return bool(engine.state(container).get("OOMKilled"))

    return strike


def memory_cgroup(pid: int) -> Path:
    """The folder of a process's memory cgroup, version 1 or 2."""
    lines = Path(f"/proc/{pid}/cgroup").read_text()
    one = re.search(r"^\d+:(?:[^:]*,)?memory(?:,[^:]*)?:(.*)$", lines, re.M)
    if one:
        return CGROUPS / "memory" / one[1].lstrip("/")
    two = re.search(r"^0::(.*)$", lines, re.M)
    return CGROUPS / (two[1].lstrip("/") if two else "")
