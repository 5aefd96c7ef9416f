"""TRL: a reward function for `GRPOTrainer`, and environments for its `environment_factory`.

The data set needs a column ``task_id`` (`acidtest.to_dataset(tasks, "trl")`). A masked score is returned as None: TRL turns it into
NaN and leaves it out of the group. Written against TRL 1.16; nothing of TRL is imported here.
"""

from __future__ import annotations

import atexit
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from typing import Any

from ..envs.task import Task
from .datasets import prompt_of
from .incidents import Where, open_log
from .records import Score
from .scorer import Scorer


class Reward:
    """The callable that TRL is given. `scorer` is behind it; `close` it after training (done at exit otherwise)."""

    def __init__(self, scorer: Scorer, name: str = "acidtest") -> None:
        self.scorer = scorer
        self.__name__ = name
        atexit.register(self.close)

    def __call__(
        self,
        prompts: Sequence[Any] | None = None,
        completions: Sequence[Any] = (),
        *,
        task_id: Sequence[str],
        environments: Sequence[Any] | None = None,
        trainer_state: Any = None,
        log_extra: Callable[[str, list[Any]], None] | None = None,
        log_metric: Callable[[str, float], None] | None = None,
        **columns: Any,
    ) -> list[float | None]:
        """One reward a completion, None where masked. With environments: of what they submitted.

        An environment that submitted nothing is scored on its completion, as if there were no environment.
        """
        step = getattr(trainer_state, "global_step", None)
        futures = [
            _pending(environments, i) or self.scorer.submit(task, text_of(text))
            for i, (task, text) in enumerate(zip(task_id, completions, strict=True))
        ]
        scores = [future.result() for future in futures]
        if self.scorer.log is not None:
            values = self.scorer.log.batch(scores, step)
            if log_metric is not None:
                for name, value in values.items():
                    log_metric(name, value)
        if log_extra is not None:
            for column, cells in columns_of(scores).items():
                log_extra(column, cells)
        return [score.reward for score in scores]

    def close(self) -> None:
        atexit.unregister(self.close)
        self.scorer.close()


def _pending(environments: Sequence[Any] | None, index: int) -> Future[Score] | None:
    if environments is None:
        return None
    pending: Future[Score] | None = getattr(environments[index], "_answer", None)
    return pending


def text_of(completion: Any) -> str:
    """The text of a completion: a string, or the last assistant message of a conversation."""
    if isinstance(completion, str):
        return completion
    said = [m for m in completion if m.get("role") == "assistant" and m.get("content")]
    content = said[-1]["content"] if said else ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content)


def columns_of(scores: Sequence[Score]) -> dict[str, list[Any]]:
    """Columns for the completions table."""
    return {
        "outcome": [s.outcome for s in scores],
        "incident": [s.severity for s in scores],
        "kind": [s.kind for s in scores],
        "reward_original": [s.reward_original for s in scores],
        "reward_hardened": [s.reward_hardened for s in scores],
        "masked": [s.masked for s in scores],
        "error": [s.error for s in scores],
    }


def reward(tasks: Sequence[Task], *, incidents: Where = None, **options: Any) -> Reward:
    """The reward function: ``GRPOTrainer(reward_funcs=reward(tasks, incidents="wandb"), …)``.

    incidents: where they go (`open_log`); jsonl always. options: of `Scorer` (max_concurrent, deadline_s, reward, policy,
    verifier, sandbox, …). Findings of the tasks' audit name the incidents.
    """
    options.setdefault("known", getattr(tasks, "known", {}))
    return Reward(Scorer(tasks, log=open_log(incidents), **options))


class SubmitEnvironment:
    """An episode with one tool, `submit`. The verdict is made while the other rollouts still generate."""

    def __init__(self, scorer: Scorer) -> None:
        self._scorer = scorer
        self._task: Task | None = None
        self._answer: Future[Score] | None = None

    def reset(self, *, task_id: str, **columns: Any) -> str | None:
        """Begin the task of the row. The row's own prompt stands; nothing is added to it."""
        self._task = self._scorer.tasks[task_id]
        self._answer = None
        return None

    def submit(self, patch: str) -> str:
        """Submit your solution. Only the first submission counts.

        Args:
            patch: A unified diff, or the complete function for a function task.

        Returns:
            A confirmation; the tests' result is not shown.
        """
        if self._task is None:
            return "No task was begun."
        if self._answer is not None:
            return "Already submitted; the first submission counts."
        self._answer = self._scorer.submit(self._task, patch)
        return "Submitted."


def environments(
    tasks: Sequence[Task], *, incidents: Where = None, **options: Any
) -> tuple[Callable[[], SubmitEnvironment], Reward]:
    """(environment_factory, reward function) over one Scorer, to be passed to `GRPOTrainer` together.

    The reward function reads what the environments submitted, so that steps, masks, extra columns and incidents are
    logged as without environments. TRL marks `environment_factory` as experimental.
    """
    paid = reward(tasks, incidents=incidents, **options)
    return (lambda: SubmitEnvironment(paid.scorer)), paid


def tool_prompt(task: Task) -> str:
    """A prompt for the environment form."""
    return f"{prompt_of(task, instructions=False).rstrip()}\n\nCall the tool `submit` with your solution."
