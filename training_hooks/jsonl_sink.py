"""Incidents as JSON lines, append-only; and metrics beside them.

A repeated incident is a new line with the same key and a higher count; readers keep the last line of a key. Lines are written
whole under a file lock, so that several processes may share the file (each counts its own repeats).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs.errors import TaskError
from ..envs.incident import Incident


class JsonlSink:
    """Appends to `path`; repeats are written at powers of two (2nd, 4th, 8th … time) and once more at the end.

    With `metrics_path`, every batch's metrics are appended there: ``{"step": …, "hack/…": …}``.
    """

    def __init__(self, path: str | Path, *, metrics_path: str | Path | None = None) -> None:
        self.path = Path(path)
        self.metrics_path = Path(metrics_path) if metrics_path else None
        self._late: dict[str, Incident] = {}

    def incident(self, incident: Incident) -> None:
        if incident.count & (incident.count - 1):
            self._late[incident.key] = incident
            return
        self._late.pop(incident.key, None)
        append(self.path, incident.to_json())

    def metrics(self, values: Mapping[str, float], step: int | None) -> None:
        if self.metrics_path:
            append(self.metrics_path, json.dumps({"step": step, **values}))

    def finish(self, worst: Sequence[Mapping[str, Any]]) -> None:
        for incident in self._late.values():
            append(self.path, incident.to_json())
        self._late.clear()


def sink(**options: Any) -> JsonlSink:
    return JsonlSink(**options)


def append(path: Path, line: str) -> None:
    """Append one line atomically; a torn last line of a killed writer is closed off first."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("ab+") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        size = file.seek(0, os.SEEK_END)
        if size:
            file.seek(size - 1)
            line = line if file.read(1) == b"\n" else "\n" + line
        file.write(line.encode("utf-8", "replace") + b"\n")


def read_incidents(path: str | Path) -> list[Incident]:
    """The incidents of a file, first seen first, one per key with its highest count. Torn lines are left out."""
    found: dict[str, Incident] = {}
    for line in Path(path).read_bytes().splitlines():
        with contextlib.suppress(TaskError):
            incident = Incident.from_json(line)
            before = found.get(incident.key)
            if before is None or incident.count >= before.count:
                found[incident.key] = incident
    return list(found.values())
