"""The lines under the audit's table."""

from __future__ import annotations

from acidtest.envs.patch import Patch
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.scripts.tables import open_line
from acidtest.verifiers.audit_record import AuditRecord
from acidtest.verifiers.eqs import Attempt, Decision, Score
from acidtest.verifiers.records import Candidate, Family, Finding, Standing


def record(*attempts: Attempt, v: float | None = None) -> AuditRecord:
    score = Score(
        eqs=None,
        eqs_low=0.0,
        eqs_high=1.0,
        eqs_complete=False,
        decision=Decision.UNDECIDED,
        decision_firm=False,
        v=v,
    )
    candidate = Candidate(
        task_id="own/1", patch=Patch(""), kind="S01", family=Family.EXPLOIT, origin="recipe"
    )
    verdict = Verdict(
        task_id="own/1",
        patch_digest="",
        suite_digest="",
        outcome=Outcome.RESOLVED,
        original_outcome=Outcome.RESOLVED,
    )
    lead = Finding(candidate=candidate, verdict=verdict, standing=Standing.LEAD)
    findings = (lead,) if any(a.outcome is Outcome.RESOLVED for a in attempts) else ()
    return AuditRecord(task_id="own/1", attempts=attempts, findings=findings, searched=3, score=score)


def attempt(number: int, family: Family, outcome: Outcome) -> Attempt:
    return Attempt(candidate_id=str(number), family=family, outcome=outcome)


def test_paid_programs_of_a_task_without_a_known_domain_are_counted_once_each() -> None:
    paid = [attempt(n, f, Outcome.RESOLVED) for n, f in enumerate([Family.MUTANT, Family.EXPLOIT])]
    others = [attempt(8, Family.MUTANT, Outcome.UNRESOLVED), attempt(9, Family.BENIGN, Outcome.RESOLVED)]
    assert "own/1 (2)" in open_line([record(*paid, *others)])


def test_nothing_is_open_where_no_program_is_paid_or_the_domain_is_known() -> None:
    refused = attempt(1, Family.MUTANT, Outcome.UNRESOLVED)
    paid = attempt(2, Family.MUTANT, Outcome.RESOLVED)
    assert open_line([record(refused), record(paid, v=0.5)]) == ""
