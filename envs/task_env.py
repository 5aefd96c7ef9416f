"""What both environments share: picking a task, judging a patch, and the `info` that comes back."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, Protocol, SupportsFloat

import gymnasium

from .defence import Defence, defence_of
from .errors import ConfigError, SandboxError, UnknownName
from .incident import incident_of
from .patch import Patch
from .reward import Policy, RewardMode, reward_of
from .spaces import TextSpace, clip
from .task import Task
from .verdict import Verdict

PromptFunction = Callable[[Task], str]
SANDBOXES = f"{__package__}.sandboxes"
StepResult = tuple[str, SupportsFloat, bool, bool, dict[str, Any]]


class Judge(Protocol):
    """What an environment needs of a `Verifier`."""

    def verify(self, task: Task, patch: Patch) -> Verdict: ...
    def close(self) -> None: ...


class TaskEnv(gymnasium.Env[str, str]):
    """Base of `CodeEnv` and `ShellEnv`: text in, text out, one task an episode. Not used by itself.

    tasks: tasks, or the name of a data set (`load_tasks`). verifier: anything with `verify(task, patch)`; None opens a
    `Verifier(**verifier_options)` at the first verdict and closes it with the environment, as it does with what a factory made; one that is given
    stays open and may be shared by many environments. One opened here is `open_verifier`'s. reward, policy: see `envs/reward.py`. order: ``random`` (seeded) or
    ``sequential``. known: patch digest -> zoo id of findings, to name incidents. prompt: makes the observation of a task.
    """

    metadata = {"render_modes": ["ansi"], "render_fps": 1}  # noqa: RUF012 (gymnasium's own class attribute)

    def __init__(
        self,
        tasks: Iterable[Task] | str = "toy",
        *,
        verifier: Judge | Callable[[], Judge] | None = None,
        reward: RewardMode = "resolved",
        policy: Policy | None = None,
        order: str = "random",
        known: Mapping[str, str] | None = None,
        prompt: PromptFunction | None = None,
        max_chars: int = 200_000,
        render_mode: str | None = None,
        **verifier_options: Any,
    ) -> None:
        if order not in ("random", "sequential"):
            raise ConfigError(f"No order {order!r}.", mend="There are: random, sequential.")
        check_verifier(verifier, verifier_options)
        self.tasks: tuple[Task, ...] = ()
        self.set_tasks(_load(tasks) if isinstance(tasks, str) else tasks)
        self.task: Task | None = None
        self.reward_mode, self.policy, self.order = reward, policy or Policy(), order
        self.known = dict(known or {})
        self.prompt: PromptFunction = prompt or (lambda task: task.prompt)
        self.max_chars = max_chars
        self.action_space = TextSpace(max_chars)
        self.observation_space = TextSpace(max_chars)
        self.render_mode = render_mode
        self._make = verifier if callable(verifier) else None
        self._verifier: Judge | None = None if callable(verifier) else verifier
        self._options, self._own = verifier_options, self._verifier is None
        self._next = 0
        self._last = ""
        self._open = False

    def set_tasks(self, tasks: Iterable[Task]) -> None:
        """Serve other tasks, from the next reset on. This is how a wrapper swaps suites in."""
        self.tasks = tuple(tasks)
        if not self.tasks:
            raise ConfigError("An environment needs at least one task.")

    def pick(self, options: Mapping[str, Any] | None) -> Task:
        """The next task: ``options["task_id"]``, ``options["index"]``, else by `order`."""
        options = options or {}
        if "task_id" in options:
            for task in self.tasks:
                if task.task_id == options["task_id"]:
                    return task
            known = ", ".join(t.task_id for t in self.tasks[:8])
            raise UnknownName(f"No task {options['task_id']!r} here.", mend=f"There are: {known} …")
        if "index" in options:
            if not 0 <= int(options["index"]) < len(self.tasks):
                raise UnknownName(
                    f"No task {options['index']} here.", mend=f"There are {len(self.tasks)}, from 0."
                )
            return self.tasks[int(options["index"])]
        if self.order == "random":
            return self.tasks[int(self.np_random.integers(len(self.tasks)))]
        self._next += 1
        return self.tasks[(self._next - 1) % len(self.tasks)]

    def begin(self, seed: int | None, options: Mapping[str, Any] | None) -> tuple[str, dict[str, Any]]:
        """Seed, pick, open the episode; the observation is the task's prompt."""
        super().reset(seed=seed, options=dict(options or {}))
        if seed is not None:
            self._next = 0
        self.task = self.pick(options)
        self._open = True
        return self.show(self.prompt(self.task)), self.task_info(self.task)

    def task_info(self, task: Task) -> dict[str, Any]:
        return {"task_id": task.task_id, "dataset": task.dataset, "suite_digest": task.suite.digest}

    def running(self) -> Task:
        """The task of the open episode; raises gymnasium's ResetNeeded when there is none."""
        if self.task is None or not self._open:
            raise gymnasium.error.ResetNeeded("call reset() first: the episode is over, or none was begun")
        return self.task

    def show(self, text: str) -> str:
        self._last = clip(text, self.max_chars)
        return self._last

    @property
    def verifier(self) -> Judge:
        if self._verifier is None and self._make:
            self._verifier = self._make()
        if self._verifier is None:
            self._verifier = open_verifier(self.reward_mode, **self._options)
        judge: Judge = self._verifier
        return judge

    def judge(
        self, task: Task, patch: Patch, extra: Mapping[str, Any] | None = None
    ) -> tuple[float, dict[str, Any]]:
        """Verify and pay. Infrastructure that failed gives 0.0 with ``reward_valid`` False, never an honest 0."""
        info = {**self.task_info(task), "patch": patch.text, **(extra or {})}
        try:
            verdict = self.verifier.verify(task, patch)
        except SandboxError as error:
            return 0.0, info | unjudged(f"{type(error).__name__}: {error}")
        incident = incident_of(patch, verdict, known=self.known)
        reward = self.policy.apply(reward_of(task, verdict, self.reward_mode), incident)
        return (0.0 if reward is None else reward), info | {
            "verdict": verdict,
            "outcome": str(verdict.outcome),
            "incident": incident,
            "reward_valid": reward is not None,
            "reward_original": verdict.original_reward,
            "reward_hardened": verdict.reward,
            "error": "",
        }

    def finish(self, outcome: str) -> str:
        """Close the episode; the last observation names the outcome and nothing of the tests."""
        self._open = False
        return self.show(f"Submitted. Outcome: {outcome}.")

    def render(self) -> str | None:
        return self._last if self.render_mode == "ansi" else None

    def close(self) -> None:
        self._open = False
        if self._own and self._verifier is not None:
            self._verifier.close()
            self._verifier = None


