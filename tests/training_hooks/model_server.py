"""A loopback server that speaks just enough of the OpenAI chat API: non-streaming and streaming, with usage."""

from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@contextlib.contextmanager
def serving(answer: Callable[[str], str]) -> Iterator[str]:
    """The base URL (with /v1). `answer` maps the last user message to the reply."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *args: Any) -> None: ...

        def do_GET(self) -> None:
            self._send("application/json", json.dumps({"object": "list", "data": []}).encode())

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            said = [m["content"] for m in body["messages"] if m["role"] == "user"][-1]
            text = said if isinstance(said, str) else "".join(part.get("text", "") for part in said)
            reply = answer(text)
            base = {"id": "c1", "created": 1, "model": body.get("model", "m")}
            usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
            if not body.get("stream"):
                choice = {
                    "index": 0,
                    "finish_reason": "stop",
                    "message": {"role": "assistant", "content": reply},
                }
                whole = {**base, "object": "chat.completion", "choices": [choice], "usage": usage}
                self._send("application/json", json.dumps(whole).encode())
                return
            deltas: list[tuple[dict[str, str], str | None]] = [
                ({"role": "assistant", "content": reply}, None),
                ({}, "stop"),
            ]
            rows: list[dict[str, Any]] = [
                {"choices": [{"index": 0, "delta": delta, "finish_reason": end}]} for delta, end in deltas
            ]
            rows.append({"choices": [], "usage": usage})
            lines = [json.dumps({**base, "object": "chat.completion.chunk", **row}) for row in rows]
            self._send("text/event-stream", "".join(f"data: {x}\n\n" for x in [*lines, "[DONE]"]).encode())

        def _send(self, kind: str, data: bytes) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
