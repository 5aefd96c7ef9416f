"""Every call to a model, in SQLite (WAL): tables `calls`, `pins` and `batches`, in the run's ledger file.

A call's row is written *before* it is sent and settled afterwards, so a killed run knows what it may have
paid. Looking up (model, prompt digest, sample) gives the settled reply: a resumed run pays nothing twice.
"""

from __future__ import annotations

import json
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self, TypeVar

from ...envs.errors import RunConflict
from .protocol import CallOutcome, Reply, Request, Usage

T = TypeVar("T")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS calls (
  id INTEGER PRIMARY KEY, model TEXT NOT NULL, digest TEXT NOT NULL, sample INTEGER NOT NULL,
  attempt INTEGER NOT NULL, final INTEGER NOT NULL, purpose TEXT NOT NULL, prompt_version TEXT NOT NULL,
  task_id TEXT NOT NULL, outcome TEXT NOT NULL, stop_reason TEXT NOT NULL, detail TEXT NOT NULL,
  input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
  cache_read_tokens INTEGER NOT NULL, cost_usd REAL NOT NULL, reserved_usd REAL NOT NULL,
  text TEXT NOT NULL, data TEXT, answered_by TEXT NOT NULL, seconds REAL NOT NULL, time REAL NOT NULL);
CREATE INDEX IF NOT EXISTS calls_key ON calls (model, digest, sample);
CREATE TABLE IF NOT EXISTS pins (slot TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS batches (batch_id TEXT PRIMARY KEY, state TEXT NOT NULL, ids TEXT NOT NULL,
                                    time REAL NOT NULL);
"""
_COLUMNS = (
    "outcome, text, data, stop_reason, detail, answered_by, input_tokens, output_tokens, cache_write_tokens, "
    "cache_read_tokens, cost_usd, attempt, seconds"
)


class CallStore:
    """path: the database file (usually `ledger.sqlite` of the run) or ":memory:". Safe for threads.

    One process writes a run at a time (`RunDir` sees to it): rows that were left IN_FLIGHT are marked LOST
    when the store is opened, and their reserved cost keeps counting as possibly paid.
    """

    def __init__(self, path: str | Path = ":memory:", *, busy_s: float = 30.0) -> None:
        self.path = str(path)
        self._lock = threading.RLock()
        self._db = sqlite3.connect(self.path, timeout=busy_s, check_same_thread=False, isolation_level=None)
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
            self._db.execute(
                "UPDATE calls SET outcome = ? WHERE outcome = ?", (CallOutcome.LOST, CallOutcome.IN_FLIGHT)
            )
        except sqlite3.OperationalError as error:
            self._db.close()
            raise RunConflict(f"The call store {path} cannot be used: {error}.") from error

    def find(self, model: str | None, digest: str, sample: int) -> Reply | None:
        """The settled reply to this question (of any model when `model` is None), marked `known`; or None."""
        query = f"SELECT {_COLUMNS} FROM calls WHERE digest = ? AND sample = ? AND final = 1"
        values: list[object] = [digest, sample]
        if model is not None:
            query, values = query + " AND model = ?", [*values, model]
        row = self._one(query + " ORDER BY id DESC LIMIT 1", values)
        return None if row is None else _reply(row)

    def begin(self, request: Request, model: str, attempt: int, reserved_usd: float) -> int:
        """Write down that a call is about to be sent; returns its row id."""
        values = (
            model, request.digest, request.sample, attempt, 0, request.purpose, request.prompt_version,
            request.task_id, CallOutcome.IN_FLIGHT, "", "", 0, 0, 0, 0, 0.0, reserved_usd, "", None, "",
            0.0, time.time(),
        )  # fmt: skip
        marks = ", ".join("?" * (len(values) + 1))
        with self._lock:
            cursor = self._db.execute(f"INSERT INTO calls VALUES ({marks})", (None, *values))
            return int(cursor.lastrowid or 0)

    def settle(self, row: int, reply: Reply, *, final: bool) -> None:
        """Write down what came of it. `final`: this is the reply that counts for its question.

        A LOST call keeps its reservation (it may have been paid); every other one gives it back.
        """
        usage = reply.usage
        keeps = reply.outcome is CallOutcome.LOST
        with self._lock:
            self._db.execute(
                "UPDATE calls SET final=?, outcome=?, stop_reason=?, detail=?, input_tokens=?, output_tokens=?,"
                " cache_write_tokens=?, cache_read_tokens=?, cost_usd=?, text=?, data=?, answered_by=?, seconds=?,"
                " reserved_usd=CASE WHEN ? THEN reserved_usd ELSE 0 END WHERE id=?",
                (
                    int(final), reply.outcome, reply.stop_reason, reply.detail[:2000], usage.input, usage.output,
                    usage.cache_write, usage.cache_read, reply.cost_usd, reply.text,
                    None if reply.data is None else json.dumps(reply.data), reply.model,
                    reply.seconds, keeps, row,
                ),
            )  # fmt: skip

    def discard(self, row: int) -> None:
        """Take back a row whose call was certainly never taken by the service."""
        with self._lock:
            self._db.execute("DELETE FROM calls WHERE id = ? AND final = 0", (row,))

    def spent_usd(self) -> float:
        """Dollars of all settled calls."""
        return float((self._one("SELECT COALESCE(SUM(cost_usd), 0) FROM calls", ()) or (0,))[0])

    def reserved_usd(self) -> float:
        """The most that calls in flight, and lost ones, may have cost on top."""
        return float((self._one("SELECT COALESCE(SUM(reserved_usd), 0) FROM calls", ()) or (0,))[0])

    def usage(self) -> Usage:
        """Tokens of all settled calls."""
        row = self._one(
            "SELECT COALESCE(SUM(input_tokens),0), COALESCE(SUM(output_tokens),0),"
            " COALESCE(SUM(cache_write_tokens),0), COALESCE(SUM(cache_read_tokens),0) FROM calls",
            (),
        ) or (0, 0, 0, 0)
        return Usage(input=row[0], output=row[1], cache_write=row[2], cache_read=row[3])

    def attempts(self, model: str, digest: str, sample: int) -> int:
        """How many calls this question has had (settled or not)."""
        row = self._one(
            "SELECT COUNT(*) FROM calls WHERE model = ? AND digest = ? AND sample = ?",
            (model, digest, sample),
        )
        return int((row or (0,))[0])

    def rows(self) -> list[dict[str, Any]]:
        """Every call as a plain dict, oldest first: what `report` prints and `replay` reads."""
        with self._lock:
            cursor = self._db.execute("SELECT * FROM calls ORDER BY id")
            names = [column[0] for column in cursor.description]
            return [dict(zip(names, row, strict=True)) for row in cursor]

    def pin(self, slot: str, make: Callable[[], str]) -> str:
        """The text first made for this slot: later runs get the same one, whatever `make` would say now.

        Used for prompts that quote logs, which may differ in a detail when a suite is run again.
        """
        row = self._one("SELECT value FROM pins WHERE slot = ?", (slot,))
        if row is not None:
            return str(row[0])
        value = make()
        with self._lock:
            self._db.execute("INSERT OR IGNORE INTO pins VALUES (?, ?)", (slot, value))
        row = self._one("SELECT value FROM pins WHERE slot = ?", (slot,))
        return value if row is None else str(row[0])

    def note_batch(self, batch_id: str, state: str, ids: list[str]) -> None:
        """Remember a Message Batch: state "open" or "done", and the custom ids it holds."""
        with self._lock:
            self._db.execute(
                "INSERT OR REPLACE INTO batches VALUES (?, ?, ?, ?)",
                (batch_id, state, json.dumps(ids), time.time()),
            )

    def batches(self, state: str) -> list[tuple[str, list[str]]]:
        with self._lock:
            rows = self._db.execute("SELECT batch_id, ids FROM batches WHERE state = ?", (state,)).fetchall()
        return [(str(batch_id), json.loads(ids)) for batch_id, ids in rows]

    def forget_batch(self, batch_id: str) -> None:
        with self._lock:
            self._db.execute("DELETE FROM batches WHERE batch_id = ?", (batch_id,))

    def export(self, path: str | Path) -> int:
        """Write every settled reply as one JSON line (the file that `replay:FILE` reads); how many."""
        lines = [
            json.dumps({key: row[key] for key in _EXPORTED}, sort_keys=True)
            for row in self.rows()
            if row["final"]
        ]
        Path(path).write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        return len(lines)

    def close(self) -> None:
        with self._lock:
            self._db.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[dict[str, Any]]:
        return iter(self.rows())

    def _one(self, query: str, values: tuple[object, ...] | list[object]) -> tuple[Any, ...] | None:
        with self._lock:
            row: tuple[Any, ...] | None = self._db.execute(query, tuple(values)).fetchone()
            return row


_EXPORTED = (
    "model", "digest", "sample", "purpose", "prompt_version", "task_id", "outcome", "stop_reason", "detail",
    "answered_by", "input_tokens", "output_tokens", "cache_write_tokens", "cache_read_tokens", "cost_usd",
    "text", "data",
)  # fmt: skip


def _reply(row: tuple[Any, ...]) -> Reply:
    outcome, text, data, stop, detail, model, fresh, out, write, read, cost, attempt, seconds = row
    return Reply(
        outcome=CallOutcome(outcome),
        text=text,
        data=None if data is None else json.loads(data),
        stop_reason=stop,
        detail=detail,
        model=model,
        usage=Usage(input=fresh, output=out, cache_write=write, cache_read=read),
        cost_usd=cost,
        attempt=attempt,
        seconds=seconds,
        known=True,
    )
