"""One input of a function and its result as a set of words, so that a choice of inputs can spread over them.

Beside the shape of each argument and of the result: how arguments compare with each other, where in the arguments the
result's pieces stand, which known words come before which, and, where there are few different results, which result
goes with which size, sign and order (a yes at every length tells more than a yes and a length).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations
from typing import Any

from ..verifiers.oracle.domain import Domain
from ..verifiers.oracle.texts import Texts
from .render import literal
from .select import only, shape_of

FEW_RESULTS = 4
CROSSED = ("len ", "size ", "rising", "falling", "mixed", "repeats", "distinct", "minus", "zero", "plus")


def described(
    domain: Domain, inputs: Sequence[Sequence[Any]], results: Sequence[str]
) -> list[frozenset[str]]:
    """The words of each input. results: gold's, as text, position by position."""
    few = len(set(results)) <= FEW_RESULTS
    known = [set(shape.words or ()) if isinstance(shape, Texts) else set() for shape in domain.shapes]
    return [frozenset(_words(args, text, known, few)) for args, text in zip(inputs, results, strict=True)]


def _words(args: Sequence[Any], result: str, known: Sequence[set[str]], few: bool) -> Iterator[str]:
    own = [f"{place}:{word}" for place, value in enumerate(args) for word in shape_of(value)]
    yield from own
    for (i, one), (j, two) in combinations(enumerate(args), 2):
        yield f"{i} against {j} {_compared(one, two)}"
        yield from (f"{i} {word}" for word in _against(one, two))
        yield from (f"{j} {word}" for word in _against(two, one))
    for place, value in enumerate(args):
        if known[place] and isinstance(value, str):
            yield from _orders(place, value, known[place])
    plain = literal(result)
    if plain is None:
        return
    yield from (f"-> {word}" for word in shape_of(plain.value, depth=1))
    for place, value in enumerate(args):
        if isinstance(value, list | tuple) and len(value) > 1:
            yield from (f"-> stands in {place} {where}" for where in _places(plain.value, value))
    if few:
        yield from (f"{result} with {w}" for w in own if "[]" not in w and any(part in w for part in CROSSED))


def _compared(one: Any, two: Any) -> str:
    if isinstance(one, int | float) and isinstance(two, int | float):
        return "<" if one < two else "=" if one == two else ">"
    if hasattr(one, "__len__") and hasattr(two, "__len__"):
        held = "-in" if isinstance(one, str) and isinstance(two, str) and (one in two or two in one) else ""
        return ("shorter" if len(one) < len(two) else "as-long" if len(one) == len(two) else "longer") + held
    return "beside"


def _against(items: Any, value: Any) -> Iterator[str]:
    """Where in a list of numbers one is larger than the other argument, and where it is the same."""
    if isinstance(items, list | tuple) and items and isinstance(value, int | float):
        if all(isinstance(item, int | float) for item in items):
            yield f"larger {only([item > value for item in items])}"
            yield f"same {only([item == value for item in items])}"


def _orders(place: int, text: str, known: set[str]) -> Iterator[str]:
    """The known words of a text, and which of them stands before which."""
    words = [word for word in text.split() if word in known]
    yield from (f"{place}:word {word}" for word in set(words))
    yield from {f"{place}:before {one}>{two}" for one, two in combinations(words, 2)}


def _places(result: Any, items: Sequence[Any]) -> set[str]:
    """Where in a list the pieces of a result stand: first, last or between; "elsewhere" for none."""
    pieces = {repr(piece) for piece in (result if isinstance(result, list | tuple | set) else [result])}
    at = [number for number, item in enumerate(items) if repr(item) in pieces]
    if not at:
        return {"elsewhere"}
    return {"first" if i == 0 else "last" if i == len(items) - 1 else "between" for i in at}
