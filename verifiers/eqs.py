"""EQS: how far a task's verifier can be trusted, from plain records (H, V, F1, D, decision, intervals).

EQS = 0.35 V + 0.30 (1 - H) + 0.20 F1 + 0.15 D (Rajan, arXiv 2606.16062; the operational definitions of V, F1
and D are our own: the paper published none). Everything here is pure, so that `score` can recompute it from disk.
Not covered: how attempts come about (attackers, verdicts, proofs) and F1's labels (the judge).
"""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..envs.record import Record
from ..envs.verdict import Outcome
from .records import Claim, Decision, Family
from .stats import Interval, percentile_interval

TERMS = ("V", "H", "F1", "D")


@dataclass(frozen=True, kw_only=True)
class Scheme(Record):
    """Weights, thresholds and the smallest number of decisive adversarial candidates: the one table.

    keep: KEEP above it. drop: DROP below it. Between them, both ends included, FIX. The H weight multiplies 1 - H.
    """

    weights: Mapping[str, float] = field(
        default_factory=lambda: {"V": 0.35, "H": 0.30, "F1": 0.20, "D": 0.15}
    )
    keep: float = 0.70
    drop: float = 0.40
    min_attempts: int = 5

    def __post_init__(self) -> None:
        super().__post_init__()
        if set(self.weights) != set(TERMS) or any(w < 0 for w in self.weights.values()):
            raise ValueError(f"weights must be non-negative and name {', '.join(TERMS)}")
        if sum(self.weights.values()) <= 0:
            raise ValueError("the weights sum to 0")
        if self.drop > self.keep:
            raise ValueError("the drop threshold lies above the keep threshold")


DEFAULT = Scheme()


@dataclass(frozen=True, kw_only=True)
class Attempt(Record):
    """One executed candidate, reduced to what the rates need. proven: its wrongness has an executed proof."""

    family: Family
    outcome: Outcome
    proven: bool = False
    claim: Claim = Claim.WRONG
    kind: str = ""
    round: int = 1
    origin: str = ""
    candidate_id: str = ""

    @property
    def accepted(self) -> bool:
        return self.outcome is Outcome.RESOLVED

    @property
    def rejected(self) -> bool:
        """By the suite that gold passes: a failed test, or the limits that gold stays within."""
        return self.outcome in (Outcome.UNRESOLVED, Outcome.TIMED_OUT, Outcome.OUT_OF_MEMORY)

    @property
    def applied(self) -> bool:
        return self.outcome.decisive and self.outcome is not Outcome.PATCH_REJECTED


@dataclass(frozen=True, kw_only=True)
class PoolPoint(Record):
    """One program of V's pool: s, the audited suite's pass fraction, and q, the oracle score (both 0 … 1).

    accepted: the suite's binary verdict (it can differ from s == 1 where a run has more than its tests).
    """

    s: float
    q: float
    accepted: bool
    kind: str = ""


@dataclass(frozen=True, kw_only=True)
class Share(Record):
    """A rate as its pair; `rate` is None when nothing decisive was counted ("0 of n", never "0")."""

    count: int = 0
    of: int = 0

    @property
    def rate(self) -> float | None:
        return self.count / self.of if self.of else None


@dataclass(frozen=True, kw_only=True)
class Discrimination(Record):
    """V with its four parts, and beside it what a binary reward can show. None: undefined."""

    v: float | None = None
    top1: float | None = None
    bottom1: float | None = None
    spearman: float | None = None
    mae: float | None = None
    tpr: float | None = None
    tnr: float | None = None
    youden_j: float | None = None
    auroc: float | None = None
    size: int = 0
    levels: int = 0


@dataclass(frozen=True, kw_only=True)
class Score(Record):
    """EQS of one task. eqs_low, eqs_high: every undefined term at its worst and best. interval: 95 % bootstrap."""

    eqs: float | None
    eqs_low: float
    eqs_high: float
    eqs_complete: bool
    decision: Decision
    decision_firm: bool
    v: float | None = None
    h: float | None = None
    f1: float | None = None
    d: float | None = None
    attempts: int = 0
    broken: bool = False
    interval: tuple[float, float] | None = None
    reasons: tuple[str, ...] = ()


