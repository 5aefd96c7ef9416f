"""Put a file of proposals through the gates (`acidtest repair --proposals FILE`): nothing is locked, nothing recomputed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from ..envs.errors import ConfigError
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import Task
from ..envs.verify import Verifier
from ..verifiers.alternatives import Alternatives
from ..verifiers.records import Finding
from .bench import IN_ORDER_OF_FILE, VerifierBench
from .correct import correct_programs
from .gates import NAMES, run_gates
from .gates.trial import GateLimits, Trial
from .loop import targets_of
from .proposals import ProposalLine
from .records import GateResult
from .tree import existing_tests
from .variants import variants_of

PASSES = "passes"


@dataclass(frozen=True, kw_only=True)
class Tried(Record):
    """One line and what the gates said. agrees: as `expect` says (True when it says nothing)."""

    label: str
    task_id: str
    result: GateResult
    expect: str = ""

    @property
    def said(self) -> str:
        check = self.result.failed_check
        return PASSES if check is None else check.name

    @property
    def agrees(self) -> bool:
        return not self.expect or self.expect == self.said


def tasks_for(lines: Iterable[ProposalLine], source: str = "") -> dict[str, Task]:
    """The tasks that the lines name, from each line's own `source` or the given one. Raises ConfigError."""
    from ..envs.load import load_tasks

    wanted: dict[str, set[str]] = {}
    for line in lines:
        where = line.source or source
        if not where:
            raise ConfigError(
                f"{line.task_id}: no source.", mend="Give --source, a run, or `source` in the line."
            )
        wanted.setdefault(where, set()).add(line.task_id)
    return {t.task_id: t for where, ids in wanted.items() for t in load_tasks(where, task_ids=sorted(ids))}


def try_proposals(
    lines: Sequence[ProposalLine],
    tasks: Mapping[str, Task],
    verifier: Verifier,
    *,
    findings: Mapping[str, Sequence[Finding]] | None = None,
    alternatives: Alternatives | None = None,
    limits: GateLimits | None = None,
    progress: Callable[[Tried], None] | None = None,
) -> Iterator[Tried]:
    """Gate every line, in order. findings: proven findings of an audit, targets where a line brings no `wrong`.

    Raises ConfigError for an `expect` that names no gate, SandboxError.
    """
    for line in lines:
        if line.expect and line.expect not in {PASSES, *NAMES}:
            raise ConfigError(
                f"{line.label}: no gate {line.expect!r}.", mend=f"There are: {', '.join(NAMES)}."
            )
    benches: dict[str, tuple[VerifierBench, Mapping[str, Patch]]] = {}
    for line in lines:
        task = tasks[line.task_id]
        if task.task_id not in benches:
            benches[task.task_id] = _bench(task, verifier, alternatives)
        bench, known = benches[task.task_id]
        held = targets_of((findings or {}).get(task.task_id, ()))
        proposal = line.proposal(task)
        if proposal.added.framework not in IN_ORDER_OF_FILE:
            proposal = replace(proposal, added=bench.with_executed_ids(proposal.added))
        trial = Trial(
            task=task,
            proposal=proposal,
            bench=bench,
            targets=line.wrong_candidates(task) or tuple(f.candidate for f in held),
            correct={**known, **line.correct_patches(task)},
            limits=limits or GateLimits(),
            suite_seconds=bench.suite_seconds(),
        )
        one = Tried(label=line.label, task_id=task.task_id, result=run_gates(trial), expect=line.expect)
        if progress is not None:
            progress(one)
        yield one


def _bench(
    task: Task, verifier: Verifier, alternatives: Alternatives | None
) -> tuple[VerifierBench, Mapping[str, Patch]]:
    original = replace(task, suite=task.suite.original)
    given = alternatives.of(task.task_id) if alternatives else ()
    correct = correct_programs(
        original, verifier, alternatives=given, variants=variants_of(original, limit=2)
    )
    return VerifierBench(
        original, verifier, existing=existing_tests(original, verifier.backend)
    ), correct.patches
