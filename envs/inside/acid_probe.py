"""In the sandbox: the comparison probe. Both operands of an asserted comparison are also compared with fresh objects.

An operand whose class is not of the standard library or an installed package and that equals an object nobody has seen raises an alarm:
["p", {key, side, class, file, module, fresh, wild}]. `fresh` False: it only equalled changed copies of the other
side; `all` says whether it equalled every one of at least two. `wild`: the class is the library's, of a module whose
objects may equal everything (mock.ANY). A file that cannot be told is "<unknown>".
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
_WILD = {"unittest.mock", "mock", "mock.mock", "test.support"}
_UNKNOWN = "<unknown>"
_SLOTS = {type(object.__eq__), type(None)}
_mro = type.__dict__["__mro__"].__get__  # a metaclass has no say in these
_dict = type.__dict__["__dict__"].__get__
_seen = set()  # type: Any
_PLAIN = {int, float, complex, bool, str, bytes, type(None), list, tuple, dict, set, frozenset}


class _Fresh:
    """Equal to nothing but itself, unless the other side says so."""


def _code_file(method: "Any") -> str:
    """Where the code of an `__eq__` stands; "" for one without Python code."""
    method = getattr(method, "__func__", method)
    if type(method) in _SLOTS:
        return ""
    name = getattr(getattr(method, "__code__", None), "co_filename", "")
    return (name if isinstance(name, str) else "") or _UNKNOWN


def _module_name(cls: "Any") -> str:
    name = _dict(cls).get("__module__", "")
    return name if isinstance(name, str) else ""


def _files(cls: "Any") -> "Any":
    """(file of the code of `__eq__`, file of the class's module); "" where there is none."""
    try:
        owners = [base for base in _mro(cls) if "__eq__" in _dict(base)]
        code = _code_file(_dict(owners[0])["__eq__"])
        module = getattr(sys.modules.get(_module_name(cls)), "__file__", "") or ""
        return code, module if isinstance(module, str) else _UNKNOWN
    except Exception:
        return _UNKNOWN, ""


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
        wild = _module_name(cls) in _WILD
        code, module = ("" if _outside(path) else path for path in _files(cls))
        if not (code or module or wild) or (key, side, cls) in _seen:
            continue
        fresh = _equal(part, _Fresh()) or _equal(_Fresh(), part)
        wild = wild and not (code or module)
        if wild and not fresh:
            continue
        copies = [_equal(part, item) for item in _changed(other)] if part is value else []
        if same is not None and part is value:
            copies = [same(part, item, other) for item in _changed(other)]
        if fresh or any(copies):
            _seen.add((key, side, cls))
            name = "%s.%s" % (_module_name(cls), type.__dict__["__qualname__"].__get__(cls))  # noqa: UP031
            alarm = {"key": key, "side": side, "class": name, "file": code, "module": module, "fresh": fresh}
            alarm["wild"] = wild
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
