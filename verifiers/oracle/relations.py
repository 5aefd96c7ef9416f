"""Relations between the arguments of a call that hold in every visible one: orders, lengths, membership."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Sequence
from itertools import permutations
from typing import Any

Args = tuple[Any, ...]
Relation = Callable[[Args], bool]


def learn_relations(calls: Sequence[Args]) -> dict[str, Relation]:
    """Every candidate relation that holds in all the calls (nothing from fewer than 2 calls of 2 arguments)."""
    if len(calls) < 2 or len(calls[0]) < 2:
        return {}
    return {
        name: test for name, test in _candidates(len(calls[0])) if all(_holds(test, call) for call in calls)
    }


def holds(relations: dict[str, Relation], args: Args) -> bool:
    return all(_holds(test, args) for test in relations.values())


def _holds(test: Relation, args: Args) -> bool:
    try:
        return bool(test(args))
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError):
        return False


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _candidates(arity: int) -> Iterator[tuple[str, Relation]]:
    for i in range(arity):
        for j in range(arity):
            if i != j:
                yield from _pair(i, j)
    if arity >= 3:
        yield "the text's numbers sum to at most the number", _sum_within
        for i, j, k in permutations(range(arity), 3):
            if i < j:
                yield f"{i} + {j} > {k}", _longer_than(i, j, k)


def _longer_than(i: int, j: int, k: int) -> Relation:
    return lambda args: _number(args[i]) and args[i] + args[j] > args[k]


def _sum_within(args: Args) -> bool:
    numbers = [int(n) for a in args if isinstance(a, str) for n in re.findall(r"\d+", a)]
    return all(sum(numbers) <= a for a in args if _number(a))


def _pair(i: int, j: int) -> Iterator[tuple[str, Relation]]:
    yield f"{i} < {j}", lambda a: _number(a[i]) and _number(a[j]) and a[i] < a[j]
    yield f"{i} <= {j}", lambda a: _number(a[i]) and _number(a[j]) and a[i] <= a[j]
    yield f"{i} is in {j}", lambda a: a[i] in a[j]
    yield f"{i} is not in {j}", lambda a: not isinstance(a[i], float) and a[i] not in a[j]
    yield f"{i} <= len {j}", lambda a: _number(a[i]) and a[i] <= len(a[j])
    yield f"{i} < len {j}", lambda a: _number(a[i]) and a[i] < len(a[j])
    yield f"{i} == len {j}", lambda a: _number(a[i]) and a[i] == len(a[j])
    yield f"{i} is the largest length in {j}", lambda a: _number(a[i]) and all(len(x) <= a[i] for x in a[j])
    yield f"numbers in {j} <= {i}", lambda a: _numbers_within(a[i], a[j])
    yield f"all of {i} in {j}", lambda a: hasattr(a[i], "__len__") and all(x in a[j] for x in a[i])
    yield f"len {i} < len {j}", lambda a: len(a[i]) < len(a[j])
    yield f"len {i} <= len {j}", lambda a: len(a[i]) <= len(a[j])
    if i < j:
        yield f"{i} != {j}", lambda a: a[i] != a[j]
        yield f"len {i} == len {j}", lambda a: len(a[i]) == len(a[j])
        yield f"same letters in {i} and {j}", lambda a: sorted(a[i]) == sorted(a[j])
        yield f"{i} and {j} of one type", lambda a: type(a[i]) is type(a[j])
        yield f"{i} and {j} coprime", lambda a: _coprime(a[i], a[j])
    yield f"len {i} == len {j} + 1", lambda a: len(a[i]) == len(a[j]) + 1
    yield f"{i} divides {j}", lambda a: _number(a[i]) and a[j] % a[i] == 0


def _coprime(left: Any, right: Any) -> bool:
    return type(left) is int and type(right) is int and math.gcd(left, right) == 1


def _numbers_within(limit: Any, text: Any) -> bool:
    """The sum of the numbers written in a text does not exceed the other argument."""
    if not _number(limit) or not isinstance(text, str):
        return False
    numbers = [int(n) for n in re.findall(r"\d+", text)]
    return bool(numbers) and sum(numbers) <= limit
