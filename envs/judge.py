"""One patch through all layers, each run in a fresh sandbox. No cache, no retry: `verify.py` has those."""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

from . import grade as grading
from .added import accuses, asked_again, run_apart, stop_rule, with_added
from .case import Case, Examined, Ran
from .defence import STRICT, Defence
from .diff_policy import Plan, plan
from .integrity import replaced, rewritten
from .patch import Patch
from .prepared import Prepared
from .probe import may_define_a_class, sort_alarms
from .protocols import IdMap, Limits, SandboxBackend, SandboxSpec
from .reference import Reference
from .run_suite import Observation, run_job
from .task import Suite, Task
from .twin import Choice, Weighed, choose, report_of, weigh
from .verdict import Notice, Outcome, Verdict


class Judge:
    """Stateless but for its backend. seed: of the twin's choice."""

    def __init__(self, backend: SandboxBackend, *, limits: Limits | None = None, seed: int = 0) -> None:
        self.backend = backend
        self.limits = limits
        self.seed = seed

    def judge(
        self,
        task: Task,
        patch: Patch,
        suite: Suite,
        defence: Defence,
        prepared: Prepared,
        reference: Reference | None,
        gold_alarms: Callable[[], frozenset[str]] | None = None,
    ) -> Verdict:
        """Raises SandboxError and TaskError; everything that the submission does is in the Verdict."""
        started = time.perf_counter()
        planned = plan(task, patch, suite, defence, prepared.paths)
        case = Case(
            task=task,
            patch=patch,
            suite=suite,
            defence=defence,
            prepared=prepared,
            reference=reference,
            planned=planned,
            seed=self.seed,
            gold_alarms=gold_alarms,
        )
        if planned.rejected:
            return _rejected(case, planned.rejected, started)
        ran = self._real(case)
        if ran.original.rejected:
            return _rejected(case, ran.original.rejected, started)
        examined = Examined(outcome=ran.claim)
        if ran.claim is Outcome.RESOLVED and defence.accounting:
            brought = prepared.original.untrusted(task)
            if why := grading.undecidable(suite, ran.wanted, brought):
                undecided = Examined(outcome=Outcome.UNDECIDED, evidence=(f"the suite cannot decide: {why}",))
                return _verdict(case, ran, undecided, started)
            examined = self._checks(case, ran)
            if examined.outcome is Outcome.RESOLVED and defence.repeat and accuses(case, ran):
                ran, examined = self._repeat(case, ran, examined)
        return _verdict(case, ran, examined, started)

    def _checks(self, case: Case, ran: Ran) -> Examined:
        """Beacons and twin on a claimed pass, and the probe at the same time, in a sandbox of its own: it costs no wait."""
        examine = self._examine if case.defence.beacons else _believed
        if not (case.defence.probe and may_define_a_class(case.planned.added_text)):
            return examine(case, ran)
        with ThreadPoolExecutor(1) as pool:
            probing = pool.submit(self._probe, case)
            examined = examine(case, ran)
            probed = probing.result()
        return _with_probe(examined, probed) if examined.outcome is Outcome.RESOLVED else examined

    def _real(self, case: Case) -> Ran:
        """The real run; the added tests run only after an original part that claims a pass, in a sandbox of their own."""
        started = time.perf_counter()
        defence = case.defence
        with self.backend.open(self._spec(case.task)) as sandbox:
            isolation = sandbox.isolation
            seen = run_job(sandbox, case.planned, case.prepared.original.job(defence), defence)
        if seen.rejected:
            return Ran(original=seen)
        wanted = grading.expected(case.suite, _ids(case, seen))
        claim, statuses = grading.claimed(wanted, seen.run, exact=defence.accounting)
        ran = Ran(
            original=seen,
            wanted=wanted,
            claim=claim,
            statuses=statuses,
            added_claim=claim,
            isolation=isolation,
        )
        if case.prepared.added is not None:
            ran = replace(ran, added_claim=Outcome.UNRESOLVED)
            if claim is Outcome.RESOLVED:
                ran = with_added(case, ran, self._added(case))
        return replace(ran, seconds=time.perf_counter() - started)

    def _added(self, case: Case, replies: Mapping[str, str] | None = None) -> Observation:
        """The added tests in a sandbox of their own. replies: the twin's, which never stops early."""
        job = case.prepared.added_job(case.defence)
        spec, stop = self._spec(case.task), stop_rule(case)
        return run_apart(self.backend, spec, case.planned, job, case.defence, replies, stop)

    def _repeat(self, case: Case, ran: Ran, before: Examined) -> tuple[Ran, Examined]:
        """The added tests once more: what refuses correct code by chance must not accuse it."""
        started = time.perf_counter()
        ran, fact = asked_again(case, ran, self._added(case))
        seconds = {**before.seconds, "repeat": time.perf_counter() - started}
        return ran, replace(before, evidence=before.evidence + ((fact,) if fact else ()), seconds=seconds)

    def _spec(self, task: Task) -> SandboxSpec:
        return SandboxSpec.of(task, self.limits)

    def _examine(self, case: Case, ran: Ran) -> Examined:
        """Beacons, then integrity, then twin, each as far as it is on."""
        keys, added_keys = _keys(case, ran)
        lacking = grading.lacking_beacons(keys, ran.original.run, keys)
        if ran.added is not None:
            lacking += grading.lacking_beacons(added_keys, ran.added.run, added_keys)
        if lacking:
            shown = ", ".join(lacking[:5])
            fact = f"{len(lacking)} tests claim a pass but their bodies never reached the end: {shown}"
            return Examined(outcome=Outcome.TAMPERED, evidence=(fact,))
        if case.defence.integrity and (fact := _replaced(case, ran)):
            return Examined(outcome=Outcome.TAMPERED, evidence=(fact,))
        seed = f"{case.seed}:{case.task.task_id}:{case.patch.digest}"
        if random.Random(seed + ":twin").random() >= case.defence.twin:
            return Examined(outcome=Outcome.RESOLVED)
        able = dict(keys)
        if case.reference is not None:
            able = {i: keys[i] for i in case.reference.responsive if i in keys}
        must = [e for ident in case.suite.fail_to_pass for e in ran.wanted.get(ident, ())] + list(added_keys)
        choice = choose(must, list(able), {**able, **added_keys}, case.defence.twin_sample, seed)
        if not choice.ids:
            notice = Notice(kind="untwinable", detail="no expected test can be told to fail")
            return Examined(outcome=Outcome.RESOLVED, notices=(notice,))
        return self._twin(case, choice, with_added=bool(added_keys))

    def _probe(self, case: Case) -> Examined:
        """The comparison probe on a claimed pass; gold's own alarms do not count."""
        started = time.perf_counter()
        alarms = self.alarms(case.task, case.planned, case.prepared)
        golds: frozenset[str] = frozenset()
        if case.gold_alarms is None:  # a library's wildcard may be the tests' own
            alarms = [alarm for alarm in alarms if not alarm.get("wild")]
        elif alarms:
            golds = case.gold_alarms()
        proofs, others = sort_alarms(alarms, golds, case.planned.paths)
        return Examined(
            outcome=Outcome.TAMPERED if proofs else Outcome.RESOLVED,
            evidence=tuple(proofs[:5]),
            notices=tuple(Notice(kind="probe", detail=text) for text in others[:5]),
            seconds={"probe": time.perf_counter() - started},
        )

    def alarms(self, task: Task, planned: Plan, prepared: Prepared) -> list[Mapping[str, object]]:
        """Probe alarms of one submission on the original and the added tests."""
        seen = run_apart(self.backend, self._spec(task), planned, prepared.original.probe_job(STRICT), STRICT)
        found = list(seen.report.alarms)
        if prepared.added is not None:
            job = prepared.added_job(STRICT, probe=True)
            more = run_apart(self.backend, self._spec(task), planned, job, STRICT)
            found += [{**alarm, "key": f"added {alarm.get('key')}"} for alarm in more.report.alarms]
        return found

    def _twin(self, case: Case, choice: Choice, *, with_added: bool) -> Examined:
        """Run the twin, once more when it is not clean; a pass whose tail was told to fail is proof at once."""
        started = time.perf_counter()
        attempt, weighed = 1, self._twin_once(case, choice, with_added)
        if not weighed.clean and not weighed.proven:
            attempt, weighed = 2, self._twin_once(case, choice, with_added)
        seconds = time.perf_counter() - started
        outcome, evidence = Outcome.RESOLVED, ""
        if claims := weighed.proven + weighed.suspicious:
            outcome = Outcome.TAMPERED
            evidence = f"tests that were told to fail are reported as passed: {', '.join(claims[:5])}"
        elif weighed.absent:
            outcome = Outcome.UNDECIDED
            evidence = (
                f"tests that were told to fail are not reported at all: {', '.join(weighed.absent[:5])}"
            )
        return Examined(
            outcome=outcome,
            evidence=(evidence,) if evidence else (),
            twin=report_of(choice, weighed, attempt, round(seconds, 4)),
            seconds={"twin": seconds},
        )

    def _twin_once(self, case: Case, choice: Choice, with_added: bool) -> Weighed:
        with self.backend.open(self._spec(case.task)) as sandbox:
            job = case.prepared.original.job(case.defence)
            first = run_job(sandbox, case.planned, job, case.defence, choice.replies)
        statuses, asked = dict(first.report.statuses), dict(first.report.keys)
        if with_added:
            second = self._added(case, choice.replies)
            statuses |= second.report.statuses
            asked |= second.report.keys
        return weigh(choice, statuses, asked)


