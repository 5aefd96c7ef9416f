"""A local server that speaks the Messages and Message Batches protocols, with scripted answers and scripted faults.

For tests and for trying out a run without a key: it counts what it would have billed, so that a ledger can be
compared with it. It is no model: `answer(params)` decides what is said.
"""

from __future__ import annotations

import contextlib
import json
import socket
import threading
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from .protocol import Usage

Answer = Callable[[Mapping[str, Any]], Any]
"""params of a Messages call -> the answer object (made JSON), or a str taken as it is."""
Fault = Callable[[int, Mapping[str, Any]], str]
"""(running number of the HTTP call or batch entry, params) -> "" or one of FAULTS."""
FAULTS = (
    "429", "500", "529", "400", "401", "refusal", "cut", "invalid", "hang", "drop", "drop_paid", "expired",
)  # fmt: skip


class LoopbackServer:
    """A context manager; `base_url` is what clients get. retry_after_s: header of a 429. hang_s: longest hang.

    `billed` is the usage of every message that was produced, `calls` the params of each, in order.
    """

    def __init__(
        self, answer: Answer, *, fault: Fault | None = None, retry_after_s: float = 0.05, hang_s: float = 30.0
    ) -> None:
        self.answer = answer
        self.fault = fault or (lambda number, params: "")
        self.retry_after_s, self.hang_s = retry_after_s, hang_s
        self.billed = Usage()
        self.calls: list[Mapping[str, Any]] = []
        self.faults: list[str] = []
        self.batches: dict[str, list[dict[str, Any]]] = {}
        self.stopping = threading.Event()
        self.connections: set[socket.socket] = set()
        self._number = 0
        self._cached: set[str] = set()
        self._lock = threading.Lock()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = False
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05})

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *exc: object) -> None:
        self.stopping.set()
        self._http.shutdown()
        for connection in list(self.connections):
            with contextlib.suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        self._thread.join()

    def next_fault(self, params: Mapping[str, Any]) -> str:
        with self._lock:
            self._number += 1
            kind = self.fault(self._number, params)
            if kind:
                self.faults.append(kind)
            return kind

    def message(self, params: Mapping[str, Any], kind: str) -> dict[str, Any]:
        """Produce and bill one message."""
        text, stop = "", "end_turn"
        if kind == "refusal":
            stop = "refusal"
        else:
            said = self.answer(params)
            text = said if isinstance(said, str) else json.dumps(said)
        if kind == "cut":
            text, stop = text[: max(1, len(text) // 2)], "max_tokens"
        if kind == "invalid":
            text = "Here is my answer: " + text
        with self._lock:
            usage = self._usage(params, text)
            self.billed = self.billed + usage
            self.calls.append(params)
            number = len(self.calls)
        return {
            "id": f"msg_{number:06d}",
            "type": "message",
            "role": "assistant",
            "model": params.get("model", ""),
            "content": [{"type": "text", "text": text}],
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": {
                "input_tokens": usage.input,
                "output_tokens": usage.output,
                "cache_creation_input_tokens": usage.cache_write,
                "cache_read_input_tokens": usage.cache_read,
            },
        }

    def create_batch(self, entries: list[dict[str, Any]]) -> dict[str, Any]:
        lines = []
        for entry in entries:
            kind = self.next_fault(entry["params"])
            if kind == "expired":
                result: dict[str, Any] = {"type": "expired"}
            elif kind in ("500", "529", "400"):
                error = {"type": "error", "error": {"type": "api_error", "message": f"scripted {kind}"}}
                result = {"type": "errored", "error": error}
            else:
                result = {"type": "succeeded", "message": self.message(entry["params"], kind)}
            lines.append({"custom_id": entry["custom_id"], "result": result})
        with self._lock:
            batch_id = f"msgbatch_{len(self.batches) + 1:04d}"
            self.batches[batch_id] = lines[::-1]
        return self.batch(batch_id)

    def batch(self, batch_id: str) -> dict[str, Any]:
        lines = self.batches[batch_id]
        kinds = [line["result"]["type"] for line in lines]
        return {
            "id": batch_id,
            "type": "message_batch",
            "processing_status": "ended",
            "created_at": "2026-01-01T00:00:00Z",
            "expires_at": "2026-01-02T00:00:00Z",
            "results_url": f"{self.base_url}/v1/messages/batches/{batch_id}/results",
            "request_counts": {
                "processing": 0,
                "succeeded": kinds.count("succeeded"),
                "errored": kinds.count("errored"),
                "canceled": 0,
                "expired": kinds.count("expired"),
            },
        }

    def _usage(self, params: Mapping[str, Any], text: str) -> Usage:
        """About four letters a token; a system block marked for caching is written once and read afterwards."""
        fresh = sum(len(str(message["content"])) for message in params["messages"])
        write = read = 0
        for block in params.get("system") or ():
            if "cache_control" not in block:
                fresh += len(block["text"])
            elif block["text"] in self._cached:
                read += len(block["text"])
            else:
                self._cached.add(block["text"])
                write += len(block["text"])
        return Usage(
            input=fresh // 4 + 1, output=len(text) // 4 + 1, cache_write=write // 4, cache_read=read // 4
        )


def _handler(server: LoopbackServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def setup(self) -> None:
            super().setup()
            server.connections.add(self.connection)

        def finish(self) -> None:
            server.connections.discard(self.connection)
            super().finish()

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002
            """Quiet."""

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))))
            if self.path.startswith("/v1/messages/batches"):
                self._send(200, server.create_batch(body["requests"]))
            else:
                self._message(body)

        def do_GET(self) -> None:
            parts = self.path.partition("?")[0].strip("/").split("/")
            if parts[-1] == "batches":
                listed = [server.batch(batch_id) for batch_id in reversed(list(server.batches))]
                self._send(200, {"data": listed, "has_more": False, "first_id": None, "last_id": None})
            elif parts[-1] == "results":
                lines = "".join(json.dumps(line) + "\n" for line in server.batches[parts[-2]])
                self._raw(200, lines.encode(), "application/x-jsonl", {})
            else:
                self._send(200, server.batch(parts[-1]))

        def _message(self, params: dict[str, Any]) -> None:
            kind = server.next_fault(params)
            if kind in ("429", "500", "529", "400", "401"):
                name = {"429": "rate_limit_error", "529": "overloaded_error", "400": "invalid_request_error",
                        "401": "authentication_error"}.get(kind, "api_error")  # fmt: skip
                key = self.headers.get("x-api-key") or self.headers.get("authorization", "")
                error = {"type": "error", "error": {"type": name, "message": f"scripted {kind}, key {key}"}}
                extra = {"retry-after": str(server.retry_after_s)} if kind == "429" else {}
                self._raw(int(kind), json.dumps(error).encode(), "application/json", extra)
            elif kind == "hang":
                server.stopping.wait(server.hang_s)
                self.close_connection = True
            elif kind in ("drop", "drop_paid"):
                if kind == "drop_paid":
                    server.message(params, "")
                self.close_connection = True
            else:
                self._send(200, server.message(params, kind))

        def _send(self, status: int, value: Any) -> None:
            self._raw(status, json.dumps(value).encode(), "application/json", {})

        def _raw(self, status: int, body: bytes, kind: str, extra: Mapping[str, str]) -> None:
            try:
                self.send_response(status)
                self.send_header("content-type", kind)
                self.send_header("content-length", str(len(body)))
                for name, value in extra.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(body)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True

    return Handler
