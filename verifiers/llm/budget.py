"""The hard ceiling: a call is only sent when even its dearest outcome stays below `max_usd`."""

from __future__ import annotations

import threading
from collections.abc import Sequence

from ...envs.errors import BudgetExceeded
from .calls import CallStore
from .prices import Price
from .protocol import Reply, Request


class Budget:
    """max_usd: dollars of the whole run, earlier sessions included; None for no ceiling.

    What counts against it: settled calls, plus the ceilings of calls in flight and of lost ones (sent,
    never answered, perhaps billed).
    """

    def __init__(self, store: CallStore, price: Price, max_usd: float | None) -> None:
        self.store = store
        self.price = price
        self.max_usd = max_usd
        self._turn = threading.Condition()
        self._active = 0

    def begin(self, request: Request, model: str, attempt: int, max_tokens: int) -> int:
        """Reserve the call's ceiling and write its row; returns the row id (then `settle` it).

        Waits while calls in flight hold what is needed: they mostly cost less than their ceiling. Raises
        BudgetExceeded when nothing is in flight and the ceiling does not fit.
        """
        ceiling = self.price.ceiling(request, max_tokens)
        with self._turn:
            while True:
                try:
                    self._check(ceiling)
                except BudgetExceeded:
                    if not self._active:
                        raise
                    self._turn.wait()
                    continue
                self._active += 1
                return self.store.begin(request, model, attempt, ceiling)

    def settle(self, row: int, reply: Reply, *, final: bool) -> None:
        """Settle a call that `begin` started."""
        with self._turn:
            self.store.settle(row, reply, final=final)
            self._active -= 1
            self._turn.notify_all()

    def abandon(self, row: int, *, unpaid: bool) -> None:
        """Give up a call that `begin` started. unpaid: the service certainly refused it; else it stays in flight."""
        with self._turn:
            if unpaid:
                self.store.discard(row)
            self._active -= 1
            self._turn.notify_all()

    def begin_fitting(self, requests: Sequence[tuple[Request, int]], model: str) -> list[int]:
        """Reserve as many (request, attempt) as fit, in order; their row ids. Raises BudgetExceeded when none fits."""
        with self._turn:
            rows: list[int] = []
            for request, attempt in requests:
                ceiling = self.price.ceiling(request, request.max_tokens)
                try:
                    self._check(ceiling)
                except BudgetExceeded:
                    if not rows:
                        raise
                    break
                rows.append(self.store.begin(request, model, attempt, ceiling))
            return rows

    def _check(self, ceiling: float) -> None:
        if self.max_usd is None:
            return
        spent, reserved = self.store.spent_usd(), self.store.reserved_usd()
        if spent + reserved + ceiling > self.max_usd:
            raise BudgetExceeded(
                f"The next call may cost ${ceiling:.4f}; "
                f"${spent:.4f} of ${self.max_usd:.2f} are spent"
                + (f" and ${reserved:.4f} are reserved for calls without an answer." if reserved else "."),
                mend="What was computed is kept: run the same command with a higher --max-usd to go on.",
            )
