"""`to_dataset`: tasks as a `datasets.Dataset` in the row form of each trainer.

No row carries the gold patch or the trusted tests: what a trainer logs or shows its model stays free of them. The ground
truth of a row is the task's id; the hook of the trainer looks the task up.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from ..envs.errors import ConfigError
from ..envs.task import Task

FUNCTION_HOW = "Answer with the complete function in one ```python block."
REPOSITORY_HOW = "Answer with one unified diff (as `git diff` prints it) in a ```diff block."


def prompt_of(task: Task, *, instructions: bool = True) -> str:
    """The task's prompt, and how to answer so that `read_submission` finds the patch."""
    how = FUNCTION_HOW if task.is_function else REPOSITORY_HOW
    return f"{task.prompt.rstrip()}\n\n{how}" if instructions else task.prompt


def _chat(prompt: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": prompt}]


def _trl(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {"prompt": _chat(prompt), "task_id": task.task_id}


def _trl_text(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {"prompt": prompt, "task_id": task.task_id}


def _verl(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {
        "data_source": "acidtest",
        "prompt": _chat(prompt),
        "ability": "code",
        "reward_model": {"style": "rule", "ground_truth": task.task_id},
        "extra_info": {"index": index, "task_id": task.task_id, "dataset": task.dataset},
        "agent_name": "single_turn_agent",
    }


def _verifiers(task: Task, prompt: str, index: int) -> dict[str, Any]:
    info = json.dumps({"task_id": task.task_id, "dataset": task.dataset})
    return {"example_id": index, "prompt": _chat(prompt), "answer": "", "info": info, "task": "acidtest"}


def _openrlhf(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {"input": prompt, "label": task.task_id}


def _skyrl(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {
        "data_source": "acidtest",
        "prompt": _chat(prompt),
        "env_class": "acidtest",
        "reward_spec": {"method": "rule", "ground_truth": task.task_id},
        "extra_info": {"task_id": task.task_id},
    }


def _nemo(task: Task, prompt: str, index: int) -> dict[str, Any]:
    return {"responses_create_params": {"input": _chat(prompt)}, "task_id": task.task_id}


_ROWS: dict[str, Callable[[Task, str, int], dict[str, Any]]] = {
    "trl": _trl,
    "trl-text": _trl_text,
    "verl": _verl,
    "verifiers": _verifiers,
    "openrlhf": _openrlhf,
    "skyrl": _skyrl,
    "nemo": _nemo,
}


def rows_of(tasks: Sequence[Task], format: str = "trl", *, instructions: bool = True) -> list[dict[str, Any]]:  # noqa: A002
    """The rows as plain dicts. Raises ConfigError for a format that does not exist."""
    if format not in _ROWS:
        raise ConfigError(f"No row form {format!r}.", mend=f"There are: {', '.join(_ROWS)}.")
    make = _ROWS[format]
    return [make(task, prompt_of(task, instructions=instructions), i) for i, task in enumerate(tasks)]


def to_dataset(tasks: Sequence[Task], format: str = "trl", *, instructions: bool = True) -> Any:  # noqa: A002
    """A `datasets.Dataset` with one row a task, in the order of `tasks`."""
    from datasets import Dataset

    return Dataset.from_list(rows_of(tasks, format, instructions=instructions))
