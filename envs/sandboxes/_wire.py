"""Byte streams to an agent, over one connected socket."""

from __future__ import annotations

import contextlib
import socket
import time

CHUNK = 1 << 20


class SocketWire:
    """A connected stream socket. Closing shuts it down, so that copies in forked children do not keep it open."""

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock

    def send(self, data: bytes, deadline: float) -> None:
        self._sock.settimeout(_left(deadline))
        self._sock.sendall(data)

    def recv(self, deadline: float) -> bytes:
        self._sock.settimeout(_left(deadline))
        return self._sock.recv(CHUNK)

    def alive(self) -> bool:
        """Whether the other side is still there (it must have nothing to say at this moment)."""
        self._sock.settimeout(0)
        try:
            return bool(self._sock.recv(1, socket.MSG_PEEK))
        except (BlockingIOError, TimeoutError):
            return True
        except OSError:
            return False

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)
        self._sock.close()


class MultiplexedWire(SocketWire):
    """The engine's attach stream: frames of [stream, 0, 0, 0, length, bytes]; stdout is ours, stderr is kept."""

    def __init__(self, sock: socket.socket) -> None:
        super().__init__(sock)
        self._raw = bytearray()
        self._left_in_frame = 0
        self._stream = 1
        self.stderr = bytearray()

    def recv(self, deadline: float) -> bytes:
        while True:
            out = self._take()
            if out:
                return out
            data = super().recv(deadline)
            if not data:
                return b""
            self._raw += data

    def _take(self) -> bytes:
        out = bytearray()
        while self._raw:
            if not self._left_in_frame:
                if len(self._raw) < 8:
                    break
                self._stream = self._raw[0]
                self._left_in_frame = int.from_bytes(self._raw[4:8], "big")
                del self._raw[:8]
                continue
            piece = self._raw[: self._left_in_frame]
            del self._raw[: len(piece)]
            self._left_in_frame -= len(piece)
            if self._stream == 1:
                out += piece
            elif len(self.stderr) < 10_000:
                self.stderr += piece
        return bytes(out)


def _left(deadline: float) -> float:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    return left