def _believed(case: Case, ran: Ran) -> Examined:
    return Examined(outcome=ran.claim)


def _with_probe(before: Examined, probed: Examined) -> Examined:
    return replace(
        before,
        outcome=probed.outcome,
        evidence=before.evidence + probed.evidence,
        notices=before.notices + probed.notices,
        seconds={**before.seconds, **probed.seconds},
    )


def _replaced(case: Case, ran: Ran) -> str:
    """What integrity has to say; nothing without gold, whose own replacements are no finding."""
    if case.reference is None:
        return ""
    parts = [ran.original] + ([ran.added] if ran.added is not None else [])
    objects = [name for seen in parts for name in seen.report.replaced]
    files = [name for seen in parts for name in seen.changed]
    return replaced(objects, case.reference.replaced) or rewritten(files, case.reference.changed)


def _ids(case: Case, seen: Observation) -> IdMap:
    """As gold's run maps them; as this run does where gold's did not end, or there is none: then none is left out."""
    if case.reference is not None and case.reference.mapped and case.reference.finished:
        return case.reference.ids
    part = case.prepared.original
    found = part.framework.map_ids(case.suite.expected_ids, list(seen.report.statuses), seen.report.aliases)
    return grading.certain(found)


def _keys(case: Case, ran: Ran) -> tuple[dict[str, tuple[str, ...]], dict[str, tuple[str, ...]]]:
    """Executed id -> beacon keys of its own body, for the original and the added tests.

    As gold asked them; for tasks without gold, and for added tests, read off the sources by name.
    """
    executed = [e for ids in ran.wanted.values() for e in ids]
    if case.reference is None:
        keys = case.prepared.original.static_keys(executed)
    else:
        keys = {i: case.reference.keys[i] for i in executed if case.reference.keys.get(i)}
    added, part = case.suite.added, case.prepared.added
    if added is None or part is None or ran.added_claim is not Outcome.RESOLVED:
        return keys, {}
    return keys, part.static_keys(added.test_ids)


