"""`CodeEnv`: one task, one patch, one verdict."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from .submission import read_submission
from .task_env import StepResult, TaskEnv


class CodeEnv(TaskEnv):
    """A code task as a one-step episode.

    Observation: the task's prompt (text); after the step one line that names the outcome. Action: a unified diff, or
    any completion from which one can be read (rules in `envs/submission.py`). `step` always terminates.

    `info` of `step`: task_id, dataset, suite_digest, patch, submission_form, verdict, outcome, incident,
    reward_original (what the suite without added tests pays), reward_hardened, reward_valid, error. UNDECIDED and
    infrastructure that failed pay 0.0 with ``reward_valid`` False: leave such an episode out of the gradient.
    Deterministic under a seed where the task's suite is.
    """

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        return self.begin(seed, options)

    def step(self, action: str) -> StepResult:
        task = self.running()
        submission = read_submission(task, str(action)[: self.max_chars])
        extra: Mapping[str, Any] = {"submission_form": submission.form}
        reward, info = self.judge(task, submission.patch, extra)
        return self.finish(info["outcome"]), reward, True, False, info
