"""`acidtest verify`: one patch, one verdict."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..envs.errors import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..envs.patch import Patch
    from ..envs.task import Task


def register(app: typer.Typer) -> None:
    app.command("verify")(verify)


def verify(
    task_id: Annotated[str, typer.Argument(metavar="TASK", help="Task id.")],
    source: Annotated[str, typer.Option(help="Data set the task comes from.")] = "",
    run: Annotated[
        Path | None, typer.Option("--run", "-r", help="Run directory that holds the task.")
    ] = None,
    patch: Annotated[
        str, typer.Option(help="File with a unified diff; - reads standard input; gold; none.")
    ] = "",
    candidate: Annotated[str, typer.Option(help="Id of a candidate of the run.")] = "",
    defence: Annotated[str, typer.Option(help="strict or fast.")] = "strict",
    sandbox: opt.SandboxName = "",
    json: opt.Json = False,
) -> None:
    """Judge one patch under a task's suite. Exit codes: 0 resolved, 11 refused, 12 undecided, 4 sandbox trouble."""
    from ..envs.verify import Verifier

    task, submission = _pick(task_id, source, run, patch, candidate)
    with Verifier(sandbox=sandbox or None, defence=defence) as verifier:
        verdict = verifier.verify(task, submission)
    if json:
        typer.echo(verdict.to_json())
    else:
        typer.echo(
            f"{task_id}: {verdict.outcome} (reward {verdict.reward}, {verdict.defence}, {verdict.isolation})"
        )
        for line in verdict.evidence:
            typer.echo(f"  {line}")
        for notice in verdict.notices:
            typer.echo(f"  notice: {notice.kind} {notice.path} {notice.detail}".rstrip())
        failing = [i for i, s in verdict.statuses.items() if s != "passed"]
        if failing:
            typer.echo(f"  not passed: {', '.join(failing[:5])}" + (" …" if len(failing) > 5 else ""))
    raise typer.Exit({None: 12, 1.0: 0}.get(verdict.reward, 11))


def _pick(task_id: str, source: str, run: Path | None, patch: str, candidate: str) -> tuple[Task, Patch]:
    from ..envs.load import load_tasks
    from ..verifiers.audit import Audit

    if bool(source) == (run is not None):
        raise ConfigError("The task has no home.", mend="Give either --source or --run.")
    if bool(patch) == bool(candidate):
        raise ConfigError("No patch.", mend="Give either --patch or --candidate.")
    if run is None:
        (task,) = load_tasks(source, task_ids=[task_id])
        return task, _read(patch, task)
    held = Audit.read(run)
    found = next((t for t in held.tasks if t.task_id == task_id), None)
    if found is None:
        raise ConfigError(f"{run} holds no task {task_id!r}.", mend="See its tasks.jsonl.")
    if not candidate:
        return found, _read(patch, found)
    for record in held.records:
        for finding in record.findings:
            if finding.candidate.candidate_id == candidate:
                return found, finding.candidate.patch
    raise ConfigError(
        f"{run} has no paid candidate {candidate!r}.",
        mend=f"`acidtest explain {task_id} --run {run}` lists them.",
    )


def _read(patch: str, task: Task) -> Patch:
    from ..envs.patch import Patch

    if patch == "gold":
        return Patch(task.gold_patch)
    if patch == "none":
        return Patch("")
    try:
        return Patch(sys.stdin.read() if patch == "-" else Path(patch).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"{patch}: {error}.", mend="Give a readable UTF-8 diff, -, gold or none."
        ) from error
