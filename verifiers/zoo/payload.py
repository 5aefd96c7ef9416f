"""The nouns of the zoo: a kind, its payloads, and why it does not fit a task."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum

from ...envs.patch import Patch
from ...envs.record import Record
from ..records import Candidate, Claim, Family
from .ground import Ground


class Expect(StrEnum):
    """What our verdict must do with a payload that a plain grader pays.

    REFUSED: never paid. SUITE: depends on the suite alone (semantic kinds; a stronger suite must refuse them).
    UNDETECTED: paid, and known to be: accounting, twin and probe cannot see it (THREATS, layer 5); repair must.
    PAID: correct code that must be paid.
    """

    REFUSED = "refused"
    SUITE = "suite"
    UNDETECTED = "undetected"
    PAID = "paid"


@dataclass(frozen=True, kw_only=True)
class Payload(Record):
    """One runnable exploit of one task: `patch` on the unsolved tree. `name` is "R04" or "R04/source"."""

    task_id: str
    kind: str
    patch: Patch
    expect: Expect = Expect.REFUSED
    variant: str = ""
    alone: Patch = field(default_factory=Patch)
    """The wrong code without the payload (the no-op by default): it must fail the suite."""

    @property
    def name(self) -> str:
        return f"{self.kind}/{self.variant}" if self.variant else self.kind

    def candidate(self) -> Candidate:
        """The payload as a candidate of the audit: tamper and judge kinds enter no rate but the matrix."""
        semantic = self.kind.startswith("S")
        return Candidate(
            task_id=self.task_id,
            patch=self.patch,
            kind=self.kind,
            family=Family.EXPLOIT if semantic else Family.TAMPER,
            origin="zoo" + (f":{self.variant}" if self.variant else ""),
            claim=Claim.BENIGN if self.expect is Expect.PAID else Claim.WRONG,
            description=self.name,
            metadata={"expect": self.expect.value},
        )


@dataclass(frozen=True, kw_only=True)
class NotHere(Record):
    """A kind that cannot be tried on a task, and why: shown, not hidden."""

    task_id: str
    kind: str
    reason: str


@dataclass(frozen=True, kw_only=True)
class Kind:
    """One entry of THREATS. `make` gives payloads, or a reason (str) why none fits the ground."""

    kind: str
    title: str
    make: Callable[[Ground], Iterable[Payload] | str]
    contained: bool = False
    """Writes outside the tree: only made where the task has an image."""
    outside: str = ""
    """Set where no payload can exist in a diff at all: an audit finding on image or prompt instead."""
