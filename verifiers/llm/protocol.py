"""What is asked of a model (`Request`), what comes back (`Reply`), and the two seams `LLM` and `Provider`."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from ...envs.record import Record, digest_of

FENCE = "{{FENCE}}"
"""Stands for the random delimiter in a digest, so that a fresh fence leaves the digest as it was."""


class CallOutcome(StrEnum):
    """How one call ended. Only ANSWERED carries data; the others are results too, never crashes."""

    ANSWERED = "answered"
    REFUSED = "refused"
    CUT_OFF = "cut_off"
    INVALID = "invalid"
    FAILED = "failed"
    """The service did not answer in spite of retries, or said no for good (the detail says what)."""
    IN_FLIGHT = "in_flight"
    """Sent; no answer seen yet. What a killed run leaves behind."""
    LOST = "lost"
    """Sent, and the answer never came (hang, dropped connection, kill): may or may not have been paid."""


@dataclass(frozen=True, kw_only=True)
class Request(Record):
    """One question. `context` is the long part that several questions share (it is what gets cached).

    purpose: attack, benign, judge, witness, specified. prompt_version: as written in the prompt file.
    schema: JSON schema the answer must follow. fence: the random delimiter used in `prompt`, "" for none.
    sample: index among repeated identical questions; each is a call of its own.
    task_id: for the record only; not part of the digest.
    """

    purpose: str
    prompt: str
    schema: Mapping[str, Any]
    prompt_version: str
    system: str = ""
    context: str = ""
    fence: str = ""
    sample: int = 0
    max_tokens: int = 8192
    task_id: str = ""

    @property
    def digest(self) -> str:
        """16 hex digits over everything the model sees, with the fence's letters taken out."""
        seen = [self.system, self.context, self.prompt]
        if self.fence:
            seen = [text.replace(self.fence, FENCE) for text in seen]
        return digest_of([self.prompt_version, *seen, json.dumps(dict(self.schema), sort_keys=True)])

    @property
    def custom_id(self) -> str:
        """Stable name of this call in batches and files: purpose, digest, sample."""
        return f"{self.purpose}-{self.digest}-{self.sample}"


@dataclass(frozen=True, kw_only=True)
class Usage(Record):
    """Tokens of one call, as the service counts them: fresh input, output, cache writes, cache reads."""

    input: int = 0
    output: int = 0
    cache_write: int = 0
    cache_read: int = 0

    def __add__(self, other: Usage) -> Usage:
        return Usage(
            input=self.input + other.input,
            output=self.output + other.output,
            cache_write=self.cache_write + other.cache_write,
            cache_read=self.cache_read + other.cache_read,
        )


@dataclass(frozen=True, kw_only=True)
class Reply(Record):
    """What came of one request, after retries.

    data: the parsed answer when the outcome is ANSWERED, else None. text: what the model wrote, as it came.
    detail: why, when it is not an answer (never holds a key). cost_usd: of this reply alone.
    known: it came from the store, nothing was paid now.
    """

    outcome: CallOutcome
    text: str = ""
    data: Mapping[str, Any] | None = None
    stop_reason: str = ""
    detail: str = ""
    model: str = ""
    usage: Usage = field(default_factory=Usage)
    cost_usd: float = 0.0
    attempt: int = 0
    seconds: float = 0.0
    known: bool = False

    @property
    def answered(self) -> bool:
        return self.outcome is CallOutcome.ANSWERED and self.data is not None


class Calls(Protocol):
    """What users of a model need of the store of its calls (`calls.CallStore`).

    rows: all calls, a dict each. pin: the text kept under a slot; made and kept when there is none yet.
    """

    def rows(self) -> list[dict[str, Any]]: ...
    def pin(self, slot: str, make: Callable[[], str]) -> str: ...


@runtime_checkable
class LLM(Protocol):
    """The seam. A reply that is no answer is data; only budget, pending answers and misuse raise.

    model: what stands in every record. store: where its calls are. Raises BudgetExceeded before a call that would pass the ceiling, and
    AnswersPending when answers come later (batch, files): then `flush()` sends what has been asked so far,
    waits for it or raises AnswersPending, and the same calls repeated return the answers.
    """

    model: str

    @property
    def store(self) -> Calls: ...

    def complete(self, request: Request) -> Reply: ...
    def complete_many(self, requests: Sequence[Request]) -> list[Reply]: ...
    def flush(self) -> None: ...
    def close(self) -> None: ...


class Provider(Protocol):
    """Sends one request once. Raises `Trouble` when the service gave no message at all."""

    model: str

    def send(self, request: Request, *, max_tokens: int) -> Reply: ...
    def close(self) -> None: ...


class Trouble(Exception):
    """The service gave no message. retryable: whether to try again; after_s: how long it asked us to wait.

    maybe_paid: the request was taken and may have been billed although no answer came (hang, dropped line).
    """

    def __init__(
        self, detail: str, *, retryable: bool, after_s: float | None = None, maybe_paid: bool = False
    ) -> None:
        super().__init__(detail)
        self.detail = detail
        self.retryable = retryable
        self.after_s = after_s
        self.maybe_paid = maybe_paid
