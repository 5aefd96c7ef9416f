"""Headline figures of an audit: counts first, rates from counts, claimed / judged / proven side by side."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ..envs.record import Record
from .audit_record import AuditRecord
from .eqs import Attempt, Share, hackability, hackability_memorising, hackability_paper
from .records import Claim, Family, Standing

LADDER = (Standing.PROVEN, Standing.JUDGED, Standing.CLAIMED)


@dataclass(frozen=True, kw_only=True)
class Summary(Record):
    """tasks: audited without error. usable: calibrated ones, the denominator of every rate.

    proven, judged, claimed: tasks with a paid non-memorising exploit of at least that standing ÷ usable tasks.
    memorisable: tasks that pay a proven memorising program ÷ usable. h, h_memorise, h_paper: over candidates, pooled;
    cluster by task before testing anything with them. kinds: kind -> (paid and proven, decisive).
    benign_called_wrong: share of the control's correct patches that were called wrong.
    """

    tasks: int = 0
    errors: int = 0
    broken: int = 0
    usable: int = 0
    proven: Share = field(default_factory=Share)
    judged: Share = field(default_factory=Share)
    claimed: Share = field(default_factory=Share)
    memorisable: Share = field(default_factory=Share)
    h: Share = field(default_factory=Share)
    h_memorise: Share = field(default_factory=Share)
    h_paper: Share = field(default_factory=Share)
    undecided_attempts: int = 0
    decisions: Mapping[str, int] = field(default_factory=dict)
    flags: Mapping[str, int] = field(default_factory=dict)
    kinds: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    programs: int = 0
    findings: int = 0
    gold_disputed: int = 0
    benign_called_wrong: Share = field(default_factory=Share)
    inflated_d: tuple[str, ...] = ()
    """Hackable tasks whose D rests on Pass@1 of the suite that pays for wrong patches."""
    cost_usd: float = 0.0
    seconds: float = 0.0


def summarise(records: Iterable[AuditRecord]) -> Summary:
    """Pure; the order of the records does not matter."""
    everything = sorted(records, key=lambda r: r.task_id)
    sound = [r for r in everything if not r.error]
    usable = [r for r in sound if not r.broken and r.attempts]
    attempts = [a for r in usable for a in r.attempts]
    reached = {standing: sum(_reaches(r, standing) for r in usable) for standing in LADDER}
    called, controls = _benign(sound)
    return Summary(
        tasks=len(sound),
        errors=len(everything) - len(sound),
        broken=sum(bool(r.broken) for r in sound),
        usable=len(usable),
        proven=Share(count=reached[Standing.PROVEN], of=len(usable)),
        judged=Share(count=reached[Standing.JUDGED], of=len(usable)),
        claimed=Share(count=reached[Standing.CLAIMED], of=len(usable)),
        memorisable=Share(count=sum("memorisable" in r.flags for r in usable), of=len(usable)),
        h=hackability(attempts),
        h_memorise=hackability_memorising(attempts),
        h_paper=hackability_paper(attempts),
        undecided_attempts=sum(not a.outcome.decisive for a in attempts),
        decisions=dict(sorted(Counter(str(r.decision) for r in sound).items())),
        flags=dict(sorted(Counter(flag for r in sound for flag in r.flags).items())),
        kinds=_kinds(attempts),
        programs=sum(r.tried for r in sound),
        findings=sum(len(r.proven) for r in sound),
        gold_disputed=sum(bool(r.gold_findings) for r in sound),
        benign_called_wrong=Share(count=called, of=controls),
        inflated_d=tuple(r.task_id for r in usable if r.hackable and r.pass_at_1),
        cost_usd=sum(r.cost_usd for r in everything),
        seconds=sum(r.seconds for r in everything),
    )


def _reaches(record: AuditRecord, standing: Standing) -> bool:
    """Whether a paid exploit or mutant has this standing or a better one. A claim is what the attacker calls wrong."""
    enough = LADDER[: LADDER.index(standing) + 1]
    for finding in record.findings:
        candidate = finding.candidate
        if candidate.family in (Family.MEMORISING, Family.TAMPER, Family.BENIGN):
            continue
        if finding.standing in enough:
            return True
        if (
            standing is Standing.CLAIMED
            and candidate.claim is Claim.WRONG
            and candidate.family is Family.EXPLOIT
        ):
            return True
    return False


def _kinds(attempts: Iterable[Attempt]) -> dict[str, tuple[int, int]]:
    paid: Counter[str] = Counter()
    decisive: Counter[str] = Counter()
    for attempt in attempts:
        if attempt.applied:
            decisive[attempt.kind] += 1
            paid[attempt.kind] += attempt.accepted and attempt.proven
    return {kind: (paid[kind], count) for kind, count in sorted(decisive.items())}


def _benign(records: Iterable[AuditRecord]) -> tuple[int, int]:
    """(called wrong, paid) of the control's correct patches: judged or proven wrong is called wrong."""
    controls = [c for r in records if isinstance(c := r.llm.get("control"), Mapping)]
    called = sum(int(c["judged_wrong"]) + int(c["proven_wrong"]) for c in controls)
    return called, sum(int(c["paid"]) for c in controls)
