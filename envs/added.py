"""The tests that repair added: always in a sandbox that has run nothing, and asked twice before they accuse.

While the original tests run, so does the submission, and it may leave anything behind: a conftest, a start-up file,
byte code, its own source rewritten. The added tests therefore never share a sandbox with them. And a test that fails
once and passes once says nothing about the submission. Pure but for `run_apart`; `judge.py` decides when.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from . import grade as grading
from .case import Case, Ran
from .defence import Defence
from .diff_policy import Plan
from .errors import SandboxError
from .protocols import SandboxBackend, SandboxSpec
from .run import Status
from .run_suite import Job, Observation, run_job
from .verdict import Outcome

FAILED = {Status.FAILED, Status.ERROR}
LIMITS = {Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY}


def run_apart(
    backend: SandboxBackend,
    spec: SandboxSpec,
    plan: Plan,
    job: Job,
    defence: Defence,
    replies: Mapping[str, str] | None = None,
    stop: tuple[str, ...] = (),
) -> Observation:
    """The submission and a job in a fresh sandbox. Raises SandboxError, also where it applied before and does not now."""
    with backend.open(spec) as sandbox:
        seen = run_job(sandbox, plan, job, defence, replies, stop)
    if seen.rejected:
        raise SandboxError(f"A submission applied in one sandbox and not in the next: {seen.rejected}.")
    return seen


def with_added(case: Case, ran: Ran, seen: Observation) -> Ran:
    """The real run, completed by what the added tests showed. Of tests that a stopped run did not get to, nothing."""
    claim, statuses = grading.claimed(_wanted(case), seen.run, exact=case.defence.accounting)
    unrun: tuple[str, ...] = ()
    if seen.run.stopped:
        unrun = tuple(ident for ident, status in statuses.items() if status is Status.MISSING)
        statuses = {ident: status for ident, status in statuses.items() if ident not in unrun}
    failed = tuple(ident for ident, status in statuses.items() if status is not Status.PASSED)
    return replace(
        ran,
        added=seen,
        added_claim=claim,
        added_statuses=statuses,
        failed_added=failed,
        unrun_added=unrun,
    )


def stop_rule(case: Case) -> tuple[str, ...]:
    """The ids of which one failed ends the added part of the real run: none without `fail_fast`."""
    added = case.suite.added
    return added.test_ids if case.defence.fail_fast and added is not None else ()


def accuses(case: Case, ran: Ran) -> bool:
    """Whether the added tests refuse what the original ones pay, and not by a limit alone (that is no accusation)."""
    if ran.added is None or ran.added_claim is Outcome.RESOLVED or not case.defence.accounting:
        return False
    return ran.added_claim not in LIMITS or any(ran.added_statuses[i] in FAILED for i in ran.failed_added)


def asked_again(case: Case, ran: Ran, seen: Observation) -> tuple[Ran, str]:
    """(the real run after a second look at the added tests, what to say of it; "" where the failure stands).

    A failure stands when one test failed both times, or no single test failed and the run as a whole did again. Else
    the claim is UNDECIDED. What a limit, or another test's failure (`fail_fast`), kept from ending the second time
    has not failed again.
    """
    claim, statuses = grading.claimed(_wanted(case), seen.run, exact=True)
    cut_short = claim in LIMITS or seen.run.stopped
    again = tuple(
        ident
        for ident in ran.failed_added
        if statuses[ident] in FAILED or (statuses[ident] is not Status.PASSED and not cut_short)
    )
    if again or (not ran.failed_added and claim is not Outcome.RESOLVED and not cut_short):
        return replace(ran, failed_added=again), ""
    names = ", ".join(ran.failed_added[:5]) or "the run as a whole"
    return replace(ran, added_claim=Outcome.UNDECIDED), f"added tests failed once and not again: {names}"


def _wanted(case: Case) -> dict[str, tuple[str, ...]]:
    return {ident: (ident,) for ident in case.suite.added.test_ids} if case.suite.added else {}
