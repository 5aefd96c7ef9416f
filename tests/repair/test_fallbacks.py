"""Whatever a program that knows the visible tests does elsewhere, some chosen input gives it away."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from acidtest.envs.load import load_tasks
from acidtest.repair.describe import described
from acidtest.repair.fallbacks import Known, cut_programs, distance, fallbacks, visible_constants
from acidtest.repair.widen import far_inputs
from acidtest.verifiers.mutation.functions import FunctionView
from acidtest.verifiers.oracle.domain import Domain
from acidtest.verifiers.oracle.shapes import learn


def longest_run(items: list[int]) -> int:
    return len(items) - items.count(0)


VISIBLE = [([],), ([1, 0],), ([1, 2, 3, 0],)]
INPUTS = [([5],), ([0, 0, 0],), ([1, 2, 3, 4, 5],), ([7, 8],), ([0] * 6,)]


def known(visible: list[Any] = VISIBLE, inputs: list[Any] = INPUTS) -> Known:
    return Known(
        visible=visible,
        visible_results=[longest_run(*call) for call in visible],
        inputs=inputs,
        results=[longest_run(*call) for call in inputs],
    )


def test_every_constant_of_the_visible_results_is_given_away() -> None:
    assert visible_constants([0, 1, 3, 1]) == [0, 1, 3]
    assert visible_constants([None, True, True, False, 4, 5]) == [None, True, False, 4]
    found = fallbacks(known())
    assert found["constant 0"] == {0, 2, 3}, "gold gives 0 on the two others"
    assert found["constant 1"] == {1, 2, 3, 4}


def test_sizes_that_no_visible_call_has_are_told_apart_by_what_gold_gives_there() -> None:
    found = fallbacks(known())
    assert found["beyond argument 0, constant 0"] == {2}, "on the other longer input gold gives that constant"
    assert found["unseen length of argument 0, constant 0"] == {0, 2}


def test_the_result_of_the_most_similar_visible_input_is_a_fallback_too() -> None:
    found = fallbacks(known(inputs=[([1, 0],), ([1, 0, 0],), ([1, 2],)]))
    assert found["most similar visible input"] == {2}, "one and a half ways to [1, 0], whose result is 1"


def test_a_fallback_that_no_input_gives_away_is_left_out() -> None:
    assert "constant 0" not in fallbacks(known(inputs=[([0],), ([0, 0],)]))


def test_cuts_keep_as_much_as_the_longest_visible_argument() -> None:
    view = FunctionView.of(*load_tasks("toy", task_ids=["toy/add_weak"]))
    programs = cut_programs(view, [("ab", "c"), ("a", "")])
    assert set(programs) == {f"{part} of argument {n}" for part in ("head", "tail") for n in (0, 1)}
    space: dict[str, Any] = {}
    exec(programs["head of argument 0"], space)
    assert space["add"]("xyz", "w") == "xyw"
    exec(programs["tail of argument 1"], space)
    assert space["add"]("x", "123") == "x3"
    assert cut_programs(view, [(1, 2)]) == {}, "numbers have no tail"


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=2), inner, max_size=2),
    max_leaves=8,
)


@given(values, values)
def test_distances_are_finite_and_nothing_is_far_from_itself(one: Any, two: Any) -> None:
    assert distance(one, one) == 0
    assert math.isfinite(distance(one, two))
    assert distance(one, two) >= 0


def domain(*calls: tuple[Any, ...]) -> Domain:
    shapes = [learn([call[at] for call in calls]) for at in range(len(calls[0]))]
    return Domain(
        names=("x", "y")[: len(calls[0])], visible=list(calls), examples=[], shapes=shapes, relations={}
    )


def test_far_inputs_are_admitted_and_some_are_longer_than_all_visible_ones() -> None:
    for held in (
        domain(([1, 2],), ([3],), ([4, 0, 2, 1],)),
        domain(("ab",), ("a",), ("bcab",)),
        domain(([1], "xyz"), ([1, 2], "x"), ([3, 4, 5], "")),
    ):
        made = far_inputs(held, seed=3)
        longest = max(len(call[0]) for call in held.visible)
        assert all(held.admits(args) for args in made)
        assert any(len(args[0]) > longest for args in made)
        assert made == far_inputs(held, seed=3)
    assert far_inputs(domain((1,), (2,)), seed=3) == []


def test_known_words_meet_in_many_orders() -> None:
    words = ("zero one two", "two", "one two two", "zero zero one", "one")
    held = domain(*((text,) for text in words))
    texts = [args[0] for args in far_inputs(held, seed=0)]
    described_words = described(held, [(text,) for text in texts], ["'x'"] * len(texts))
    orders = {word for found in described_words for word in found if ":before " in word}
    assert {
        f"0:before {a}>{b}" for a in ("zero", "one", "two") for b in ("zero", "one", "two") if a != b
    } <= orders


def test_a_result_that_is_one_of_few_is_told_with_the_size_it_came_at() -> None:
    held = domain(([1, 2],), ([3],))
    short, long = described(held, [([1],), ([1, 2],)], ["True", "True"])
    assert "True with 0:len 1" in short
    assert "True with 0:len 2" in long
    (many,) = described(held, [([4, 9, 5],)], ["9"])
    assert "-> stands in 0 between" in many
