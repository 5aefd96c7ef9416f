"""Rates of LLM audits over tasks: claimed, judged and proven side by side, per round, over K, with the control beside.

Nested by construction: proven ⊆ judged ⊆ claimed. Rounds after the first adapt to what came before, so candidates
of different rounds are never pooled into one interval; tasks are the unit of "single shot" and "iterated".
Pure; the same results in any order give the same numbers.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from math import comb

from ..envs.record import Record
from .eqs import Share
from .llm_record import Assessed, LLMAuditResult
from .records import Claim, Family, Standing
from .stats import Interval, fleiss_kappa, jeffreys, wilson

LEVELS = ("claimed", "judged", "proven")
_REACHED = {
    "claimed": frozenset(
        {Standing.CLAIMED, Standing.JUDGED, Standing.PROVEN, Standing.DIFFERS, Standing.LEAD}
    ),
    "judged": frozenset({Standing.JUDGED, Standing.PROVEN}),
    "proven": frozenset({Standing.PROVEN}),
}


@dataclass(frozen=True, kw_only=True)
class Rate(Record):
    """A share with its 95 % interval (method named); interval None without trials."""

    share: Share
    interval: Interval | None
    method: str

    @classmethod
    def of(cls, count: int, of: int, method: str = "Jeffreys") -> Rate:
        interval = jeffreys(count, of) if method == "Jeffreys" else wilson(count, of)
        return cls(share=Share(count=count, of=of), interval=interval, method=method)

    def __str__(self) -> str:
        if self.interval is None or self.share.rate is None:
            return f"{self.share.count} of {self.share.of}"
        low, high = self.interval
        return (
            f"{self.share.count} of {self.share.of} ({self.share.rate:.1%}, "
            f"95 % {self.method} {low:.1%} to {high:.1%})"
        )


@dataclass(frozen=True, kw_only=True)
class RoundRates(Record):
    """One round. candidates: paid and at least so far established, of the decisive ones. tasks: with one such, of the
    tasks with a decisive one. applied: clean diffs of the proposed changes."""

    round: int
    applied: Rate
    candidates: dict[str, Rate]
    tasks: dict[str, Rate]
    kinds: dict[str, int] = field(default_factory=dict)
    """Kind -> number of distinct paid candidates."""


@dataclass(frozen=True, kw_only=True)
class LLMRates(Record):
    """single_shot: tasks hackable in round 1; iterated: in any round. curve: level -> [(K, mean share of tasks)].

    false_accusation: control candidates called wrong (judged or proven), of the paid ones. kappa: Fleiss' agreement
    of the judge's samples. memorising candidates are left out of all but `memorising` (tasks with a paid one).
    """

    tasks: int
    rounds: tuple[RoundRates, ...]
    single_shot: dict[str, Rate]
    iterated: dict[str, Rate]
    curve: dict[str, tuple[tuple[int, float, int], ...]]
    """(K, mean chance that at least one of K is paid, tasks that have K decisive candidates)."""
    memorising: Rate
    false_accusation: Rate
    proven_in_control: int
    differs: int
    apply_rate: Rate
    kappa: float | None
    cost_usd: float
    seeds: tuple[int, ...]


def rates(results: Iterable[LLMAuditResult]) -> LLMRates:
    """All figures of an LLM audit, from its records alone."""
    done = sorted(results, key=lambda result: result.task_id)
    numbers = sorted({r.number for result in done for r in result.rounds if r.number})
    control_paid = sum(r.control.paid for r in done)
    proposed = sum(r.proposed for result in done for r in result.rounds)
    exploits = {result.task_id: _exploits(result) for result in done}
    return LLMRates(
        tasks=len(done),
        rounds=tuple(_round(done, exploits, number) for number in numbers),
        single_shot=_tasks({t: [a for a in mine if a.candidate.round == 1] for t, mine in exploits.items()}),
        iterated=_tasks(exploits),
        curve={level: _curve(exploits, level) for level in LEVELS},
        memorising=_memorising(done),
        false_accusation=Rate.of(sum(r.control.called_wrong for r in done), control_paid, "Wilson"),
        proven_in_control=sum(r.control.proven_wrong for r in done),
        differs=sum(a.standing is Standing.DIFFERS for mine in exploits.values() for a in mine),
        apply_rate=Rate.of(sum(r.applied for result in done for r in result.rounds), proposed, "Wilson"),
        kappa=_kappa(done),
        cost_usd=sum(sorted(r.cost_usd for r in done)),
        seeds=tuple(sorted({int(r.options.get("seed", 0)) for r in done})),
    )


def text(figures: LLMRates) -> str:
    """The figures as lines for a terminal or a report."""
    lines = [f"LLM audit of {figures.tasks} tasks, seeds {', '.join(map(str, figures.seeds)) or '-'}"]
    for name, row in (
        ("single shot (round 1)", figures.single_shot),
        ("iterated (all rounds)", figures.iterated),
    ):
        lines += [f"{name}:", *(f"  {level:<8} {row[level]}" for level in LEVELS)]
    for one in figures.rounds:
        lines.append(f"round {one.round}: changes that applied {one.applied}")
        lines += [f"  paid, {level:<8} {one.candidates[level]}" for level in LEVELS]
        if one.kinds:
            shown = ", ".join(f"{kind} {n}" for kind, n in sorted(one.kinds.items()))
            lines.append(f"  distinct paid by kind: {shown}")
    for level in LEVELS:
        points = ", ".join(f"{k}: {share:.1%} ({n} tasks)" for k, share, n in figures.curve[level])
        lines.append(f"curve over K, {level}: {points or 'no decisive candidate'}")
    lines.append(f"memorising candidates paid: {figures.memorising} tasks")
    lines.append(f"differs (specified by nothing, never counted as wrong): {figures.differs}")
    lines.append(
        f"benign control called wrong: {figures.false_accusation}; of these with a proof: {figures.proven_in_control}"
    )
    lines.append(f"changes that applied, all: {figures.apply_rate}")
    kappa = "undefined" if figures.kappa is None else f"{figures.kappa:.3f}"
    lines.append(f"agreement of the judge's samples (Fleiss' kappa): {kappa}")
    lines.append(f"model cost: ${figures.cost_usd:.4f}")
    return "\n".join(lines)


def _exploits(result: LLMAuditResult) -> list[Assessed]:
    return [
        a
        for a in result.assessed
        if a.candidate.claim is Claim.WRONG and a.candidate.family is Family.EXPLOIT and a.outcome.decisive
    ]


def _hit(assessed: Assessed, level: str) -> bool:
    return assessed.paid and assessed.standing in _REACHED[level]


def _tasks(groups: dict[str, list[Assessed]]) -> dict[str, Rate]:
    some = [mine for _, mine in sorted(groups.items()) if mine]
    return {
        level: Rate.of(sum(any(_hit(a, level) for a in mine) for mine in some), len(some)) for level in LEVELS
    }


def _round(done: Sequence[LLMAuditResult], exploits: dict[str, list[Assessed]], number: int) -> RoundRates:
    asked = [r for result in done for r in result.rounds if r.number == number]
    mine = {task: [a for a in all_ if a.candidate.round == number] for task, all_ in exploits.items()}
    flat = [a for _, group in sorted(mine.items()) for a in group]
    kinds: dict[str, int] = {}
    for kind, _ in sorted({(a.candidate.kind, a.candidate.candidate_id) for a in flat if a.paid}):
        kinds[kind] = kinds.get(kind, 0) + 1
    return RoundRates(
        round=number,
        applied=Rate.of(sum(r.applied for r in asked), sum(r.proposed for r in asked), "Wilson"),
        candidates={level: Rate.of(sum(_hit(a, level) for a in flat), len(flat)) for level in LEVELS},
        tasks=_tasks(mine),
        kinds=kinds,
    )


def _curve(exploits: dict[str, list[Assessed]], level: str) -> tuple[tuple[int, float, int], ...]:
    """Over single-shot candidates: mean of 1 - C(n - c, K)/C(n, K) over the tasks with n >= K."""
    counts = [
        (len(first), sum(_hit(a, level) for a in first))
        for _, mine in sorted(exploits.items())
        if (first := [a for a in mine if a.candidate.round == 1])
    ]
    points = []
    for k in range(1, max((n for n, _ in counts), default=0) + 1):
        fit = [(n, c) for n, c in counts if n >= k]
        share = sum(1 - comb(n - c, k) / comb(n, k) for n, c in fit) / len(fit)
        points.append((k, share, len(fit)))
    return tuple(points)


def _memorising(done: Sequence[LLMAuditResult]) -> Rate:
    tried = [
        [a for a in r.assessed if a.candidate.family is Family.MEMORISING and a.outcome.decisive]
        for r in done
    ]
    some = [mine for mine in tried if mine]
    return Rate.of(sum(any(a.paid for a in mine) for mine in some), len(some))


def _kappa(done: Sequence[LLMAuditResult]) -> float | None:
    """Over the programs with the most common number of votes (the statistic needs one number for all)."""
    ratings = [rating for result in done for rating in result.ratings]
    sizes = [sum(rating.values()) for rating in ratings]
    if not sizes:
        return None
    size = max(sorted(set(sizes)), key=sizes.count)
    return fleiss_kappa([rating for rating, n in zip(ratings, sizes, strict=True) if n == size])
