"""Chosen inputs cover what must be covered, stay few, and spread."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from acidtest.repair.select import Pool, choose, group_of, shape_of


def pool(kills: dict[str, set[int]], size: int, must: set[str] | None = None) -> Pool:
    return Pool(
        kills={name: frozenset(found) for name, found in kills.items()},
        shapes=[frozenset({f"shape {i % 3}"}) for i in range(size)],
        cost=list(range(size)),
        must=frozenset(must if must is not None else kills),
    )


def test_one_input_that_refuses_all_comes_first() -> None:
    assert choose(pool({"a": {0, 2}, "b": {1, 2}, "c": {2}}, 4))[0] == 2


def test_rare_programs_are_covered_even_when_others_weigh_more() -> None:
    chosen = choose(pool({"a": {0}, "b": {0, 1}, "c": {0, 1}, "d": {3}}, 5, must={"a", "d"}), 2)
    assert set(chosen) == {0, 3}


def test_after_the_cover_new_shapes_are_taken() -> None:
    chosen = choose(pool({"a": {0}}, 6), 3)
    assert chosen[0] == 0
    assert {i % 3 for i in chosen} == {0, 1, 2}


@given(
    st.dictionaries(st.text("abcdef", min_size=1, max_size=3), st.sets(st.integers(0, 14)), max_size=12),
    st.integers(1, 10),
)
def test_the_limit_holds_and_coverable_programs_are_covered_when_there_is_room(
    kills: dict[str, set[int]], limit: int
) -> None:
    chosen = choose(pool(kills, 15), limit)
    assert len(chosen) == len(set(chosen)) <= limit
    open_programs = {p for p, found in kills.items() if found and not found & set(chosen)}
    assert not open_programs or len(chosen) == limit
    assert choose(pool(kills, 15), limit) == chosen, "the same pool gives the same choice"


def test_shapes_tell_what_inputs_have_in_common() -> None:
    assert shape_of([[1, 2, 2]]) != shape_of([[1, 2, 3]])
    assert shape_of([5, "ab"]) == shape_of([4 + 1, "ba"])
    assert shape_of([-1]) != shape_of([1])
    assert shape_of([float("nan")]) != shape_of([0.5])
    assert shape_of([[3, 2]]) != shape_of([[2, 3]])


def test_a_new_length_is_worth_as_much_as_many_new_characters() -> None:
    chars = [frozenset({"0:len 9", *(f"0:has {n}{i}" for i in range(20))}) for n in "abc"]
    shapes = [*chars, frozenset({"0:len 1", "0:has z"})]
    chosen = choose(Pool(kills={}, shapes=shapes, cost=[1, 1, 1, 1]), 2)
    assert 3 in chosen


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4) | st.binary(max_size=2),
    lambda inner: (
        st.lists(inner, max_size=4) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=2), inner)
    ),
    max_leaves=8,
)


@given(plain)
def test_any_plain_value_has_a_shape_and_every_word_a_respect(value: object) -> None:
    assert all(isinstance(group_of(word), str) for word in shape_of(value))
