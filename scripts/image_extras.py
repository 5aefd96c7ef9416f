"""`acidtest images r2e` and `acidtest images leaks`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..envs.leaks import LeakReport
    from ..envs.task import Task

LEAKY = 10


def r2e(
    specs: Annotated[list[Path], typer.Argument(help="TOML specs, or folders of them (examples/r2e).")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File the R2E-Gym rows go to (JSONL).")] = Path(
        "r2e.jsonl"
    ),
    base_image: Annotated[
        str | None, typer.Option("--base", help="Base image (ACIDTEST_BASE_IMAGE).")
    ] = None,
    force: Annotated[bool, typer.Option(help="Build images anew, also those that exist.")] = False,
) -> None:
    """Make R2E-style images out of source trees, and the rows that go with them.

    A spec whose image cannot be made is named and left out; the command then ends with exit code 3.
    """
    from ..envs.errors import TaskError
    from .console import progress
    from .images_r2e import build, read_spec

    files = sorted(file for path in specs for file in (path.glob("*.toml") if path.is_dir() else [path]))
    rows, problems = [], []
    with progress("images", len(files)) as advance:
        for file in files:
            try:
                rows.append(build(read_spec(file), force=force, base_image=base_image))
            except TaskError as error:
                problems.append(str(error))
            advance(file.stem)
    out.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    for row in rows:
        statuses = list(json.loads(row["expected_output_json"]).values())
        failing = sum(status != "PASSED" for status in statuses)
        typer.echo(f"{row['docker_image']}  {len(statuses)} tests, {failing} of them expected to fail")
    for problem in problems:
        typer.echo(problem, err=True)
    typer.echo(f"{len(rows)} of {len(files)} rows in {out}")
    if problems:
        raise typer.Exit(TaskError.exit_code)


def leaks(
    source: Annotated[str, typer.Argument(help="Data set name or file.")],
    limit: Annotated[int | None, typer.Option(help="At most so many tasks.")] = None,
    task: Annotated[list[str] | None, typer.Option("--task", help="Only this task (repeatable).")] = None,
    shut: Annotated[bool, typer.Option("--shut", help="Audit what an episode still sees.")] = False,
    commands: Annotated[
        bool, typer.Option("--commands", help="Print the command behind each finding.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON record a task.")] = False,
) -> None:
    """Look for the fix, the tests and the evaluator in the images of a data set.

    Ends with exit code 10 when an image gives the fix or the tests away. Reports are cached by image digest.
    """
    from ..envs.load import load_tasks

    reports = _audited(load_tasks(source, limit=limit, task_ids=task), shut)
    for report in reports:
        if as_json:
            typer.echo(report.to_json())
        else:
            _show(report, commands)
    leaky = sum(bool(report.leaks) for report in reports)
    if not as_json:
        typer.echo(f"{leaky} of {len(reports)} images give something away")
    if leaky:
        raise typer.Exit(LEAKY)


def _audited(tasks: list[Task], shut: bool) -> list[LeakReport]:
    from ..envs.leaks import audit_leaks
    from ..envs.sandboxes import open_backend
    from .console import progress

    backend = open_backend()
    try:
        with progress("leaks", len(tasks)) as advance:
            reports = []
            for task in tasks:
                reports.append(audit_leaks(task, backend=backend, shut=shut))
                advance(task.task_id)
            return reports
    finally:
        backend.close()


def _show(report: LeakReport, commands: bool) -> None:
    state = f"{len(report.leaks)} leaks, {len(report.findings) - len(report.leaks)} notices"
    typer.echo(f"{report.task_id}  {report.image or 'no image'}  {state}")
    for finding in report.findings:
        first, _, rest = finding.evidence.partition("\n")
        more = f" (and {len(rest.splitlines())} more)" if rest else ""
        typer.echo(f"  {finding.check} {finding.severity}: {finding.title}: {first}{more}")
        if commands:
            typer.echo("    $ " + finding.command.replace("\n", "\n      "))
    for name in report.undecided:
        typer.echo(f"  undecided: {name}")
