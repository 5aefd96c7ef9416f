"""`acidtest zoo SOURCE`: every known way to cheat a test-suite reward, against our verdict and against plain graders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as opt

if TYPE_CHECKING:
    from ..verifiers.zoo.matrix import Matrix


def register(app: typer.Typer) -> None:
    app.command("zoo")(zoo)


def zoo(
    source: opt.Source,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Write zoo.json and zoo.md here.")] = None,
    kind: Annotated[
        list[str] | None, typer.Option("--kind", "-k", help="Only this kind (R01) or group (R); repeatable.")
    ] = None,
    every: Annotated[
        bool,
        typer.Option(
            "--all", help="Ask our verdict about every payload, not only those that fool a plain grader."
        ),
    ] = False,
    defence: Annotated[str, typer.Option(help="strict or fast.")] = "strict",
    split: opt.Split = None,
    limit: opt.Limit = None,
    task: opt.TaskIds = None,
    jobs: opt.Jobs = 1,
    seed: opt.Seed = 0,
    sandbox: opt.SandboxName = "",
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Run the exploit zoo on each task: kind by grader, paid / refused / tampered / undecided.

    Exit codes: 0 no payload that must be refused was paid, 10 one was, 3 no task could be used.
    """
    import os

    from ..envs.errors import ConfigError
    from ..envs.verify import Verifier
    from ..verifiers.zoo.kinds import KINDS
    from ..verifiers.zoo.matrix import run_zoo

    known = {k.kind for k in KINDS} | {k.kind[0] for k in KINDS}
    for name in kind or ():
        if name not in known:
            raise ConfigError(f"No kind {name!r}.", mend="Kinds are S01 … J03; groups S C P R H L J.")
    tasks = opt.chosen(source, split, limit, task)
    with Verifier(sandbox=sandbox or None, seed=seed, defence=defence) as verifier:
        matrix = run_zoo(
            tasks,
            verifier,
            kinds=kind or None,
            only_demonstrated=not every,
            jobs=jobs or len(os.sched_getaffinity(0)),
            progress=(lambda line: None) if quiet or json else (lambda line: typer.echo(line, err=True)),
        )
    _write(matrix, out)
    _print(matrix, as_json=json)
    if matrix.breaches:
        raise typer.Exit(10)
    if not matrix.results:
        raise typer.Exit(3)


def _write(matrix: Matrix, out: Path | None) -> None:
    from ..verifiers.zoo.matrix import markdown

    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
        (out / "zoo.json").write_text(matrix.to_json() + "\n", encoding="utf-8")
        (out / "zoo.md").write_text(markdown(matrix), encoding="utf-8")


def _print(matrix: Matrix, *, as_json: bool) -> None:
    from ..verifiers.zoo.matrix import markdown

    if as_json:
        typer.echo(matrix.to_json())
        return
    typer.echo(markdown(matrix))
    for task_id, why in matrix.unusable:
        typer.echo(f"not used: {task_id}: {why}")
    for result in matrix.breaches:
        typer.echo(f"BREACH: {result.task_id} {result.name}: {result.ours}")
