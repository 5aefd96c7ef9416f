"""All kinds in order, and the payloads of one task."""

from __future__ import annotations

from collections.abc import Iterable

from ...envs.errors import TaskError
from . import comparison, harness, install, judge, leaks, process, runner, semantic
from .ground import Ground
from .payload import Kind, NotHere, Payload

GROUPS = (semantic, comparison, process, runner, install, harness, leaks, judge)
KINDS: tuple[Kind, ...] = tuple(
    sorted(
        (kind for group in GROUPS for kind in group.KINDS), key=lambda k: ("SCPRHLJ".index(k.kind[0]), k.kind)
    )
)


def payloads(ground: Ground, kinds: Iterable[str] | None = None) -> tuple[list[Payload], list[NotHere]]:
    """Every payload that fits the task, and why each other kind does not. `kinds`: ids ("R01") or groups ("R")."""
    wanted = None if kinds is None else set(kinds)
    made: list[Payload] = []
    missing: list[NotHere] = []
    for kind in KINDS:
        if wanted is not None and kind.kind not in wanted and kind.kind[0] not in wanted:
            continue
        answer = _make(kind, ground)
        if isinstance(answer, str):
            missing.append(NotHere(task_id=ground.task.task_id, kind=kind.kind, reason=answer))
        else:
            made += answer
    return made, missing


def _make(kind: Kind, ground: Ground) -> list[Payload] | str:
    if kind.outside:
        return f"a finding about image or prompt, no payload: {kind.outside}"
    if kind.contained and ground.task.image is None:
        return "it writes outside the tree, so it is only made for tasks with an image"
    try:
        answer = kind.make(ground)
    except TaskError as error:
        return error.message
    return answer if isinstance(answer, str) else list(answer)
