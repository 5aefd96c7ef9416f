"""Gates that run the proposed tests: against gold, against correct programs, against the programs to be blocked."""

from __future__ import annotations

import re

from ...envs.run import Status
from ...envs.verdict import Outcome
from ..defects import Defect, bounded, classify
from ..records import Check
from .trial import AddedRun, Trial, failed, passed

CHANCE = re.compile(
    r"\b(random|time|datetime|uuid|secrets|urandom|hash|id|thread\w*|asyncio|monotonic|perf_counter|getpid)\b"
)
WAITS = re.compile(r"\b\w*(sleep|wait|select|poll|join|timeout|Timer)\w*\b")
"""Names of waiting: its length does not grow with the load of the machine."""
CHANCE_RUNS = 10
"""Executions of tests that mention a source of chance: one that fails half of the time slips through 1 in 500."""


def collects(trial: Trial) -> Check:
    """The files load and every named id is executed (passed or not) when gold is in place."""
    name, run = "collects", trial.bench.run(trial.gold, trial.added)
    if run.timed_out:
        return passed(name, "ran into the time limit (see the time budget)")
    absent = [i for i in trial.added.test_ids if run.statuses.get(i, Status.MISSING) is Status.MISSING]
    skipped = [i for i in trial.added.test_ids if run.statuses.get(i) is Status.SKIPPED]
    if absent or run.outcome is Outcome.NO_TESTS_RAN:
        defect = classify(run.log, _source(trial), collected=False)
        return failed(name, f"not executed: {', '.join(absent[:5]) or 'all'}\n{bounded(run.log)}", defect)
    if skipped:
        return failed(name, f"skipped: {', '.join(skipped[:5])}\n{bounded(run.log)}", Defect.UNCOLLECTABLE)
    return passed(name, f"{len(trial.added.test_ids)} ids executed")


def within_time_budget(trial: Trial) -> Check:
    """The added tests take little time under gold: an absolute budget, or the suite's own time where that is longer.

    Late on a loaded machine is measured once more, beside the bare suite: the budget grows as that one does, unless
    the tests wait for something: waiting takes no longer on a slow machine.
    """
    name, run, factor = "within time budget", trial.bench.run(trial.gold, trial.added), 1.0
    budget = max(trial.limits.max_seconds, trial.limits.max_share * trial.suite_seconds)
    most = 3 * budget + 2 * trial.suite_seconds

    def late(one: AddedRun) -> bool:
        return one.timed_out or one.seconds > factor * budget or one.wall > factor * most

    if late(run) and not run.timed_out:
        run, slowness = trial.bench.timed(trial.added, trial.suite_seconds)
        waits = WAITS.search(_source(trial)) is not None
        factor = 1.0 if waits else min(max(1.0, slowness), trial.limits.max_slowness)
    slower = f", the bare suite {factor:.1f} times slower than before" if factor > 1 else ""
    if late(run):
        took = "the time limit" if run.timed_out else f"{run.seconds:.1f} s ({run.wall:.1f} s in all)"
        allowed = f"{factor * budget:.1f} s ({factor * most:.1f} s in all)"
        return failed(name, f"took {took} of {allowed}{slower}", Defect.TIMEOUT)
    return passed(name, f"{run.seconds:.2f} s of {factor * budget:.1f} s{slower}")


def not_flaky(trial: Trial) -> Check:
    """Under gold the same tests give the same statuses: repeated, other hash seeds, shuffled, each first and last."""
    name = "not flaky"
    runs = CHANCE_RUNS if CHANCE.search(_source(trial)) else trial.limits.gold_runs
    first = trial.bench.run(trial.gold, trial.added)
    for repeat in range(1, runs):
        again = trial.bench.run(trial.gold, trial.added, repeat=repeat)
        differ = _differences(first, again)
        if differ:
            return failed(
                name, f"execution {repeat + 1} of {runs}: {differ}\n{bounded(again.log)}", Defect.FLAKY
            )
    for label, turned in trial.bench.other_orders(trial.gold, trial.added):
        for test_id, status in turned.statuses.items():
            if status is not first.statuses.get(test_id):
                there = first.statuses.get(test_id)
                return failed(
                    name, f"{test_id} depends on order: {there} in file order, {status} {label}", Defect.FLAKY
                )
    return passed(name, f"{runs} executions agree, in file order and in others")


def gold_passes(trial: Trial) -> Check:
    """Gold passes n of n: every added id, every time."""
    name, good, n = "gold passes", 0, trial.limits.gold_runs
    for repeat in range(n):
        run = trial.bench.run(trial.gold, trial.added, repeat=repeat)
        if not _all_passed(trial, run):
            defect = classify(run.log, _source(trial), timed_out=run.timed_out)
            ids = ", ".join(run.failed_ids[:5])
            return failed(name, f"{good} of {n}; failed: {ids}\n{bounded(run.log)}", defect)
        good += 1
    return passed(name, f"{good} of {n}")


def correct_programs_pass(trial: Trial) -> Check:
    """Every known-correct alternative and behaviour-preserving variant passes: else the tests are too strict."""
    name = "correct programs pass"
    for label, patch in trial.correct.items():
        run = trial.bench.run(patch, trial.added)
        if not _all_passed(trial, run):
            return failed(
                name,
                f"{label} is refused by {', '.join(run.failed_ids[:5])}\n{bounded(run.log)}",
                "too strict",
            )
    return passed(name, f"{len(trial.correct)} correct programs")


def blocks_a_target(trial: Trial) -> Check:
    """At least one program that the suite paid now fails an added test, every time it is executed."""
    name = "blocks a target"
    trial.blocked.clear()
    for candidate in trial.targets:
        runs = []
        for repeat in range(trial.limits.block_runs):
            runs.append(trial.bench.run(candidate.patch, trial.added, repeat=repeat))
            if not is_block(trial, runs[-1]):
                break
        else:
            trial.blocked.append(candidate.candidate_id)
    if not trial.blocked:
        return failed(name, f"all of {len(trial.targets)} targets pass the added tests", "blocks nothing")
    return passed(
        name,
        f"{len(trial.blocked)} of {len(trial.targets)} targets, {trial.limits.block_runs} executions each",
    )


def survives_the_twin(trial: Trial) -> Check:
    """Told to fail at its end, each added test fails: none swallows the failure it is supposed to report."""
    name, run = "survives the twin", trial.bench.run(trial.gold, trial.added)
    if not run.passed:
        return failed(name, "; ".join(run.evidence) or f"outcome under gold: {run.outcome}", "cannot fail")
    deaf = trial.bench.deaf(trial.added)
    if deaf:
        return failed(name, f"told to fail, and not reported as failed: {', '.join(deaf[:5])}", "cannot fail")
    return passed(name, f"{len(trial.added.test_ids)} ids fail when told to")


def is_block(trial: Trial, run: AddedRun) -> bool:
    """Whether this execution refused the program by an added test that ran (not by missing ids alone)."""
    if run.timed_out:
        return True
    return any(run.statuses.get(i) in {Status.FAILED, Status.ERROR} for i in trial.added.test_ids)


def _all_passed(trial: Trial, run: AddedRun) -> bool:
    return all(run.statuses.get(i) is Status.PASSED for i in trial.added.test_ids)


def _differences(first: AddedRun, again: AddedRun) -> str:
    differ = [
        f"{name} {status} then {again.statuses.get(name, Status.MISSING)}"
        for name, status in first.statuses.items()
        if again.statuses.get(name, Status.MISSING) is not status
    ]
    return "; ".join(differ[:5])


def _source(trial: Trial) -> str:
    return "\n".join(trial.added.test_files.values())
