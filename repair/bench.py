"""The bench: the one place where repair executes added tests, all of it through a `Verifier`.

Gold's first execution is under the strict defence (twin included); repeats and other programs run without the layers
that examine a claimed pass, and only their statuses are read. Every execution is remembered for the life of the bench,
and by the verifier's ledger where it has one: repeats differ in their key, so none is answered from another's cache.
"""

from __future__ import annotations

import ast
import secrets
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from ..envs import pyast
from ..envs.defence import STRICT, Defence
from ..envs.patch import Patch
from ..envs.record import digest_of
from ..envs.reference import Reference
from ..envs.registry import find
from ..envs.run import Status
from ..envs.task import AddedTests, Suite, Task
from ..envs.verdict import Outcome, Verdict
from .gates.trial import AddedRun, Disturbance, Observation
from .observer import instrument, read_log

STATUSES = replace(STRICT, name="statuses", accounting=False, beacons=False, twin=0.0, probe=False)
"""For repeats and for programs other than gold: only statuses are read off these runs, and no pass is paid for."""
START_SECONDS = 0.2
IN_ORDER_OF_FILE = frozenset({"plain", "pytest"})


class Judge(Protocol):
    """What the bench needs of a `Verifier`."""

    def verify(
        self, task: Task, patch: Patch, suite: Suite | None = None, *, defence: str | Defence | None = None
    ) -> Verdict: ...

    def reference(self, task: Task, suite: Suite | None = None) -> Reference | None: ...


def added_suite(task: Task, added: AddedTests, env: Mapping[str, str] | None = None) -> Suite:
    """A suite of the added tests alone, the original test files beside them (they may hold helpers)."""
    return Suite(
        command=added.command,
        framework=added.framework,
        test_files={**task.suite.test_files, **added.test_files},
        test_patch=task.suite.test_patch,
        fail_to_pass=added.test_ids,
        env={**task.suite.env, **(env or {})},
    )


