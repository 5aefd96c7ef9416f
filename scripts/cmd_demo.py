"""`acidtest demo`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from . import options as opt


def register(app: typer.Typer) -> None:
    app.command("demo")(demo)


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder of the demo's run; emptied first.")] = Path(
        ".demo/run"
    ),
    sandbox: opt.SandboxName = "local",
    humaneval: Annotated[int, typer.Option(min=1, max=164, help="How many HumanEval tasks.")] = 20,
) -> None:
    """Audit, repair and play an episode on bundled and HumanEval tasks. No key and no Docker needed."""
    from .demo import demo as run_demo

    raise typer.Exit(run_demo(out, sandbox, humaneval))
