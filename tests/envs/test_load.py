"""Sources, adapters and the form of the tasks that ship with the package."""

from __future__ import annotations

import pytest

from acidtest.envs.errors import ConfigError, UnknownName
from acidtest.envs.load import load_tasks
from acidtest.envs.task import Task


def test_toy_teaches_every_state() -> None:
    taught = {task.metadata["teaches"] for task in load_tasks("toy")}
    assert taught >= {
        "sound",
        "weak",
        "tamperable",
        "broken gold",
        "no-op passes",
        "flaky",
        "too narrow",
        "slow",
    }


def test_humaneval_is_the_whole_package() -> None:
    tasks = load_tasks("humaneval")
    assert [t.task_id for t in tasks] == [f"HumanEval/{n}" for n in range(164)]
    assert all("NotImplementedError" in t.files["solution.py"] for t in tasks)


def test_limit_and_ids() -> None:
    assert [t.task_id for t in load_tasks("humaneval", limit=2)] == ["HumanEval/0", "HumanEval/1"]
    chosen = load_tasks("toy", task_ids=["toy/slow", "toy/add_weak"])
    assert [t.task_id for t in chosen] == ["toy/add_weak", "toy/slow"]
    with pytest.raises(ConfigError, match="toy has no task toy/none"):
        load_tasks("toy", task_ids=["toy/none"])
    with pytest.raises(ConfigError, match="limit is -1"):
        load_tasks("toy", limit=-1)


def test_unknown_name_lists_what_exists() -> None:
    with pytest.raises(UnknownName, match=r"There are: .*humaneval.*toy"):
        load_tasks("humanevil")


@pytest.mark.parametrize("source", ["toy", "humaneval"])
def test_tasks_round_trip_and_have_their_tests(source: str) -> None:
    for task in load_tasks(source):
        assert Task.from_json(task.to_json()) == task
        assert task.suite.fail_to_pass
        assert task.gold_patch.startswith("diff --git ")
        if task.is_function:
            assert task.metadata["entry_point"] in task.files[task.metadata["solution_file"]]
            assert '__name__ == "__main__"' in task.suite.test_files["test_solution.py"]
