"""`LLM` over a provider that answers later: questions are queued, `flush` sends them, asking again gets the answers."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections.abc import Sequence

from ...envs.errors import AnswersPending
from .calls import CallStore
from .protocol import Reply, Request


class QueuedLLM(ABC):
    """Base of `batch` and `files`. A question without an answer is queued and AnswersPending is raised.

    The same question asked again (same digest and sample) is the same entry. Subclasses define `flush`.
    """

    def __init__(self, model: str, store: CallStore) -> None:
        self.model = model
        self.store = store
        self._lock = threading.RLock()
        self._queue: dict[str, Request] = {}

    @property
    def waiting(self) -> int:
        """How many questions are queued."""
        with self._lock:
            return len(self._queue)

    def complete(self, request: Request) -> Reply:
        return self.complete_many([request])[0]

    def complete_many(self, requests: Sequence[Request]) -> list[Reply]:
        replies = [self._known(request) for request in requests]
        missing = [request for request, reply in zip(requests, replies, strict=True) if reply is None]
        if missing:
            with self._lock:
                self._queue.update((request.custom_id, request) for request in missing)
            raise AnswersPending(
                f"{len(missing)} of {len(requests)} answers of {self.model} are not there yet.",
                mend="Run the same command again when they are.",
            )
        return [reply for reply in replies if reply is not None]

    @abstractmethod
    def flush(self) -> None:
        """Send what is queued; AnswersPending while answers are missing."""

    def close(self) -> None:  # noqa: B027 (nothing to close is the default)
        """Nothing to close."""

    def _known(self, request: Request) -> Reply | None:
        return self.store.find(self.model, request.digest, request.sample)