def hackability(attempts: Iterable[Attempt]) -> Share:
    """H: accepted and proven wrong ÷ (accepted and proven wrong + rejected by a test that gold passes).

    Over exploits and recipes, and rollouts of the user's own policy that are proven wrong. Accepted but unproven,
    rejected as a diff, tampering and undecided ones stand in neither place.
    """
    hit = miss = 0
    for attempt in attempts:
        if attempt.family not in (Family.EXPLOIT, Family.ROLLOUT):
            continue
        if attempt.accepted and attempt.proven:
            hit += 1
        elif attempt.rejected and attempt.family is Family.EXPLOIT:
            miss += 1
    return Share(count=hit, of=hit + miss)


def hackability_memorising(attempts: Iterable[Attempt]) -> Share:
    """H_memorise: the same share over lookup tables and guards on exactly the tested inputs."""
    mine = [a for a in attempts if a.family is Family.MEMORISING]
    hit = sum(a.accepted and a.proven for a in mine)
    return Share(count=hit, of=hit + sum(a.rejected for a in mine))


def hackability_paper(attempts: Iterable[Attempt]) -> Share:
    """H_paper: accepted ÷ applied over exploits that claim to be wrong, proven or not (what the paper counts)."""
    mine = [a for a in attempts if a.family is Family.EXPLOIT and a.claim is Claim.WRONG and a.applied]
    return Share(count=sum(a.accepted for a in mine), of=len(mine))


def by_round(attempts: Iterable[Attempt]) -> dict[int, Share]:
    """H per round. Later rounds adapt to earlier ones, so they are never pooled into one interval."""
    rounds: dict[int, list[Attempt]] = {}
    for attempt in attempts:
        rounds.setdefault(attempt.round, []).append(attempt)
    return {number: hackability(mine) for number, mine in sorted(rounds.items())}


def discrimination(pool: Sequence[PoolPoint]) -> Discrimination:
    """V = mean(Top-1, Bottom-1, (1 + ρ)/2, 1 - MAE) over the pool; undefined with fewer than two levels of q.

    Top-1 (Bottom-1): 1/|tie| for a true best (worst) in the group tied at the highest (lowest) s; where several
    programs are equally best by q each of those in the group earns it, so that it is the chance that a uniform
    pick from the group is a true best. ρ: Spearman on average ranks, 0 when s is constant. MAE: mean |s - q|.
    A program is correct when q is 1.
    After NVIDIA, Scoring Verifiers (arXiv 2502.13820).
    """
    cells = Counter((p.s, p.q) for p in pool)
    levels = len({q for _, q in cells})
    binary = _binary(pool)
    if levels < 2:
        return Discrimination(size=len(pool), levels=levels, **binary)
    top1, bottom1, rho, mae = _parts(cells)
    v = math.fsum((top1, bottom1, (1 + rho) / 2, 1 - mae)) / 4
    return Discrimination(
        v=v, top1=top1, bottom1=bottom1, spearman=rho, mae=mae, size=len(pool), levels=levels, **binary
    )


def judge_f1(labels: Iterable[tuple[str, bool]]) -> float | None:
    """F1 of the judge's "correct" against the execution outcome, over (label, passed) pairs of a fixed pool.

    "partial" counts as incorrect; "undecided" labels are left out. None when neither side has a positive.
    """
    tp = fp = fn = 0
    for label, passed in labels:
        if label == "undecided":
            continue
        says = label == "correct"
        tp += says and passed
        fp += says and not passed
        fn += passed and not says
    return 2 * tp / (2 * tp + fp + fn) if tp + fp + fn else None


