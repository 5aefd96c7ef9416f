"""Execute wrong programs against one task's suite and prove what it pays for (`Examination`).

Function tasks: a forked search finds what the visible tests accept and how it differs from gold; every acceptance
that counts is then verified under the full defence. Repository tasks: every candidate is a verdict of its own.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ..envs import registry
from ..envs.patch import Patch
from ..envs.task import Task
from ..envs.verdict import Outcome
from ..envs.verify import Verifier
from .alternatives import known_correct
from .attackers import rollouts
from .audit_config import AuditConfig
from .audit_record import Examination, GoldFinding
from .eqs import Attempt, PoolPoint
from .mutation.apply import parse_diff
from .oracle.prove import Examined, Oracle
from .oracle.recorded import RecordedOracle
from .records import Candidate, Family, Finding, Standing, Witness
from .search import FunctionSearch, SearchUnsupported
from .source import SourceTree

ATTACKERS = "acidtest.verifiers.attackers"


def examine(
    task: Task, verifier: Verifier, config: AuditConfig, *, alternatives: Sequence[Patch] = ()
) -> Examination:
    """All mechanical attackers of the options, and the user's rollouts, against the task's suite.

    alternatives: known-correct patches; whatever one of them does is no proof of wrongness.
    Raises SandboxError. A function task that the search cannot take is examined like a repository.
    """
    if task.is_function:
        try:
            return _examine_function(task, verifier, config)
        except SearchUnsupported as error:
            exam = _examine_by_verdict(task, verifier, config, alternatives)
            return _noted(exam, f"not searched: {error.message}")
    return _examine_by_verdict(task, verifier, config, alternatives)


def candidates_of(task: Task, config: AuditConfig, **options: Any) -> list[Candidate]:
    """Candidates of every attacker in the options, then the user's rollouts; equal patches once."""
    found: dict[str, Candidate] = {}
    for name in config.attackers:
        module = registry.find(ATTACKERS, name)
        for candidate in module.attack(task, (), **_accepted(module.attack, options)):
            found.setdefault(candidate.patch.digest, candidate)
    if config.candidates:
        for candidate in rollouts.attack(task, (), path=config.candidates):
            found[candidate.patch.digest] = candidate
    return list(found.values())


def attempt_of(candidate: Candidate, outcome: Outcome, standing: Standing | None) -> Attempt:
    return Attempt(
        candidate_id=candidate.candidate_id,
        family=candidate.family,
        outcome=outcome,
        proven=standing is Standing.PROVEN,
        claim=candidate.claim,
        kind=candidate.kind,
        round=candidate.round,
        origin=candidate.origin,
    )


