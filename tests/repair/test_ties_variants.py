"""Ties are seen where gold chooses among equals; variants of gold are other texts of the same behaviour."""

from __future__ import annotations

from typing import Any

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Suite, Task
from acidtest.repair.ties import made_of_pieces, speaks_of_ties, tie_twins
from acidtest.repair.variants import variants_of
from acidtest.verifiers.mutation.apply import apply_diff

CLOSEST = """def closest(numbers, goal):
    best = None
    for number in numbers:
        if best is None or abs(number - goal) < abs(best - goal):
            best = number
    return best
"""


def run(source: str, name: str, *args: Any) -> Any:
    space: dict[str, Any] = {}
    exec(source, space)
    return space[name](*args)


def test_a_twin_differs_on_ties_only() -> None:
    (twin,) = tie_twins(CLOSEST)
    assert run(CLOSEST, "closest", [1, 3], 2) == 1
    assert run(twin, "closest", [1, 3], 2) == 3
    assert run(twin, "closest", [1, 4], 2) == run(CLOSEST, "closest", [1, 4], 2) == 1


def test_selections_by_key_are_turned_and_comparisons_with_constants_are_not() -> None:
    source = (
        "def f(words):\n    if len(words) < 3:\n        return words\n    return sorted(words, key=len)\n"
    )
    (twin,) = tie_twins(source)
    assert run(source, "f", ["ab", "c", "d"]) == ["c", "d", "ab"]
    assert run(twin, "f", ["ab", "c", "d"]) == ["d", "c", "ab"]
    assert tie_twins("def f(:") == []


@pytest.mark.parametrize(
    ("result", "args", "pieces"),
    [
        ((2.0, 2.2), ([1.0, 2.0, 2.2],), True),
        ("ab", ("xaby",), True),
        ([3, 1], ([1, 2, 3],), True),
        (True, ([True],), False),
        (7, ([1, 2],), False),
        ([], ([1],), False),
        (None, ([None],), False),
    ],
)
def test_what_is_made_of_pieces_of_the_input(result: Any, args: Any, pieces: bool) -> None:
    assert made_of_pieces(result, args) is pieces


def test_a_text_that_speaks_of_ties() -> None:
    assert speaks_of_ties("Return the first one in case of multiple strings of the same length.")
    assert not speaks_of_ties("Return the two numbers that are closest to each other.")


def task(gold: str) -> Task:
    stub = "def f(x):\n    raise NotImplementedError\n"
    return Task(
        task_id="t",
        dataset="toy",
        prompt="",
        suite=Suite(command="python test_solution.py", framework="plain"),
        gold_patch=Patch.writing({"solution.py": gold}, {"solution.py": stub}).text,
        files={"solution.py": stub},
        metadata={"entry_point": "f", "solution_file": "solution.py"},
    )


GOLD = '''def f(x):
    """Say it."""
    total = 0
    for item in x:  # all of them
        if item > 2:
            total += item
        else:
            total -= 1
    return total * 2
'''


def test_variants_are_other_texts_of_the_same_behaviour() -> None:
    one = task(GOLD)
    variants = variants_of(one)
    texts = [dict(apply_diff(dict(one.files), patch.text))["solution.py"] for patch in variants]
    assert len(set(texts)) == len(texts) == 4
    assert GOLD not in texts
    for text in texts:
        for value in ([], [1], [3], [1, 2, 3, 4]):
            assert run(text, "f", value) == run(GOLD, "f", value), text
    assert len(variants_of(one, limit=2)) == 2
    assert variants_of(one, seed=1)[0] != variants[0]


def test_nothing_is_renamed_where_names_are_read_at_run_time() -> None:
    gold = "def f(x):\n    total = x\n    other = locals()\n    return other['total']\n"
    one = task(gold)
    for patch in variants_of(one):
        assert run(dict(apply_diff(dict(one.files), patch.text))["solution.py"], "f", 3) == 3


def test_variants_of_the_toy_functions_parse() -> None:
    for one in load_tasks("toy"):
        for patch in variants_of(one):
            for path, text in apply_diff(dict(one.files), patch.text).items():
                if path.endswith(".py"):
                    compile(text, path, "exec")