def unjudged(error: str) -> dict[str, Any]:
    """The `info` of an episode that infrastructure kept from a verdict."""
    return {
        "verdict": None,
        "outcome": "infrastructure",
        "incident": None,
        "reward_valid": False,
        "reward_original": None,
        "reward_hardened": None,
        "error": error,
    }


def check_verifier(verifier: object, options: Mapping[str, Any]) -> None:
    """Refuse options that no `Verifier` takes, at once and not at the first verdict. Raises ConfigError, UnknownName."""
    if not options:
        return
    if verifier is not None:
        raise ConfigError(f"{sorted(options)} belong to a verifier, and one was given.")
    from .registry import find
    from .verify import Verifier

    known = list(inspect.signature(Verifier).parameters)
    if unknown := sorted(set(options) - set(known)):
        raise ConfigError(f"No option {unknown[0]!r} here.", mend=f"A verifier takes: {', '.join(known)}.")
    if (defence := options.get("defence")) is not None:
        defence_of(defence)
    if isinstance(sandbox := options.get("sandbox"), str) and sandbox:
        find(SANDBOXES, sandbox)


def open_verifier(reward: RewardMode, **options: Any) -> Judge:
    """A `Verifier` for a reward mode (imported only now: it brings the sandboxes with it).

    For ``resolved``, which pays the whole verdict or nothing, the added tests end at the first failure
    (`Defence.fail_fast`) unless the options bring a `Defence`, which is taken as it is. Other modes look at all tests.
    """
    from .verify import Verifier

    if reward == "resolved" and not isinstance(named := options.get("defence", "strict"), Defence):
        options = {**options, "defence": replace(defence_of(named), fail_fast=True)}
    return Verifier(**options)


def _load(source: str) -> list[Task]:
    from .load import load_tasks

    return load_tasks(source)
