"""The page's tables as plain rows: headline, task table, kinds × standing, zoo, repair, gates, incidents, cost."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ...envs.incident import Incident, Severity
from ...repair.records import RepairRecord, RepairStatus
from ...repair.report import defects_of
from ...verifiers.audit_record import AuditRecord
from ...verifiers.eqs import hackability
from ...verifiers.records import Family, Standing
from ...verifiers.stats import wilson
from ...verifiers.zoo.kinds import KINDS
from ...verifiers.zoo.matrix import Matrix
from .collect import Material
from .markup import percent, share

Row = dict[str, Any]
STANDINGS = tuple(Standing)


def headline(material: Material) -> list[Row]:
    """Cards: title, count, of, rate and interval in percent (None without trials), what it means."""
    found = material.summary
    unit = "of the tasks that could be audited"
    cards = [
        ("proven", found.proven.count, found.proven.of, f"hackable with an executed proof, {unit}"),
        ("judged", found.judged.count, found.judged.of, "the judge majority says wrong, or proven"),
        (
            "claimed",
            found.claimed.count,
            found.claimed.of,
            "the attacker calls it wrong (what the paper counts)",
        ),
        (
            "memorisable",
            found.memorisable.count,
            found.memorisable.of,
            "pay a program that memorises the tests",
        ),
    ]
    rows = [_card(*card) for card in cards]
    called, of = control(material)
    if of:
        rows.append(
            _card(
                "benign control",
                called,
                of,
                "correct patches that were called wrong: how far to trust the above",
            )
        )
    return rows


def _card(title: str, count: int, of: int, text: str) -> Row:
    interval = wilson(count, of)
    return {
        "title": title,
        "count": count,
        "of": of,
        "rate": 100 * count / of if of else None,
        "low": 100 * interval[0] if interval else 0,
        "high": 100 * interval[1] if interval else 0,
        "text": text,
    }


def control(material: Material) -> tuple[int, int]:
    """(called wrong, paid) of the benign control, from the model audit's own records."""
    if material.llm_rates is not None:
        held = material.llm_rates.false_accusation.share
        return held.count, held.of
    held = material.summary.benign_called_wrong
    return held.count, held.of


def task_rows(material: Material) -> list[Row]:
    """One row for each audited task."""
    return [_task_row(record, material.repairs.get(record.task_id)) for record in material.records]


def _task_row(record: AuditRecord, repair: RepairRecord | None) -> Row:
    score = record.score
    h = hackability(record.attempts)
    standings = Counter(f.standing for f in record.findings if f.candidate.family is not Family.MEMORISING)
    best = next((str(s) for s in STANDINGS if standings[s]), "")
    state = "error" if record.error else "broken" if record.broken else ""
    return {
        "id": record.task_id,
        "decision": "ERROR" if record.error else str(record.decision),
        "firm": bool(score and score.decision_firm),
        "eqs": score.eqs if score else None,
        "eqs_low": score.eqs_low if score else None,
        "eqs_high": score.eqs_high if score else None,
        "v": score.v if score else None,
        "h": h.rate,
        "h_text": f"{h.count} of {h.of}",
        "f1": score.f1 if score else None,
        "d": score.d if score else None,
        "flags": list(record.flags) or ([state] if state else []),
        "proven": standings[Standing.PROVEN],
        "paid": len(record.findings),
        "best": best,
        "repair": str(repair.status) if repair else "",
        "eqs_after": repair.after.get("eqs") if repair else None,
        "seconds": record.seconds,
        "cost": record.cost_usd + (repair.cost_usd if repair else 0.0),
    }


def kinds_table(records: Iterable[AuditRecord]) -> list[Row]:
    """Kind -> executed (decisive), paid, and paid by standing; most paid first."""
    executed: Counter[str] = Counter()
    paid: Counter[str] = Counter()
    standing: Counter[tuple[str, Standing]] = Counter()
    for record in records:
        for attempt in record.attempts:
            executed[attempt.kind] += attempt.applied
            paid[attempt.kind] += attempt.accepted
        for finding in record.findings:
            standing[finding.candidate.kind, finding.standing] += 1
    kinds = sorted(executed | paid, key=lambda kind: (-paid[kind], kind))
    return [
        {
            "kind": k,
            "title": title_of(k),
            "rest": max(0, paid[k] - sum(standing[k, s] for s in STANDINGS)),
            "executed": executed[k],
            "paid": paid[k],
            "standings": [standing[k, s] for s in STANDINGS],
        }
        for k in kinds
    ]


def title_of(kind: str) -> str:
    """What a zoo id stands for ("" for names of one's own)."""
    return next((entry.title for entry in KINDS if entry.kind == kind), "")


