"""`LLM` over a provider that answers at once: store first, ceiling, retries where they help, record always."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from ...envs.errors import LLMError
from .budget import Budget
from .calls import CallStore
from .prices import Price
from .protocol import CallOutcome, Provider, Reply, Request, Trouble

TOKENS_CAP = 21_000
"""The most output tokens asked for without streaming (ten minutes at the service's slowest)."""
OUTAGE = 5
"""So many calls in a row without any message: the service is down, and the run stops instead of recording ruins."""


class DirectLLM:
    """store: where calls are looked up and recorded. retries: of one call when the service gives no message.

    A cut-off answer is asked once more with twice the room, an unparsable one once more as it is; a refusal
    is not repeated. A call that failed for good is a reply with outcome FAILED. Only settled, decisive
    replies are kept for a resumed run; an outage is asked again.
    """

    def __init__(
        self,
        provider: Provider,
        store: CallStore,
        price: Price,
        *,
        max_usd: float | None = None,
        retries: int = 5,
        parallel: int = 4,
        backoff_s: float = 1.0,
        sleep: Callable[[float], None] = time.sleep,
        seed: int = 0,
    ) -> None:
        self.model = provider.model
        self.store = store
        self._provider = provider
        self._price = price
        self._budget = Budget(store, price, max_usd)
        self._retries = retries
        self._backoff_s = backoff_s
        self._parallel = parallel
        self._sleep = sleep
        self._random = random.Random(seed)
        self._failures = 0
        self._lock = threading.Lock()

    def complete(self, request: Request) -> Reply:
        known = self.store.find(self.model, request.digest, request.sample)
        if known is not None:
            return known
        reply = self._message(request, request.max_tokens, last=False)
        if not _spoiled(reply, request.max_tokens):
            return reply
        room = request.max_tokens
        if reply.outcome is CallOutcome.CUT_OFF:
            room = min(2 * room, TOKENS_CAP)
        return self._message(request, room, last=True)

    def complete_many(self, requests: Sequence[Request]) -> list[Reply]:
        """Several at once: the first of each shared context alone (it fills the cache), the rest in parallel."""
        replies: dict[int, Reply] = {}
        seen: set[str] = set()
        rest: list[int] = []
        for index, request in enumerate(requests):
            if request.context in seen:
                rest.append(index)
            else:
                seen.add(request.context)
                replies[index] = self.complete(request)
        with ThreadPoolExecutor(max_workers=self._parallel) as pool:
            futures = {index: pool.submit(self.complete, requests[index]) for index in rest}
            for index, future in futures.items():
                replies[index] = future.result()
        return [replies[index] for index in range(len(requests))]

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        self._provider.close()

    def _message(self, request: Request, room: int, *, last: bool) -> Reply:
        """One message, through outages. Every try has its row; the last one's reply is returned.

        last: a spoiled answer counts too (it is not asked again).
        """
        for turn in range(self._retries + 1):
            attempt = self.store.attempts(self.model, request.digest, request.sample)
            row = self._budget.begin(request, self.model, attempt, room)
            start = time.monotonic()
            try:
                reply = self._provider.send(request, max_tokens=room)
            except Trouble as trouble:
                reply = self._troubled(row, trouble, attempt, time.monotonic() - start)
                if not trouble.retryable:
                    return reply
                if turn < self._retries:
                    self._sleep(self._wait(turn, trouble.after_s))
                continue
            except BaseException as error:
                self._budget.abandon(row, unpaid=isinstance(error, LLMError))
                raise
            seconds = time.monotonic() - start
            reply = replace(reply, attempt=attempt, seconds=seconds, cost_usd=self._price.cost(reply.usage))
            self._budget.settle(row, reply, final=last or not _spoiled(reply, room))
            with self._lock:
                self._failures = 0
            return reply
        self._count_outage(reply)
        return reply

    def _troubled(self, row: int, trouble: Trouble, attempt: int, seconds: float) -> Reply:
        outcome = CallOutcome.LOST if trouble.maybe_paid else CallOutcome.FAILED
        reply = Reply(
            outcome=outcome, detail=trouble.detail, model=self.model, attempt=attempt, seconds=seconds
        )
        self._budget.settle(row, reply, final=not trouble.retryable)
        return replace(reply, outcome=CallOutcome.FAILED)

    def _wait(self, turn: int, after_s: float | None) -> float:
        """Seconds to wait: what the service asked for, else exponential with jitter, a minute at most."""
        if after_s is not None:
            return max(0.0, min(after_s, 300.0))
        return float(min(60.0, self._backoff_s * 2**turn) * (0.75 + self._random.random() / 4))

    def _count_outage(self, reply: Reply) -> None:
        with self._lock:
            self._failures += 1
            if self._failures >= OUTAGE:
                raise LLMError(
                    f"{self.model} gave no answer to {self._failures} calls in a row: {reply.detail}",
                    mend="What was computed is kept: run the same command again when the service is back.",
                )


def _spoiled(reply: Reply, room: int) -> bool:
    """Whether asking once more can help: an unparsable answer, or a cut one while there is more room to give."""
    return reply.outcome is CallOutcome.INVALID or (
        reply.outcome is CallOutcome.CUT_OFF and room < TOKENS_CAP
    )
