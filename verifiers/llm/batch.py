"""Anthropic Message Batches: everything queued goes out as one batch at `flush`; half price, up to a day.

A batch's rows and its "submitting" note are written before it is sent. A run killed after the service took
the batch and before its id was written finds it again: by the custom ids in the results of recent batches.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from ...envs.errors import AnswersPending
from .answers import scrub
from .anthropic import client, message_reply, params, trouble_of
from .budget import Budget
from .calls import CallStore
from .direct import TOKENS_CAP
from .prices import Price
from .protocol import CallOutcome, Reply, Request, Trouble
from .queued import QueuedLLM

SUBMITTING = "submitting"
SPOILED = (CallOutcome.CUT_OFF, CallOutcome.INVALID)
MAX_BATCH = 10_000


class BatchLLM(QueuedLLM):
    """wait_s: how long `flush` waits for a batch to end before it raises AnswersPending. poll_s: between looks.

    price: of a batch (see `price_of(batch=True)`). A spoiled, errored or expired entry goes out once more.
    """

    def __init__(
        self,
        model: str,
        store: CallStore,
        price: Price,
        *,
        max_usd: float | None = None,
        base_url: str | None = None,
        timeout_s: float = 600.0,
        wait_s: float = 86_400.0,
        poll_s: float = 30.0,
        retries: int = 5,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        super().__init__(f"batch:{model}", store)
        self._name = model
        self._price = price
        self._budget = Budget(store, price, max_usd)
        self._wait_s, self._poll_s, self._retries, self._sleep = wait_s, poll_s, retries, sleep
        self._client = client(base_url, timeout_s)

    def flush(self) -> None:
        """Collect what earlier batches brought, then send what is still open, as much as the ceiling allows at
        once, wait and collect, until nothing is open.

        Raises AnswersPending when a batch has not ended after `wait_s`, BudgetExceeded when nothing more fits.
        """
        with self._lock:
            for _, ids in self.store.batches(SUBMITTING):
                self._adopt(ids)
            self._settle_open()
            while fresh := [r for r in self._queue.values() if self._known(r) is None]:
                self._submit(fresh[:MAX_BATCH])
                self._settle_open()

    def close(self) -> None:
        self._client.close()

    def _submit(self, requests: list[Request]) -> None:
        """Send one batch of as many questions as fit below the ceiling."""
        turns = [(r, self.store.attempts(self.model, r.digest, r.sample)) for r in requests]
        sized = [(replace(r, max_tokens=_room(r, attempt)), attempt) for r, attempt in turns]
        rows = self._budget.begin_fitting(sized, self.model)
        entries = [
            {"custom_id": r.custom_id, "params": params(r, self._name, r.max_tokens)}
            for r, _ in sized[: len(rows)]
        ]
        for request, _ in sized[: len(rows)]:
            self.store.pin(f"request:{request.custom_id}", request.to_json)
        ids = [str(entry["custom_id"]) for entry in entries]
        self.store.note_batch(SUBMITTING, SUBMITTING, ids)
        try:
            batch_id = self._create(entries, ids)
        except BaseException:
            for row in rows:
                self.store.discard(row)
            self.store.forget_batch(SUBMITTING)
            raise
        self.store.note_batch(batch_id, "open", ids)
        self.store.forget_batch(SUBMITTING)

    def _create(self, entries: list[dict[str, Any]], ids: list[str]) -> str:
        """Id of the batch; when the service may have taken it without answering, look before sending again."""
        for turn in range(self._retries + 1):
            try:
                return str(self._client.messages.batches.create(requests=entries).id)
            except Exception as error:
                trouble = trouble_of(error)
                if not isinstance(trouble, Trouble) or not trouble.retryable or turn == self._retries:
                    raise trouble from None
                found = self._recent(len(ids)) if trouble.maybe_paid else None
                if found is not None:
                    return found
                self._sleep(min(60.0, trouble.after_s if trouble.after_s is not None else 2.0**turn))
        raise AssertionError("unreachable")

    def _adopt(self, ids: list[str]) -> None:
        """After a kill between sending a batch and writing its id: find it among the service's recent ones."""
        found = self._recent(len(ids))
        if found is not None:
            self.store.note_batch(found, "open", ids)
        self.store.forget_batch(SUBMITTING)

    def _recent(self, size: int) -> str | None:
        """The newest batch of this size that we do not know yet; `_collect` checks that it holds our ids."""
        known = {batch_id for state in ("open", "done") for batch_id, _ in self.store.batches(state)}
        for batch in self._call(lambda: self._client.messages.batches.list(limit=20)).data:
            counts = batch.request_counts
            total = counts.processing + counts.succeeded + counts.errored + counts.canceled + counts.expired
            if batch.id not in known and total == size:
                return str(batch.id)
        return None

    def _settle_open(self) -> None:
        deadline = time.monotonic() + self._wait_s
        for batch_id, ids in self.store.batches("open"):
            while self._status(batch_id) != "ended":
                if time.monotonic() > deadline:
                    raise AnswersPending(
                        f"The batch {batch_id} with {len(ids)} questions has not ended.",
                        mend="Run the same command again later.",
                    )
                self._sleep(self._poll_s)
            self._collect(batch_id, ids)

    def _status(self, batch_id: str) -> str:
        return str(self._call(lambda: self._client.messages.batches.retrieve(batch_id)).processing_status)

    def _collect(self, batch_id: str, ids: list[str]) -> None:
        """Settle every result of an ended batch. A result that is not ours is left alone."""
        results: list[Any] = self._call(lambda: list(self._client.messages.batches.results(batch_id)))
        ours = set(ids)
        rows = {_custom_id(row): row for row in self.store.rows() if row["model"] == self.model}
        for result in results:
            row = rows.get(result.custom_id)
            if row is None or row["final"] or result.custom_id not in ours:
                continue
            request = Request.from_json(self.store.pin(f"request:{result.custom_id}", lambda: "{}"))
            attempt = int(row["attempt"])
            reply = self._reply(request, result.result, attempt)
            unusable = reply.outcome in SPOILED or reply.outcome is CallOutcome.FAILED
            self.store.settle(int(row["id"]), reply, final=attempt > 0 or not unusable)
            if attempt > 0 or not unusable:
                self._queue.pop(result.custom_id, None)
        self.store.note_batch(batch_id, "done", ids)

    def _reply(self, request: Request, result: Any, attempt: int) -> Reply:
        if result.type == "succeeded":
            reply = message_reply(request, result.message)
            return replace(reply, attempt=attempt, cost_usd=self._price.cost(reply.usage))
        detail = (
            scrub(str(result.error.error.message)) if result.type == "errored" else f"entry {result.type}"
        )
        return Reply(outcome=CallOutcome.FAILED, detail=detail[:500], model=self.model, attempt=attempt)

    def _call(self, do: Callable[[], Any]) -> Any:
        """One free SDK call (looking, downloading), repeated through outages."""
        for turn in range(self._retries + 1):
            try:
                return do()
            except Exception as error:
                trouble = trouble_of(error)
                if not isinstance(trouble, Trouble) or not trouble.retryable or turn == self._retries:
                    raise trouble from None
                self._sleep(min(60.0, trouble.after_s if trouble.after_s is not None else 2.0**turn))
        raise AssertionError("unreachable")


def _room(request: Request, attempt: int) -> int:
    return request.max_tokens if attempt == 0 else min(2 * request.max_tokens, TOKENS_CAP)


def _custom_id(row: dict[str, Any]) -> str:
    return f"{row['purpose']}-{row['digest']}-{row['sample']}"
