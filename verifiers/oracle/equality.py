"""When two results are the same, and a plain form of results that travels as JSON.

Self-contained (standard library, no imports of ours, Python >= 3.8): its text is also pasted into the search worker
and into every witness script, so that all three mean the same by "differs".

Deliberately lenient, because a false accusation costs more than a miss: a list and a tuple of the same items are
the same, numbers are compared with a relative and absolute tolerance of 1e-6 as soon as one of them is a float,
True is 1, and values that cannot be compared (objects that print their address) never differ.
"""

import math
from typing import Any

TOLERANCE = 1e-6
MAX_NODES = 50_000
MAX_TEXT = 500_000


class TooBig(Exception):
    """A result of more nodes, characters or bits than is worth comparing."""


def encode(value: Any, budget: "list[int] | None" = None) -> Any:
    """A JSON-ready plain form. Raises TooBig."""
    left = [MAX_NODES] if budget is None else budget
    left[0] -= 1
    if left[0] < 0:
        raise TooBig(f"more than {MAX_NODES} nodes")
    kind = type(value)
    if value is None or kind is bool or kind is float:
        return value
    if kind is int:
        if value.bit_length() <= 10_000:
            return value
        if value.bit_length() > 4_000_000:
            raise TooBig(f"an integer of {value.bit_length()} bits")
        return {"i": hex(value)}
    if kind is str:
        if len(value) > MAX_TEXT:
            raise TooBig(f"a text of {len(value)} characters")
        return value
    if kind is list or kind is tuple:
        return {kind.__name__[0]: [encode(item, left) for item in value]}
    if kind is set or kind is frozenset:
        return {"s": sorted((encode(item, left) for item in value), key=repr)}
    if kind is dict:
        return {"d": [[encode(k, left), encode(v, left)] for k, v in value.items()]}
    if kind is complex:
        return {"c": [value.real, value.imag]}
    if kind is bytes:
        return {"b": value.hex()}
    return _encode_other(value, kind, left)


def _encode_other(value: Any, kind: type, left: "list[int]") -> Any:
    bases: Any = (bool, int, float, str, list, tuple, set, dict)
    for base in bases:
        if isinstance(value, base) and kind.__module__ in ("collections", "enum"):
            return encode(base(value), left)
    text = repr(value)
    if " at 0x" in text or len(text) > 2000:
        return {"x": kind.__name__}
    return {"o": [kind.__name__, text]}


def same(left: Any, right: Any, unordered: bool = False) -> bool:
    """Whether two encoded results are the same. unordered: the outermost sequence may come in any order."""
    if isinstance(left, dict) and isinstance(right, dict):
        return _same_tagged(left, right, unordered)
    if isinstance(left, dict) or isinstance(right, dict):
        return "x" in (left if isinstance(left, dict) else right)
    if isinstance(left, (int, float)) and isinstance(right, (int, float)):
        return _same_number(left, right)
    return type(left) is type(right) and bool(left == right)


def _same_number(left: Any, right: Any) -> bool:
    if isinstance(left, float) or isinstance(right, float):
        try:
            if math.isnan(left) or math.isnan(right):
                return math.isnan(left) and math.isnan(right)
            return math.isclose(left, right, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
        except OverflowError:
            return False
    return bool(left == right)


def _same_tagged(left: "dict[str, Any]", right: "dict[str, Any]", unordered: bool) -> bool:
    (tag, one), (other_tag, two) = next(iter(left.items())), next(iter(right.items()))
    if "x" in (tag, other_tag):
        return True
    if tag in "lt" and other_tag in "lt":
        if len(one) != len(two):
            return False
        if unordered:
            one, two = sorted(one, key=_order), sorted(two, key=_order)
        return all(same(a, b) for a, b in zip(one, two))  # noqa: B905
    if tag != other_tag:
        return False
    if tag == "s":
        return len(one) == len(two) and all(same(a, b) for a, b in zip(one, two))  # noqa: B905
    if tag == "d":
        one, two = sorted(one, key=_order), sorted(two, key=_order)
        return len(one) == len(two) and all(same(a[0], b[0]) and same(a[1], b[1]) for a, b in zip(one, two))  # noqa: B905
    if tag == "c":
        return all(_same_number(a, b) for a, b in zip(one, two))  # noqa: B905
    return bool(one == two)


def _order(item: Any) -> str:
    return repr(item[0] if isinstance(item, list) and item else item)


def show(encoded: Any) -> str:
    """A readable Python-like text of an encoded value."""
    if not isinstance(encoded, dict):
        return repr(encoded)
    tag, value = next(iter(encoded.items()))
    if tag == "l":
        return "[" + ", ".join(map(show, value)) + "]"
    if tag == "t":
        return "(" + ", ".join(map(show, value)) + ("," if len(value) == 1 else "") + ")"
    if tag == "s":
        return "{" + ", ".join(map(show, value)) + "}" if value else "set()"
    if tag == "d":
        return "{" + ", ".join(show(k) + ": " + show(v) for k, v in value) + "}"
    if tag == "c":
        return repr(complex(*value))
    if tag == "b":
        return repr(bytes.fromhex(value))
    return value if tag == "i" else (value[1] if tag == "o" else "<" + str(value) + ">")
