"""What one task's drawer holds: issue, findings with diff, witness and passing log, votes, added tests and gates, commands."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ...envs.incident import Incident
from ...envs.task import Task
from ...repair.records import RepairRecord
from ...verifiers.audit_record import AuditRecord
from ...verifiers.records import Family, Finding, Standing
from ..cmd_explain import exploit_diff
from .collect import Material
from .markup import highlighted, log_tail


@dataclass(frozen=True)
class Room:
    """How much of each thing is shown: findings a task, lines of a diff or test, characters of a log or issue."""

    findings: int
    lines: int
    log: int
    issue: int


ROOMS = (Room(6, 80, 2_500, 6_000), Room(4, 60, 1_200, 3_000), Room(2, 40, 600, 1_500), Room(1, 20, 250, 600))
"""Tried in this order until the page fits its limit."""
ORDER = {standing: place for place, standing in enumerate(Standing)}


def task_detail(record: AuditRecord, material: Material, room: Room) -> dict[str, Any]:
    """Everything the drawer's template needs of one task."""
    task = material.tasks.get(record.task_id)
    shown = sorted(record.findings, key=_rank)[: room.findings]
    incidents = [i for i in material.incidents if i.task_id == record.task_id]
    run = shlex.quote(str(material.path))
    return {
        "id": record.task_id,
        "record": record,
        "issue": (task.prompt.strip()[: room.issue] if task else ""),
        "issue_cut": bool(task and len(task.prompt.strip()) > room.issue),
        "gold": highlighted(task.gold_patch, "diff", room.lines) if task and task.gold_patch else "",
        "findings": [_finding(finding, task, material, room) for finding in shown],
        "left": len(record.findings) - len(shown),
        "repair": _repair(material.repairs.get(record.task_id), room),
        "incidents": [incident_detail(incident, room) for incident in incidents[: room.findings]],
        "explain": f"acidtest explain {shlex.quote(record.task_id)} --run {run}",
    }


def incident_detail(incident: Incident, room: Room) -> dict[str, Any]:
    return {
        "incident": incident,
        "severity": str(incident.severity),
        "diff": highlighted(incident.patch, "diff", room.lines),
    }


def _finding(finding: Finding, task: Task | None, material: Material, room: Room) -> dict[str, Any]:
    candidate = finding.candidate
    run = shlex.quote(str(material.path))
    witness = material.path / "witnesses" / f"{candidate.candidate_id}.py"
    verdict = finding.verdict
    log = verdict.run.log if verdict.run else ""
    return {
        "candidate": candidate,
        "id": candidate.candidate_id,
        "standing": str(finding.standing),
        "family": str(candidate.family),
        "diff": highlighted(exploit_diff(finding, task), "diff", room.lines),
        "against_gold": bool(task and task.is_function),
        "log": log_tail(log, room.log) if log.strip() else "",
        "passed": sum(str(status) == "passed" for status in verdict.statuses.values()),
        "statuses": len(verdict.statuses),
        "defence": verdict.defence,
        "isolation": verdict.isolation,
        "twin": verdict.twin,
        "witnesses": finding.witnesses[:3],
        "reasons": finding.reasons,
        "votes": finding.votes,
        "verify": f"acidtest verify {shlex.quote(candidate.task_id)} --run {run} --candidate {candidate.candidate_id}",
        "script": f"python3 {shlex.quote(str(witness))}" if witness.is_file() else "",
    }


def _repair(repair: RepairRecord | None, room: Room) -> dict[str, Any] | None:
    if repair is None:
        return None
    added = repair.hardened.suite.added if repair.hardened else None
    return {
        "record": repair,
        "status": str(repair.status),
        "tests": [
            (path, highlighted(text, "python", room.lines))
            for path, text in (added.test_files.items() if added else ())
        ],
        "ids": len(added.test_ids) if added else 0,
        "gates": [(gate.name, gate.passed, gate.evidence[:300]) for gate in _gates(repair)],
        "tries": [_try(one) for one in repair.tries],
    }


def _gates(repair: RepairRecord) -> Sequence[Any]:
    if repair.hardened and repair.hardened.gates:
        return repair.hardened.gates[-1].checks
    return repair.tries[-1].result.checks if repair.tries else ()


def _try(one: Any) -> dict[str, Any]:
    failed = one.result.failed_check
    return {
        "origin": one.proposal.origin,
        "iteration": one.proposal.iteration,
        "passed": one.result.passed,
        "why": f"{failed.name}: {failed.defect or failed.evidence[:160]}" if failed else "all gates passed",
        "votes": one.votes,
        "blocked": len(one.result.blocked),
        "citations": one.proposal.citations[:2],
    }


def _rank(finding: Finding) -> tuple[int, bool, str]:
    return (
        ORDER[finding.standing],
        finding.candidate.family is Family.MEMORISING,
        finding.candidate.candidate_id,
    )
