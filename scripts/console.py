"""What the terminal shows: one console, tables that fit 80 columns, progress with rate and ETA."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

PLAIN_EVERY_S = 10.0
"""Without a terminal: a progress line at most this often, in seconds."""


@cache
def console() -> Console:
    """Standard output. Honours NO_COLOR and COLUMNS; 100 columns where there is neither a terminal nor COLUMNS."""
    from rich.console import Console

    known = sys.stdout.isatty() or os.environ.get("COLUMNS", "").isdigit()
    return Console(width=None if known else 100, highlight=False, soft_wrap=False)


Advance = Callable[[str], None]


@contextmanager
def progress(label: str, total: int, *, quiet: bool = False) -> Iterator[Advance]:
    """Yields `advance(note)`: call it once per finished item. Written to standard error.

    In a terminal a bar with rate and ETA; elsewhere a plain line every 10 s.
    """
    if quiet or total == 0:
        yield lambda note: None
    elif sys.stderr.isatty():
        with _bar(label, total) as advance:
            yield advance
    else:
        yield _plain(label, total)


@contextmanager
def _bar(label: str, total: int) -> Iterator[Advance]:
    from rich.console import Console
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(bar_width=24),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("eta"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        row = bar.add_task(label, total=total, note="")
        yield lambda note: bar.update(row, advance=1, note=note[:24])


def _plain(label: str, total: int) -> Advance:
    start = last = time.monotonic()
    done = 0

    def advance(note: str) -> None:
        nonlocal done, last
        done += 1
        now = time.monotonic()
        if now - last >= PLAIN_EVERY_S:
            last = now
            rate = done / (now - start)
            print(
                f"{label}: {done}/{total}, {rate:.2f}/s, eta {(total - done) / rate:.0f} s",
                file=sys.stderr,
                flush=True,
            )

    return advance
