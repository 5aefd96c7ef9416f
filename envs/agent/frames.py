"""Part of the agent: frames from and to the host."""

import binascii
import os
import select
import struct

from .tree import STATE, kill_tree, reap

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

try:  # the compiled half of `json`: all of it would cost every sandbox a third of its start
    from _json import encode_basestring_ascii
    from _json import make_scanner as made

    make_scanner: "Any" = made
except ImportError:
    import json  # here, not when it is needed: a command could have changed what is found then

    make_scanner = None

CHUNK = 1 << 20
INBOX = bytearray()


class Rules:
    """How JSON texts become values: as `json` does without options."""

    strict = True
    parse_float, parse_int, parse_constant = float, int, float
    object_hook = object_pairs_hook = None
    memo = None


def loads(text: "str") -> "Any":
    if make_scanner is None:
        return json.loads(text)
    return make_scanner(Rules)(text, 0)[0]


def dumps(value: "Any") -> "str":
    """JSON of texts, numbers, booleans, None, and lists, tuples and dicts of them."""
    if make_scanner is None:
        return json.dumps(value)
    if isinstance(value, str):
        return str(encode_basestring_ascii(value))
    if value is None or isinstance(value, bool):
        return "null" if value is None else "true" if value else "false"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join([dumps(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join([dumps(str(key)) + ": " + dumps(value[key]) for key in value]) + "}"
    return repr(value)


def send(message: "object") -> "None":
    data = dumps(message).encode()
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
    message = loads(bytes(INBOX[4 : 4 + size]).decode())
    del INBOX[: 4 + size]
    return dict(message)


def pack(data: "bytes") -> "str":
    return binascii.b2a_base64(data, newline=False).decode()
