"""After repair the task is audited again, with another seed; and programs that no proposal was made from are executed.

A function task is audited with added and original tests as one suite, so that V and H are those of what is served
(attackers then know the added tests too: H_memorise stays high, which is no news). A repository task is audited with
its hardened suite as it stands.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from ..envs.run import Status
from ..envs.task import AddedTests, Suite, Task
from ..envs.verify import Verifier
from ..verifiers.audit_config import AuditConfig
from ..verifiers.audit_record import AuditRecord
from ..verifiers.audit_task import Auditor
from ..verifiers.llm.protocol import LLM
from ..verifiers.records import Family, Finding, Standing
from .bench import VerifierBench
from .merge import joined_commands

HELD_OUT_LIMIT = 60


def summary_of(record: AuditRecord) -> dict[str, Any]:
    """EQS, decision, flags and counts of an audit, as a repair record carries them."""
    score = record.score
    proven = [f for f in record.findings if f.standing is Standing.PROVEN]
    memorising = sum(f.candidate.family is Family.MEMORISING for f in proven)
    return {
        "eqs": None if score is None else score.eqs,
        "decision": str(record.decision),
        "decision_firm": None if score is None else score.decision_firm,
        "flags": list(record.flags),
        "paid_proven": len(proven) - memorising,
        "paid_memorising": memorising,
        "seed": record.seed,
    }


def audited_again(
    task: Task, suite: Suite, verifier: Verifier, config: AuditConfig, seed: int, llm: LLM | None = None
) -> AuditRecord:
    """The audit of the hardened task; infrastructure errors are raised, and AnswersPending.

    The model is the one that the repair was given, with its store and ceiling; without one none is asked, whatever the
    first audit had.
    """
    settings = replace(
        config, seed=seed, tamper=False, leaks=False, llm=config.llm if llm is not None else ""
    )
    with Auditor(settings, verifier, None, llm=llm) as auditor:
        return auditor.audit_task(task.with_suite(as_one(task, suite)))


def as_one(task: Task, suite: Suite) -> Suite:
    """Original and added tests as one suite where one command can run both (function tasks), else the suite itself."""
    added = suite.added
    if added is None or not task.is_function or added.framework != suite.framework:
        return suite
    return replace(
        suite,
        added=None,
        command=joined_commands(suite.command, added.command),
        test_files={**suite.test_files, **added.test_files},
        fail_to_pass=(*suite.fail_to_pass, *added.test_ids),
    )


def held_out_findings(
    task: Task, before: AuditRecord, verifier: Verifier, config: AuditConfig, seed: int
) -> list[Finding]:
    """Proven findings of another mechanical audit of the original suite, by another seed, that the first did not have."""
    with Auditor(replace(config, seed=seed, tamper=False, leaks=False, llm=""), verifier, None) as auditor:
        again = auditor.audit_task(task)
    known = {f.candidate.patch.text for f in before.findings if f.standing is Standing.PROVEN}
    return [
        f for f in again.findings if f.standing is Standing.PROVEN and f.candidate.patch.text not in known
    ]


def refused_of(
    bench: VerifierBench, added: AddedTests, findings: Iterable[Finding]
) -> dict[str, tuple[int, int]]:
    """Family -> (refused by an added test, of), each program executed once; at most HELD_OUT_LIMIT programs."""
    counts: dict[str, tuple[int, int]] = {}
    for finding in list(findings)[:HELD_OUT_LIMIT]:
        run = bench.run(finding.candidate.patch, added)
        refused = run.timed_out or any(
            run.statuses.get(i) in {Status.FAILED, Status.ERROR} for i in added.test_ids
        )
        name = str(finding.candidate.family)
        held = counts.get(name, (0, 0))
        counts[name] = (held[0] + refused, held[1] + 1)
    return counts