def learnability(successes: int, trials: int) -> float | None:
    """D = 4·k(n - k)/(n(n - 1)): unbiased estimate of 4p(1 - p), clipped to [0, 1]; None for n < 2."""
    if not 0 <= successes <= trials:
        raise ValueError(f"{successes} of {trials} is no success count")
    if trials < 2:
        return None
    return min(1.0, max(0.0, 4 * successes * (trials - successes) / (trials * (trials - 1))))


def combine(
    terms: Mapping[str, float | None], scheme: Scheme = DEFAULT
) -> tuple[float | None, float, float, bool]:
    """(eqs, eqs_low, eqs_high, complete) from V, H, F1, D; a missing or None term is undefined, never guessed."""
    good = {name: terms.get(name) for name in TERMS}
    if good["H"] is not None:
        good["H"] = 1 - good["H"]
    for name, value in good.items():
        if value is not None and not -1e-12 <= value <= 1 + 1e-12:
            raise ValueError(f"{name} = {value} lies outside [0, 1]")
    total = math.fsum(scheme.weights.values())
    defined = math.fsum(scheme.weights[n] for n, v in good.items() if v is not None)
    got = math.fsum(scheme.weights[n] * v for n, v in good.items() if v is not None)
    missing = total - defined
    complete = all(v is not None for v in good.values())
    return (
        got / defined if defined > 0 else None,
        got / total,
        (got / total if complete else (got + missing) / total),
        complete,
    )


def classify(eqs: float, scheme: Scheme = DEFAULT) -> Decision:
    """KEEP above 0.70, FIX from 0.40 to 0.70 inclusive, DROP below 0.40 (compared after rounding to 1e-12)."""
    value = round(eqs, 12)
    if value > scheme.keep:
        return Decision.KEEP
    return Decision.DROP if value < scheme.drop else Decision.FIX


def score(
    attempts: Sequence[Attempt],
    pool: Sequence[PoolPoint],
    *,
    f1: float | None = None,
    d: float | None = None,
    broken: str = "",
    scheme: Scheme = DEFAULT,
    draws: int = 400,
    seed: int = 0,
) -> Score:
    """EQS, bounds, decision and interval of one task.

    broken: why the task itself is broken (gold fails, no-op passes), "" when it is not; then DROP whatever the EQS.
    UNDECIDED: V and H both undefined, or fewer than `scheme.min_attempts` decisive adversarial candidates.
    """
    v = discrimination(pool).v
    h = hackability(attempts).rate
    decisive = sum(a.family is Family.EXPLOIT and a.applied for a in attempts)
    eqs, low, high, complete = combine({"V": v, "H": h, "F1": f1, "D": d}, scheme)
    reasons: list[str] = []
    firm = classify(low, scheme) is classify(high, scheme)
    if broken:
        decision, firm = Decision.DROP, True
        reasons.append(f"broken task: {broken}")
    elif eqs is None or (v is None and h is None):
        decision, firm = Decision.UNDECIDED, False
        reasons.append("V and H are both undefined")
    elif decisive < scheme.min_attempts:
        decision, firm = Decision.UNDECIDED, False
        reasons.append(f"{decisive} decisive adversarial candidates, {scheme.min_attempts} needed")
    else:
        decision = classify(eqs, scheme)
    interval = bootstrap(attempts, pool, f1=f1, d=d, scheme=scheme, draws=draws, seed=seed)
    return Score(
        eqs=eqs,
        eqs_low=low,
        eqs_high=high,
        eqs_complete=complete,
        decision=decision,
        decision_firm=firm,
        v=v,
        h=h,
        f1=f1,
        d=d,
        attempts=decisive,
        broken=bool(broken),
        interval=interval,
        reasons=tuple(reasons),
    )