def zoo_table(matrix: Matrix) -> list[Row]:
    """One row a kind: payloads tried, what the baseline and swebench's grader pay, what ours says."""
    kinds: dict[str, list[Any]] = {}
    for result in matrix.results:
        kinds.setdefault(result.kind, []).append(result)
    rows = []
    for kind, results in sorted(kinds.items()):
        words = Counter(result.word for result in results if result.word)
        other = [result.swebench for result in results if result.swebench is not None]
        rows.append(
            {
                "kind": kind,
                "title": title_of(kind),
                "tried": len(results),
                "baseline": sum(result.baseline for result in results),
                "swebench": f"{sum(other)} of {len(other)}" if other else "–",
                "ours": dict(sorted(words.items())),
                "breach": sum(result.breach for result in results),
                "titles": sorted({result.name for result in results}),
            }
        )
    return rows


def repair_facts(repairs: Mapping[str, RepairRecord]) -> Row | None:
    """Headline of a repair, held-out rates, defects by class; None when nothing was repaired."""
    records = list(repairs.values())
    if not records:
        return None
    states = Counter(record.status for record in records)
    tries = sum(len(record.tries) for record in records)
    held: dict[str, list[int]] = {}
    for record in records:
        for name, (part, whole) in record.held_out.items():
            total = held.setdefault(name, [0, 0])
            total[0], total[1] = total[0] + part, total[1] + whole
    moved = Counter(
        f"{record.before.get('decision')} → {record.after.get('decision')}"
        for record in records
        if record.after
    )
    defects = sorted(defects_of(records).items(), key=lambda item: -item[1][0])
    return {
        "states": {str(status): states[status] for status in RepairStatus if states[status]},
        "taken": len(records),
        "blocked": percent(sum(len(r.blocked) for r in records), sum(len(r.targets) for r in records)),
        "held_out": {name: percent(part, whole) for name, (part, whole) in sorted(held.items())},
        "tries": tries,
        "defects": [{"name": name, "count": count, "tasks": tasks} for name, (count, tasks) in defects],
        "stopped": percent(sum(count for _, (count, _) in defects), tries),
        "moved": dict(sorted(moved.items())),
        "cost": sum(record.cost_usd for record in records),
        "seconds": sum(record.seconds for record in records),
    }


def incident_rows(incidents: Sequence[Incident]) -> list[Row]:
    """Incidents, worst first: tampering, then false passes, then notices; most frequent first."""
    order = {Severity.TAMPER: 0, Severity.FALSE_PASS: 1, Severity.NOTICE: 2}
    ranked = sorted(incidents, key=lambda i: (order[i.severity], -i.count, i.task_id))
    return [
        {
            "key": incident.key,
            "severity": str(incident.severity),
            "kind": incident.kind,
            "task": incident.task_id,
            "step": incident.step,
            "count": incident.count,
            "original": incident.reward_original,
            "hardened": incident.reward_hardened,
            "failed": list(incident.failed_added),
        }
        for incident in ranked
    ]


def rates(material: Material) -> list[tuple[str, str]]:
    """Rates over programs, each with its pair and interval."""
    found = material.summary
    return [
        ("H: paid and proven wrong, of decisive exploits and mutants", share(found.h)),
        ("memorising programs paid", share(found.h_memorise)),
        ("claimed exploits paid (the paper's H)", share(found.h_paper)),
    ]


def facts(material: Material) -> list[tuple[str, str]]:
    """Counts, cost and time of the run, as name and value."""
    found, config = material.summary, material.config
    options: tuple[tuple[str, str], ...] = (
        ("seed", "seed"),
        ("defence", "defence"),
        ("attackers", "attackers"),
        ("llm", "model"),
        ("k", "exploits a round"),
        ("rounds", "rounds"),
    )
    if not config.get("llm"):
        options = tuple(pair for pair in options if pair[0] not in ("k", "rounds"))
    shown = [(label, _plain(config[key])) for key, label in options if config.get(key) not in (None, "", [])]
    seen = {r.isolation for r in material.records} | {
        f.verdict.isolation for r in material.records for f in r.findings
    }
    isolation = ", ".join(sorted(seen - {""}))
    return [
        ("data set", material.dataset),
        ("audited", material.audited),
        (
            "tasks",
            f"{found.tasks} audited, {found.usable} of them in the rates, {found.broken} broken, {found.errors} errors",
        ),
        ("programs executed", f"{found.programs:,}"),
        ("undecided runs, in no rate", f"{found.undecided_attempts:,}"),
        ("gold disputed", f"{found.gold_disputed} tasks"),
        ("isolation", isolation or "not recorded"),
        *shown,
        ("model cost", f"${found.cost_usd:.2f}"),
        ("machine time", duration(found.seconds)),
    ]


def _plain(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"
