"""What a program that knows the visible tests by heart may do everywhere else, as sets of inputs that give it away.

Nothing here is a program of an attacker: these are simple fallbacks (a constant, the result of the most similar visible
input, an argument handed back, gold on a part of the argument or within the visible sizes only), computed from gold's
results alone, except for cuts, which gold itself is run on. Chosen inputs have to give away each of them.
Hence memorising programs are refused although none is learned from; what they do elsewhere is what is anticipated here.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from ..verifiers.mutation.functions import FunctionView
from ..verifiers.oracle.equality import encode, same

CONSTANTS = 4
"""So many different visible results are taken as fallbacks: the first one, then the most frequent ones."""
MAX_SIZE = 1e18


@dataclass(frozen=True, kw_only=True)
class Known:
    """The visible calls and the inputs to choose from, each with gold's encoded result (position by position)."""

    visible: Sequence[Sequence[Any]]
    visible_results: Sequence[Any]
    inputs: Sequence[Sequence[Any]]
    results: Sequence[Any]
    unordered: bool = False

    def differing(self, values: Sequence[Any]) -> frozenset[int]:
        """Inputs on which gold gives something else than `values` says (position by position)."""
        pairs = enumerate(zip(self.results, values, strict=True))
        return frozenset(at for at, (gold, value) in pairs if not same(gold, value, self.unordered))


def fallbacks(known: Known) -> dict[str, frozenset[int]]:
    """Name of a fallback -> the inputs that give it away; without those that no input gives away."""
    count = len(known.inputs)
    found: dict[str, frozenset[int]] = {}
    constants = visible_constants(known.visible_results)
    for number, value in enumerate(constants):
        found[f"constant {number}"] = known.differing([value] * count)
    nearest = [_nearest(args, known.visible) for args in known.inputs]
    found["most similar visible input"] = known.differing([known.visible_results[at] for at in nearest])
    for place in range(len(known.visible[0])):
        found[f"argument {place} handed back"] = known.differing([encode(a[place]) for a in known.inputs])
        for name, where in _other_sizes(known, place):
            for number, value in enumerate(constants[:2]):
                found[f"{name}, constant {number}"] = where & known.differing([value] * count)
    return {name: where for name, where in found.items() if where}


def visible_constants(results: Sequence[Any]) -> list[Any]:
    """The first visible result, then others by how often they occur; at most CONSTANTS."""
    order = [repr(results[0]), *(text for text, _ in Counter(map(repr, results)).most_common())]
    by_text = {repr(value): value for value in results}
    return [by_text[text] for text in dict.fromkeys(order)][:CONSTANTS]


def _other_sizes(known: Known, place: int) -> Iterator[tuple[str, frozenset[int]]]:
    """Inputs whose argument is larger than every visible one there, or of a length that no visible one has."""
    sizes = {size_of(call[place]) for call in known.visible}
    at = {i: size_of(args[place]) for i, args in enumerate(known.inputs)}
    yield f"beyond argument {place}", frozenset(i for i, size in at.items() if size > max(sizes))
    if all(hasattr(args[place], "__len__") for args in known.inputs):
        yield f"unseen length of argument {place}", frozenset(i for i, n in at.items() if n not in sizes)


def size_of(value: Any) -> float:
    """A number itself (bounded), a container's or text's length, 0 for anything else."""
    if isinstance(value, int | float):
        return float(value) if abs(value) < MAX_SIZE else MAX_SIZE
    return float(len(value)) if hasattr(value, "__len__") else 0.0


def cut_programs(view: FunctionView, visible: Sequence[Sequence[Any]]) -> dict[str, str]:
    """Programs that give gold only as much of one text or list as the longest visible one has: the head or the tail."""
    programs: dict[str, str] = {}
    for place, name in enumerate(view.parameters[: len(visible[0])]):
        if not all(isinstance(call[place], str | list | tuple) for call in visible):
            continue
        longest = max(len(call[place]) for call in visible)
        for label, part in (("head", f"[:{longest}]"), ("tail", f"[-{longest}:]")) if longest else ():
            given = ", ".join(f"{p}{part}" if p == name else p for p in view.parameters)
            programs[f"{label} of argument {place}"] = (
                f"{view.gold.rstrip()}\n\n\n_whole = {view.entry_point}\n\n\n"
                f"def {view.entry_point}({', '.join(view.parameters)}):\n    return _whole({given})\n"
            )
    return programs


def _nearest(args: Sequence[Any], visible: Sequence[Sequence[Any]]) -> int:
    return min(range(len(visible)), key=lambda at: sum(map(distance, args, visible[at])))


def distance(one: Any, two: Any) -> float:
    """How unlike two plain values are: 0 for the same; between 0 and 1 for numbers, then by items, 2 for other types."""
    if isinstance(one, int | float) and isinstance(two, int | float):
        one, two = (max(-MAX_SIZE, min(MAX_SIZE, n)) if n == n else 2 * MAX_SIZE for n in (one, two))
        return float(abs(one - two) / (1.0 + abs(one) + abs(two)))
    if type(one) is not type(two):
        return 2.0
    if isinstance(one, str):
        return float(sum(a != b for a, b in zip_longest(one, two)) / (1.0 + max(len(one), len(two))))
    if isinstance(one, list | tuple):
        total = sum(distance(a, b) for a, b in zip_longest(one, two))
        return float(total / (1.0 + min(len(one), len(two))))
    if isinstance(one, Mapping):
        return float(len(set(map(repr, one.items())) ^ set(map(repr, two.items()))))
    return float(repr(one) != repr(two))
