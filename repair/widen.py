"""More inputs of a domain, where the visible ones say little: longer than all of them, and full of known words.

The oracle makes inputs that lie close to the visible ones, for witnesses. A suite needs some at the far end of what the
domain admits too: the part beyond the longest visible text or list decides there, and words meet in many orders.
Everything made here is admitted by the domain before it is used.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from ..verifiers.oracle.domain import Domain
from ..verifiers.oracle.relations import Args
from ..verifiers.oracle.shapes import Sequences, Shape
from ..verifiers.oracle.texts import Texts

MOST = 90
"""Inputs made in this way, for each task."""


def far_inputs(domain: Domain, seed: int) -> list[Args]:
    """At most MOST distinct admitted argument tuples, the arguments taking turns."""
    rng = random.Random(f"far:{seed}")
    found: dict[str, Args] = {}
    places = [at for at, shape in enumerate(domain.shapes) if isinstance(shape, Sequences | Texts)]
    for _ in range(4 * MOST if places else 0):
        call = rng.choice(domain.visible)
        turned = rng.choice(places), *(places if rng.random() < 0.3 else ())
        streams = {at: _longer(domain.shapes[at], call[at], rng) for at in turned}
        for values in zip(*streams.values(), strict=False):
            new = dict(zip(streams, values, strict=True))
            args = tuple(new.get(at, value) for at, value in enumerate(call))
            if domain.admits(args) and len(found) < MOST:
                found.setdefault(repr(args), args)
    return list(found.values())


def _longer(shape: Shape, value: Any, rng: random.Random) -> Iterator[Any]:
    """The value, continued up to what the shape admits; the continuation also in front of it."""
    if isinstance(shape, Sequences) and shape.element is not None and isinstance(value, list | tuple):
        length = rng.randint(max(shape.low, 1), shape.high) if rng.random() < 0.5 else shape.high
        more = [shape.element.sample(rng) for _ in range(max(0, length - len(value)))]
        for items in ([*value, *more], [*more, *value], [shape.element.sample(rng) for _ in range(length)]):
            if "ascending" in shape.tests or "descending" in shape.tests:
                items.sort(key=repr if not all(isinstance(i, int | float) for i in items) else float)
                items = items if "ascending" in shape.tests else items[::-1]
            yield shape.kind(items)
    elif isinstance(shape, Texts) and isinstance(value, str):
        if shape.words:
            yield _of_words(shape.words, shape.high, rng)
        elif shape.patterns is None and shape.alphabet:
            letters = sorted(shape.alphabet)
            length = rng.randint(min(len(value), shape.high), shape.high)
            tail = "".join(rng.choice(letters) for _ in range(length - min(len(value), length)))
            yield value + tail
            yield tail + value


def _of_words(words: list[str], high: int, rng: random.Random) -> str:
    """Known words in a random order, each once if it can be, as many as fit into `high` characters (or fewer)."""
    order = rng.sample(words, len(words))
    count = rng.randint(2, len(order)) if len(order) > 1 else 1
    kept: list[str] = []
    for word in order[:count]:
        if len(" ".join([*kept, word])) > high:
            break
        kept.append(word)
    return " ".join(kept)
