"""`ledger.sqlite` of a run: verdict cache, calibrations and attempts. SQLite in WAL mode, safe for threads and processes.

Never caches infrastructure trouble (an exception has no verdict), UNDECIDED verdicts, or results that the
caller marks as flaky. LLM calls live in the same file, in a table of `verifiers/llm`.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from types import TracebackType
from typing import Self

from .errors import AcidtestError, DiskFull, RunConflict
from .verdict import Outcome, Verdict

RUNNER_VERSION = "5"
"""Part of every cache key: raise it when the same inputs may get another verdict than before."""

AGAIN = frozenset({Outcome.UNDECIDED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY})
"""Outcomes that are never kept: a busy machine can make a suite hit its limits once."""

_SCHEMA = """
CREATE TABLE IF NOT EXISTS verdicts (key TEXT PRIMARY KEY, json TEXT NOT NULL, time REAL NOT NULL);
CREATE TABLE IF NOT EXISTS notes (kind TEXT NOT NULL, key TEXT NOT NULL, json TEXT NOT NULL, time REAL NOT NULL,
                                  PRIMARY KEY (kind, key));
CREATE TABLE IF NOT EXISTS attempts (id INTEGER PRIMARY KEY, task_id TEXT NOT NULL, what TEXT NOT NULL,
                                     outcome TEXT NOT NULL, detail TEXT NOT NULL, seconds REAL, time REAL NOT NULL);
"""


class Ledger:
    """path: the database file, or ":memory:". busy_s: how long to wait for another process's write, in seconds.

    memory_items, memory_bytes: how many verdicts are also kept in memory, and how long their JSON may be altogether
    (one holds the log of its suite). Raises RunConflict when another process holds the file longer than `busy_s`,
    DiskFull when there is no space to write it.
    """

    def __init__(
        self,
        path: str | Path = ":memory:",
        *,
        busy_s: float = 30.0,
        memory_items: int = 4096,
        memory_bytes: int = 32 << 20,
    ) -> None:
        self.path = str(path)
        self._lock = threading.Lock()
        self._recent: OrderedDict[str, tuple[Verdict, int]] = OrderedDict()
        self._memory_items, self._memory_bytes, self._held_bytes = memory_items, memory_bytes, 0
        self._db = sqlite3.connect(self.path, timeout=busy_s, check_same_thread=False, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except sqlite3.OperationalError as error:
            self._db.close()
            raise self._trouble(error) from error

    def verdict(self, key: str) -> Verdict | None:
        """The cached verdict (marked `cached`), or None."""
        with self._lock:
            hit = self._recent.get(key)
            if hit is not None:
                self._recent.move_to_end(key)
                return hit[0]
            row = self._execute("SELECT json FROM verdicts WHERE key = ?", (key,)).fetchone()
            if row is None:
                return None
            return self._remember(key, Verdict.from_json(row[0]), len(row[0]))

    def store_verdict(self, key: str, verdict: Verdict) -> None:
        """Keep a verdict under its key, unless trying again may say something else: UNDECIDED, or a limit was hit."""
        if verdict.outcome in AGAIN:
            return
        text = verdict.to_json()
        with self._lock:
            self._execute("INSERT OR REPLACE INTO verdicts VALUES (?, ?, ?)", (key, text, time.time()))
            self._remember(key, verdict, len(text))

    def note(self, kind: str, key: str) -> str | None:
        """JSON kept under (kind, key): calibrations, leak reports and the like."""
        with self._lock:
            row = self._execute("SELECT json FROM notes WHERE kind = ? AND key = ?", (kind, key)).fetchone()
        return None if row is None else str(row[0])

    def store_note(self, kind: str, key: str, text: str) -> None:
        with self._lock:
            self._execute("INSERT OR REPLACE INTO notes VALUES (?, ?, ?, ?)", (kind, key, text, time.time()))

    def attempt(
        self, task_id: str, what: str, outcome: str, *, detail: str = "", seconds: float = 0.0
    ) -> None:
        """Record one try, infrastructure failures included. seconds: wall time."""
        with self._lock:
            self._execute(
                "INSERT INTO attempts (task_id, what, outcome, detail, seconds, time) VALUES (?, ?, ?, ?, ?, ?)",
                (task_id, what, outcome, detail[:2000], seconds, time.time()),
            )

    def attempts(self, task_id: str | None = None) -> list[tuple[str, str, str, str, float]]:
        """(task_id, what, outcome, detail, seconds) of every attempt, oldest first."""
        query = "SELECT task_id, what, outcome, detail, seconds FROM attempts"
        with self._lock:
            if task_id is None:
                return list(self._execute(query + " ORDER BY id", ()))
            return list(self._execute(query + " WHERE task_id = ? ORDER BY id", (task_id,)))

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _remember(self, key: str, verdict: Verdict, size: int) -> Verdict:
        kept = verdict if verdict.cached else replace(verdict, cached=True)
        self._held_bytes += size - self._recent.pop(key, (kept, 0))[1]
        self._recent[key] = kept, size
        while len(self._recent) > self._memory_items or self._held_bytes > self._memory_bytes:
            self._held_bytes -= self._recent.popitem(last=False)[1][1]
        return kept

    def _execute(self, query: str, values: tuple[object, ...]) -> sqlite3.Cursor:
        try:
            return self._db.execute(query, values)
        except sqlite3.OperationalError as error:
            raise self._trouble(error) from error

    def _trouble(self, error: sqlite3.OperationalError) -> AcidtestError:
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return DiskFull(
                f"The ledger {self.path} cannot be written: {error}.",
                mend="Free disk space and run the same command again: it goes on where it stopped.",
            )
        return RunConflict(
            f"The ledger {self.path} cannot be used: {error}.",
            mend="Let the other process finish, or give another --out.",
        )
