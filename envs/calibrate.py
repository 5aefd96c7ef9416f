"""Calibration: what must hold of a task before any verdict about it counts. A task that fails is flagged, not used.

Gold resolves n of n in the suite's own order (shuffled: order dependence and flakiness are flags), the no-op does
not, the rewritten suite gives the same outcomes as the original one, the twin of gold fails everywhere, ids are mapped
or listed. One record a task; nothing here is a judgement about submissions.

Not covered: leaks in the image, time limits under load, other Python versions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from . import grade as grading
from .defence import STRICT
from .diff_policy import Plan, plan
from .errors import AcidtestError
from .patch import Patch
from .prepared import Part
from .protocols import Limits, SandboxBackend, SandboxSpec
from .record import Record
from .reference import Reference
from .run import Status
from .run_suite import Observation, run_job
from .task import Suite, Task
from .vanished import vanished
from .verdict import Outcome

SLOW_S, SLOW_FUNCTION_S = 20.0, 1.8
SHUFFLES = 2


class Flag(StrEnum):
    """Flags of a calibration. The first five make a task unusable (`ok` False)."""

    BROKEN_GOLD = "broken_gold"
    NOOP_PASSES = "noop_passes"
    FLAKY = "flaky"
    BROKEN_SUITE = "broken_suite"
    NO_GOLD = "no_gold"
    ORDER_DEPENDENT = "order_dependent"
    SLOW = "slow"
    IDS_EXCLUDED = "ids_excluded"
    UNTWINABLE = "untwinable"
    REWRITING_DIFFERS = "rewriting_differs"


UNUSABLE = {Flag.BROKEN_GOLD, Flag.NOOP_PASSES, Flag.FLAKY, Flag.BROKEN_SUITE, Flag.NO_GOLD}


@dataclass(frozen=True, kw_only=True)
class Calibration(Record):
    """ok: the task may be used. flags, reasons: what was found, one reason a flag at least.

    gold_runs, gold_passed: in the suite's own order. shuffled_runs, shuffled_passed: in other orders (backwards, then random).
    ids_expected: of the suite. ids_mapped: expected id -> executed ids, only where they differ from the id itself.
    ids_excluded: expected id -> why it does not count. compared: tests whose outcome in the rewritten suite was
    compared with the original one; compared_passed: those that passed; differing: those that differ.
    with_beacons: expected executed tests whose tail gold reaches. twin_responsive: those that fail when told to;
    twin_unresponsive: the others by id. uncovered: test functions without a tail. seconds: gold, twin, no-op, original
    (wall seconds of the command).
    """

    task_id: str
    suite_digest: str
    ok: bool
    flags: tuple[str, ...] = ()
    reasons: tuple[str, ...] = ()
    gold_runs: int = 0
    gold_passed: int = 0
    shuffled_runs: int = 0
    shuffled_passed: int = 0
    noop_outcome: str = ""
    ids_expected: int = 0
    ids_mapped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    ids_excluded: Mapping[str, str] = field(default_factory=dict)
    compared: int = 0
    compared_passed: int = 0
    differing: tuple[str, ...] = ()
    with_beacons: int = 0
    twin_responsive: int = 0
    twin_unresponsive: tuple[str, ...] = ()
    uncovered: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict)
    log: str = ""


class Calibrator:
    """Runs one task's calibration. gold_runs: None takes 5 for suites under 2 s, 3 under 20 s, else 2."""

    def __init__(
        self,
        backend: SandboxBackend,
        task: Task,
        suite: Suite,
        part: Part,
        reference: Reference | None,
        *,
        limits: Limits | None = None,
        seed: int = 0,
        gold_runs: int | None = None,
    ) -> None:
        self.backend, self.task, self.suite, self.part = backend, task, suite, part
        self.reference, self.limits, self.seed, self.gold_runs = reference, limits, seed, gold_runs
        self.flags: dict[Flag, str] = {}

    def run(self) -> Calibration:
        """Raises SandboxError only."""
        noop = self._once(Plan())
        reference = self.reference
        if reference is None:
            bare = {i: (i,) for i in self.suite.expected_ids}
            outcome = grading.grade(bare, noop.run)[0]
            self.flags[Flag.NO_GOLD] = "the task has no gold patch to calibrate with"
            return self._record(noop_outcome=outcome, seconds={"noop": noop.run.seconds})
        wanted = grading.expected(self.suite, reference.ids)
        outcome = grading.grade(wanted, noop.run)[0]
        if outcome is Outcome.RESOLVED:
            self.flags[Flag.NOOP_PASSES] = "the suite passes without any change"
        self._read_reference(reference, wanted)
        planned = plan(self.task, Patch(self.task.gold_patch), self.suite, STRICT, self.part.trusted.paths)
        if planned.rejected or not reference.statuses:
            self.flags[Flag.BROKEN_GOLD] = reference.log.strip()[-300:] or "gold runs no test"
            return self._record(
                noop_outcome=outcome, gold_runs=1, ids_excluded=reference.excluded, log=reference.log
            )
        record = self._gold_runs(planned, reference, wanted)
        executed = {e for ids in wanted.values() for e in ids}
        return replace(
            record,
            flags=tuple(self.flags),
            reasons=tuple(self.flags.values()),
            ok=not set(self.flags) & UNUSABLE,
            noop_outcome=outcome,
            ids_mapped={i: ids for i, ids in wanted.items() if ids != (i,)},
            ids_excluded=reference.excluded,
            with_beacons=len(executed & set(reference.keys)),
            twin_responsive=len(executed & set(reference.responsive)),
            twin_unresponsive=tuple(sorted(executed - set(reference.responsive))),
            seconds={
                "gold": reference.seconds,
                "twin": reference.twin_seconds,
                "noop": noop.run.seconds,
                **record.seconds,
            },
            log=reference.log,
        )

    def _read_reference(self, reference: Reference, wanted: Mapping[str, tuple[str, ...]]) -> None:
        slow = SLOW_FUNCTION_S if self.task.is_function else SLOW_S
        if reference.seconds > slow:
            self.flags[Flag.SLOW] = f"gold takes {reference.seconds:.1f} s"
        gone = vanished(self.suite, reference.excluded, reference.statuses)
        if reference.excluded:
            kinds = sorted(set(reference.excluded.values()))
            why = f"{len(reference.excluded)} ids do not count: {'; '.join(kinds)}"
            self.flags[Flag.IDS_EXCLUDED] = f"{why}; {gone.text}" if gone.ids else why
        broken = [grading.undecidable(self.suite, wanted, self.part.untrusted(self.task))]
        broken += [gone.text] if gone.too_many else []
        if any(broken):
            self.flags[Flag.BROKEN_SUITE] = "; ".join(why for why in broken if why)
        chosen = [e for i in self.suite.fail_to_pass for e in reference.mapped.get(i, ())]
        if reference.resolved and not set(chosen) & set(reference.responsive):
            self.flags[Flag.UNTWINABLE] = "no FAIL_TO_PASS test of gold fails when told to"

    def _gold_runs(
        self, planned: Plan, reference: Reference, wanted: Mapping[str, tuple[str, ...]]
    ) -> Calibration:
        """Gold again: on the original sources, in the suite's own order, and shuffled."""

        def passes(seen: Observation) -> bool:
            return grading.grade(wanted, seen.run)[0] is Outcome.RESOLVED

        total = self.gold_runs or (5 if reference.seconds < 2 else 3 if reference.seconds < 20 else 2)
        original = self._once(planned, files=self.part.plain)
        runs = [reference.resolved, passes(original)]
        runs += [passes(self._once(planned)) for _ in range(total - 2)]
        passed = sum(runs)
        if passed == 0:
            failing = [i for i, s in grading.grade(wanted, original.run)[1].items() if s is not Status.PASSED]
            self.flags[Flag.BROKEN_GOLD] = (
                f"gold fails {len(failing)} expected tests: {', '.join(failing[:3])}"
            )
        elif passed < len(runs):
            self.flags[Flag.FLAKY] = f"gold passes {passed} of {len(runs)} runs in the suite's own order"
        shuffled = self._shuffled(planned, passes, reference) if passed == len(runs) else []
        differing = self._compare(reference, original) if passed == len(runs) else ()
        return self._record(
            gold_runs=len(runs),
            gold_passed=passed,
            shuffled_runs=len(shuffled),
            shuffled_passed=sum(shuffled),
            compared=len(set(original.report.statuses) | set(reference.statuses)),
            compared_passed=sum(s is Status.PASSED for s in original.report.statuses.values()),
            differing=differing,
            seconds={"original": original.run.seconds},
        )

    def _shuffled(
        self, planned: Plan, passes: Callable[[Observation], bool], reference: Reference
    ) -> list[bool]:
        """Whether gold passes in each of the other orders; none for a suite of a single test, which has one order."""
        if len(set(reference.statuses)) < 2:
            return []
        out = []
        for number in range(1 if self.gold_runs == 2 or reference.seconds > 20 else SHUFFLES):
            seed = self.seed * 1000 + number if number else -1
            good = passes(self._once(planned, seed=seed))
            out.append(good)
            if not good:
                again = passes(self._once(planned, seed=seed))
                flag = Flag.FLAKY if again else Flag.ORDER_DEPENDENT
                self.flags[flag] = f"gold fails in another order (seed {seed})" + (
                    ", not again" if again else ""
                )
        return out

    def _compare(self, reference: Reference, original: Observation) -> tuple[str, ...]:
        """Ids whose outcome differs between the rewritten and the original suite, asked a second time."""
        both = set(reference.statuses) | set(original.report.statuses)
        other = original.report.statuses
        differing = sorted(i for i in both if reference.statuses.get(i) != other.get(i))
        if differing:
            wanted = set(self.suite.expected_ids)
            hit = [i for i in differing if i in wanted]
            self.flags[Flag.REWRITING_DIFFERS] = (
                f"{len(differing)} tests ({len(hit)} expected) end differently in the rewritten suite: "
                f"{', '.join(differing[:3])}"
            )
        return tuple(differing)

    def _once(
        self, planned: Plan, *, seed: int | None = None, files: Mapping[str, bytes] | None = None
    ) -> Observation:
        with self.backend.open(SandboxSpec.of(self.task, self.limits)) as sandbox:
            return run_job(sandbox, planned, self.part.job(STRICT, seed=seed, files=files), STRICT)

    def _record(self, **facts: object) -> Calibration:
        return Calibration(
            task_id=self.task.task_id,
            suite_digest=self.suite.digest,
            ok=not set(self.flags) & UNUSABLE,
            flags=tuple(self.flags),
            reasons=tuple(self.flags.values()),
            ids_expected=len(self.suite.expected_ids),
            uncovered=self.part.uncovered + tuple(f"{p}: {why}" for p, why in self.part.problems.items()),
            **facts,  # type: ignore[arg-type]
        )


def broken_suite(task: Task, suite: Suite, error: AcidtestError) -> Calibration:
    """The calibration of a task whose suite cannot even be prepared (test patch, framework, command)."""
    return Calibration(
        task_id=task.task_id,
        suite_digest=suite.digest,
        ok=False,
        flags=(Flag.BROKEN_SUITE,),
        reasons=(error.message,),
        ids_expected=len(suite.expected_ids),
    )
