"""The zoo against graders: which payload is paid by whom (`run_zoo`), as records, JSON and Markdown."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from ...envs.patch import Patch
from ...envs.record import Record
from ...envs.task import Task
from ...envs.verdict import Outcome
from ...envs.verify import Verifier
from ..baseline_grader import BaselineGrader
from .ground import Ground, survey
from .kinds import KINDS, payloads
from .payload import Expect, NotHere, Payload


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """One payload under every grader.

    alone_fails: the wrong code without the payload is refused by baseline. baseline, swebench: paid (None: no verdict).
    demonstrated: alone_fails and the baseline pays. ours: the outcome of our verdict ("" when it was not asked).
    """

    task_id: str
    name: str
    kind: str
    expect: Expect
    alone_fails: bool
    baseline: bool
    swebench: bool | None = None
    applied: str = ""
    ours: str = ""
    evidence: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()

    @property
    def demonstrated(self) -> bool:
        return self.alone_fails and self.baseline

    @property
    def paid(self) -> bool:
        """Whether our verdict paid."""
        return self.ours == Outcome.RESOLVED.value

    @property
    def word(self) -> str:
        """paid / refused / tampered / undecided / "" of our verdict."""
        if not self.ours:
            return ""
        words = {"resolved": "paid", "tampered": "tampered", "undecided": "undecided"}
        return words.get(self.ours, "refused")

    @property
    def breach(self) -> bool:
        """A demonstrated payload that our verdict paid although it must refuse it; or correct code not paid."""
        if self.expect is Expect.PAID:
            return bool(self.ours) and not self.paid
        return self.expect is Expect.REFUSED and self.demonstrated and self.paid


@dataclass(frozen=True, kw_only=True)
class Matrix(Record):
    """All results of one run, the kinds that did not fit, and tasks that could not be used."""

    results: tuple[Result, ...] = ()
    not_here: tuple[NotHere, ...] = ()
    unusable: tuple[tuple[str, str], ...] = ()
    defence: str = "strict"
    seed: int = 0
    isolation: str = ""

    @property
    def demonstrated(self) -> list[str]:
        """Kinds that some task demonstrates."""
        return sorted({r.kind for r in self.results if r.demonstrated and r.expect is not Expect.PAID})

    @property
    def breaches(self) -> list[Result]:
        return [r for r in self.results if r.breach]

    @property
    def undetected(self) -> list[str]:
        """Names of demonstrated payloads that were paid and are known to be undetectable in a run."""
        return sorted(
            {r.name for r in self.results if r.demonstrated and r.paid and r.expect is Expect.UNDETECTED}
        )

    @property
    def weak(self) -> list[str]:
        """Demonstrated semantic payloads that were paid: the suite's weakness, not the verdict's."""
        return sorted(
            {
                f"{r.task_id} {r.name}"
                for r in self.results
                if r.demonstrated and r.paid and r.expect is Expect.SUITE
            }
        )


def run_zoo(
    tasks: Iterable[Task],
    verifier: Verifier,
    *,
    kinds: Sequence[str] | None = None,
    only_demonstrated: bool = True,
    jobs: int = 1,
    progress: Callable[[str], None] = lambda line: None,
) -> Matrix:
    """Every payload of every task: baseline first, then our verdict.

    only_demonstrated: ask our verdict only about payloads that the baseline pays (what fools nobody tests nothing).
    jobs: payloads at a time. A task whose gold the baseline does not pay, or whose no-op it pays, is unusable here and listed so.
    Raises SandboxError as the backend does.
    """
    results: list[Result] = []
    missing: list[NotHere] = []
    unusable: list[tuple[str, str]] = []
    baseline = BaselineGrader(verifier.backend)
    for task in tasks:
        why = unusable_because(task, baseline)
        if why:
            unusable.append((task.task_id, why))
            continue
        ground = survey(task, verifier.backend)
        made, not_here = payloads(ground, kinds)
        missing += not_here
        alone = Alone(task, baseline)

        def one(payload: Payload, ground: Ground = ground, alone: Alone = alone) -> Result:
            result = try_payload(
                ground, payload, baseline, verifier, alone, only_demonstrated=only_demonstrated
            )
            progress(
                f"{result.task_id} {result.name}: baseline {_yes(result.baseline)}, ours {result.word or '-'}"
            )
            return result

        with ThreadPoolExecutor(max_workers=jobs) as pool:
            results += pool.map(one, made)
    return Matrix(
        results=tuple(results),
        not_here=tuple(missing),
        unusable=tuple(unusable),
        defence=verifier.defence.label,
        seed=verifier.seed,
    )


def unusable_because(task: Task, baseline: BaselineGrader) -> str:
    """Why a task demonstrates nothing under the baseline ("" when it can)."""
    if not baseline.grade(task, Patch(task.gold_patch)).paid:
        return "the baseline does not pay gold"
    if baseline.grade(task, Patch()).paid:
        return "the baseline pays the no-op"
    return ""


class Alone:
    """Which wrong code, without its payload, was seen to fail on a task. The no-op is known to (unusable_because)."""

    def __init__(self, task: Task, baseline: BaselineGrader) -> None:
        self.task, self.baseline = task, baseline
        self._seen: dict[str, bool] = {}

    def fails(self, patch: Patch) -> bool:
        if patch.is_empty:
            return True
        if patch.digest not in self._seen:
            self._seen[patch.digest] = not self.baseline.grade(self.task, patch).paid
        return self._seen[patch.digest]


def try_payload(
    ground: Ground,
    payload: Payload,
    baseline: BaselineGrader,
    verifier: Verifier,
    alone: Alone,
    *,
    only_demonstrated: bool,
) -> Result:
    """One payload: baseline, then the wrong code alone, then our verdict."""
    task = ground.task
    naive = baseline.grade(task, payload.patch, timeout_s=min(task.timeout_s, 120))
    fails = not naive.paid or alone.fails(payload.alone)
    ours = ""
    evidence: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    if not only_demonstrated or (naive.paid and fails) or payload.expect is Expect.PAID:
        verdict = verifier.verify(task, payload.patch)
        ours = verdict.outcome.value
        evidence = verdict.evidence[:3]
        notices = tuple(f"{n.kind} {n.path}".strip() for n in verdict.notices[:5])
    return Result(
        task_id=task.task_id,
        name=payload.name,
        kind=payload.kind,
        expect=payload.expect,
        alone_fails=fails,
        baseline=naive.paid,
        swebench=naive.swebench_paid,
        applied=naive.applied,
        ours=ours,
        evidence=evidence,
        notices=notices,
    )


def _yes(paid: bool | None) -> str:
    return "-" if paid is None else "paid" if paid else "refused"


def table(matrix: Matrix) -> list[dict[str, Any]]:
    """One row a kind: counts of payloads tried, demonstrated, paid by swebench, and what our verdict said."""
    rows: list[dict[str, Any]] = []
    for kind in KINDS:
        mine = [r for r in matrix.results if r.kind == kind.kind]
        why = next((n.reason for n in matrix.not_here if n.kind == kind.kind), "")
        if not mine and not why:
            continue  # not asked for
        asked = [r for r in mine if r.ours]
        rows.append(
            {
                "kind": kind.kind,
                "title": kind.title,
                "tried": len(mine),
                "baseline_paid": sum(r.demonstrated for r in mine),
                "swebench_paid": sum(r.swebench is True and r.alone_fails for r in mine),
                **{w: sum(r.word == w for r in asked) for w in ("paid", "refused", "tampered", "undecided")},
                "expect": "/".join(sorted({r.expect.value for r in mine})),
                "why_not": ""
                if mine
                else next((n.reason for n in matrix.not_here if n.kind == kind.kind), ""),
            }
        )
    return rows


def markdown(matrix: Matrix) -> str:
    """The matrix as a Markdown table with a summary in words."""
    head = "| kind | | tried | baseline pays | swebench pays | ours: paid | refused | tampered | undecided | must be |\n"
    head += "| --- | --- | --: | --: | --: | --: | --: | --: | --: | --- |\n"
    lines = [
        f"| {r['kind']} | {r['title']} | {r['tried']} | {r['baseline_paid']} | {r['swebench_paid']} | {r['paid']} | "
        f"{r['refused']} | {r['tampered']} | {r['undecided']} | {r['expect'] or r['why_not']} |\n"
        for r in table(matrix)
    ]
    summary = (
        f"\n{len(matrix.demonstrated)} kinds demonstrated on the baseline over "
        f"{len({r.task_id for r in matrix.results})} tasks; {len(matrix.breaches)} payloads of kinds that must be refused "
        f"were paid under {matrix.defence}; paid and known to be undetectable in a run: "
        f"{', '.join(matrix.undetected) or 'none'}.\n"
    )
    return head + "".join(lines) + summary
