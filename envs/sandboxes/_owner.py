"""Who owns a container or a temporary folder: a process of this machine, and whether it still lives."""

from __future__ import annotations

import os
import socket
from functools import cache
from pathlib import Path


@cache
def _machine() -> tuple[str, str, str]:
    """Host name, PID namespace, boot id: a process id means nothing outside these three."""
    boot = Path("/proc/sys/kernel/random/boot_id")
    space = os.readlink("/proc/self/ns/pid").strip("pid:[]")
    return socket.gethostname(), space, boot.read_text().strip()[:13]


def start_time(pid: int) -> int | None:
    """Clock ticks after boot at which the process began; None when there is none (or it is a zombie)."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[0] in "ZX" else int(fields[19])


def owner() -> str:
    """`host/pidns/boot/pid/start`, the value of the label that marks what is ours."""
    return "/".join([*_machine(), str(os.getpid()), str(start_time(os.getpid()))])


def is_dead(label: str, *, local: bool = True) -> bool:
    """Whether the owner was a process of this machine that has ended. When in doubt: False.

    local: the thing lies on this machine for sure (a local engine or folder), so that an owner of an
    earlier boot of the same host and PID namespace counts as dead. Other hosts' labels are never judged.
    """
    parts = label.split("/")
    if len(parts) != 5 or not (parts[3].isdigit() and parts[4].isdigit()):
        return False
    host, space, boot = _machine()
    if parts[0] != host:
        return False
    if parts[2] != boot:
        return local
    return parts[1] == space and start_time(int(parts[3])) != int(parts[4])
