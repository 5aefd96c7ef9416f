"""Recorded replies: the file that `CallStore.export` writes, looked up by prompt digest and sample. Costs nothing."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ...envs.errors import ConfigError, LLMError
from .calls import CallStore
from .protocol import CallOutcome, Reply, Request, Usage


class ReplayLLM:
    """file: one JSON line per reply. A question that was not recorded raises LLMError (never a guess)."""

    def __init__(self, file: str | Path, store: CallStore) -> None:
        self.model = "replay"
        self.store = store
        self._file = Path(file)
        self._replies: dict[tuple[str, int], Reply] = {}
        try:
            lines = self._file.read_text(encoding="utf-8").splitlines()
            for line in lines:
                row = json.loads(line)
                self._replies[str(row["digest"]), int(row["sample"])] = _reply(row)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                f"{self._file} is no file of recorded replies: {error!r}.",
                mend="Give the file that `CallStore.export` wrote.",
            ) from error

    def complete(self, request: Request) -> Reply:
        known = self.store.find(self.model, request.digest, request.sample)
        if known is not None:
            return known
        reply = self._replies.get((request.digest, request.sample))
        if reply is None:
            raise LLMError(
                f"{self._file} has no reply to {request.custom_id} (task {request.task_id or '?'}).",
                mend="Replay with the options, prompts and tasks that were recorded.",
            )
        free = replace(reply, cost_usd=0.0, usage=Usage())
        self.store.settle(self.store.begin(request, self.model, 0, 0.0), free, final=True)
        return reply

    def complete_many(self, requests: Sequence[Request]) -> list[Reply]:
        return [self.complete(request) for request in requests]

    def flush(self) -> None:
        """Nothing waits here."""

    def close(self) -> None:
        """Nothing to close."""


def _reply(row: dict[str, Any]) -> Reply:
    data = row["data"]
    return Reply(
        outcome=CallOutcome(row["outcome"]),
        text=str(row["text"]),
        data=None if data is None else json.loads(data),
        stop_reason=str(row["stop_reason"]),
        detail=str(row["detail"]),
        model=str(row.get("answered_by") or row["model"]),
        usage=Usage(
            input=row["input_tokens"],
            output=row["output_tokens"],
            cache_write=row["cache_write_tokens"],
            cache_read=row["cache_read_tokens"],
        ),
        cost_usd=float(row["cost_usd"]),
        known=True,
    )
