"""The proof of a hardened suite: what is said of it was executed, on the whole suite and under the strict defence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import AddedTests
from ..envs.verdict import Outcome
from ..verifiers.records import Candidate
from .bench import VerifierBench


@dataclass(frozen=True, kw_only=True)
class Proof(Record):
    """gold: how often gold resolved, of `runs`. blocked: candidate id -> added ids that refused it, every time.

    kill_rates: added id -> share of the targets that it refused, in a run to the end before they were put in order (`order.py`). paid: targets that still pass at least once. refused: correct programs that were not resolved (must be empty).
    """

    runs: int
    gold: int = 0
    blocked: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    kill_rates: Mapping[str, float] = field(default_factory=dict)
    paid: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    correct: int = 0

    @property
    def holds(self) -> bool:
        """Gold every time, at least one target refused, no correct program refused."""
        return self.gold == self.runs > 0 and bool(self.blocked) and not self.refused


def prove(
    bench: VerifierBench,
    added: AddedTests,
    targets: Sequence[Candidate],
    correct: Mapping[str, Patch],
    *,
    runs: int = 2,
) -> Proof:
    """Execute gold, every target and every correct program against original and added tests, `runs` times each."""
    gold = Patch(bench.task.gold_patch)
    good = sum(bench.whole(gold, added, repeat=i).resolved for i in range(runs))
    if good < runs:
        return Proof(runs=runs, gold=good)
    refused = [name for name, patch in correct.items() if not bench.whole(patch, added).resolved]
    blocked: dict[str, tuple[str, ...]] = {}
    paid: list[str] = []
    for target in targets:
        verdicts = [bench.whole(target.patch, added, repeat=i) for i in range(runs)]
        if all(v.outcome.decisive and v.outcome is not Outcome.RESOLVED for v in verdicts):
            blocked[target.candidate_id] = verdicts[0].failed_added
        elif any(v.outcome is Outcome.RESOLVED for v in verdicts):
            paid.append(target.candidate_id)
    return Proof(
        runs=runs, gold=good, blocked=blocked, paid=tuple(paid), refused=tuple(refused), correct=len(correct)
    )
