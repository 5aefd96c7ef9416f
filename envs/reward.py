"""What a verdict pays: the reward modes, and the policy for incidents."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from .errors import ConfigError
from .incident import Incident, Severity
from .run import Status
from .task import Suite, Task
from .verdict import Outcome, Verdict

RewardFunction = Callable[[Task, Verdict], float | None]
RewardMode = str | RewardFunction

MODES = ("resolved", "fraction")
_ACTIONS = ("zero", "log", "original")


def reward_of(task: Task, verdict: Verdict, mode: RewardMode = "resolved") -> float | None:
    """The reward of a verdict under a mode; None where no reward may be given.

    ``resolved``: 1.0 or 0.0. ``fraction``: the share of the suite's expected tests (added ones included) that passed,
    below 1.0 unless resolved, and 0.0 for every outcome but RESOLVED and UNRESOLVED (a partial score is easier to
    game than the whole verdict: what no twin has confirmed is paid for). A callable gets (task, verdict) and is asked
    only when the verdict is decisive; it returns a finite number, or None to mask.
    Raises ConfigError for an unknown mode or a reward that is not finite.
    """
    if verdict.reward is None:
        return None
    if callable(mode):
        value = mode(task, verdict)
        if value is not None and not math.isfinite(value):
            raise ConfigError(
                f"The reward function gave {value} for task {task.task_id!r}; it has to be finite or None."
            )
        return None if value is None else float(value)
    if mode == "resolved":
        return verdict.reward
    if mode == "fraction":
        return _fraction(task.suite, verdict)
    raise ConfigError(f"No reward mode {mode!r}.", mend=f"There are: {', '.join(MODES)}; or give a function.")


def _fraction(suite: Suite, verdict: Verdict) -> float:
    if verdict.outcome is Outcome.RESOLVED:
        return 1.0
    if verdict.outcome is not Outcome.UNRESOLVED:
        return 0.0
    added = set(suite.added.test_ids) if suite.added else set()
    original = {i: s for i, s in verdict.statuses.items() if i not in added}
    total = len(original) + len(added)
    passed = sum(s is Status.PASSED for s in original.values()) + _passed_added(added, verdict)
    return 0.0 if total == 0 else min(passed / total, (total - 1) / total)


def _passed_added(added: set[str], verdict: Verdict) -> int:
    """How many added tests passed: none where the original tests failed, because then none of them ran."""
    if seen := [verdict.statuses[ident] for ident in added if ident in verdict.statuses]:
        return sum(status is Status.PASSED for status in seen)
    failed = len(added & set(verdict.failed_added)) or len(verdict.failed_added)
    return max(0, len(added) - failed) if failed else 0


def _default_actions() -> dict[str, float | str]:
    return {Severity.TAMPER: "zero", Severity.FALSE_PASS: "zero", Severity.NOTICE: "log"}


@dataclass(frozen=True)
class Policy:
    """What an incident does to the reward, by severity and by kind.

    An action is ``"zero"`` (pay 0.0), a number (pay exactly that, usually negative), ``"log"`` (log only: the reward
    stays what the mode gives), or ``"original"`` (what the suite without the added tests pays: to measure what a weak
    suite teaches, never to train). `kinds` (zoo ids) overrides `severities`.
    A masked reward stays masked whatever the policy says.
    """

    severities: Mapping[str, float | str] = field(default_factory=_default_actions)
    kinds: Mapping[str, float | str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, action in {**self.severities, **self.kinds}.items():
            if action not in _ACTIONS and not isinstance(action, int | float):
                raise ConfigError(
                    f"Policy for {name!r} is {action!r}.", mend='Give "zero", "log", "original" or a number.'
                )
            if isinstance(action, int | float) and not math.isfinite(action):
                raise ConfigError(f"Policy for {name!r} is {action}, which is not finite.")
        unknown = set(self.severities) - {str(s) for s in Severity}
        if unknown:
            raise ConfigError(f"No severity {sorted(unknown)}.", mend=f"There are: {', '.join(Severity)}.")

    def apply(self, reward: float | None, incident: Incident | None) -> float | None:
        """The reward after the policy."""
        if reward is None or incident is None:
            return reward
        action = self.kinds.get(incident.kind, self.severities.get(incident.severity, "log"))
        if action == "zero":
            return 0.0
        if action == "log":
            return reward
        if action == "original":
            return incident.reward_original
        return float(action)
