"""`acidtest export`: hardened suites as an overlay that others can put on their own rows."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def register(app: typer.Typer) -> None:
    app.command("export")(export)


def export(
    run: Annotated[Path, typer.Argument(help="Run directory, or a suites.lock.json.")],
    out: Annotated[Path | None, typer.Option("--out", "-o", help="File; default RUN/overlay.jsonl.")] = None,
    form: Annotated[
        str, typer.Option("--format", help="jsonl or parquet; default: by the file's name.")
    ] = "",
) -> None:
    """Write one overlay row for each hardened task: added tests and ids in the fields of the data set's own form.

    `acidtest.repair.overlay.apply_overlay(row, overlay)` puts one on a SWE-bench, R2E-Gym, HumanEval or MBPP row.
    Exit code 5 when lockfile or suite files were changed.
    """
    from ..repair.lock import load_lock
    from ..repair.overlay import export_overlay

    folder = run if run.is_dir() else run.parent
    target = out or folder / f"overlay.{form or 'jsonl'}"
    count = export_overlay(load_lock(run), target, form=form or None)
    typer.echo(f"{count} hardened tasks -> {target}")
