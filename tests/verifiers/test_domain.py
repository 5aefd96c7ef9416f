"""The domain model: examples and bounds read from text, shapes learned from values, relations, doubts about gold."""

from __future__ import annotations

import random

import pytest

from acidtest.verifiers.oracle.doubts import below, jittered, other_readings
from acidtest.verifiers.oracle.equality import encode, same, show
from acidtest.verifiers.oracle.examples import says_any_order, stated_bounds, stated_examples, stated_floor
from acidtest.verifiers.oracle.relations import holds, learn_relations
from acidtest.verifiers.oracle.reseed import reseeded
from acidtest.verifiers.oracle.shapes import learn


@pytest.mark.parametrize(
    ("text", "args", "expected"),
    [
        (">>> f(3, 'a)')\n5", (3, "a)"), 5),
        ("f([1, 2]) == [2]", ([1, 2],), [2]),
        ("f(1) ==> (2, 3)  # twice", (1,), (2, 3)),
        ("f('x') -> 19 - (5 + 6) = 8", ("x",), 8),
        ("f(2) should return 7.", (2,), 7),
        ("f(-1) ➞ False", (-1,), False),
        ("f(4) = 5 and f(5) is 6", (4,), 5),
    ],
)
def test_examples_are_read_from_text(text: str, args: tuple[object, ...], expected: object) -> None:
    found = stated_examples(text, "f")[0]
    assert (found.args, found.has_expected, found.expected) == (args, True, expected)


def test_prose_and_other_names_are_no_examples() -> None:
    assert stated_examples("g(1) == 2 and half(1) == 2, f(n) == 1", "f") == []
    assert not stated_examples("f(1) is the base case", "f")[0].has_expected


def test_bounds_floors_and_order_are_read_from_text() -> None:
    assert stated_bounds("1 <= n <= 100 and 0 < k < 5; m >= 3", ("n", "k", "m")) == {
        "n": (1, 100), "k": (1, 4), "m": (3, float("inf")),
    }  # fmt: skip
    assert stated_floor("a list of non-negative integers") == 0
    assert stated_floor("Given a positive integer n") == 1
    assert stated_floor("an integer") is None
    assert says_any_order("Return them in any order.")
    assert not says_any_order("in ascending order")


@pytest.mark.parametrize(
    ("seen", "inside", "outside"),
    [
        ([3, 9, 5], [4, 9, 3], [2, 10, 4.0, True, "4"]),
        ([2, 4, 6, 8, 12], [10], [5, 3]),
        ([1.5, 3.25], [2.25, 1.5], [4.0, 2, 1.501]),
        ([[1, 2, 3], [4, 9]], [[1, 2, 9], [2, 3]], [[3, 2], [1], [1, 2, 3, 4], [0, 1], (1, 2)]),
        (["(())", "()()"], ["(())"], ["())(", "(", "[]"]),
        (["1/5", "7/10", "3/4"], ["2/5".replace("2", "1")], ["1/a", "15", "1//5"]),
        (["one two", "two three one", "one one two"], ["three two"], ["onetwo", "four one"]),
        ([[[1, 2], [3, 4]], [[4, 1], [2, 3]]], [[[1, 4], [3, 2]]], [[[1, 1], [2, 3]], [[1, 2]]]),
        ([{"a": 1}, {"b": 3}], [{"a": 3}], [{"a": 4}, {}, {1: 1}]),
        ([None], [None], [0, ""]),
    ],
)
def test_shapes_admit_only_what_was_seen(
    seen: list[object], inside: list[object], outside: list[object]
) -> None:
    shape = learn(seen)
    assert all(map(shape.admits, seen))
    assert [v for v in inside if not shape.admits(v)] == []
    assert [v for v in outside if shape.admits(v)] == []
    rng = random.Random(0)
    for value in seen:
        list(shape.near(value, rng))
    shape.sample(rng)
    assert shape.describe()


def test_relations_between_arguments() -> None:
    relations = learn_relations([([1, 2], 1), ([4, 5, 6], 3), ([7, 8], 2)])
    assert holds(relations, ([1, 2, 3], 2))
    assert not holds(relations, ([1, 2], 3))
    assert learn_relations([([1], 1)]) == {}


def test_another_reading_of_and_or_is_offered_only_without_parentheses() -> None:
    bare = "def f(a, b, c):\n    return a and b or c\n"
    (reading,) = other_readings(bare, "f")
    scope: dict[str, object] = {}
    exec(reading, scope)
    assert scope["f"](False, True, True) is False  # type: ignore[operator]
    assert other_readings("def f(a, b, c):\n    return (a and b) or c\n", "f") == []


def test_only_inexact_floats_are_moved() -> None:
    rng = random.Random(0)
    assert jittered(([1.0, 2.5], 3), rng) is None
    moved = jittered(([1.1, 2.0],), rng)
    assert moved is not None
    assert moved[0][1] == 2.0
    assert moved[0][0] == pytest.approx(1.1, abs=1e-9)
    assert moved[0][0] != 1.1
    assert below([1, [0]], 1)
    assert not below({"a": 1}, 1)


@pytest.mark.parametrize(
    ("one", "two", "equal"),
    [
        (1, 1.0000001, True), (1, 1.1, False), ([1, 2], (1, 2), True), ([1, 2], [2, 1], False), (True, 1, True),
        ({1, 2}, {2, 1}, True), ({"a": [1.0]}, {"a": [1]}, True), ({"a": 1}, {"b": 1}, False), ("1", 1, False),
        (float("nan"), float("nan"), True), (float("inf"), 1e308, False), (None, 0, False), (b"a", b"a", True),
        (object(), 5, True), (10**4000, 10**4000, True), (10**4000, 10**4000 + 1, False), (2**64, 2.0**64, True),
    ],
)  # fmt: skip
def test_equality_is_lenient_about_form_and_strict_about_values(
    one: object, two: object, equal: bool
) -> None:
    assert same(encode(one), encode(two)) is equal
    assert same(encode(two), encode(one)) is equal


def test_encoded_values_show_as_python() -> None:
    for value in ([1, (2,), {"a": {3}}], "x'y", None, -1.5, (), set(), {}):
        assert eval(show(encode(value))) == value
    assert same(encode([3, 1]), encode([1, 3]), unordered=True)


def test_seeds_are_moved_only_where_they_are_written() -> None:
    assert reseeded({"t.py": "import random\nrandom.seed(3)\n"})[0][1]["t.py"].endswith("random.seed(4)")
    assert reseeded({"t.py": "x = 1\n"}) == []
