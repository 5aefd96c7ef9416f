"""The R2E-Gym and SWE-Gym adapters: what a row becomes, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.datasets import r2e_gym
from acidtest.envs.errors import TaskError
from acidtest.envs.load import adapter_for, load_tasks

TEST_1 = """import unittest
class Base:
    def test_shared(self): ...
class TestX(Base, unittest.TestCase):
    def test_y(self): ...
def test_top(): ...
@pytest.mark.parametrize("n", [1, 2])
def test_p(n): ...
"""
TEST_2 = "def test_top(): ...\ndef test_old(): ...\n"
SUMMARY = "=== short test summary info ===\n"
EXPECTED = {
    "TestX.test_y": "PASSED",
    "TestX.test_shared": "PASSED",
    "test_top": "PASSED",
    "test_p[1]": "PASSED",
    "test_p[2]": "FAILED",
    "test_old": "PASSED",
    "test_generated": "PASSED",
}


def row(**changes: Any) -> dict[str, Any]:
    def side(path: str, old: str, new: str, **more: Any) -> dict[str, Any]:
        return {"header": {"file": {"path": path}}, "old_file_content": old, "new_file_content": new, **more}

    diffs = [
        side("pkg/a.py", "x = 1\n", "x = 2\n"),
        side("pkg/new.py", "", "y = 1\n", minus_file={"path": "/dev/null"}, plus_file={"path": "pkg/new.py"}),
        side("pkg/tests/test_a.py", "a\n", "b\n"),
    ]
    execution = {
        "test_file_names": ["r2e_tests/test_1.py", "test_2.py"],
        "test_file_codes": [TEST_1, TEST_2],
        "old_commit_res_stdout": f"{SUMMARY}PASSED r2e_tests/test_2.py::test_old\nFAILED r2e_tests/test_1.py::TestX::test_y - x\n",
    }
    return {
        "repo_name": "orange3",
        "docker_image": "namanjain12/orange3_final:abc",
        "commit_hash": "22e98f8f4cccc25f0d0217f9f4251b66d49b4237",
        "problem_statement": "prefix [ISSUE]\n\n**Title:** broken\n\n[/ISSUE] suffix",
        "parsed_commit_content": json.dumps({"file_diffs": diffs}),
        "execution_result_content": json.dumps(execution),
        "expected_output_json": json.dumps(EXPECTED),
        "modified_files": ["pkg/a.py"],
        **changes,
    }


def test_a_row_becomes_a_task(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps(row()) + "\n")
    assert adapter_for(path)[0].__name__.endswith("r2e_gym")
    (task,) = load_tasks(path)
    assert task.task_id == "orange3-22e98f8f4ccc"
    assert task.prompt == "**Title:** broken\n"
    assert (task.image, task.workdir, task.timeout_s) == ("namanjain12/orange3_final:abc", "/testbed", 300.0)
    assert "pkg/new.py" in task.gold_patch
    assert "new file mode" in task.gold_patch
    assert "test_a.py" not in task.gold_patch, "the fix's own tests are no part of the gold patch"
    assert set(task.suite.test_files) == {"r2e_tests/test_1.py", "r2e_tests/test_2.py"}
    assert "r2e_tests/**" in task.protected_paths
    assert "/r2e_tests" in task.metadata["hidden_paths"]


def test_keys_are_resolved_to_executed_ids() -> None:
    task = r2e_gym.task_of(row(), "row 0")
    one, two = "r2e_tests/test_1.py::", "r2e_tests/test_2.py::"
    assert set(task.suite.fail_to_pass) == {
        f"{one}TestX::test_y",
        f"{one}TestX::test_shared",  # inherited from a base of the same file
        f"{one}test_top",
        f"{two}test_top",  # the published key has no file: both are meant
        f"{one}test_p[1]",
    }
    assert task.suite.pass_to_pass == (f"{two}test_old",)
    assert task.metadata["expected_failing"] == [f"{one}test_p[2]"], "expected FAILED asks for nothing"
    assert task.metadata["unresolved"] == ["test_generated"]
    assert task.metadata["expected"] == EXPECTED


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"expected_output_json": None}, "no field 'expected_output_json'"),
        ({"expected_output_json": '{"test_old": "PASSED"}'}, "no test that passes only after the fix"),
        ({"execution_result_content": "{"}, "'execution_result_content' is not JSON"),
        ({"execution_result_content": '{"test_file_names": ["a"], "test_file_codes": []}'}, "1 test names and 0 texts"),
        ({"parsed_commit_content": '{"file_diffs": []}'}, "nothing but tests"),
        ({"parsed_commit_content": '{"file_diffs": [{"header": {"file": {"path": "a.bin"}}}]}'}, "no text for 'a.bin'"),
    ],
)  # fmt: skip
def test_rows_that_cannot_be_used_say_why(changes: dict[str, Any], message: str) -> None:
    if changes.get("expected_output_json"):
        changes["execution_result_content"] = json.dumps(
            {"test_file_names": ["t.py"], "test_file_codes": ["def test_old(): ..."], "old_commit_res_stdout": f"{SUMMARY}PASSED t.py::test_old\n"}
        )  # fmt: skip
    with pytest.raises(TaskError, match=message):
        r2e_gym.task_of(row(**changes), "rows.jsonl: line 3")


def test_published_partial_rows_are_refused_with_the_field(data_dir: Path) -> None:
    with pytest.raises(
        TaskError, match=r"row 0 \(orange3 22e98f8f4ccc\): no field 'expected_output_json'|row 0.*no field"
    ):
        load_tasks(f"r2e-gym:{data_dir / 'samples/r2e_gym_partial_rows.json'}")


def test_swe_gym_rows(data_dir: Path) -> None:
    path = data_dir / "samples" / "swe_gym_5rows.jsonl"
    assert adapter_for(path)[0].__name__.endswith("swe_gym")
    tasks = load_tasks(path)
    assert [t.task_id for t in tasks][:2] == ["getmoto__moto-7365", "getmoto__moto-6920"]
    first = tasks[0]
    assert first.dataset == "swe-gym"
    assert first.image == "xingyaoww/sweb.eval.x86_64.getmoto_s_moto-7365:latest"
    assert first.suite.fail_to_pass == (
        "tests/test_dynamodb/test_dynamodb_update_expressions.py::test_update_item_add_float",
    )
    assert all(len(t.suite.pass_to_pass) >= 1 for t in tasks)
    assert "tests/test_dynamodb/test_dynamodb_update_expressions.py" in first.suite.command
