"""Plain files: `requests.jsonl` is written, anybody or anything answers, `responses.jsonl` is read.

Each line of requests.jsonl is a Message Batches entry (`custom_id`, `params`) and can be sent as one. A line
of responses.jsonl (or `responses*.jsonl`) has the `custom_id` and one of
    "json": {...}          the answer itself (what a person writes)
    "text": "..."          what a model wrote: JSON, alone or in one code fence
    "result": {...}        a line of Message Batches results as it came (`type`, `message`)
    "error": "why"         no answer will come: the call is recorded as failed
and optionally "model", "stop_reason", "usage". The last line of an id that fits counts. Nothing here costs anything.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ...envs.errors import AnswersPending, ConfigError
from .answers import reply_of, scrub
from .anthropic import message_reply, params
from .calls import CallStore
from .protocol import CallOutcome, Reply, Request, Usage
from .queued import QueuedLLM

REQUESTS, RESPONSES = "requests.jsonl", "responses*.jsonl"


class FilesLLM(QueuedLLM):
    """folder: where both files live; made when absent. model: only what stands in the requests' params."""

    def __init__(self, folder: str | Path, store: CallStore, *, model: str = "files") -> None:
        super().__init__("files", store)
        self.folder = Path(folder)
        self._asked_model = model
        self._complaints: dict[str, str] = {}
        self._answers: dict[str, list[dict[str, Any]]] = {}
        self._stamp: tuple[tuple[str, int, int], ...] = ()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise ConfigError(
                f"Cannot make {self.folder}: {error}.", mend="Give another files:DIR."
            ) from error

    def flush(self) -> None:
        """Write every open question to requests.jsonl and raise AnswersPending; return when none is open."""
        with self._lock:
            open_questions = [
                request for request in list(self._queue.values()) if self._known(request) is None
            ]
            self._write(open_questions)
            if not open_questions:
                return
            wrong = [f"{cid}: {why}" for cid, why in sorted(self._complaints.items()) if cid in self._queue]
            unfit = f" {len(wrong)} answers do not fit ({'; '.join(wrong[:3])})." if wrong else ""
            raise AnswersPending(
                f"{len(open_questions)} questions are waiting in {self.folder / REQUESTS}.{unfit}",
                mend=f"Put the answers into {self.folder / 'responses.jsonl'} and run the same command again.",
            )

    def _known(self, request: Request) -> Reply | None:
        settled = super()._known(request)
        if settled is not None:
            return settled
        with self._lock:
            self._read()
            replies = [_reply(request, line) for line in self._answers.get(request.custom_id, ())]
            usable = [r for r in replies if r.outcome not in (CallOutcome.INVALID, CallOutcome.CUT_OFF)]
            if not usable:
                if replies:
                    self._complaints[request.custom_id] = replies[-1].detail
                return None
            reply = usable[-1]
            self.store.settle(self.store.begin(request, self.model, 0, 0.0), reply, final=True)
            self._queue.pop(request.custom_id, None)
            return reply

    def _write(self, requests: list[Request]) -> None:
        lines = [
            json.dumps(
                {
                    "custom_id": request.custom_id,
                    "params": params(request, self._asked_model, request.max_tokens),
                }
            )
            for request in sorted(requests, key=lambda request: request.custom_id)
        ]
        part = self.folder / f".{REQUESTS}.{os.getpid()}"
        part.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
        part.replace(self.folder / REQUESTS)

    def _read(self) -> None:
        files = sorted(self.folder.glob(RESPONSES))
        stamp = tuple((str(f), f.stat().st_size, f.stat().st_mtime_ns) for f in files)
        if stamp == self._stamp:
            return
        self._stamp = stamp
        self._answers = {}
        for file in files:
            for number, text in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if not text.strip():
                    continue
                try:
                    line = json.loads(text)
                    self._answers.setdefault(str(line["custom_id"]), []).append(line)
                except (ValueError, TypeError, KeyError) as error:
                    raise ConfigError(
                        f"{file}, line {number}: not a JSON object with a custom_id ({error}).",
                        mend="Mend that line; docs/llm.md shows the format.",
                    ) from error


def _reply(request: Request, line: dict[str, Any]) -> Reply:
    """One response line as a reply. Raises nothing: a line without an answer is INVALID."""
    result = line.get("result")
    if isinstance(result, dict):
        if result.get("type") == "succeeded" and isinstance(result.get("message"), dict):
            return message_reply(request, result["message"])
        return Reply(outcome=CallOutcome.FAILED, detail=scrub(json.dumps(result))[:500], model="files")
    if "error" in line:
        return Reply(outcome=CallOutcome.FAILED, detail=scrub(str(line["error"]))[:500], model="files")
    text = json.dumps(line["json"]) if "json" in line else str(line.get("text", ""))
    usage = line.get("usage") if isinstance(line.get("usage"), dict) else {}
    return reply_of(
        request,
        text,
        stop_reason=str(line.get("stop_reason") or "end_turn"),
        model=str(line.get("model") or "files"),
        usage=Usage(
            input=int((usage or {}).get("input_tokens") or 0),
            output=int((usage or {}).get("output_tokens") or 0),
        ),
    )
