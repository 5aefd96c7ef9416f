"""Properties that learned inputs may share: of numbers, texts and sequences. Each is a named yes/no question.

A property is kept when *every* visible value has it: what merely might be chance narrows the domain too, because an
input outside it would be no evidence. Vacuous properties (sortedness of one-element lists) are kept for that reason.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

Predicate = Callable[[Any], bool]


def is_prime(n: Any) -> bool:
    return (
        isinstance(n, int) and n > 1 and all(n % d for d in range(2, int(n**0.5) + 1))
        if n < 10**10
        else False
    )


def balanced(pair: str) -> Predicate:
    """Whether the text's brackets of one kind open before they close and all close."""

    def check(text: Any) -> bool:
        depth = 0
        for char in text:
            depth += (char == pair[0]) - (char == pair[1])
            if depth < 0:
                return False
        return depth == 0

    return check


INTEGERS: dict[str, Predicate] = {
    "even": lambda n: n % 2 == 0,
    "odd": lambda n: n % 2 == 1,
    "prime": is_prime,
    "not prime": lambda n: not is_prime(n),
    "nonzero": lambda n: n != 0,
    "not one": lambda n: n != 1,
    "a perfect square": lambda n: n >= 0 and int(n**0.5 + 0.5) ** 2 == n,
    "a power of two": lambda n: n > 0 and n & (n - 1) == 0,
    "a multiple of five": lambda n: n % 5 == 0,
    "a multiple of ten": lambda n: n % 10 == 0,
}
TEXTS: dict[str, Predicate] = {
    "balanced ()": balanced("()"),
    "balanced []": balanced("[]"),
    "balanced {}": balanced("{}"),
    "balanced <>": balanced("<>"),
    "not empty": bool,
    "without blanks at its ends": lambda s: s == s.strip(),
    "without doubled blanks": lambda s: "  " not in s,
    "of even length": lambda s: len(s) % 2 == 0,
    "of odd length": lambda s: len(s) % 2 == 1,
    "a palindrome": lambda s: s == s[::-1],
    "no palindrome": lambda s: s != s[::-1],
    "of distinct characters": lambda s: len(set(s)) == len(s),
    "with a blank": lambda s: " " in s,
    "with a dot": lambda s: "." in s,
    "with a letter": lambda s: any(c.isalpha() for c in s),
    "starting with a capital": lambda s: s[:1].isupper(),
    "starting with a letter": lambda s: s[:1].isalpha(),
    "starting with a digit": lambda s: s[:1].isdigit(),
    "without a leading zero": lambda s: s[:1] != "0",
    "lower case": lambda s: s == s.lower(),
    "upper case": lambda s: s == s.upper(),
}


def _key(item: Any) -> str:
    return repr(item)


def _ordered(strict: bool, down: bool) -> Predicate:
    def check(items: Any) -> bool:
        pairs = pairwise(items)
        try:
            if down:
                return all(a > b if strict else a >= b for a, b in pairs)
            return all(a < b if strict else a <= b for a, b in pairs)
        except TypeError:
            return False

    return check


def _numbers(items: Any) -> bool:
    return all(isinstance(item, (int, float)) for item in items)


def _nested(items: Any) -> bool:
    return bool(items) and all(isinstance(item, (list, tuple)) for item in items)


def _permutation(items: Any) -> bool:
    flat = [x for item in items for x in item] if _nested(items) else list(items)
    return all(type(x) is int for x in flat) and sorted(flat) == list(range(1, len(flat) + 1))


def _permutation_from_zero(items: Any) -> bool:
    return all(type(x) is int for x in items) and sorted(items) == list(range(len(items)))


def _exists(test: Predicate) -> Predicate:
    return lambda items: _numbers(items) and any(test(item) for item in items)


def _none(test: Predicate) -> Predicate:
    return lambda items: not _numbers(items) or not any(test(item) for item in items)


SEQUENCES: dict[str, Predicate] = {
    "not empty": bool,
    "ascending": _ordered(False, False),
    "strictly ascending": _ordered(True, False),
    "descending": _ordered(False, True),
    "strictly descending": _ordered(True, True),
    "without repeats": lambda items: len({_key(i) for i in items}) == len(items),
    "with a repeat": lambda items: len({_key(i) for i in items}) < len(items),
    "of even length": lambda items: len(items) % 2 == 0,
    "of odd length": lambda items: len(items) % 2 == 1,
    "of items of one type": lambda items: len({type(i) for i in items}) <= 1,
    "of items of one length": lambda items: _nested(items) and len({len(i) for i in items}) == 1,
    "square": lambda items: _nested(items) and all(len(i) == len(items) for i in items),
    "a permutation of 1..n": _permutation,
    "a permutation of 0..n-1": _permutation_from_zero,
    "ending in a nonzero number": lambda items: bool(items) and items[-1] != 0,
    "beginning with a nonzero number": lambda items: bool(items) and items[0] != 0,
    "with a prime": _exists(is_prime),
    "with a positive number": _exists(lambda n: n > 0),
    "with a negative number": _exists(lambda n: n < 0),
    "with an even number": _exists(lambda n: n % 2 == 0),
    "with an odd number": _exists(lambda n: n % 2 == 1),
    "without a zero": _none(lambda n: n == 0),
    "with two different items": lambda items: len({_key(i) for i in items}) > 1,
    "with one most frequent item": lambda items: _one_mode(items),
    "with one largest item": lambda items: _one_end(items, max),
    "with one smallest item": lambda items: _one_end(items, min),
    "without two items of one length": lambda items: _distinct_lengths(items),
}


def _one_mode(items: Any) -> bool:
    counts = Counter(map(_key, items)).most_common(2)
    return bool(counts) and (len(counts) == 1 or counts[0][1] > counts[1][1])


def _one_end(items: Any, end: Callable[[Any], Any]) -> bool:
    return bool(items) and _numbers(items) and list(items).count(end(items)) == 1


def _distinct_lengths(items: Any) -> bool:
    return all(hasattr(i, "__len__") for i in items) and len({len(i) for i in items}) == len(items)


def shared(library: dict[str, Predicate], values: Sequence[Any]) -> dict[str, Predicate]:
    """The properties that all values have."""
    return {name: test for name, test in library.items() if all(_holds(test, value) for value in values)}


def _holds(test: Predicate, value: Any) -> bool:
    try:
        return bool(test(value))
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
        return False


def holds(tests: dict[str, Predicate], value: Any) -> bool:
    """Whether the value has all of these properties."""
    return all(_holds(test, value) for test in tests.values())