def _examine_function(task: Task, verifier: Verifier, config: AuditConfig) -> Examination:
    jobs = max(1, len(os.sched_getaffinity(0)) // (config.jobs or len(os.sched_getaffinity(0))))
    candidates = candidates_of(task, config, seed=config.seed)
    with FunctionSearch(task, verifier.backend, jobs=jobs) as search:
        oracle = Oracle(search, seed=config.seed)
        oracle.prepare()
        chosen = oracle.affordable(candidates)
        found = oracle.examine(chosen)
        pool = [p for one in found if (p := _pool_point(oracle, one)) is not None]
        pool += oracle.variant_points()
        doubts = tuple(
            GoldFinding(call=d.call, says=d.expected, does=d.observed, source=d.kind) for d in oracle.doubts
        )
    attempts: list[Attempt] = []
    findings: list[Finding] = []
    notes: list[str] = []
    if left_out := len(candidates) - len(chosen):
        notes.append(
            f"{left_out} of {len(candidates)} candidates left out, evenly: the suite's tests are slow"
        )
    like_gold: set[Family] = set()
    for one in found:
        if one.duplicate_of:
            continue
        if one.standing is Standing.LEAD and one.candidate.family in like_gold:
            attempts.append(attempt_of(one.candidate, Outcome.RESOLVED, Standing.LEAD))
            continue
        attempt, finding = _counted(task, verifier, one, notes)
        if finding and finding.standing is Standing.LEAD and one.candidate.family is not Family.ROLLOUT:
            like_gold.add(one.candidate.family)
        attempts.append(attempt)
        findings += [finding] if finding else []
    pool.append(PoolPoint(s=1.0, q=1.0, accepted=True, kind="gold"))
    return Examination(
        attempts=tuple(attempts),
        pool=tuple(pool),
        findings=tuple(findings),
        gold_findings=doubts,
        tried=len(found),
        searched=sum(one.standing is None for one in found),
        notes=tuple(notes),
    )


def _pool_point(oracle: Oracle, one: Examined) -> PoolPoint | None:
    """V's pool: of wrong programs gold's mutants only, so that H is not counted twice."""
    if one.candidate.family is not Family.MUTANT or one.duplicate_of:
        return None
    return oracle.pool_point(one.probe, one.candidate.kind)


def _counted(
    task: Task, verifier: Verifier, one: Examined, notes: list[str]
) -> tuple[Attempt, Finding | None]:
    """What one searched candidate adds: rejected ones as searched, accepted ones after a full verdict.

    Leads (no difference from gold on any input) are duplicates of each other as far as anyone can see: of mutants none
    gets a verdict, of a task's recipes and memorising programs the first one does; all stay in the attempts.
    """
    candidate = one.candidate
    if one.standing is None and not (candidate.family is Family.ROLLOUT or one.probe.error == "no patch"):
        return attempt_of(candidate, Outcome.UNRESOLVED, None), None
    if one.standing is Standing.LEAD and candidate.family is Family.MUTANT:
        return attempt_of(candidate, Outcome.RESOLVED, Standing.LEAD), None
    verdict = verifier.verify(task, candidate.patch)
    if not verdict.resolved:
        if one.standing is not None:
            notes.append(f"{candidate.kind}: the search accepted it, the verdict is {verdict.outcome}")
        return attempt_of(candidate, verdict.outcome, None), None
    standing = one.standing or Standing.LEAD
    attempt = attempt_of(candidate, verdict.outcome, standing)
    return attempt, Finding(
        candidate=candidate, verdict=verdict, standing=standing, witnesses=one.witnesses, reasons=one.reasons
    )


def _examine_by_verdict(
    task: Task, verifier: Verifier, config: AuditConfig, alternatives: Sequence[Patch]
) -> Examination:
    """Every candidate executed under the full defence; survivors are leads until a replayed call proves them.

    Candidates that do not differ from each other in text are executed once. Raises SandboxError, PatchError.
    """
    tree = SourceTree(task, verifier.backend, verifier.limits)
    texts = tree.fetch(part.path for part in parse_diff(task.gold_patch))
    candidates = candidates_of(task, config, seed=config.seed, limit=config.repo_mutants, texts=texts)
    verdicts = [(candidate, verifier.verify(task, candidate.patch)) for candidate in candidates]
    paid = [candidate for candidate, verdict in verdicts if verdict.resolved]
    notes: list[str] = []
    proofs: dict[str, tuple[tuple[Witness, ...], Standing, tuple[str, ...]]] = {}
    if paid:
        oracle = RecordedOracle(task, verifier.backend, alternatives=known_correct(task, alternatives))
        usable = oracle.prepare()
        notes.append(f"{usable} calls recorded under gold can be replayed; {len(paid)} candidates were paid")
        for candidate, witnesses, standing, reasons in oracle.prove(paid):
            proofs[candidate.candidate_id] = (witnesses, standing, reasons)
    attempts: list[Attempt] = []
    findings: list[Finding] = []
    for candidate, verdict in verdicts:
        witnesses, standing, reasons = proofs.get(candidate.candidate_id, ((), Standing.LEAD, ()))
        attempts.append(attempt_of(candidate, verdict.outcome, standing if verdict.resolved else None))
        if verdict.resolved:
            findings.append(
                Finding(
                    candidate=candidate,
                    verdict=verdict,
                    standing=standing,
                    witnesses=witnesses,
                    reasons=reasons,
                )
            )
    return Examination(
        attempts=tuple(attempts), findings=tuple(findings), tried=len(candidates), notes=tuple(notes)
    )


def _noted(exam: Examination, note: str) -> Examination:
    return replace(exam, notes=(*exam.notes, note))


def _accepted(function: Any, options: dict[str, Any]) -> dict[str, Any]:
    """Those of the options that an attacker takes."""
    taken = inspect.signature(function).parameters
    return {name: value for name, value in options.items() if name in taken}
