"""`acidtest report`: what a run found, in the terminal, as one page, a data-set card or JUnit XML."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..envs.errors import ConfigError

FORMATS = ("text", "html", "card", "junit", "json")


def register(app: typer.Typer) -> None:
    app.command("report")(report)


def report(
    run: Annotated[Path, typer.Argument(help="Run directory of an audit or of a training run.")],
    html: Annotated[
        bool, typer.Option("--html", help="One self-contained page; the same as --format html.")
    ] = False,
    format: Annotated[str, typer.Option("--format", "-f", help="text, html, card, junit or json.")] = "",  # noqa: A002
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="File to write. Default: RUN/report.html; else standard output."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="The same as --format json.")] = False,
) -> None:
    """Show what a run found: rates with counts and intervals, tasks, repair, incidents. Runs nothing.

    html: opens from disk without a network. card: Markdown for the hub. junit: hackable and broken tasks fail.
    """
    from .report.collect import collect

    wanted = format or ("html" if html else "json" if json else "text")
    if wanted not in FORMATS:
        raise ConfigError(f"No format {wanted!r}.", mend=f"There are: {', '.join(FORMATS)}.")
    material = collect(run)
    if wanted == "html":
        from .report.page import write

        target = out or run / "report.html"
        size = write(material, target)
        typer.echo(f"{target}  {size / 1e6:.2f} MB")
    elif wanted == "text" and out is None:
        from .report.terminal import show

        show(material)
    else:
        _emit(_text(material, wanted), out)


def _text(material: object, wanted: str) -> str:
    from .report.card import card
    from .report.collect import Material
    from .report.junit import junit

    assert isinstance(material, Material)
    if wanted == "junit":
        return junit(material)
    if wanted == "json":
        import msgspec

        from .report import facts

        held = {
            "run": str(material.path),
            "summary": material.summary,
            "tasks": facts.task_rows(material),
            "repair": facts.repair_facts(material.repairs),
            "incidents": facts.incident_rows(material.incidents),
            "inflation": material.inflation,
        }
        return msgspec.json.encode(held).decode() + "\n"
    return card(material)


def _emit(text: str, out: Path | None) -> None:
    if out is None:
        typer.echo(text, nl=False)
    else:
        out.write_text(text, encoding="utf-8")
        typer.echo(str(out))
