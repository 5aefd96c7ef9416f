"""Augmenter `differential`: executed witnesses become asserts. No model; function tasks only.

At most `max_asserts` behaviours in one file: first those that together refuse every paid wrong program, then inputs
that spread over the domain. Nothing is asserted outside the domain that the oracle established.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from ...envs.task import Task
from ...verifiers.records import Finding, Witness
from ..records import Proposal, Try
from ..render import Case, case_of, render

ORIGIN = "differential/1"


def propose(
    task: Task,
    findings: Sequence[Finding],
    rejected: Sequence[Try] = (),
    *,
    max_asserts: int = 10,
    **options: Any,
) -> Iterable[Proposal]:
    """One file of asserts; after a rejection the asserts that were refused are left out."""
    if not task.is_function:
        return
    refused = {call for one in rejected for call in refused_calls(one)}
    cases = cover(findings, refused, max_asserts)
    if cases:
        yield Proposal(
            task_id=task.task_id,
            added=render(task, cases),
            targets=tuple(f.candidate.candidate_id for f in findings),
            rationale="inputs on which gold and paid wrong programs differ",
            origin=ORIGIN,
            metadata={"calls": {t: c.call for t, c in zip(render(task, cases).test_ids, cases, strict=True)}},
        )


def cover(findings: Sequence[Finding], refused: set[str], limit: int) -> list[Case]:
    """A small set of witnesses that touches every finding: strongest evidence first, most findings per assert."""
    by_call: dict[str, tuple[Witness, set[str]]] = {}
    for finding in findings:
        for witness in finding.witnesses:
            if witness.call in refused or case_of(witness) is None:
                continue
            held = by_call.setdefault(witness.call, (witness, set()))
            held[1].add(finding.candidate.candidate_id)
    chosen: list[Case] = []
    left = set().union(*(ids for _, ids in by_call.values()))
    while left and len(chosen) < limit:
        call = max(by_call, key=lambda c: (len(by_call[c][1] & left), by_call[c][0].rating, -len(c)))
        witness, ids = by_call[call]
        if not ids & left:
            break
        case = case_of(witness)
        if case is not None:
            chosen.append(case)
        left -= ids
    return chosen


def refused_calls(one: Try) -> set[str]:
    """Calls of the tests that a gate's evidence names as failed; all of them when it names none."""
    calls = dict(one.proposal.metadata.get("calls", {}))
    check = one.result.failed_check
    named = {call for test_id, call in calls.items() if check is not None and test_id in check.evidence}
    return {str(call) for call in (named or calls.values())}
