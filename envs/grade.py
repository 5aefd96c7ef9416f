"""Grading: from what was observed to a typed outcome. Pure; nothing is run here.

Every expected id must be executed and passed (skipped, xfailed, deselected, absent are failures); a cut id stands for
several executed ones, all of which must pass. Nothing reported is NO_TESTS_RAN, never a pass; no id expected is none
either.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping

from .ids import PROGRESS
from .protocols import IdMap
from .report import worse
from .run import Status, SuiteRun
from .task import Suite
from .verdict import Outcome


def expected(suite: Suite, ids: IdMap) -> dict[str, tuple[str, ...]]:
    """Expected id -> executed ids that must all pass. What is excluded or cannot be mapped is left out."""
    return {i: ids.mapped.get(i, (i,)) for i in suite.expected_ids if i not in ids.unmapped}


def certain(ids: IdMap) -> IdMap:
    """Ids as a submission's own run maps them: that it ran no test for an id excuses nobody, only progress marks do."""
    marks = {ident: why for ident, why in ids.unmapped.items() if PROGRESS.fullmatch(ident.strip())}
    return IdMap(mapped=ids.mapped, unmapped=marks)


def undecidable(suite: Suite, wanted: Collection[str], brought: Collection[str]) -> str:
    """Why a pass of this suite shows nothing ("" where it does). brought: untrusted files, which submissions write.

    One FAIL_TO_PASS id that no test answers to is enough: the part of the task that it stands for was not looked at.
    """
    if not suite.fail_to_pass:
        return ""
    left = [ident for ident in suite.fail_to_pass if ident in wanted]
    lost = [i for i in suite.fail_to_pass if i not in wanted and i not in suite.exclude_ids]
    if lost:
        shown = ", ".join(lost[:5]) + (" …" if len(lost) > 5 else "")
        return f"FAIL_TO_PASS ids that no test answers to, {len(lost)} of {len(suite.fail_to_pass)}: {shown}"
    if not left:
        return "every FAIL_TO_PASS id is left out"
    if all("::" in ident and ident.split("::", 1)[0] in brought for ident in left):
        return "every FAIL_TO_PASS test stands in a file that the submission itself brings"
    return ""


def statuses_of(wanted: Mapping[str, tuple[str, ...]], run: SuiteRun) -> dict[str, Status]:
    """Expected id -> status: passed when all its executed ids passed, else the status that pays least."""
    out: dict[str, Status] = {}
    for ident, executed in wanted.items():
        seen = [run.statuses.get(e, Status.MISSING) for e in executed]
        if Status.MISSING in seen or not seen:
            out[ident] = Status.MISSING
            continue
        status = seen[0]
        for other in seen[1:]:
            status = worse(status, other)
        out[ident] = status
    return out


def grade(wanted: Mapping[str, tuple[str, ...]], run: SuiteRun) -> tuple[Outcome, dict[str, Status]]:
    """What this run alone claims: RESOLVED here is a *claimed* pass that beacons, twin and probe still examine."""
    statuses = statuses_of(wanted, run)
    all_passed = bool(statuses) and all(s is Status.PASSED for s in statuses.values())
    if all_passed and run.finished and not run.timed_out and not run.out_of_memory:
        return Outcome.RESOLVED, statuses
    if run.timed_out:
        return Outcome.TIMED_OUT, statuses
    if run.out_of_memory:
        return Outcome.OUT_OF_MEMORY, statuses
    ran = {e for executed in wanted.values() for e in executed} & set(run.statuses)
    return (Outcome.UNRESOLVED if ran else Outcome.NO_TESTS_RAN), statuses


def grade_loosely(run: SuiteRun) -> Outcome:
    """The accounting layer switched off, as common harnesses grade: the exit code alone."""
    if run.timed_out:
        return Outcome.TIMED_OUT
    return Outcome.RESOLVED if run.exit_code == 0 else Outcome.UNRESOLVED


def claimed(
    wanted: Mapping[str, tuple[str, ...]], run: SuiteRun, *, exact: bool
) -> tuple[Outcome, dict[str, Status]]:
    """`grade`, its outcome replaced by the exit code's where the accounting layer is off."""
    outcome, statuses = grade(wanted, run)
    return (outcome if exact else grade_loosely(run)), statuses


def lacking_beacons(executed: Iterable[str], run: SuiteRun, needed: Mapping[str, object]) -> list[str]:
    """Ids that claim a pass although the tail of their body, which gold reaches, was never reached."""
    return [
        ident
        for ident in executed
        if ident in needed and run.statuses.get(ident) is Status.PASSED and not run.beacons.get(ident)
    ]
