"""PASS_TO_PASS ids that gold's own run does not answer to: listed by the place they stand in, and how many are too many.

A file that gold cannot even import takes all its ids along; what is left would look like a sound suite. Pure.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from .ids import PROGRESS, UNANSWERED, place_of
from .task import Suite

SHARE = 0.2
"""More than this share of PASS_TO_PASS may not vanish; a single id never counts as a share."""


@dataclass(frozen=True, kw_only=True)
class Vanished:
    """ids: PASS_TO_PASS ids without an executed test, of `of`. places: file or class of which gold ran nothing -> ids."""

    ids: tuple[str, ...] = ()
    of: int = 0
    places: Mapping[str, int] | None = None

    @property
    def too_many(self) -> bool:
        return len(self.ids) > 1 and len(self.ids) > SHARE * self.of

    @property
    def text(self) -> str:
        """One sentence: how many, of which files nothing ran, else the first ids."""
        places = [f"{place} ({count} ids)" for place, count in (self.places or {}).items()]
        where = f"gold ran no test of {_few(places)}" if places else f"among them {_few(self.ids)}"
        return f"{len(self.ids)} of {self.of} PASS_TO_PASS ids are answered by no test of gold's run: {where}"


def vanished(suite: Suite, excluded: Mapping[str, str], executed: Iterable[str]) -> Vanished:
    """excluded: id -> why it is left out. executed: ids that gold's run reported."""
    wanted = [
        i for i in suite.pass_to_pass if i not in suite.exclude_ids and not PROGRESS.fullmatch(i.strip())
    ]
    lost = tuple(i for i in wanted if excluded.get(i) == UNANSWERED)
    ran = {place_of(ident) for ident in executed}
    gone = Counter(place for i in lost if (place := place_of(i)) and place not in ran)
    return Vanished(ids=lost, of=len(wanted), places=dict(gone.most_common()))


def _few(items: Iterable[str]) -> str:
    found = list(items)
    return ", ".join(found[:3]) + (" …" if len(found) > 3 else "")
