"""The shape of texts: alphabet, length, patterns of structured texts, words of a closed vocabulary.

Only characters that were seen are admitted. A text with digits or punctuation among letters is *structured*: its
pattern (runs of letters and digits, everything else literal) must be one that was seen.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from . import predicates
from .predicates import Predicate, holds, shared

RUN = re.compile(r"\d+|[^\W\d_]+|[\W_]", re.UNICODE)
WIDE = 8
"""From this many distinct lower (upper) case letters or digits on, the whole class is taken as seen."""


@dataclass
class Texts:
    """Texts over `alphabet`, `low` to `high` characters. patterns: None for free text. words: None for open texts."""

    alphabet: frozenset[str]
    low: int
    high: int
    seen: list[str]
    tests: dict[str, Predicate]
    patterns: frozenset[str] | None
    words: list[str] | None

    def admits(self, value: object) -> bool:
        if (
            type(value) is not str
            or not self.low <= len(value) <= self.high
            or not set(value) <= self.alphabet
        ):
            return False
        if self.patterns is not None and pattern(value) not in self.patterns:
            return False
        if self.words is not None and any(word not in self.words for word in value.split()):
            return False
        return holds(self.tests, value)

    def near(self, value: str, rng: random.Random) -> Iterator[str]:
        yield from self._by_words(value, rng)
        if self.patterns is not None:
            yield from self._by_numbers(value, rng)
        if self.words is None:
            yield from self._by_characters(value, rng)
        others = [other for other in self.seen if other != value]
        for other in others[:3]:
            yield other
            yield value + other
        if others:
            yield value + " " + others[0]

    def _by_characters(self, value: str, rng: random.Random) -> Iterator[str]:
        yield from (
            value[::-1],
            value[1:],
            value[:-1],
            value[: len(value) // 2],
            value + value,
            value.swapcase(),
        )
        yield from (
            value.upper(),
            value.lower(),
            value[1:] + value[:1],
            value + value[:1],
            value[:1],
            value[-1:],
        )
        letters = sorted(self.alphabet)
        for _ in range(10):
            at = rng.randrange(len(value) + 1)
            char = rng.choice(letters) if letters else ""
            yield value[:at] + char + value[at + 1 :]
            yield value[:at] + char + value[at:]
            yield value[:at] + value[at + 1 :]
            yield value[:at] + value[at : at + 2][::-1] + value[at + 2 :]

    def _by_words(self, value: str, rng: random.Random) -> Iterator[str]:
        words = value.split(" ")
        if len(words) > 1:
            yield " ".join(words[::-1])
            yield " ".join(words[1:])
            yield " ".join(words[:-1])
            yield " ".join([*words, words[0]])
        pool = self.words or sorted({word for text in self.seen for word in text.split()})
        for _ in range(6 if pool else 0):
            at = rng.randrange(len(words))
            yield " ".join([*words[:at], rng.choice(pool), *words[at + 1 :]])
            yield " ".join([*words[:at], rng.choice(pool), *words[at:]])

    def _by_numbers(self, value: str, rng: random.Random) -> Iterator[str]:
        runs = RUN.findall(value)
        numbers = [number for text in self.seen for number in re.findall(r"\d+", text)]
        for at, run in enumerate(runs):
            if run.isdigit():
                width = len(run)
                for new in (int(run) + 1, int(run) - 1, int(rng.choice(numbers)), int(rng.choice(numbers))):
                    text = str(new).zfill(width) if run[0] == "0" else str(new)
                    yield "".join([*runs[:at], text, *runs[at + 1 :]])

    def sample(self, rng: random.Random) -> str:
        if self.words:
            return " ".join(rng.choice(self.words) for _ in range(rng.randint(1, 5)))
        if self.patterns is not None or not self.alphabet:
            return rng.choice(self.seen)
        letters = sorted(self.alphabet)
        few = rng.sample(letters, min(len(letters), rng.choice((2, 3, 8, 26))))
        return "".join(
            rng.choice(few) for _ in range(rng.randint(self.low, max(self.low, min(self.high, 12))))
        )

    def describe(self) -> str:
        shown = "".join(sorted(self.alphabet))[:30]
        kind = (
            "texts of known words" if self.words else "texts of a seen pattern" if self.patterns else "texts"
        )
        return f"{kind}, {self.low} to {self.high} characters of {shown!r}"


def learn_texts(values: Sequence[str]) -> Texts:
    """The narrowest shape that admits all the texts."""
    lengths = [len(value) for value in values]
    distinct = list(dict.fromkeys(values))
    structured = [value for value in distinct if is_structured(value)]
    patterns = {pattern(value) for value in distinct}
    pinned = len(structured) * 2 >= max(1, len([v for v in distinct if v]))
    return Texts(
        alphabet=_alphabet(distinct),
        low=min(lengths),
        high=max(lengths) + (2 if len(set(lengths)) >= 3 else 0),
        seen=distinct,
        tests=shared(predicates.TEXTS, distinct),
        patterns=frozenset(patterns) if pinned else None,
        words=vocabulary(distinct),
    )


def _alphabet(values: Sequence[str]) -> frozenset[str]:
    seen = set("".join(values))
    for letters in ("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ"):
        if len(seen & set(letters)) >= WIDE:
            seen |= set(letters)
    if len(seen & set("0123456789")) >= 8:
        seen |= set("0123456789")
    return frozenset(seen)


def widen(alphabet: frozenset[str], named: frozenset[str]) -> frozenset[str]:
    """The alphabet with those characters that gold names itself, of classes of which three or more were seen."""
    wider = set(alphabet)
    for belongs in (str.islower, str.isupper, str.isdigit):
        if sum(map(belongs, alphabet)) >= 3:
            wider |= {char for char in named if belongs(char) and char.isascii()}
    return frozenset(wider)


def is_structured(text: str) -> bool:
    """Digits together with letters or punctuation: dates, fractions, file names, quantities."""
    return any(c.isdigit() for c in text) and any(not c.isdigit() and c != " " for c in text)


def pattern(text: str) -> str:
    """Runs of digits as 9 (with their length up to 5: a year is no number of five digits), runs of letters as a, everything else as it stands."""
    out = []
    for run in RUN.findall(text):
        out.append(f"9{min(len(run), 5)}" if run.isdigit() else "a" if run[0].isalpha() else run)
    return "".join(out)


def vocabulary(values: Sequence[str]) -> list[str] | None:
    """The words, when the texts are made of few that keep coming back (or of symbols); None for open texts."""
    if (
        values
        and max(map(len, values)) <= 2
        and not any(c.isalnum() or c.isspace() for v in values for c in v)
    ):
        return sorted(set(values))
    words = [word for value in values for word in value.split()]
    distinct = sorted(set(words))
    several = [value for value in values if len(value.split()) > 1]
    if (
        len(words) >= 6
        and len(several) >= 2
        and len(distinct) * 2 <= len(words)
        and max(map(len, distinct)) > 1
    ):
        return distinct
    return None
