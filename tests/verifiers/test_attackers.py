"""Attackers: what they make of function tasks, determinism, no duplicates, patches that apply."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from acidtest.envs.errors import ConfigError, PatchError
from acidtest.envs.load import load_tasks
from acidtest.envs.task import Task
from acidtest.verifiers.attackers import memorise, mutants, recipes, rollouts
from acidtest.verifiers.mutation.apply import apply_diff, parse_diff
from acidtest.verifiers.mutation.edits import normal_form
from acidtest.verifiers.mutation.functions import FunctionView
from acidtest.verifiers.mutation.mutate import mutants as mutants_of
from acidtest.verifiers.records import Family


@pytest.fixture(scope="module")
def add() -> Task:
    return load_tasks("toy", task_ids=["toy/add_weak"])[0]


@pytest.fixture(scope="module")
def shop() -> Task:
    return load_tasks("toy", task_ids=["toy/shop"])[0]


def test_every_replacement_of_every_operator() -> None:
    found = {m.text.partition("return ")[2].strip() for m in mutants_of("def f(a, b):\n    return a + b\n")}
    assert {f"a {op} b" for op in ("-", "*", "/", "//", "%", "**")} <= found
    found = {m.text.partition("return ")[2].strip() for m in mutants_of("def f(a, b):\n    return a < b\n")}
    assert {f"a {op} b" for op in ("<=", ">", ">=", "==", "!=")} <= found


def test_precedence_is_kept_when_an_operator_changes() -> None:
    forms = [normal_form(m.text) for m in mutants_of("def f(a, b, c):\n    return (a + b) * c\n")]
    assert normal_form("def f(a, b, c):\n    return (a ** b) * c\n") in forms
    forms = [normal_form(m.text) for m in mutants_of("def f(a, b, c):\n    return a + b * c\n")]
    assert normal_form("def f(a, b, c):\n    return a * (b * c)\n") in forms


def test_only_the_chosen_lines_are_mutated_and_duplicates_are_left_out() -> None:
    text = 'def f(x):\n    """1 + 1"""\n    y = x + 1\n    return y * 2\n'
    found = mutants_of(text, {4})
    assert {m.line for m in found} == {4}
    forms = [normal_form(m.text) for m in mutants_of(text)]
    assert len(forms) == len(set(forms))
    assert normal_form(text) not in forms
    assert mutants_of("def (") == []


def test_mutants_are_deterministic_and_a_sample_keeps_its_order(add: Task) -> None:
    assert list(mutants.attack(add)) == list(mutants.attack(add))
    few = list(mutants.attack(add, seed=1, limit=5))
    assert few == list(mutants.attack(add, seed=1, limit=5))
    assert few != list(mutants.attack(add, seed=2, limit=5))
    everyone = [c.candidate_id for c in mutants.attack(add)]
    assert [c.candidate_id for c in few] == [i for i in everyone if i in {c.candidate_id for c in few}]


def test_patches_of_all_attackers_apply_to_the_stub(add: Task) -> None:
    view = FunctionView.of(add)
    families = {mutants: Family.MUTANT, recipes: Family.EXPLOIT, memorise: Family.MEMORISING}
    for attacker, family in families.items():
        found = list(attacker.attack(add))
        assert found
        for candidate in found:
            assert candidate.family is family
            source = view.source_of(candidate.patch)
            assert source is not None
            assert normal_form(source) not in (None, normal_form(view.gold))
        assert len({c.patch.digest for c in found}) == len(found)


def test_memorising_programs_pass_the_visible_calls_and_nothing_else(add: Task) -> None:
    view = FunctionView.of(add)
    for candidate in memorise.attack(add):
        scope: dict[str, object] = {}
        exec(view.source_of(candidate.patch) or "", scope)
        function = scope[view.entry_point]
        for call in view.calls:
            if call.has_expected:
                assert function(*call.args) == call.expected  # type: ignore[operator]
        assert function(31, 7) != 38  # type: ignore[operator]


def test_repository_recipes_leave_hunks_and_paths_out(shop: Task) -> None:
    found = list(recipes.attack(shop))
    assert {c.kind for c in found} <= {"S23", "S06", "S09"}
    assert found
    gold = apply_diff(shop.files, shop.gold_patch)
    for candidate in found:
        after = apply_diff(shop.files, candidate.patch.text)
        assert after != gold


def test_repository_mutants_change_only_lines_that_gold_adds(shop: Task) -> None:
    gold = apply_diff(shop.files, shop.gold_patch)
    found = list(mutants.attack(shop))
    assert len(found) > 10
    for candidate in found:
        after = apply_diff(shop.files, candidate.patch.text)
        changed = {path for path in gold if after[path] != gold[path]}
        assert changed == {candidate.metadata["path"]}


def test_diffs_without_a_final_newline_and_with_wrong_context() -> None:
    diff = "--- a/x.py\n+++ b/x.py\n@@ -1,2 +1,2 @@\n a\n-b\n\\ No newline at end of file\n+c\n\\ No newline at end of file\n"
    assert apply_diff({"x.py": "a\nb"}, diff) == {"x.py": "a\nc"}
    assert parse_diff(diff)[0].added_lines() == {2}
    with pytest.raises(PatchError):
        apply_diff({"x.py": "a\nz"}, diff)
    with pytest.raises(PatchError):
        apply_diff({}, diff)


def test_rollouts_are_read_by_task_and_checked(add: Task, tmp_path: Path) -> None:
    path = tmp_path / "rollouts.jsonl"
    rows = [
        {
            "task_id": add.task_id,
            "completion": "```python\ndef add(a, b):\n    return a * b\n```",
            "metadata": {"step": 3},
        },
        {"task_id": add.task_id, "patch": add.gold_patch, "claim": "benign"},
        {"task_id": add.task_id, "patch": add.gold_patch},
        {"task_id": "other", "patch": ""},
    ]
    path.write_text("\n".join(map(json.dumps, rows)) + "\n")
    found = list(rollouts.attack(add, path=path))
    assert [c.family for c in found] == [Family.ROLLOUT] * 2
    assert found[0].metadata == {"step": 3}
    assert "a * b" in (FunctionView.of(add).source_of(found[0].patch) or "")
    assert list(rollouts.attack(add)) == []


@pytest.mark.parametrize(
    "line",
    ["{", '{"task_id": 3, "patch": ""}', '{"task_id": "a"}', '{"task_id": "a", "patch": "", "claim": "x"}'],
)
def test_a_bad_rollouts_file_names_its_line(add: Task, tmp_path: Path, line: str) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_text("\n" + line)
    with pytest.raises(ConfigError, match=r"rollouts\.jsonl:2"):
        list(rollouts.attack(add, path=path))
    with pytest.raises(ConfigError):
        list(rollouts.attack(add, path=tmp_path / "none.jsonl"))