def _verdict(case: Case, ran: Ran, examined: Examined, started: float) -> Verdict:
    outcome = examined.outcome
    if outcome is Outcome.RESOLVED and ran.added_claim is not Outcome.RESOLVED:
        outcome = ran.added_claim
    seconds = {
        "patch": ran.original.patch_s,
        "run": ran.original.run.seconds,
        "added": ran.added.run.seconds if ran.added else 0.0,
        "sandbox": ran.seconds,
        **examined.seconds,
        "total": time.perf_counter() - started,
    }
    return Verdict(
        task_id=case.task.task_id,
        patch_digest=case.patch.digest,
        suite_digest=case.suite.digest,
        outcome=outcome,
        original_outcome=examined.outcome,
        statuses={**ran.statuses, **ran.added_statuses},
        failed_added=ran.failed_added,
        unrun_added=ran.unrun_added,
        run=ran.original.run,
        twin=examined.twin,
        notices=case.planned.notices + examined.notices,
        evidence=examined.evidence,
        defence=case.defence.label,
        isolation=ran.isolation,
        seconds={name: round(value, 4) for name, value in seconds.items()},
    )


def _rejected(case: Case, reason: str, started: float) -> Verdict:
    return Verdict(
        task_id=case.task.task_id,
        patch_digest=case.patch.digest,
        suite_digest=case.suite.digest,
        outcome=Outcome.PATCH_REJECTED,
        original_outcome=Outcome.PATCH_REJECTED,
        notices=case.planned.notices,
        evidence=(reason,),
        defence=case.defence.label,
        seconds={"total": round(time.perf_counter() - started, 4)},
    )
