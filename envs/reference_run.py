"""Make the `Reference` of a task's suite: run gold, then gold's sabotaged twin."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from . import grade as grading
from .defence import STRICT
from .diff_policy import plan
from .patch import Patch
from .prepared import Part
from .protocols import Limits, SandboxBackend, SandboxSpec
from .reference import Reference
from .run import Status
from .run_suite import Observation, run_job
from .task import Suite, Task
from .twin import FAIL, RESPONDED
from .verdict import Outcome

LEFT_OUT = {Status.XFAIL, Status.SKIPPED, Status.XPASS}


def make_reference(
    backend: SandboxBackend, task: Task, suite: Suite, part: Part, limits: Limits | None = None
) -> Reference:
    """Two runs in two sandboxes; one more where gold's run does not end. Raises SandboxError.

    Gold that does not resolve is a fact of the Reference.
    """
    gold = Patch(task.gold_patch)
    planned = plan(task, gold, suite, STRICT, part.trusted.paths)
    if planned.rejected:
        return Reference(log=f"gold patch rejected: {planned.rejected}")

    changed: set[str] = set()

    def run(replies: dict[str, str]) -> Observation:
        with backend.open(SandboxSpec.of(task, limits)) as sandbox:
            seen = run_job(sandbox, planned, part.job(STRICT), STRICT, replies)
        changed.update(seen.changed)
        return seen

    real = run({})
    if not real.rejected and not real.run.finished:
        real = run({})
    if real.rejected:
        return Reference(log=f"gold patch does not apply: {real.rejected}")
    statuses = real.report.statuses
    ids = part.framework.map_ids(suite.expected_ids, list(statuses), real.report.aliases)
    if not real.run.finished:  # what it did not come to is not known to be no test
        ids = grading.certain(ids)
    excluded = {**ids.unmapped} | _left_out(suite, ids.mapped, statuses)
    mapped = {ident: executed for ident, executed in ids.mapped.items() if ident not in excluded}
    wanted = {i: mapped.get(i, (i,)) for i in suite.expected_ids if i not in excluded}
    outcome, _ = grading.grade(wanted, real.run)
    keys = {ident: own for ident, asked in real.report.keys.items() if (own := part.own_keys(ident, asked))}
    responsive, unresponsive, twin_seconds = _gold_twin(run, part, keys)
    return Reference(
        statuses=statuses,
        mapped=mapped,
        excluded=excluded,
        keys=keys,
        responsive=responsive,
        unresponsive=unresponsive,
        replaced=real.report.replaced,
        changed=tuple(sorted(changed)),
        seconds=real.run.seconds,
        twin_seconds=twin_seconds,
        resolved=outcome is Outcome.RESOLVED and not _lost_f2p(suite, excluded),
        finished=real.run.finished,
        log="" if outcome is Outcome.RESOLVED else real.run.log[-4000:],
    )


def _left_out(
    suite: Suite, mapped: Mapping[str, tuple[str, ...]], statuses: Mapping[str, Status]
) -> dict[str, str]:
    """PASS_TO_PASS ids that gold itself skips or xfails: old logs counted them as passed, exact accounting cannot."""
    out = {}
    for ident in suite.pass_to_pass:
        seen = {statuses.get(executed, Status.MISSING) for executed in mapped.get(ident, ())}
        if seen & LEFT_OUT and not seen - LEFT_OUT - {Status.PASSED}:
            out[ident] = f"gold itself is reported as {', '.join(sorted(seen & LEFT_OUT))}"
    return out


def _lost_f2p(suite: Suite, excluded: Mapping[str, str]) -> bool:
    """Whether every FAIL_TO_PASS id is left out: then nothing shows that the task was solved."""
    return bool(suite.fail_to_pass) and all(i in excluded for i in suite.fail_to_pass)


def _gold_twin(
    run: Callable[[dict[str, str]], Observation], part: Part, keys: Mapping[str, tuple[str, ...]]
) -> tuple[tuple[str, ...], tuple[str, ...], float]:
    """(ids that failed when told to, ids that did not, seconds of the twin)."""
    if not keys:
        return (), (), 0.0
    twin = run(dict.fromkeys(part.keys, FAIL))
    responsive = tuple(i for i in keys if twin.report.statuses.get(i) in RESPONDED)
    return responsive, tuple(i for i in keys if i not in set(responsive)), twin.run.seconds
