"""Part of the agent: frames from and to the host."""

import binascii
import json
import os
import select
import struct

from .tree import STATE, kill_tree, reap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

CHUNK = 1 << 20
INBOX = bytearray()


def send(message: "object") -> "None":
    data = json.dumps(message).encode()
    view = memoryview(struct.pack(">I", len(data)) + data)
    while view:
        view = view[os.write(STATE["out"], view) :]


def fill() -> "None":
    """Read what the host sent; its end of file ends the sandbox."""
    data = os.read(STATE["in"], CHUNK)
    if not data:
        kill_tree()
        os._exit(0)
    INBOX.extend(data)


def receive() -> "dict[str, Any]":
    while len(INBOX) < 4 or len(INBOX) < 4 + struct.unpack(">I", INBOX[:4])[0]:
        try:
            select.select([STATE["in"], STATE["wake"]], [], [])
            reap()
            if select.select([STATE["in"]], [], [], 0)[0]:
                fill()
        except InterruptedError:
            continue
    size = struct.unpack(">I", INBOX[:4])[0]
    message = json.loads(bytes(INBOX[4 : 4 + size]).decode())
    del INBOX[: 4 + size]
    return dict(message)


def pack(data: "bytes") -> "str":
    return binascii.b2a_base64(data, newline=False).decode()