class VerifierBench:
    """A `gates.trial.Bench` over a verifier.

    existing: text of the suite's own test files where they stand in an image and not in the task.
    """

    def __init__(self, task: Task, verifier: Judge, *, existing: str = "") -> None:
        self.task = task
        self.verifier = verifier
        self.executions = 0
        self._existing = existing
        self._verdicts: dict[str, Verdict] = {}

    def run(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> AddedRun:
        env = {"PYTHONHASHSEED": str(repeat), "ACIDTEST_REPEAT": str(repeat)} if repeat else {}
        strict = not repeat and patch.text == self.task.gold_patch
        return added_run(self._verify(patch, added_suite(self.task, added, env), strict=strict))

    def other_orders(self, patch: Patch, added: AddedTests) -> Iterator[tuple[str, AddedRun]]:
        """(label, run) in reversed order of definition, or of every test alone where files do not set the order."""
        if len(added.test_ids) < 2:
            return
        if added.framework in IN_ORDER_OF_FILE:
            turned = {path: reversed_tests(text) for path, text in added.test_files.items()}
            yield "reversed", self.run(patch, replace(added, test_files=turned), repeat=1)
            return
        framework = find("acidtest.envs.frameworks", added.framework).framework()
        for test_id in added.test_ids:
            suite = added_suite(self.task, added)
            only = replace(
                suite, command=framework.select(suite.command, [test_id], suite), fail_to_pass=(test_id,)
            )
            yield f"{test_id} alone", added_run(self._verify(patch, only))

    def observe(self, added: AddedTests) -> Observation:
        nonce = secrets.token_hex(8)
        watched = {path: instrument(text, nonce) for path, text in added.test_files.items()}
        if any(text is None for text in watched.values()):
            return Observation(complete=False)
        files = {path: text for path, text in watched.items() if text is not None}
        suite = added_suite(self.task, replace(added, test_files=files))
        verdict = self._verify(Patch(self.task.gold_patch), suite)
        log = verdict.run.log if verdict.run else ""
        return read_log(log, nonce, tree=self.task.workdir)

    def disturbance(self, added: AddedTests) -> Disturbance:
        gold, original = Patch(self.task.gold_patch), self.task.suite.original
        before = self._verify(gold, original, strict=True)
        runs = [self._verify(gold, replace(original, added=added), strict=True)]
        joint = self._joint_suite(added)
        if joint is not None:
            runs.append(self._verify(gold, joint))
        changed: dict[str, str] = {}
        if before.resolved and not runs[0].resolved:
            changed["gold under the whole hardened suite"] = f"{before.outcome} -> {runs[0].outcome}"
        for run in runs:
            for test_id in original.expected_ids:
                was, now = before.statuses.get(test_id), run.statuses.get(test_id, Status.MISSING)
                if was is not None and was is not now:
                    changed[test_id] = f"{was} -> {now}"
        return Disturbance(changed=changed, compared=len(before.statuses), runs=len(runs))

    def deaf(self, added: AddedTests) -> tuple[str, ...]:
        reference = self.verifier.reference(self.task, added_suite(self.task, added))
        if reference is None:
            return added.test_ids
        heard = set(reference.responsive)
        return tuple(i for i in added.test_ids if not heard.issuperset(reference.mapped.get(i, (i,))))

    def with_executed_ids(self, added: AddedTests) -> AddedTests:
        """The same tests under the ids that the runner itself reports (a model writes them as old logs print them).

        A locked suite is accounted for by these. Unchanged where gold executes nothing under an id.
        """
        reference = self.verifier.reference(self.task, added_suite(self.task, added))
        if reference is None or not all(reference.mapped.get(i) for i in added.test_ids):
            return added
        executed = dict.fromkeys(e for i in added.test_ids for e in reference.mapped[i])
        return replace(added, test_ids=tuple(executed))

    def existing_tests(self) -> str:
        suite = self.task.suite
        return "\n".join([self._existing, suite.test_patch, *suite.test_files.values()])

    def whole(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> Verdict:
        """The verdict of the hardened suite, original tests first, strict: what an episode would be paid."""
        return self._verify(patch, replace(self.task.suite.original, added=added), strict=True, repeat=repeat)

    def timed(self, added: AddedTests, suite_seconds: float) -> tuple[AddedRun, float]:
        """See `gates.trial.Bench`. Nothing is answered from a cache: every execution here has a value of its own.

        The better of two bare runs counts, and both times get START_SECONDS on top: a short hiccup is no slow machine.
        """
        gold, original = Patch(self.task.gold_patch), self.task.suite.original
        once = [{"ACIDTEST_REPEAT": f"timed {secrets.token_hex(8)}"} for _ in range(3)]
        run = added_run(self._verify(gold, added_suite(self.task, added, once[0])))
        bare = [self._verify(gold, replace(original, env={**original.env, **env})).run for env in once[1:]]
        took = min((one.seconds for one in bare if one is not None), default=0.0)
        return run, (took + START_SECONDS) / (suite_seconds + START_SECONDS) if suite_seconds > 0 else 1.0

    def suite_seconds(self) -> float:
        """Wall seconds of the original suite's own command under gold."""
        verdict = self._verify(Patch(self.task.gold_patch), self.task.suite.original, strict=True)
        return verdict.run.seconds if verdict.run else 0.0

    def _joint_suite(self, added: AddedTests) -> Suite | None:
        """Added tests first and then the original ones, in one process; None where the command names no test file."""
        suite = self.task.suite.original
        paths = [path for path in suite.test_files if path in suite.command.split()]
        if added.framework != suite.framework or not paths or suite.framework not in IN_ORDER_OF_FILE:
            return None
        first = min(paths, key=suite.command.index)
        command = suite.command.replace(first, f"{' '.join(added.test_files)} {first}", 1)
        return replace(suite, command=command, test_files={**suite.test_files, **added.test_files})

    def _verify(self, patch: Patch, suite: Suite, *, strict: bool = False, repeat: int = 0) -> Verdict:
        key = digest_of([patch.text, suite.digest, strict, repeat])
        if key not in self._verdicts:
            self.executions += 1
            defence = replace(STRICT, twin_sample=STRICT.twin_sample + repeat) if strict else STATUSES
            self._verdicts[key] = self.verifier.verify(self.task, patch, suite, defence=defence)
        return self._verdicts[key]


def added_run(verdict: Verdict) -> AddedRun:
    """The verdict of an added-only suite as the gates read it."""
    run = verdict.run
    return AddedRun(
        outcome=verdict.outcome,
        statuses=verdict.statuses,
        durations=run.durations if run else {},
        log=run.log if run else "\n".join(verdict.evidence),
        seconds=(sum(run.durations.values()) if run.durations else run.seconds) if run else 0.0,
        wall=run.seconds if run else 0.0,
        timed_out=verdict.outcome is Outcome.TIMED_OUT or bool(run and run.timed_out),
        evidence=verdict.evidence,
    )


def reversed_tests(text: str) -> str:
    """The same file with its top-level test functions in reverse order; what stands between them stays in place."""
    try:
        tree = pyast.parse(text)
    except (SyntaxError, ValueError):
        return text
    spans = [
        (min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1, node.end_lineno or node.lineno)
        for node in tree.body
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test")
    ]
    lines = text.splitlines(keepends=True)
    out, at = [], 0
    for (start, end), (other, stop) in zip(spans, reversed(spans), strict=True):
        out += lines[at:start] + lines[other:stop]
        at = end
    return "".join(out + lines[at:])
