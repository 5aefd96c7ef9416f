"""The domain of a function task: which inputs the task is about, learned from its text and its visible calls.

An input on which gold merely does not raise is no evidence. `Domain.admits` says yes only within what every visible
call has in common; `Domain.inputs` makes inputs close to the visible ones first, and rates each by its closeness.
"""

from __future__ import annotations

import ast
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import product
from math import prod
from typing import Any

from ...envs import pyast
from ...envs.task import Task
from ..mutation.functions import FunctionView
from ..search import Recorded
from .asserted import compares_results, ordered_away
from .doubts import below
from .equality import encode
from .examples import Example, examples_in, says_any_order, stated_bounds, stated_floor
from .relations import Args, Relation, holds, learn_relations
from .shapes import Either, Integers, Records, Sequences, Shape, learn
from .texts import Texts, pattern, widen

STATED, NEAR, MIXED, NEAR_TWICE, SAMPLED, EXTENDED, FAR = 1.0, 0.9, 0.8, 0.75, 0.65, 0.55, 0.2
THIN = 3
"""Integers of fewer distinct values at one place: small positive ones around them are tried too (rated EXTENDED)."""
IN_DOMAIN = 0.5
"""Ratings of inputs. Below IN_DOMAIN an input is outside what is established and proves nothing."""
HOW = {
    STATED: "an example of the task's own text",
    NEAR: "one change away from a visible input",
    MIXED: "arguments of visible inputs combined anew",
    NEAR_TWICE: "two changes away from a visible input",
    SAMPLED: "made after the visible inputs",
    EXTENDED: "a small integer near the visible ones, within the bounds that the text states",
}


@dataclass(frozen=True)
class OracleInput:
    """One input: its arguments, their text, and how well it belongs to the domain (0 … 1)."""

    args: Args
    rating: float

    @property
    def text(self) -> str:
        return repr(self.args)

    @property
    def how(self) -> str:
        return HOW.get(self.rating, "")


