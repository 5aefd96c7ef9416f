"""Augmenter `differential`: inputs on which gold and wrong programs differ become asserts. No model.

At most `max_asserts` behaviours in one file: first those that together refuse every paid wrong program, then inputs
that spread over the domain (`select.py` says why a minimal cover is not enough). Nothing is pinned outside the domain
that the oracle established, and what a gate refused once is left out of the next proposal. For a repository nothing
spreads over a domain: there the witnesses that proved the findings become tests, one for each (`witness_tests.py`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from ...envs.protocols import SandboxBackend
from ...envs.task import Task
from ...verifiers.records import Candidate, Finding
from ..pool import InputPool, build_pool
from ..records import Proposal, Try
from ..render import Case, case_of, is_unordered, render
from ..select import choose
from ..witness_tests import added_of, chosen_witnesses, key_of

ORIGIN = "differential/1"


def propose(
    task: Task,
    findings: Sequence[Finding],
    rejected: Sequence[Try] = (),
    *,
    max_asserts: int = 10,
    backend: SandboxBackend | None = None,
    programs: Iterable[Candidate] | None = None,
    seed: int = 0,
    all_findings: Sequence[Finding] = (),
    **options: Any,
) -> Iterable[Proposal]:
    """One file of asserts for all findings (a second file of the same name replaces the first).

    programs: wrong programs to spread by (None: all mutants and recipes). all_findings: the blocked ones included;
    inputs are drawn anew, with another seed, when some are still open.
    """
    if not task.is_function:
        yield from _of_repository(task, findings, rejected, max_asserts)
        return
    again = len(all_findings) > len(findings)
    seed, findings = (seed + 1 if again else seed), (all_findings or findings)
    refused = {call for one in rejected if one.proposal.origin == ORIGIN for call in refused_calls(one)}
    targets = [finding.candidate for finding in findings]
    pool = build_pool(task, targets, backend=backend, programs=programs, seed=seed)
    cases = chosen_cases(pool, findings, refused, max_asserts)
    if not cases:
        return
    added = render(task, cases, unordered=pool.unordered if pool else is_unordered(task))
    yield Proposal(
        task_id=task.task_id,
        added=added,
        targets=tuple(target.candidate_id for target in targets),
        rationale="inputs of the task's domain on which gold and wrong programs differ",
        origin=ORIGIN,
        metadata={"calls": {t: c.call for t, c in zip(added.test_ids, cases, strict=True)}},
    )


def _of_repository(
    task: Task, findings: Sequence[Finding], rejected: Sequence[Try], limit: int
) -> Iterable[Proposal]:
    refused = {call for one in rejected if one.proposal.origin == ORIGIN for call in refused_calls(one)}
    witnesses = chosen_witnesses(findings, refused, limit)
    if not witnesses:
        return
    added = added_of(task, witnesses)
    keys = dict(zip(added.test_files, map(key_of, witnesses), strict=True))
    yield Proposal(
        task_id=task.task_id,
        added=added,
        targets=tuple(finding.candidate.candidate_id for finding in findings),
        rationale="tests that proved programs wrong which the suite pays",
        citations=tuple(dict.fromkeys(w.citation for w in witnesses if w.citation)),
        origin=ORIGIN,
        metadata={"calls": {test_id: keys[test_id.split("::", 1)[0]] for test_id in added.test_ids}},
    )


def chosen_cases(
    pool: InputPool | None, findings: Sequence[Finding], refused: set[str], limit: int
) -> list[Case]:
    """The cases to pin: chosen from the pool, with the witness of each finding that the pool does not reach."""
    if pool is None:
        return from_witnesses(findings, refused, limit)
    allowed = {at for at, case in enumerate(pool.cases) if case.call not in refused}
    kills = {key: frozenset(found & allowed) for key, found in pool.pool.kills.items()}
    unreached = [f for f in findings if not kills.get(f.candidate.candidate_id)]
    extra = from_witnesses(unreached, refused, limit // 2)
    masked = replace(
        pool.pool,
        kills=kills,
        shapes=[s if i in allowed else frozenset() for i, s in enumerate(pool.pool.shapes)],
    )
    chosen = [at for at in choose(masked, limit - len(extra)) if at in allowed]
    observed = {w.call: w.observed for f in findings for w in f.witnesses}
    cases = [
        replace(case, note=f"a program that the original suite paid gives {observed[case.call]}")
        if case.call in observed
        else case
        for case in (pool.cases[at] for at in chosen)
    ]
    return [*cases, *(case for case in extra if case.call not in {c.call for c in cases})]


def from_witnesses(findings: Sequence[Finding], refused: set[str], limit: int) -> list[Case]:
    """A small set of witnesses that touches every finding: most findings per assert, then the strongest evidence."""
    touches: dict[str, set[str]] = {}
    cases: dict[str, tuple[Case, float]] = {}
    for finding in findings:
        for witness in finding.witnesses:
            case = case_of(witness) if witness.in_domain and witness.call not in refused else None
            if case is not None:
                touches.setdefault(witness.call, set()).add(finding.candidate.candidate_id)
                cases.setdefault(witness.call, (case, witness.rating))
    chosen: list[Case] = []
    left = {program for programs in touches.values() for program in programs}
    while left and len(chosen) < limit:
        call = max(touches, key=lambda c: (len(touches[c] & left), cases[c][1], -len(c)))
        chosen.append(cases[call][0])
        left -= touches[call]
    return chosen


def refused_calls(one: Try) -> set[str]:
    """Calls of the tests that a gate's evidence names as failed; all of them when it names none."""
    calls = dict(one.proposal.metadata.get("calls", {}))
    check = one.result.failed_check
    named = {call for test_id, call in calls.items() if check is not None and test_id in check.evidence}
    return {str(call) for call in (named or calls.values())}
