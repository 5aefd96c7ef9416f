"""`acidtest doctor`: what works on this machine, what does not, and what to do about it."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated

import typer

from ..envs.errors import SandboxError


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(
    docker: Annotated[bool, typer.Option(help="Treat a missing Docker engine as a failure.")] = False,
    strict: Annotated[bool, typer.Option(help="Treat warnings as failures.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Machine-readable output.")] = False,
) -> None:
    """Check engine, sandboxes, disk, versions and keys. Exit code 0: usable; 4: something failed."""
    from .doctor import Level, diagnose

    found = diagnose(docker_required=docker)
    if as_json:
        typer.echo(json.dumps([asdict(finding) for finding in found], indent=1))
    else:
        width = max(len(finding.name) for finding in found)
        for finding in found:
            typer.echo(f"{finding.level:<5} {finding.name:<{width}}  {finding.detail}")
            if finding.mend and finding.level is not Level.OK:
                typer.echo(f"{'':<6}{'':<{width}}  -> {finding.mend}")
    bad = {Level.FAIL, Level.WARN} if strict else {Level.FAIL}
    if any(finding.level in bad for finding in found):
        raise typer.Exit(SandboxError.exit_code)
