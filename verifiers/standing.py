"""Standing of a paid candidate: proven, judged, claimed or differs. A pure table over four findings.

No accusation without proof (SCIENCE.md, "Where we go further"):
  proven    a witness holds (gold passes, the candidate fails, repeatedly), what it asserts is the task's (in the
            stated domain, or a quoted sentence by a blind majority), and every known-correct alternative passes it.
            A no-op or hollow program that is paid is proven as it stands.
  differs   a witness holds, but nothing specifies what it asserts, or a known-correct program fails it too. This
            weighs more than a judge's vote: the difference that was found is not the task's.
  judged    the judge's majority says wrong, and no such witness exists.
  claimed   only the origin says so.   lead   nobody has said anything yet (survivors of the mechanical audit).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..envs.record import Record
from .records import Claim, Standing


class WitnessResult(StrEnum):
    """What executing a witness showed. UNSTABLE: not the same in every run. BROKEN: gold fails it."""

    HOLDS = "holds"
    NONE = "none"
    UNSTABLE = "unstable"
    BROKEN = "broken"
    SPARES = "spares"
    """The candidate passes it too."""


class Cited(StrEnum):
    """Whether the asserted behaviour is the task's. IN_DOMAIN: a value difference on an input of the stated domain."""

    YES = "yes"
    NO = "no"
    UNDECIDED = "undecided"
    IN_DOMAIN = "in_domain"


class Others(StrEnum):
    """What known-correct alternatives do with the witness. NONE_KNOWN does not stand in the way of a proof."""

    ALL_PASS = "all_pass"
    SOME_FAIL = "some_fail"
    UNDECIDED = "undecided"
    NONE_KNOWN = "none_known"


@dataclass(frozen=True, kw_only=True)
class Evidence(Record):
    """Everything a standing rests on. judge: the label of the judge's majority, "" when it was not asked."""

    claim: Claim = Claim.WRONG
    hollow: bool = False
    witness: WitnessResult = WitnessResult.NONE
    cited: Cited = Cited.UNDECIDED
    others: Others = Others.NONE_KNOWN
    judge: str = ""


def standing_of(evidence: Evidence) -> tuple[Standing, str]:
    """The standing of a candidate the suite paid, and the reason in one sentence."""
    if evidence.hollow:
        return Standing.PROVEN, "a program that does nothing is paid"
    if evidence.witness is WitnessResult.HOLDS:
        if evidence.others is Others.SOME_FAIL:
            return Standing.DIFFERS, "a known-correct alternative fails the witness too"
        if evidence.cited is Cited.NO:
            return Standing.DIFFERS, "nothing in the task's text demands what the witness asserts"
        specified = evidence.cited in (Cited.YES, Cited.IN_DOMAIN)
        if specified and evidence.others in (Others.ALL_PASS, Others.NONE_KNOWN):
            how = (
                "on an input of the stated domain"
                if evidence.cited is Cited.IN_DOMAIN
                else "as a quoted sentence demands"
            )
            return Standing.PROVEN, f"gold passes the witness and the candidate fails it, {how}"
    if evidence.judge in ("partial", "incorrect"):
        return Standing.JUDGED, f"the judge's majority says {evidence.judge}; no witness proves it"
    if evidence.claim is Claim.WRONG:
        return Standing.CLAIMED, "only its origin says that it is wrong"
    return Standing.LEAD, "nobody has shown or judged it to be wrong"
