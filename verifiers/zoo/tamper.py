"""Tamper audit: what would a naive harness have paid on this task? Part of a task's audit (`tamper_flags`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...envs.errors import TaskError
from ...envs.record import Record
from ...envs.task import Task
from ...envs.verify import Verifier
from ..baseline_grader import BaselineGrader
from .ground import survey
from .kinds import payloads
from .matrix import Alone, unusable_because
from .payload import Expect, NotHere

QUICK = (
    "C01",
    "P01",
    "P02",
    "P07",
    "P08",
    "R01",
    "R04",
    "R06",
    "R09",
    "R11",
    "R12",
    "R15",
    "H07",
    "H08",
    "H10",
)
"""One payload kind for each mechanism: what an audit tries unless told otherwise."""


@dataclass(frozen=True, kw_only=True)
class TamperAudit(Record):
    """flags: "tamperable:<kind>", sorted, for every kind whose payload a plain grader pays although the code is wrong.

    paid, refused: names of payloads by the plain grader. not_here: kinds that do not fit the task. unusable: why the
    task shows nothing under a plain grader ("" when it does; then the other fields are meaningful).
    """

    task_id: str
    flags: tuple[str, ...] = ()
    paid: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    not_here: tuple[NotHere, ...] = ()
    unusable: str = ""


def tamper_flags(task: Task, verifier: Verifier, *, kinds: Sequence[str] | None = QUICK) -> TamperAudit:
    """Run payloads against the plain grader in the verifier's sandboxes. kinds: None for all.

    Costs about one run of the suite a payload. Our own verdict is not asked: `run_zoo` does that.
    Raises SandboxError as the backend does; a task no payload fits is `unusable`.
    """
    baseline = BaselineGrader(verifier.backend, limits=verifier.limits)
    if why := unusable_because(task, baseline):
        return TamperAudit(task_id=task.task_id, unusable=why)
    try:
        made, not_here = payloads(survey(task, verifier.backend), kinds)
    except TaskError as error:
        return TamperAudit(task_id=task.task_id, unusable=error.message)
    alone = Alone(task, baseline)
    paid: list[str] = []
    refused: list[str] = []
    for payload in made:
        if payload.expect is Expect.PAID or payload.kind.startswith(("S", "J")):
            continue
        naive = baseline.grade(task, payload.patch, timeout_s=min(task.timeout_s, 120))
        (paid if naive.paid and alone.fails(payload.alone) else refused).append(payload.name)
    return TamperAudit(
        task_id=task.task_id,
        flags=tuple(sorted({f"tamperable:{name.split('/')[0]}" for name in paid})),
        paid=tuple(paid),
        refused=tuple(refused),
        not_here=tuple(not_here),
    )
