"""The ledger keeps decisive verdicts, never undecided ones, across processes' lifetimes and threads."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.errors import DiskFull, RunConflict
from acidtest.envs.ledger import Ledger
from acidtest.envs.run import SuiteRun
from acidtest.envs.verdict import Outcome, Verdict


def verdict(outcome: Outcome) -> Verdict:
    return Verdict(task_id="t", patch_digest="p", suite_digest="s", outcome=outcome, original_outcome=outcome)


def test_a_decisive_verdict_survives_closing(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger.store_verdict("k", verdict(Outcome.UNRESOLVED))
    with Ledger(tmp_path / "l.sqlite") as ledger:
        hit = ledger.verdict("k")
    assert hit is not None
    assert hit.outcome is Outcome.UNRESOLVED
    assert hit.cached


@pytest.mark.parametrize("outcome", [Outcome.UNDECIDED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY])
def test_what_may_end_otherwise_is_never_cached(outcome: Outcome) -> None:
    with Ledger() as ledger:
        ledger.store_verdict("k", verdict(outcome))
        assert ledger.verdict("k") is None


def test_many_threads_write_at_once(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:

        def work(number: int) -> None:
            for item in range(20):
                ledger.attempt(f"t{number}", "verify", "resolved", seconds=float(item))
                ledger.store_verdict(f"{number}-{item}", verdict(Outcome.RESOLVED))

        threads = [threading.Thread(target=work, args=(n,)) for n in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(ledger.attempts()) == 160
        assert ledger.verdict("7-19") is not None


def test_a_file_held_by_another_process_is_named(tmp_path: Path) -> None:
    path = tmp_path / "l.sqlite"
    with Ledger(path, busy_s=0.1) as ledger:
        holder = sqlite3.connect(path)
        try:
            holder.execute("BEGIN IMMEDIATE")
            with pytest.raises(RunConflict, match=r"l\.sqlite.*locked"):
                ledger.store_note("kind", "key", "{}")
        finally:
            holder.close()


def test_a_full_disk_is_infrastructure_and_names_the_file(tmp_path: Path) -> None:
    with Ledger(tmp_path / "l.sqlite") as ledger:
        ledger._db.execute("PRAGMA max_page_count = 8")
        with pytest.raises(DiskFull, match=r"l\.sqlite.*full"):
            ledger.store_note("kind", "key", "x" * 100_000)


def test_what_is_kept_in_memory_is_bounded_by_its_size(tmp_path: Path) -> None:
    """A verdict holds the log of its suite: thousands of long ones must not fill the driver's memory."""
    log = "x" * 10_000
    with Ledger(tmp_path / "l.sqlite", memory_bytes=100_000) as ledger:
        for number in range(40):
            kept = replace(verdict(Outcome.UNRESOLVED), run=SuiteRun(log=log))
            ledger.store_verdict(str(number), kept)
        ledger.store_verdict("39", kept)
        assert 1 <= len(ledger._recent) < 10
        assert ledger._held_bytes == sum(size for _, size in ledger._recent.values()) <= 100_000
        old = ledger.verdict("0")
    assert old is not None
    assert old.run is not None
    assert old.run.log == log
