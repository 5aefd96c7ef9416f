"""Attacker `zoo`: the payloads of `verifiers/zoo` as candidates. Tamper kinds enter no rate; they say what a naive
grader would pay.

Tasks whose tree is in an image need a look into it, so `attack` opens a docker sandbox for them once per image.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...envs.errors import TaskError
from ...envs.sandboxes import open_backend
from ...envs.task import Task
from ..records import Candidate, Finding
from ..zoo.ground import Ground, survey
from ..zoo.kinds import payloads


def attack(task: Task, history: Sequence[Finding] = ()) -> Iterable[Candidate]:
    """Every payload that fits the task, in the order of THREATS. `history` is not used: the zoo does not adapt.

    Raises SandboxError where an image cannot be looked at. A task that no payload fits gives none.
    """
    try:
        made, _ = payloads(_ground(task))
    except TaskError:
        return []
    return [payload.candidate() for payload in made]


def _ground(task: Task) -> Ground:
    if task.image is None:
        return survey(task)
    backend = open_backend("docker")
    try:
        return survey(task, backend)
    finally:
        backend.close()
