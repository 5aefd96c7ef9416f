"""`acidtest inflation`: do flagged tasks get solved more often than comparable ones?"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from ..verifiers.inflation.analysis import Inflation

RESULT_FILE = "inflation.json"


def register(app: typer.Typer) -> None:
    app.command("inflation")(inflation)


def inflation(
    results: Annotated[
        Path, typer.Option(help="Matrix (parquet, CSV): column submission, one 0/1 column a task.")
    ],
    flags: Annotated[str, typer.Option(help="Flagged tasks: a run directory, or a file with one id a line.")],
    audited: Annotated[
        str,
        typer.Option(
            help="Tasks that were audited: a run directory, a file, or `all`. Default: the run of --flags."
        ),
    ] = "",
    strata: Annotated[
        str, typer.Option(help="Columns to stratify by, e.g. difficulty or difficulty,repo.")
    ] = "difficulty",
    within: Annotated[
        str, typer.Option(help="Columns the flags are shuffled within, crossed with --strata.")
    ] = "difficulty,repo",
    tasks: Annotated[
        Path | None,
        typer.Option(help="CSV with instance_id and strata. Default: *instances.csv beside --results."),
    ] = None,
    submissions: Annotated[
        Path | None,
        typer.Option(help="CSV with submission, date, board. Default: *submissions.csv beside --results."),
    ] = None,
    false_accusation: Annotated[
        str, typer.Option(help="Rates at which a flag may be false, for the sensitivity analysis.")
    ] = "0.05,0.169",
    missed: Annotated[float, typer.Option(help="Rate at which the audit missed a hackable task.")] = 0.0,
    permutations: Annotated[int, typer.Option(min=100, help="Shuffles of the flags.")] = 20_000,
    replicates: Annotated[int, typer.Option(min=100, help="Bootstrap replicates.")] = 4_000,
    seed: Annotated[int, typer.Option(help="Seed of everything random.")] = 0,
    out: Annotated[
        Path | None,
        typer.Option(help="Folder for the JSON and the plots. Default: RUN/inflation, or ./inflation."),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the record as JSON.")] = False,
) -> None:
    """Compare the solve rates of flagged and unflagged tasks within strata.

    The primary result shuffles the flags among tasks, because submissions share their tasks; figures pooled
    over submissions are printed as conditional on these tasks. Writes inflation.json, forest.png/svg and
    permutation.png/svg.
    """
    from ..verifiers.inflation import plots
    from ..verifiers.inflation.analysis import analyse
    from ..verifiers.inflation.data import load_results, read_audited, read_flags

    table = load_results(results, tasks, submissions)
    flagged = read_flags(flags, table.tasks)
    looked_at = read_audited(_audited(flags, audited), table.tasks)
    found = analyse(
        table,
        flagged,
        looked_at,
        strata=_names(strata),
        cells=_names(within),
        permutations=permutations,
        replicates=replicates,
        false_accusation=[float(rate) for rate in _names(false_accusation)],
        missed=missed,
        seed=seed,
    )
    found = replace(found, inputs=_inputs(results, flags, audited or flags))
    folder = out or (Path(flags) / "inflation" if Path(flags).is_dir() else Path("inflation"))
    paths = plots.save(found, folder)
    target = folder / RESULT_FILE
    target.write_text(found.to_json(), encoding="utf-8")
    if json:
        typer.echo(found.to_json())
        return
    _show(found)
    typer.echo("Written: " + ", ".join(str(path) for path in [target, *paths]))


def _inputs(results: Path, flags: str, audited: str) -> dict[str, str]:
    """Names of what went in, with digests of the files."""
    from hashlib import sha256

    named = {"results": str(results), "flags": flags, "audited": audited}
    found = {}
    for key, name in named.items():
        file = Path(name) / "audit.jsonl" if Path(name).is_dir() else Path(name)
        digest = f" sha256:{sha256(file.read_bytes()).hexdigest()[:16]}" if file.is_file() else ""
        found[key] = f"{Path(name).name}{digest}"
    return found


def _audited(flags: str, audited: str) -> str:
    """The default for --audited: the run itself; a bare list of flags says nothing about what was looked at."""
    from ..envs.errors import ConfigError

    if audited:
        return audited
    if Path(flags).is_dir():
        return flags
    raise ConfigError(
        "A list of flagged ids does not say which tasks were audited.",
        mend="Give --audited ids.txt, or --audited all when every task of the matrix was.",
    )


def _names(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _show(found: Inflation) -> None:
    from rich.markdown import Markdown
    from rich.table import Table

    from ..verifiers.inflation.text import summary
    from .console import console

    table = Table(title="Solve rates by stratum", title_justify="left")
    for head in ("stratum", "flagged", "unflagged", "rate", "rate", "weight"):
        table.add_column(head, justify="left" if head == "stratum" else "right")
    for row in found.table:
        rates = ["–" if r is None else f"{100 * r:.1f} %" for r in (row.rate_flagged, row.rate_unflagged)]
        table.add_row(row.label, str(row.flagged), str(row.unflagged), *rates, f"{row.weight:.2f}")
    console().print(Markdown(summary(found)))
    console().print(table)
