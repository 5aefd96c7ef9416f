"""One sandbox seen from the host: ops in, results out, over a socket to the resident agent (`envs/agent`)."""

from __future__ import annotations

import binascii
import errno
import json
import struct
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType
from typing import Any, Protocol, Self

from ..agent import source
from ..errors import DiskFull, EngineTimeout, SandboxDied, SandboxError
from ..protocols import Channel, Exec, ExecResult, Limits, Op, OpResult, Read, ReadResult, Write

PINNED_ENV = {"TZ": "UTC", "PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}
GRACE_S = 30.0
"""Beyond the ops' own limits: how long the agent may take to answer before the engine counts as hung."""


class Wire(Protocol):
    """A byte stream to an agent. `recv` raises TimeoutError at the deadline, and gives b"" at the end."""

    def send(self, data: bytes, deadline: float) -> None: ...
    def recv(self, deadline: float) -> bytes: ...
    def close(self) -> None: ...


class Link:
    """Frames over a wire: one request, one reply. `name` is what messages call the sandbox."""

    def __init__(self, wire: Wire, name: str, why_dead: Callable[[], SandboxError]) -> None:
        self._wire, self.name, self.why_dead = wire, name, why_dead
        self._inbox = bytearray()
        self.broken = False

    def hello(self, deadline: float, program: bytes | None = None) -> dict[str, Any]:
        """Send the agent its program (None: as source); its first frame. Raises OSError or EOFError without an answer."""
        self._wire.send(source() if program is None else program, deadline)
        hello: dict[str, Any] = self._frame(deadline)["hello"]
        if not hello["protected"]:
            self.broken = True
            raise SandboxError(
                f"{self.name}: the agent cannot protect itself (no ctypes or no prctl).",
                mend="Use an image whose python3 has ctypes.",
            )
        return hello

    def ask(self, ops: list[dict[str, Any]], deadline: float) -> list[dict[str, Any]]:
        if self.broken:
            raise SandboxDied(f"{self.name}: used after it failed or was closed.", mend="Open a fresh one.")
        data = json.dumps({"ops": ops}).encode()
        self.broken = (
            True  # until the whole reply is here: an interrupt in between leaves the stream unusable
        )
        try:
            self._wire.send(struct.pack(">I", len(data)) + data, deadline)
            reply = self._frame(deadline)
        except TimeoutError as error:
            raise EngineTimeout(
                f"{self.name}: no answer {GRACE_S:.0f} s after the last limit ran out.",
                mend="Is the engine hung or the machine overloaded? See `acidtest doctor`.",
            ) from error
        except (OSError, EOFError) as error:
            if isinstance(error, SandboxError):
                raise
            raise self.why_dead() from error
        self.broken = False
        results: list[dict[str, Any]] = reply["results"]
        return results

    def _frame(self, deadline: float) -> dict[str, Any]:
        while len(self._inbox) < 4 or len(self._inbox) < 4 + int.from_bytes(self._inbox[:4], "big"):
            data = self._wire.recv(deadline)
            if not data:
                raise EOFError
            self._inbox += data
        size = int.from_bytes(self._inbox[:4], "big")
        message: dict[str, Any] = json.loads(self._inbox[4 : 4 + size])
        del self._inbox[: 4 + size]
        return message

    def close(self) -> None:
        self.broken = True
        self._wire.close()


def setup_op(
    *,
    workdir: str,
    scratch: str,
    env: Mapping[str, str],
    inherit: bool,
    rlimits: Sequence[tuple[str, int]],
    ready: bool = False,
) -> dict[str, Any]:
    """First op of a sandbox. inherit: start from the container's own environment (docker) or from nothing.

    ready: an interpreter waits for the first command that can use it (`Exec.ready`).
    """
    return {
        "op": "setup",
        "workdir": workdir,
        "scratch": scratch,
        "env": {**PINNED_ENV, **env},
        "inherit": inherit,
        "rlimits": [list(pair) for pair in rlimits],
        "ready": ready,
    }


class AgentSandbox:
    """A `Sandbox` over a link. `on_close` disposes of the container or process behind it, once."""

    def __init__(self, link: Link, *, isolation: str, limits: Limits, on_close: Callable[[], None]) -> None:
        self._link, self._limits, self._on_close = link, limits, on_close
        self.isolation = isolation
        self.workdir = self.scratch = "/"
        self.closed = False

    def setup(self, op: dict[str, Any], files: Mapping[str, str]) -> None:
        """Send the setup op together with the spec's files. Raises as `script`."""
        ops = [op]
        if files:
            ops.append(_encode(Write(files={path: text.encode() for path, text in files.items()})))
        results = self._link.ask(ops, time.monotonic() + GRACE_S)
        for result in results:
            self._check(result)
        self.workdir, self.scratch = results[0]["workdir"], results[0]["scratch"]

    def script(self, ops: Sequence[Op]) -> tuple[OpResult, ...]:
        limit = sum(op.timeout_s for op in ops if isinstance(op, Exec)) + GRACE_S
        results = self._link.ask([_encode(op) for op in ops], time.monotonic() + limit)
        return tuple(self._decode(op, result) for op, result in zip(ops, results, strict=False))

    def exec(self, command: str | tuple[str, ...], *, timeout_s: float = 60.0) -> ExecResult:
        op = Exec(command=command, timeout_s=timeout_s, output_bytes=self._limits.output_bytes)
        result = self.script([op])[0]
        assert isinstance(result, ExecResult)
        return result

    def write(self, files: Mapping[str, bytes]) -> None:
        self.script([Write(files=files)])

    def read(self, path: str, *, limit: int = 10_000_000) -> bytes:
        """Content of a regular file. Raises FileNotFoundError."""
        result = self.script([Read(path=path, limit=limit)])[0]
        assert isinstance(result, ReadResult)
        if not result.found:
            raise FileNotFoundError(errno.ENOENT, f"{self._link.name}: no regular file", path)
        return result.data

    def close(self) -> None:
        if not self.closed:
            self.closed = True
            try:
                self._link.close()
            finally:
                self._on_close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _decode(self, op: Op, result: dict[str, Any]) -> OpResult:
        self._check(result)
        if isinstance(op, Write):
            return None
        if isinstance(op, Read):
            data = binascii.a2b_base64(result.get("data", ""))
            return ReadResult(found=result["found"], data=data, truncated=result.get("truncated", False))
        if result["starved"]:
            raise SandboxDied(
                f"{self._link.name}: the kernel killed a process for memory below the sandbox's own limit.",
                mend="The machine ran short: open fewer sandboxes at a time, or lower Limits.memory_mib.",
            )
        return ExecResult(
            exit_code=result["exit_code"],
            output=binascii.a2b_base64(result["output"]),
            truncated=result["truncated"],
            timed_out=result["timed_out"],
            stopped=result["stopped"],
            out_of_memory=result["out_of_memory"],
            seconds=result["seconds"],
            messages=_messages(result["messages"]),
        )

    def _check(self, result: dict[str, Any]) -> None:
        if "error" not in result:
            return
        number, path, text = result["error"]
        if number in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFull(
                f"{self._link.name}: no space left for {path}.",
                mend="Free disk space, or raise Limits.tmpfs_mib.",
            )
        raise SandboxError(
            f"{self._link.name}: {text}.", mend="Check the paths of the task's files and workdir."
        )


def _encode(op: Op) -> dict[str, Any]:
    if isinstance(op, Write):
        return {"op": "write", "files": [[path, _text(data)] for path, data in op.files.items()]}
    if isinstance(op, Read):
        return {"op": "read", "path": op.path, "limit": op.limit}
    argv = ["bash", "-c", op.command] if isinstance(op.command, str) else list(op.command)
    return {
        "op": "exec",
        "argv": argv,
        "timeout": op.timeout_s,
        "cwd": op.cwd,
        "env": dict(op.env),
        "stdin": _text(op.stdin),
        "output_bytes": op.output_bytes,
        "channel": _channel(op.channel),
        "check": op.check,
        "ready": list(op.ready),
    }


def _channel(channel: Channel | None) -> dict[str, Any] | None:
    if channel is None:
        return None
    ends = ("failed", "error") if channel.armed else ("------", "-----")
    return {
        "default": channel.default,
        "replies": dict(channel.replies),
        "max_messages": channel.max_messages,
        "max_bytes": channel.max_bytes,
        "stop": [f'["e",{json.dumps(i)},"{how}",' for i in channel.stop for how in ends],
    }


def _text(data: bytes) -> str:
    return binascii.b2a_base64(data, newline=False).decode()


def _messages(value: dict[str, Any] | None) -> tuple[bytes, ...]:
    if value is None:
        return ()
    data, at, found = binascii.a2b_base64(value["data"]), 0, []
    for size in value["sizes"]:
        found.append(data[at : at + size])
        at += size
    return tuple(found)
