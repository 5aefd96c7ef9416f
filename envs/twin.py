"""Layer "twin": on a claimed pass the same suite runs again, in another fresh sandbox, with chosen tests told to fail.

The invocation, the sources and the ids are the same; only the supervisor's answers differ. A chosen id that still
passes shows that the verdict does not come from the tests: TAMPERED. Pure decisions here; `judge.py` runs it.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from .protocols import Report
from .run import Status
from .verdict import TwinReport

FAIL = "no"
"""What the supervisor answers the tail of a test that is told to fail: as long as "go", the answer to all others."""
RESPONDED = {Status.FAILED, Status.ERROR}
CLAIMS = {Status.PASSED, Status.XPASS}


@dataclass(frozen=True, kw_only=True)
class Choice:
    """ids: executed ids told to fail. replies: beacon key -> FAIL."""

    ids: tuple[str, ...] = ()
    replies: Mapping[str, str] = field(default_factory=dict)


def choose(
    must: Iterable[str], others: Sequence[str], keys: Mapping[str, tuple[str, ...]], sample: int, seed: str
) -> Choice:
    """All of `must` and a random sample of `others`, as far as they have keys (executed id -> own beacon keys)."""
    first = [ident for ident in dict.fromkeys(must) if keys.get(ident)]
    rest = sorted(ident for ident in set(others) - set(first) if keys.get(ident))
    chosen = first + random.Random(seed).sample(rest, min(sample, len(rest)))
    return Choice(ids=tuple(chosen), replies={key: FAIL for ident in chosen for key in keys[ident]})


@dataclass(frozen=True, kw_only=True)
class Weighed:
    """responded: ids that failed as told. proven: claimed a pass although their tail was told to fail.
    suspicious: claimed a pass, tail not asked. absent: no claim and no failure."""

    responded: tuple[str, ...] = ()
    proven: tuple[str, ...] = ()
    suspicious: tuple[str, ...] = ()
    absent: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.proven or self.suspicious or self.absent)


def weigh(choice: Choice, statuses: Mapping[str, Status], asked: Mapping[str, Mapping[str, int]]) -> Weighed:
    """What each chosen id did. asked: executed id -> keys its tail asked in this run."""
    groups: dict[str, list[str]] = {"responded": [], "proven": [], "suspicious": [], "absent": []}
    for ident in choice.ids:
        status = statuses.get(ident, Status.MISSING)
        if status in RESPONDED:
            groups["responded"].append(ident)
        elif status not in CLAIMS:
            groups["absent"].append(ident)
        elif any(key in choice.replies for key in asked.get(ident, {})):
            groups["proven"].append(ident)
        else:
            groups["suspicious"].append(ident)
    return Weighed(**{name: tuple(ids) for name, ids in groups.items()})


def weigh_report(choice: Choice, report: Report) -> Weighed:
    return weigh(choice, report.statuses, report.keys)


def report_of(choice: Choice, weighed: Weighed, attempts: int, seconds: float) -> TwinReport:
    return TwinReport(
        chosen=choice.ids,
        responded=weighed.responded,
        unresponsive=weighed.proven + weighed.suspicious + weighed.absent,
        attempts=attempts,
        seconds=seconds,
    )
