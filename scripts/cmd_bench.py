"""`acidtest bench`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from . import options as opt

if TYPE_CHECKING:
    from .bench import Bench


def register(app: typer.Typer) -> None:
    app.command("bench")(bench)


def bench(
    source: opt.Source,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for bench.json and bench.png.")] = Path(
        "bench"
    ),
    rounds: Annotated[int, typer.Option(min=1, help="How often every arm runs on every task.")] = 3,
    split: opt.Split = None,
    limit: opt.Limit = None,
    task: opt.TaskIds = None,
    seed: opt.Seed = 0,
    sandbox: opt.SandboxName = "",
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Time verdicts (cold, warm, fast, strict, cached) against the bare tests, docker run and swebench, interleaved."""
    from .bench import bench as run_bench
    from .bench import plot
    from .console import progress

    tasks = opt.chosen(source, split, limit, task)
    with progress("bench", len(tasks), quiet=quiet or json) as advance:
        found = run_bench(tasks, rounds=rounds, sandbox=sandbox, seed=seed, progress=advance)
    out.mkdir(parents=True, exist_ok=True)
    (out / "bench.json").write_text(found.to_json())
    plot(found, out / "bench.png")
    if json:
        typer.echo(found.to_json())
    else:
        show(found)


def show(found: Bench) -> None:
    """One row an arm: verdicts a minute, overhead above the bare tests, ratio, agreement."""
    from ..verifiers.stats import percentile_interval
    from .console import console
    from .tables import number, table

    made = table(
        "Verdicts against the bare tests", "arm", "#per min and worker", "#p50 above, ms", "#p99 above, ms",
        "#× bare", "#× bare over 1 s",
    )  # fmt: skip
    for arm in found.arms:
        above = sorted(found.overheads(arm))
        high = percentile_interval(above, 0.98)
        made.add_row(
            arm,
            number(found.per_minute(arm), 1),
            number(1000 * above[len(above) // 2], 0) if above else "–",
            number(1000 * high[1], 0) if high else "–",
            number(found.ratio(arm)),
            number(found.ratio(arm, over_s=1.0)),
        )
    console().print(made)
    for arm, why in found.left_out.items():
        console().print(f"Not run: {arm} ({why})")
    different = found.disagreements()
    console().print(
        f"Other verdicts than strict: {len(different)}" + (f": {'; '.join(different)}" if different else "")
    )
    console().print(
        f"{found.rounds} rounds, interleaved, seed {found.seed}, sandbox {found.isolation}. Ratios hold within this run only."
    )
