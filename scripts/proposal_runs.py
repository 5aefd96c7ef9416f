"""What `acidtest repair --proposals` and `--arms` print: proposals of a file, or of an earlier repair, gated anew."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ..envs.errors import ConfigError

if TYPE_CHECKING:
    from ..envs.task import Task
    from ..envs.verify import Verifier
    from ..repair.arms import Given
    from ..repair.trying import Tried
    from ..verifiers.records import Finding


def print_tried(
    file: Path | None, run: Path | None, *, source: str, alternatives: str, sandbox: str, json: bool
) -> bool:
    """Gate every line of the file; whether every `expect` was met."""
    from ..envs.verify import Verifier
    from ..repair.proposals import read_proposals
    from ..repair.trying import tasks_for, try_proposals
    from ..verifiers.alternatives import Alternatives

    if file is None:
        raise ConfigError("No file of proposals.", mend="Give --proposals FILE.")
    lines = read_proposals(file)
    tasks, findings = ({}, {}) if run is None else _of_run(run)
    missing = [line for line in lines if line.task_id not in tasks]
    tasks |= tasks_for(missing, source)
    known = Alternatives.read(alternatives) if alternatives else None
    with Verifier(sandbox=sandbox or None) as verifier:
        tried = []
        for one in try_proposals(lines, tasks, verifier, findings=findings, alternatives=known):
            tried.append(one)
            typer.echo(one.to_json() if json else line_of(one))
    if not json:
        stopped = sum(one.said != "passes" for one in tried)
        unmet = sum(not one.agrees for one in tried)
        typer.echo(
            f"{len(tried)} proposals: {stopped} stopped, {len(tried) - stopped} let through; {unmet} not as expected"
        )
    return all(one.agrees for one in tried)


def line_of(one: Tried) -> str:
    """label, what the gates said, and the first line of the evidence."""
    check = one.result.failed_check
    said = "passes every gate" if check is None else f"stopped by {check.name!r}"
    why = f": {check.evidence.splitlines()[0][:160]}" if check and check.evidence else ""
    mark = "" if one.agrees else f"  << expected {one.expect!r}"
    return f"{one.label or one.task_id}: {said}{why}{mark}"


def print_arms(
    run: Path | None, file: Path | None, *, source: str, alternatives: str, sandbox: str, json: bool
) -> None:
    """The four arms on the proposals of a file, or on those that an earlier repair of the run made."""
    from ..envs.verify import Verifier
    from ..repair.arms import arms

    with Verifier(sandbox=sandbox or None) as verifier:
        for row in arms(given_of(run, file, verifier, source=source, alternatives=alternatives)):
            typer.echo(row.to_json() if json else row.line)


def given_of(
    run: Path | None, file: Path | None, verifier: Verifier, *, source: str, alternatives: str
) -> Iterator[Given]:
    """Proposals by task, through the gates: those of the file, else those of the run's repair."""
    from ..repair.arms import given_of, line_tries
    from ..repair.proposals import read_proposals
    from ..repair.records import RepairRecord
    from ..repair.trying import tasks_for
    from ..verifiers.alternatives import Alternatives
    from ..verifiers.rundir import RunDir

    known = Alternatives.read(alternatives) if alternatives else Alternatives()
    tasks, findings = ({}, {}) if run is None else _of_run(run)
    if file is not None:
        lines = read_proposals(file)
        tasks |= tasks_for([line for line in lines if line.task_id not in tasks], source)
        for task_id in dict.fromkeys(line.task_id for line in lines):
            task, own = tasks[task_id], [line for line in lines if line.task_id == task_id]
            wrong = {c.candidate_id: c for line in own for c in line.wrong_candidates(task)}
            yield given_of(
                task,
                verifier,
                line_tries(own, task),
                findings=findings.get(task_id, ()),
                wrong=list(wrong.values()),
                alternatives=known.of(task_id),
            )
    elif run is not None:
        for record in RunDir.read(run).latest("repairs", RepairRecord).values():
            if record.tries:
                yield given_of(
                    tasks[record.task_id],
                    verifier,
                    record.tries,
                    findings=findings.get(record.task_id, ()),
                    alternatives=known.of(record.task_id),
                )
    else:
        raise ConfigError("No proposals.", mend="Give --proposals FILE, or the run of an earlier repair.")


def _of_run(run: Path) -> tuple[dict[str, Task], dict[str, Sequence[Finding]]]:
    from ..verifiers.audit import Audit

    held = Audit.read(run)
    tasks = {task.task_id: task for task in held.tasks}
    return tasks, {record.task_id: record.findings for record in held.records}
