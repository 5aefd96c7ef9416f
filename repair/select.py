"""Which inputs to pin: a cover of the paid wrong programs first, then inputs that spread over the domain.

A minimal cover over-fits the programs it was made from (measured, SCIENCE.md: it refuses 59 % of held-out wrong
programs, cover plus spread up to ten asserts 70 %). Hence every program counts again when it is already refused, with
falling weight, programs that the suite paid count more than those it refuses anyway, and inputs of a new shape are
preferred. Pure and deterministic.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

RICH = 3
"""An input that is new in so many respects (`group_of`) counts as wholly new."""


@dataclass(frozen=True, kw_only=True)
class Pool:
    """Inputs to choose from, and what programs do on them.

    kills: program -> indices of inputs on which it differs from gold. weights: program -> how much refusing it counts.
    must: programs that have to be refused. shapes: for each input a set of words that describe it (`shape_of`).
    cost: for each input how unwelcome it is (length of its text, in characters).
    """

    kills: Mapping[str, frozenset[int]]
    shapes: Sequence[frozenset[str]]
    cost: Sequence[int]
    weights: Mapping[str, float] = field(default_factory=dict)
    must: frozenset[str] = frozenset()


def choose(pool: Pool, limit: int = 10, *, decay: float = 0.4, novelty: float = 0.5) -> list[int]:
    """At most `limit` indices, the cover of `must` first.

    decay: what refusing a program once more is worth, relative to the time before. novelty: weight of a wholly new shape,
    relative to the best first gain in refusals.
    """
    chosen: list[int] = []
    times: dict[str, int] = {}
    by_input = _by_input(pool)
    top = max((_gain(pool, killers, times, decay) for killers in by_input.values()), default=0.0) or 1.0
    left = {program for program in pool.must if pool.kills.get(program)}
    seen: set[str] = set()
    most = _most_words(pool)
    while len(chosen) < limit:
        gains = {i: _gain(pool, killers, times, decay) for i, killers in by_input.items() if i not in chosen}
        if not gains:
            break

        worth = {
            i: _worth(
                pool, i, by_input[i] & left, gains[i] / top, novelty * _fresh(pool.shapes[i] - seen, most)
            )
            for i in gains
        }
        best = max(gains, key=worth.__getitem__)
        if not by_input[best] & left and gains[best] <= 0 and not pool.shapes[best] - seen:
            break
        chosen.append(best)
        seen |= pool.shapes[best]
        left -= by_input[best]
        for program in by_input[best]:
            times[program] = times.get(program, 0) + 1
    return chosen


def _worth(
    pool: Pool, index: int, covers: set[str], gain: float, fresh: float
) -> tuple[float, float, int, int]:
    """What is compared, most important first: programs newly covered, gain and new shapes, cost, position."""
    covered = sum(pool.weights.get(program, 1.0) for program in covers)
    return covered, gain + fresh, -pool.cost[index], -index


def group_of(word: str) -> str:
    """The respect that a word describes: all of it but what follows the last blank, or its prefix (place, nesting)."""
    head, blank, _ = word.rpartition(" ")
    return head if blank else word[: max(word.rfind(end) for end in ":]}") + 1]


def _most_words(pool: Pool) -> Counter[str]:
    """Group -> the largest number of its words that one input has."""
    most: Counter[str] = Counter()
    for shape in pool.shapes:
        most |= Counter(map(group_of, shape))
    return most


def _fresh(new: frozenset[str], most: Mapping[str, int]) -> float:
    """How new: in each group the share of new words, so that a new length counts as much as twenty new pairs do."""
    counts = Counter(map(group_of, new))
    return min(1.0, sum(count / most[group] for group, count in counts.items()) / RICH)


def _by_input(pool: Pool) -> dict[int, set[str]]:
    found: dict[int, set[str]] = {i: set() for i in range(len(pool.shapes))}
    for program, indices in pool.kills.items():
        for index in indices:
            if index in found:
                found[index].add(program)
    return found


def _gain(pool: Pool, killers: set[str], times: Mapping[str, int], decay: float) -> float:
    return sum(pool.weights.get(program, 1.0) * decay ** times.get(program, 0) for program in killers)


def shape_of(value: Any, *, depth: int = 2) -> frozenset[str]:
    """Words that describe a plain value: types, sizes, signs, magnitudes, order, repetitions."""
    return frozenset(_words(value, "", depth))


def _words(value: Any, where: str, depth: int) -> list[str]:
    kind = type(value).__name__
    words = [f"{where}{kind}"]
    if isinstance(value, bool) or value is None:
        words.append(f"{where}{value}")
    elif isinstance(value, int | float):
        words += _number(value, where)
    elif isinstance(value, str):
        words += [f"{where}len {_bucket(len(value))}", *(f"{where}{w}" for w in _text(value))]
    elif isinstance(value, list | tuple | set | frozenset):
        items = list(value)
        words.append(f"{where}len {_bucket(len(items))}")
        words += [f"{where}{word}" for word in _order(items)]
        if depth:
            words += {word for item in items for word in _words(item, f"{where}[]", depth - 1)}
    elif isinstance(value, dict):
        words.append(f"{where}len {_bucket(len(value))}")
        if depth:
            words += {w for item in value.values() for w in _words(item, f"{where}{{}}", depth - 1)}
    return words


def _number(value: int | float, where: str) -> list[str]:
    if value != value or value in (float("inf"), float("-inf")):
        return [f"{where}{value}"]
    sign = "zero" if value == 0 else "minus" if value < 0 else "plus"
    words = [f"{where}{sign}", f"{where}size {_bucket(int(abs(value)))}"]
    if isinstance(value, int) or value == int(value):
        words.append(f"{where}{'even' if int(value) % 2 == 0 else 'odd'}")
    return words


def _text(value: str) -> list[str]:
    traits = {
        "upper": any(c.isupper() for c in value),
        "lower": any(c.islower() for c in value),
        "digit": any(c.isdigit() for c in value),
        "blank": any(c.isspace() for c in value),
        "other": any(not c.isalnum() and not c.isspace() for c in value),
        "repeats": len(set(value)) < len(value),
        "palindrome": len(value) > 1 and value == value[::-1],
    }
    characters = sorted(set(value))[:MAX_CHARACTERS]
    return [name for name, held in traits.items() if held] + [
        f"has {ascii(character).replace(' ', '_')}" for character in characters
    ]


def _order(items: list[Any]) -> list[str]:
    if len(items) < 2:
        return []
    words = ["repeats" if len({repr(i) for i in items}) < len(items) else "distinct"]
    most = max(Counter(map(repr, items)).values())
    words += [f"times {min(most, 4)}", f"mirror {only([repr(a) != repr(b) for a, b in _mirrored(items)])}"]
    try:
        rising = all(a <= b for a, b in pairwise(items))
        falling = all(a >= b for a, b in pairwise(items))
        falls = [a > b for a, b in pairwise(items)]
        places = {"largest": items.index(max(items)), "smallest": items.index(min(items))}
    except TypeError:
        return words
    words += [f"{n} {_place(at, len(items))}" for n, at in places.items()]
    words.append(f"falls {only(falls)}")
    return [*words, "rising" if rising else "falling" if falling else "mixed"]


def _mirrored(items: list[Any]) -> list[tuple[Any, Any]]:
    half = len(items) // 2
    return list(zip(items[:half], items[::-1][:half], strict=True))


def only(held: Sequence[bool]) -> str:
    """Where something holds: nowhere, everywhere, in one place only (first, last, between), or in several."""
    at = [number for number, one in enumerate(held) if one]
    if len(at) != 1:
        return "nowhere" if not at else "everywhere" if len(at) == len(held) else "several"
    return f"only-{_place(at[0], len(held))}"


def _place(at: int, count: int) -> str:
    return "first" if at == 0 else "last" if at == count - 1 else "between"


MAX_CHARACTERS = 40


def _bucket(size: int) -> str:
    for top in (0, 1, 2, 3, 5, 9, 20, 100, 1000):
        if size <= top:
            return str(top)
    return "many"