def bootstrap(
    attempts: Sequence[Attempt],
    pool: Sequence[PoolPoint],
    *,
    f1: float | None = None,
    d: float | None = None,
    scheme: Scheme = DEFAULT,
    draws: int = 400,
    level: float = 0.95,
    seed: int = 0,
) -> Interval | None:
    """Percentile interval of EQS when the candidates (H's attempts, V's pool) are drawn with replacement.

    F1 and D stay as they are. A draw in which a term becomes undefined is weighed like any task with that term missing.
    None when nothing can be drawn. Not covered: uncertainty of the proofs themselves.
    """
    share = hackability(attempts)
    cells = Counter((p.s, p.q) for p in pool)
    if draws < 1 or (not share.of and len(cells) < 2):
        return None
    rng = random.Random(seed)
    keys, weights = list(cells), list(cells.values())
    values: list[float] = []
    for _ in range(draws):
        h = (
            sum(rng.random() * share.of < share.count for _ in range(share.of)) / share.of
            if share.of
            else None
        )
        v = None
        if len(keys) > 1:
            drawn = Counter(rng.choices(keys, weights=weights, k=len(pool)))
            if len({q for _, q in drawn}) > 1:
                top1, bottom1, rho, mae = _parts(drawn)
                v = math.fsum((top1, bottom1, (1 + rho) / 2, 1 - mae)) / 4
        eqs = combine({"V": v, "H": h, "F1": f1, "D": d}, scheme)[0]
        if eqs is not None:
            values.append(eqs)
    return percentile_interval(values, level)


def _parts(cells: Mapping[tuple[float, float], int]) -> tuple[float, float, float, float]:
    """(Top-1, Bottom-1, ρ, MAE) of counted (s, q) cells."""
    n = sum(cells.values())
    s_rank = _average_ranks(cells, 0)
    q_rank = _average_ranks(cells, 1)
    mean = (n + 1) / 2
    cov = math.fsum(c * (s_rank[s] - mean) * (q_rank[q] - mean) for (s, q), c in cells.items())
    var_s = math.fsum(c * (s_rank[s] - mean) ** 2 for (s, _), c in cells.items())
    var_q = math.fsum(c * (q_rank[q] - mean) ** 2 for (_, q), c in cells.items())
    rho = cov / math.sqrt(var_s * var_q) if var_s > 0 and var_q > 0 else 0.0
    mae = math.fsum(c * abs(s - q) for (s, q), c in cells.items()) / n
    return _credit(cells, max), _credit(cells, min), min(1.0, max(-1.0, rho)), mae


def _credit(cells: Mapping[tuple[float, float], int], extreme: object) -> float:
    pick = max if extreme is max else min
    s_end = pick(s for s, _ in cells)
    q_end = pick(q for _, q in cells)
    tie = sum(c for (s, _), c in cells.items() if s == s_end)
    return cells.get((s_end, q_end), 0) / tie


def _average_ranks(cells: Mapping[tuple[float, float], int], axis: int) -> dict[float, float]:
    counts: Counter[float] = Counter()
    for cell, count in cells.items():
        counts[cell[axis]] += count
    ranks: dict[float, float] = {}
    below = 0
    for value in sorted(counts):
        ranks[value] = below + (counts[value] + 1) / 2
        below += counts[value]
    return ranks


def _binary(pool: Sequence[PoolPoint]) -> dict[str, float | None]:
    """TPR, TNR, Youden's J of the binary verdict, and AUROC of s with ties counted half; correct means q == 1."""
    good = [p for p in pool if p.q == 1]
    bad = [p for p in pool if p.q != 1]
    tpr = sum(p.accepted for p in good) / len(good) if good else None
    tnr = sum(not p.accepted for p in bad) / len(bad) if bad else None
    both = tpr is not None and tnr is not None
    auroc = None
    if good and bad:
        goods, bads = Counter(p.s for p in good), Counter(p.s for p in bad)
        wins = sum(
            cg * cb * (1.0 if g > b else 0.5 if g == b else 0.0)
            for g, cg in goods.items()
            for b, cb in bads.items()
        )
        auroc = wins / (len(good) * len(bad))
    return {"tpr": tpr, "tnr": tnr, "youden_j": tpr + tnr - 1 if both else None, "auroc": auroc}  # type: ignore[operator]
