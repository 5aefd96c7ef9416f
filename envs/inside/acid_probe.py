"""In the sandbox: the comparison probe. Both operands of an asserted comparison are also compared with fresh objects.

An operand whose class is not of the standard library or an installed package and that equals an object nobody has seen raises an alarm:
["p", {key, side, class, file, module, fresh}]. `fresh` False: it only equalled changed copies of the other
side; `all` says whether it equalled every one of at least two.
"""

import os
import sys
import warnings

import acid_channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_send = acid_channel.send
_LIBRARY = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_seen = set()  # type: Any
_PLAIN = {int, float, complex, bool, str, bytes, type(None), list, tuple, dict, set, frozenset}


class _Fresh:
    """Equal to nothing but itself, unless the other side says so."""


def _files(cls: "Any") -> "Any":
    """(file of the code of `__eq__`, file of the class's module); "" where there is none."""
    code = ""
    for base in cls.__mro__:
        method = base.__dict__.get("__eq__")
        if method is not None:
            method = getattr(method, "__func__", method)
            code = getattr(getattr(method, "__code__", None), "co_filename", "")
            break
    module = sys.modules.get(getattr(cls, "__module__", ""))
    return code, getattr(module, "__file__", "") or ""


def _outside(path: str) -> bool:
    """Whether a file belongs to the standard library or to what is installed."""
    return path.startswith(_LIBRARY) or "/site-packages/" in path or "/dist-packages/" in path


def _changed(other: "Any") -> "Any":
    """Objects of the other side's type that differ from it."""
    kind = type(other)
    if kind is int or kind is float:
        return [other + 1, -other - 3]
    if kind is str:
        return [other + "?", "?!" + other[1:]]
    if kind is bytes:
        return [other + b"?", b"?!" + other]
    if kind is list:
        return [[*other, _Fresh()], [_Fresh()]]
    if kind is tuple:
        return [(*other, _Fresh()), (_Fresh(),)]
    if kind is dict:
        return [dict(other, _acid_fresh=_Fresh())]
    return []


def _is_true(value: "Any") -> bool:
    try:
        return bool(value)
    except Exception:
        return False


def _equal(one: "Any", two: "Any") -> bool:
    try:
        return _is_true(one == two)
    except Exception:
        return False


def _parts(value: "Any", depth: int) -> "Any":
    """The value and, for plain containers, what it holds (bounded)."""
    yield value
    if depth and type(value) in (list, tuple, set, frozenset):
        for item in list(value)[:20]:
            yield from _parts(item, depth - 1)
    elif depth and type(value) is dict:
        for item in list(value.values())[:20] + list(value)[:20]:
            yield from _parts(item, depth - 1)


def _same_difference(one: "Any", two: "Any", other: "Any") -> bool:
    """Whether `one - two` is what `one - other` is: a difference that does not depend on the other side."""
    try:
        return _is_true((one - two) == (one - other))
    except Exception:
        return False


def _examine(key: str, side: str, value: "Any", other: "Any", same: "Any" = None) -> None:
    for part in _parts(value, 3):
        cls = type(part)
        if cls in _PLAIN:
            continue
        code, module = ("" if _outside(path) else path for path in _files(cls))
        if not (code or module) or (key, side, cls) in _seen:
            continue
        fresh = _equal(part, _Fresh()) or _equal(_Fresh(), part)
        copies = [_equal(part, item) for item in _changed(other)] if part is value else []
        if same is not None and part is value:
            copies = [same(part, item, other) for item in _changed(other)]
        if fresh or any(copies):
            _seen.add((key, side, cls))
            name = "%s.%s" % (cls.__module__, getattr(cls, "__qualname__", cls.__name__))  # noqa: UP031
            alarm = {"key": key, "side": side, "class": name, "file": code, "module": module, "fresh": fresh}
            alarm["all"] = len(copies) > 1 and all(copies)
            _send("p", alarm)


def _look(key: str, left: "Any", right: "Any") -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _examine(key, "left", left, right)
            _examine(key, "right", right, left)
    except Exception:
        return


def equal(key: str, left: "Any", right: "Any") -> "Any":
    """`left == right`, looked at."""
    _look(key, left, right)
    return left == right


def pair(key: str, left: "Any", right: "Any") -> "Any":
    """Both arguments of an assert method, looked at."""
    _look(key, left, right)
    return left, right


def minus(key: str, left: "Any", right: "Any") -> "Any":
    """`left - right`, looked at."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _examine(key, "left", left, right, _same_difference)
    except Exception:
        _seen.add((key, "minus", type(left)))
    return left - right
