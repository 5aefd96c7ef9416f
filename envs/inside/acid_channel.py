"""In the sandbox: the channel to the supervisor. Statuses go out as JSON lists, tails ask what to do.

Messages: ["s", id] a test begins, ["e", id, status, seconds] it ends, ["a", alias, id] another printed name,
["n", name, version] who reports, ["i", name] something that asserts
rest on was replaced, ["f", count] the run is over. Bound at import: os.read, os.write.
Imports little on purpose: every verdict starts it anew, and what a submission finds imported should be its own doing.
"""

import os
from _thread import allocate_lock

import acid_integrity

try:
    from _json import encode_basestring_ascii as _quote
except ImportError:
    from json.encoder import encode_basestring_ascii as _quote

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_read = os.read
_write = os.write
_look = acid_integrity.look
_lock = allocate_lock()
_fd = int(os.environ.pop("ACIDTEST_FD", "-1"))
SHUFFLE = os.environ.pop("ACIDTEST_SHUFFLE", "")
RANK = {"missing": 0, "passed": 1, "xpass": 2, "xfail": 3, "skipped": 4, "error": 5, "failed": 6}


def connected() -> bool:
    return _fd >= 0


def _dumps(value: "Any") -> str:
    """JSON of texts, numbers, booleans, None, and lists, tuples and dicts of them."""
    if isinstance(value, str):
        return str(_quote(value))
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (list, tuple)):
        return "[" + ",".join([_dumps(item) for item in value]) + "]"
    if isinstance(value, dict):
        return "{" + ",".join([_dumps(str(key)) + ":" + _dumps(value[key]) for key in value]) + "}"
    if isinstance(value, float):  # also of a subclass that writes itself in another way
        return float.__repr__(value) if value - value == 0 else "1e999"
    return int.__repr__(value)


def send(*fields: "Any") -> None:
    """One message; nothing where this process has no channel (a subprocess of a test)."""
    if _fd >= 0:
        _write(_fd, _dumps(fields).encode("ascii")[:100000])


def tail(key: str, value: "Any" = None) -> "Any":
    """The end of a test body: `value` when the supervisor says go on, else the test fails here."""
    with _lock:
        answer = b""
        if _fd >= 0:
            for name in _look():
                _write(_fd, _dumps(["i", name]).encode("ascii"))
            _write(_fd, b"?" + key.encode("ascii"))
            answer = _read(_fd, 16)
    if answer != b"go":
        raise AssertionError("assertion failed")
    return value


def reordered(items: "Any", salt: str = "") -> "Any":
    """A new order by ACIDTEST_SHUFFLE: "-1" is backwards, another number a seed, empty no change."""
    out = list(items)
    if SHUFFLE == "-1":
        out.reverse()
    elif SHUFFLE:
        import random

        random.Random(SHUFFLE + salt).shuffle(out)
    return out


def worse(old: str, new: str) -> str:
    """Of two statuses of one id the one that pays less."""
    return new if RANK.get(new, 6) > RANK.get(old, 0) else old
