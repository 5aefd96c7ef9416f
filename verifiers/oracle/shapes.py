"""What values at one place look like: learned from the visible ones, asked about others, and used to make more.

A shape admits a value only within what was seen: ranges, alphabets, lengths, types, shared properties.
`near(value)` yields values one change away (not yet checked), `sample(rng)` a value of the shape's own making.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from . import predicates
from .predicates import Predicate, holds, shared

MIN_FOR_PATTERN = 5
"""From so many distinct integers on, a property that all share (even, prime, a square …) is no accident."""


class Shape(Protocol):
    def admits(self, value: Any) -> bool: ...
    def near(self, value: Any, rng: random.Random) -> Iterator[Any]: ...
    def sample(self, rng: random.Random) -> Any: ...
    def describe(self) -> str: ...


@dataclass
class Fixed:
    """Only values that were seen (None, booleans, objects of other types)."""

    seen: list[Any]

    def admits(self, value: Any) -> bool:
        return any(type(value) is type(known) and value == known for known in self.seen)

    def near(self, value: Any, rng: random.Random) -> Iterator[Any]:
        yield from (known for known in self.seen if known != value)

    def sample(self, rng: random.Random) -> Any:
        return rng.choice(self.seen)

    def describe(self) -> str:
        return "one of " + ", ".join(repr(value)[:20] for value in self.seen[:4])


@dataclass
class Integers:
    """Integers between the smallest and the largest seen. floor: lower end that the text states."""

    low: int
    high: int
    seen: list[int]
    tests: dict[str, Predicate] = field(default_factory=dict)

    def admits(self, value: Any) -> bool:
        return type(value) is int and self.low <= value <= self.high and holds(self.tests, value)

    def near(self, value: int, rng: random.Random) -> Iterator[int]:
        yield from (value + 1, value - 1, value + 2, value - 2, value // 2, 2 * value, -value, value * 3 // 4)
        yield from (self.low, self.high, self.low + 1, self.high - 1, 0, 1)
        yield from self.seen[:6]

    def sample(self, rng: random.Random) -> int:
        if self.high - self.low > 200 and rng.random() < 0.6:
            return rng.randint(self.low, self.low + (self.high - self.low) // rng.choice((4, 16, 64)))
        return rng.randint(self.low, self.high)

    def describe(self) -> str:
        return f"integers from {self.low} to {self.high}" + _listed(self.tests)


@dataclass
class Floats:
    """Finite floats between the smallest and the largest seen, with at most as many digits."""

    low: float
    high: float
    digits: int
    seen: list[float]

    def admits(self, value: Any) -> bool:
        return type(value) is float and self.low <= value <= self.high and round(value, self.digits) == value

    def near(self, value: float, rng: random.Random) -> Iterator[float]:
        unit = 10.0**-self.digits
        for new in (
            value + unit,
            value - unit,
            value + 1,
            value - 1,
            value / 2,
            value * 2,
            -value,
            float(int(value)),
        ):
            yield round(new, self.digits)
        yield from self.seen[:6]

    def sample(self, rng: random.Random) -> float:
        return round(rng.uniform(self.low, self.high), self.digits)

    def describe(self) -> str:
        return f"floats from {self.low} to {self.high} with up to {self.digits} digits"


@dataclass
class Sequences:
    """Lists or tuples of one element shape, as long as those seen, with the properties all of them share."""

    kind: type
    element: Shape | None
    low: int
    high: int
    seen: list[Any]
    tests: dict[str, Predicate]

    def admits(self, value: Any) -> bool:
        return (
            isinstance(value, (list, tuple))
            and type(value) is self.kind
            and self.low <= len(value) <= self.high
            and (not value or (self.element is not None and all(self.element.admits(v) for v in value)))
            and holds(self.tests, value)
        )

    def near(self, value: Any, rng: random.Random) -> Iterator[Any]:
        items = list(value)
        yield from map(self.kind, self._rearranged(items))
        others = [other for other in self.seen if len(other)]
        for _ in range(min(6, len(others))):
            other = list(rng.choice(others))
            yield self.kind(items + other)
            yield self.kind([*items, rng.choice(other)])
            yield self.kind([rng.choice(other), *items])
            if items:
                at = rng.randrange(len(items))
                yield self.kind([*items[:at], rng.choice(other), *items[at + 1 :]])
        if self.element is not None and items:
            for at in sorted({0, len(items) // 2, len(items) - 1}):
                changes = list(self.element.near(items[at], rng))
                for new in rng.sample(changes, min(4, len(changes))):
                    yield self.kind([*items[:at], new, *items[at + 1 :]])

    def _rearranged(self, items: list[Any]) -> Iterator[list[Any]]:
        yield items[::-1]
        yield items[1:]
        yield items[:-1]
        yield items[: len(items) // 2]
        yield items[1:] + items[:1]
        yield items + items[:1]
        yield items[:1] + items
        yield items + items
        for at in range(min(len(items), 4)):
            yield items[:at] + items[at + 1 :]
            if at + 1 < len(items):
                yield items[:at] + [items[at + 1], items[at]] + items[at + 2 :]
                yield items[:at] + [items[at + 1]] + items[at + 1 :]
        for reverse in (False, True):
            try:
                yield sorted(items, reverse=reverse)
            except TypeError:
                return

    def sample(self, rng: random.Random) -> Any:
        if self.element is None:
            return self.kind()
        length = (
            rng.randint(self.low, self.high)
            if rng.random() < 0.5
            else rng.randint(self.low, max(self.low, min(self.high, 8)))
        )
        made = [self.element.sample(rng) for _ in range(length)]
        if "ascending" in self.tests or "descending" in self.tests:
            made.sort(key=_sort_key, reverse="ascending" not in self.tests)
        if "without repeats" in self.tests:
            made = list({repr(v): v for v in made}.values())
        return self.kind(made)

    def describe(self) -> str:
        inner = self.element.describe() if self.element else "nothing"
        return f"{self.kind.__name__}s of {self.low} to {self.high} items ({inner})" + _listed(self.tests)


def _sort_key(item: Any) -> Any:
    return item if isinstance(item, (int, float)) else 0


@dataclass
class Records:
    """Tuples or lists of one length whose places have shapes of their own."""

    kind: type
    places: list[Shape]

    def admits(self, value: Any) -> bool:
        return (
            isinstance(value, (list, tuple))
            and type(value) is self.kind
            and len(value) == len(self.places)
            and all(place.admits(v) for place, v in zip(self.places, value, strict=True))
        )

    def near(self, value: Any, rng: random.Random) -> Iterator[Any]:
        for at, place in enumerate(self.places):
            for new in list(place.near(value[at], rng))[:8]:
                yield self.kind([*value[:at], new, *value[at + 1 :]])

    def sample(self, rng: random.Random) -> Any:
        return self.kind([place.sample(rng) for place in self.places])

    def describe(self) -> str:
        return f"{self.kind.__name__}s of ({'; '.join(place.describe() for place in self.places)})"


@dataclass
class Mappings:
    """Dictionaries with keys and values as seen."""

    key: Shape | None
    value: Shape | None
    low: int
    high: int
    seen: list[dict[Any, Any]]

    def admits(self, value: Any) -> bool:
        if type(value) is not dict or not self.low <= len(value) <= self.high:
            return False
        return not value or (
            self.key is not None
            and self.value is not None
            and all(self.key.admits(k) and self.value.admits(v) for k, v in value.items())
        )

    def near(self, value: dict[Any, Any], rng: random.Random) -> Iterator[dict[Any, Any]]:
        for key in list(value)[:4]:
            yield {k: v for k, v in value.items() if k != key}
            if self.value is not None:
                for new in list(self.value.near(value[key], rng))[:4]:
                    yield {**value, key: new}
        for other in self.seen[:4]:
            yield {**value, **other}

    def sample(self, rng: random.Random) -> dict[Any, Any]:
        if self.key is None or self.value is None:
            return {}
        return {self.key.sample(rng): self.value.sample(rng) for _ in range(rng.randint(self.low, self.high))}

    def describe(self) -> str:
        return f"dicts of {self.low} to {self.high} entries"


@dataclass
class Sets:
    """Sets of one element shape."""

    element: Shape | None
    low: int
    high: int

    def admits(self, value: Any) -> bool:
        return (
            type(value) is set
            and self.low <= len(value) <= self.high
            and (not value or (self.element is not None and all(self.element.admits(v) for v in value)))
        )

    def near(self, value: set[Any], rng: random.Random) -> Iterator[set[Any]]:
        for item in sorted(value, key=repr)[:4]:
            yield value - {item}
        if self.element is not None:
            yield value | {self.element.sample(rng)}

    def sample(self, rng: random.Random) -> set[Any]:
        return (
            {self.element.sample(rng) for _ in range(rng.randint(self.low, self.high))}
            if self.element
            else set()
        )

    def describe(self) -> str:
        return f"sets of {self.low} to {self.high} items"


@dataclass
class Either:
    """One of several shapes, by type."""

    options: list[Shape]

    def admits(self, value: Any) -> bool:
        return any(option.admits(value) for option in self.options)

    def near(self, value: Any, rng: random.Random) -> Iterator[Any]:
        for option in self.options:
            if option.admits(value):
                yield from option.near(value, rng)
                return

    def sample(self, rng: random.Random) -> Any:
        return rng.choice(self.options).sample(rng)

    def describe(self) -> str:
        return " or ".join(option.describe() for option in self.options)


def learn(values: Sequence[Any]) -> Shape:
    """The narrowest shape that admits all the values (at least one)."""
    groups: dict[type, list[Any]] = {}
    for value in values:
        groups.setdefault(type(value), []).append(value)
    shapes = [_learn_type(kind, group) for kind, group in groups.items()]
    return shapes[0] if len(shapes) == 1 else Either(shapes)


def _learn_type(kind: type, values: list[Any]) -> Shape:
    from .texts import learn_texts

    if kind is int:
        distinct = list(dict.fromkeys(values))
        tests = shared(predicates.INTEGERS, distinct) if len(distinct) >= MIN_FOR_PATTERN else {}
        return Integers(min(values), max(values), distinct, tests)
    if kind is float:
        finite = [v for v in values if v - v == 0]
        if not finite:
            return Fixed(values)
        return Floats(min(finite), max(finite), max(map(_digits, finite)), list(dict.fromkeys(finite)))
    if kind is str:
        return learn_texts(values)
    if kind in (list, tuple):
        return _learn_sequences(kind, values)
    if kind is dict:
        keys, items = [k for v in values for k in v], [i for v in values for i in v.values()]
        low, high = _lengths(values)
        return Mappings(learn(keys) if keys else None, learn(items) if items else None, low, high, values)
    if kind is set:
        items = [i for v in values for i in sorted(v, key=repr)]
        return Sets(learn(items) if items else None, *_lengths(values))
    unique: list[Any] = []
    for value in values:
        if value not in unique:
            unique.append(value)
    return Fixed(unique)


def _learn_sequences(kind: type, values: list[Any]) -> Shape:
    low, high = _lengths(values)
    if low == high and 2 <= low <= 6:
        types = [{type(v[i]) for v in values} for i in range(low)]
        mixed = len({frozenset(t) for t in types}) > 1
        if mixed or (kind is tuple and len(values) > 1):
            return Records(kind, [learn([v[i] for v in values]) for i in range(low)])
    items = [item for value in values for item in value]
    tests = shared(predicates.SEQUENCES, values)
    return Sequences(kind, learn(items) if items else None, low, high + slack(values), values, tests)


def slack(values: Sequence[Any]) -> int:
    """How far lengths may go beyond the longest seen: 2 where they vary (three or more), else nothing."""
    return 2 if len({len(value) for value in values}) >= 3 else 0


def _lengths(values: Iterable[Any]) -> tuple[int, int]:
    lengths = [len(value) for value in values]
    return min(lengths), max(lengths)


def _digits(value: float) -> int:
    text = repr(value)
    return min(6, len(text.partition(".")[2])) if "e" not in text else 6


def _listed(tests: dict[str, Predicate]) -> str:
    return ", all " + ", ".join(list(tests)[:4]) if tests else ""