@dataclass
class Domain:
    """What is known about the inputs. visible: argument tuples of the tests; examples: those of the text."""

    names: tuple[str, ...]
    visible: list[Args]
    examples: list[Example]
    shapes: list[Shape]
    relations: dict[str, Relation]
    results: set[str] = field(default_factory=set)
    stated_results: set[str] = field(default_factory=set)
    floors: dict[int, int] = field(default_factory=dict)
    bounds: dict[int, tuple[float, float]] = field(default_factory=dict)
    thin: dict[int, tuple[int, int]] = field(default_factory=dict)
    floor: int | None = None
    patterns: dict[tuple[str, ...], set[str]] = field(default_factory=dict)
    compared: bool = True
    unordered: bool = False

    @classmethod
    def of(cls, task: Task, view: FunctionView, recorded: Recorded) -> Domain | None:
        """None when no visible call has literal positional arguments: then nothing is known."""
        calls = [pyast.literal(text) for text, _ in recorded.calls]
        text = task_text(task, view)
        examples = examples_in([text], view.entry_point)
        arity = Counter(len(call) for call in calls).most_common(1)[0][0] if calls else 0
        visible = [call for call in calls if len(call) == arity]
        stated = [e for e in examples if len(e.args) == arity and _same_kinds(e.args, visible)]
        if not visible or not arity:
            return None
        known = _unique([*visible, *(e.args for e in stated)])
        domain = cls(
            names=view.parameters[:arity] or tuple(f"argument {i}" for i in range(arity)),
            visible=visible,
            examples=stated,
            shapes=[learn([call[i] for call in known]) for i in range(arity)],
            relations=learn_relations(known),
            results={_kind(result) for _, result in recorded.calls},
            stated_results={_kind(encode(e.expected)) for e in stated if e.has_expected},
            unordered=says_any_order(text) or ordered_away(view),
            compared=compares_results(view),
        )
        domain._read_bounds(text)
        named = frozenset("".join(map(_text_of, ast.walk(view.tree))))
        for shape in domain.shapes:
            _widen(shape, named)
        for args, result in [*((pyast.literal(t), r) for t, r in recorded.calls)]:
            domain.patterns.setdefault(_patterns(args), set()).add(repr(result))
        return domain

    def _read_bounds(self, text: str) -> None:
        """Bounds in symbols narrow a range; a floor in words widens it downwards (rated EXTENDED)."""
        floor = self.floor = stated_floor(text)
        for name, bound in stated_bounds(text, self.names).items():
            self.bounds[self.names.index(name)] = bound
        for at, shape in enumerate(self.shapes):
            if isinstance(shape, Integers):
                low = self.bounds.get(at, (floor, 0))[0]
                if low is not None and low < shape.low <= 100:
                    self.floors[at] = int(low)
                if len(shape.seen) < THIN and shape.low >= 1 and shape.high <= 100:
                    self.thin[at] = (int(low) if low is not None else 1, shape.high + 3)

    def admits(self, args: Args) -> bool:
        """Whether an argument tuple lies within everything that the visible ones share."""
        return (
            len(args) == len(self.shapes)
            and all(shape.admits(value) for shape, value in zip(self.shapes, args, strict=True))
            and self._within_bounds(args)
            and not (self.floor is not None and below(args, self.floor))
            and holds(self.relations, args)
        )

    def _within_bounds(self, args: Args) -> bool:
        return all(
            low <= args[at] <= high
            for at, (low, high) in self.bounds.items()
            if isinstance(args[at], (int, float)) and not isinstance(args[at], bool)
        )

    def usual_result(self, encoded: Any) -> bool:
        """Whether gold's result is of a kind that the visible calls have (gold may fall off its end elsewhere)."""
        return _kind(encoded) in self.results | self.stated_results

    def other_kind(self, encoded: Any) -> bool:
        """Whether a stated result is of a kind that no visible call gives: then the text was misread."""
        return _kind(encoded) not in self.results

    def unlike_its_pattern(self, args: Args, encoded: Any) -> bool:
        """Whether structured texts of this pattern always had one yes/no result in the visible calls, and not this."""
        known = self.patterns.get(_patterns(args), set()) if isinstance(encoded, bool) else set()
        return len(known) == 1 and repr(encoded) not in known and any("9" in p for p in _patterns(args))

    def inputs(self, *, seed: int = 0, limit: int = 300) -> list[OracleInput]:
        """At most `limit` distinct inputs of the domain: stated, near, combined, twice near, sampled, extended.

        Visible inputs themselves are left out (a paid program agrees there), except stated ones.
        """
        rng = random.Random(seed)
        skip = {repr(call) for call in self.visible}
        found: dict[str, OracleInput] = {}

        def add(args: Args, rating: float) -> None:
            text = repr(args)
            if len(text) < 4000 and text not in skip:
                known = found.get(text)
                if known is None or known.rating < rating:
                    found[text] = OracleInput(args, rating)

        for example in self.examples:
            add(example.args, STATED)
        known = _unique([*self.visible, *(e.args for e in self.examples)])
        shares = ((self._near(known, rng), NEAR, 0.5), (self._enumerated(), SAMPLED, 0.65),
                  (self._mixed(known, rng), MIXED, 0.75), (self._twice(known, rng), NEAR_TWICE, 0.88),
                  (self._sampled(rng), SAMPLED, 0.97), (self._extended(known), EXTENDED, 1.0))  # fmt: skip
        for candidates, rating, share in shares:
            for args in candidates:
                if len(found) >= limit * share:
                    break
                if rating == EXTENDED or self.admits(args):
                    add(args, rating)
        return list(found.values())

    def _near(self, known: Sequence[Args], rng: random.Random) -> Iterator[Args]:
        """One argument changed by one step; the calls take turns."""
        streams = [self._changes(call, rng) for call in known]
        while streams:
            for stream in list(streams):
                args = next(stream, None)
                if args is None:
                    streams.remove(stream)
                else:
                    yield args

    def _changes(self, call: Args, rng: random.Random) -> Iterator[Args]:
        streams = [(at, iter(list(shape.near(call[at], rng)))) for at, shape in enumerate(self.shapes)]
        while streams:
            for at, stream in list(streams):
                try:
                    new = next(stream)
                except StopIteration:
                    streams.remove((at, stream))
                    continue
                yield (*call[:at], new, *call[at + 1 :])

    def _crossed(self, known: Sequence[Args]) -> Iterator[Args]:
        """An argument, or a piece of it, in the place of another of its type."""
        pairs = [(i, j) for i in range(len(self.shapes)) for j in range(len(self.shapes)) if i != j]
        for call in known:
            for i, j in pairs:
                source, pieces = call[i], [call[i]]
                if isinstance(source, (str, list, tuple)):
                    n = len(source)
                    pieces += [
                        source[: n // 2],
                        source[n // 2 :],
                        source[:1],
                        source[-1:],
                        source[1:-1],
                        source[::-1],
                    ]
                for piece in pieces:
                    if type(piece) is type(call[j]):
                        yield (*call[:j], piece, *call[j + 1 :])

    def _mixed(self, known: Sequence[Args], rng: random.Random) -> Iterator[Args]:
        if len(self.shapes) < 2:
            return
        yield from self._crossed(known)
        columns = [_unique([call[at] for call in known])[:12] for at in range(len(self.shapes))]
        combined = list(product(*columns)) if prod(map(len, columns)) <= 2000 else []
        rng.shuffle(combined)
        yield from combined
        for _ in range(0 if combined else 200):
            yield tuple(rng.choice(column) for column in columns)

    def _twice(self, known: Sequence[Args], rng: random.Random) -> Iterator[Args]:
        for _ in range(300):
            args = rng.choice(known)
            for _ in range(2):
                at = rng.randrange(len(self.shapes))
                options = (
                    list(self.shapes[at].near(args[at], rng)) if self.shapes[at].admits(args[at]) else []
                )
                if options:
                    args = (*args[:at], rng.choice(options), *args[at + 1 :])
            yield args

    def _sampled(self, rng: random.Random) -> Iterator[Args]:
        for _ in range(400):
            yield tuple(shape.sample(rng) for shape in self.shapes)

    def _enumerated(self) -> Iterator[Args]:
        """Small integers, all of them: one argument up to 60, two up to 8 each, three up to 4."""
        if not all(isinstance(shape, Integers) for shape in self.shapes):
            return
        depth = {1: 60, 2: 8, 3: 4}.get(len(self.shapes), 0)
        ranges = [
            range(s.low, min(s.high, s.low + depth) + 1) for s in self.shapes if isinstance(s, Integers)
        ]
        if depth:
            yield from product(*ranges)

    def _extended(self, known: Sequence[Args]) -> Iterator[Args]:
        """Integers below the smallest seen, down to a floor that the text states."""
        for at, floor in self.floors.items():
            shape = self.shapes[at]
            assert isinstance(shape, Integers)
            for value in range(floor, shape.low):
                for call in known[:3]:
                    args = (*call[:at], value, *call[at + 1 :])
                    if holds(self.relations, args) and all(t(value) for t in shape.tests.values()):
                        yield args
        if self.thin:
            columns = [
                list(range(self.thin[at][0], self.thin[at][1] + 1))
                if at in self.thin
                else _unique([call[at] for call in known])[:4]
                for at in range(len(self.shapes))
            ]
            for args in product(*columns):
                if holds(self.relations, args) and self._within_bounds(args):
                    yield args

    def describe(self) -> str:
        """One line for people: what was learned."""
        parts = [f"{name}: {shape.describe()}" for name, shape in zip(self.names, self.shapes, strict=False)]
        parts += [f"always {relation}" for relation in list(self.relations)[:4]]
        return f"learned from {len(self.visible)} visible calls: " + "; ".join(parts)


def task_text(task: Task, view: FunctionView) -> str:
    """The task's own words: its prompt and the entry point's docstring."""
    doc = ast.get_docstring(view.function) if view.function else None
    return f"{task.prompt}\n{doc or ''}"


def _text_of(node: ast.AST) -> str:
    """The value of a short text constant, else nothing."""
    short = isinstance(node, ast.Constant) and isinstance(node.value, str) and len(node.value) <= 60
    return str(node.value) if short and isinstance(node, ast.Constant) else ""


def _widen(shape: Shape, named: frozenset[str]) -> None:
    if isinstance(shape, Texts) and shape.patterns is None:
        shape.alphabet = widen(shape.alphabet, named)
    elif isinstance(shape, Sequences) and shape.element is not None:
        _widen(shape.element, named)
    for inner in (
        shape.options if isinstance(shape, Either) else shape.places if isinstance(shape, Records) else ()
    ):
        _widen(inner, named)


def _patterns(args: Args) -> tuple[str, ...]:
    return tuple(pattern(value) for value in args if isinstance(value, str))


def _same_kinds(args: Args, visible: Sequence[Args]) -> bool:
    """Whether every argument is of a type that stands at its place in some visible call."""
    return all(any(type(call[at]) is type(value) for call in visible) for at, value in enumerate(args))


def _kind(encoded: Any) -> str:
    """Coarse kind of an encoded result; numbers are one kind, lists and tuples another."""
    if encoded is None or isinstance(encoded, (bool, str)):
        return type(encoded).__name__
    if isinstance(encoded, (int, float)):
        return "number" if encoded - encoded == 0 else "not finite"
    tag = str(next(iter(encoded)))
    return {"l": "sequence", "t": "sequence", "i": "number"}.get(tag, tag)


def _unique(values: Sequence[Any]) -> list[Any]:
    return list({repr(value): value for value in values}.values())
