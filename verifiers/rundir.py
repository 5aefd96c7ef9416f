"""A run on disk: `runs/<name>/` with its configuration, append-only JSON lines and the ledger.

One process writes a run at a time (a lock file that the kernel releases when the process dies). A line is
written whole or, after kill -9, cut: a cut last line is dropped when the run is opened again.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import threading
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import IO, Any, Self, TypeVar

from ..envs.errors import ConfigError, DiskFull, RunConflict
from ..envs.ledger import Ledger
from ..envs.record import Record

R = TypeVar("R", bound=Record)

CONFIG = "config.toml"
FREE_KEYS = frozenset({"jobs", "limit", "max_usd", "out", "split", "task_ids", "json"})
"""Options that may change between a run and its resumption: they say how much is done, not what it means."""


class RunDir:
    """path: the folder. `RunDir.create` opens it for writing (and resumes), `RunDir.read` for looking only."""

    def __init__(self, path: Path, *, lock: IO[str] | None = None) -> None:
        self.path = path
        self._lock = lock
        self._writing = threading.Lock()
        self._ledger: Ledger | None = None

    @classmethod
    def create(cls, path: str | Path, config: Mapping[str, Any]) -> Self:
        """Open for writing. Raises RunConflict when the folder holds a run with other options or is in use.

        An option that the held run does not know (written by an older version) is no conflict.
        """
        folder = Path(path)
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"Cannot make the run directory {folder}: {error}.", mend="Give another --out."
            ) from error
        run = cls(folder, lock=_take_lock(folder))
        try:
            run._settle_config(config)
            for file in folder.glob("*.jsonl"):
                _drop_cut_line(file)
        except BaseException:
            run.close()
            raise
        return run

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Open for reading; never locks. Raises ConfigError when there is no run."""
        folder = Path(path)
        if not (folder / CONFIG).is_file():
            raise ConfigError(
                f"{folder} is no run directory.", mend="Give the --out folder of an earlier `acidtest audit`."
            )
        return cls(folder)

    @property
    def config(self) -> dict[str, Any]:
        return tomllib.loads((self.path / CONFIG).read_text())

    @property
    def ledger(self) -> Ledger:
        """The run's ledger, opened on first use."""
        if self._ledger is None:
            self._ledger = Ledger(self.path / "ledger.sqlite")
        return self._ledger

    def append(self, name: str, record: Record) -> None:
        """Add one line to `<name>.jsonl`, on the disk before returning: all of it, or (DiskFull) nothing."""
        file = self.path / f"{name}.jsonl"
        data = f"{record.to_json()}\n".encode()
        with self._writing:
            try:
                _append(file, data)
            except OSError as error:
                raise DiskFull(
                    f"Cannot write {file}: {error.strerror}.",
                    mend="Free disk space and run the same command again: it goes on where it stopped.",
                ) from error

    def records(self, name: str, kind: type[R]) -> Iterator[R]:
        """Every whole line of `<name>.jsonl`, oldest first; nothing when the file is absent."""
        file = self.path / f"{name}.jsonl"
        if not file.is_file():
            return
        with file.open(encoding="utf-8") as lines:
            for line in lines:
                if line.endswith("\n"):
                    yield kind.from_json(line)

    def latest(self, name: str, kind: type[R], key: str = "task_id") -> dict[str, R]:
        """The newest record of each task, in the order in which tasks first appeared."""
        found: dict[str, R] = {}
        for record in self.records(name, kind):
            found[str(getattr(record, key))] = record
        return found

    def close(self) -> None:
        if self._ledger is not None:
            self._ledger.close()
            self._ledger = None
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _settle_config(self, config: Mapping[str, Any]) -> None:
        import tomli_w

        text = tomli_w.dumps({key: value for key, value in config.items() if value is not None})
        wanted = tomllib.loads(text)
        file = self.path / CONFIG
        if file.is_file():
            held = self.config
            differ = sorted(
                key
                for key in held.keys() & wanted.keys()
                if key not in FREE_KEYS and held[key] != wanted[key]
            )
            if differ:
                shown = ", ".join(
                    f"{key}: {held.get(key)!r} there, {wanted.get(key)!r} now" for key in differ
                )
                raise RunConflict(
                    f"{self.path} holds a run with other options ({shown}).",
                    mend="Give another --out, or the same options to resume it.",
                )
        part = file.with_suffix(".part")
        part.write_text(text)
        part.replace(file)


def _append(file: Path, data: bytes) -> None:
    """Write at the end and flush to the disk. When that fails the file is as long as before: a part of a line would
    swallow the next one. Raises OSError."""
    descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        before = os.fstat(descriptor).st_size
        try:
            while data:
                data = data[os.write(descriptor, data) :]
            os.fsync(descriptor)
        except OSError:
            os.ftruncate(descriptor, before)
            raise
    finally:
        os.close(descriptor)


def _take_lock(folder: Path) -> IO[str]:
    lock = (folder / ".lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        lock.seek(0)
        holder = lock.read().strip() or "another process"
        lock.close()
        raise RunConflict(
            f"{folder} is being written by {holder}.", mend="Wait for it, or give another --out."
        ) from error
    lock.seek(0)
    lock.truncate()
    lock.write(f"process {os.getpid()}")
    lock.flush()
    return lock


def _drop_cut_line(file: Path) -> None:
    """Truncate a last line without its newline (a write that kill -9 cut)."""
    with contextlib.suppress(FileNotFoundError), file.open("rb+") as data:
        end = data.seek(0, os.SEEK_END)
        if end == 0:
            return
        data.seek(-1, os.SEEK_END)
        if data.read(1) == b"\n":
            return
        data.seek(0)
        keep = data.read().rfind(b"\n") + 1
        data.truncate(keep)
