"""`acidtest validate SOURCE`: triage of a data set in one command, before money or time is spent on it."""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from . import options as opt

if TYPE_CHECKING:
    from ..envs.calibrate import Calibration
    from ..envs.task import Task
    from ..envs.verify import Verifier

AUDIT_VERDICTS = 60
"""Verdicts a mechanical audit of one repository task makes (40 mutants, recipes, proofs), for the forecast."""


def register(app: typer.Typer) -> None:
    app.command("validate")(validate)


def validate(
    source: opt.Source,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for calibrations.jsonl.")] = None,
    split: opt.Split = None,
    limit: opt.Limit = None,
    task: opt.TaskIds = None,
    jobs: opt.Jobs = 0,
    seed: opt.Seed = 0,
    sandbox: opt.SandboxName = "",
    leaks: Annotated[bool, typer.Option("--leaks", help="Also look for leaks in each image.")] = False,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Check that gold resolves, the no-op does not, ids are known, nothing is flaky, slow or leaky; forecast an audit.

    Exit codes: 0 every task can be used, 3 some cannot, 4 infrastructure trouble on some.
    """
    from ..envs.verify import Verifier
    from .console import progress

    tasks = opt.chosen(source, split, limit, task)
    if out is not None:
        out.mkdir(parents=True, exist_ok=True)
    workers = jobs or len(os.sched_getaffinity(0))
    start = time.monotonic()
    with Verifier(sandbox=sandbox or None, seed=seed) as verifier:
        with progress("validate", len(tasks), quiet=quiet or json) as advance:
            rows = _calibrate_all(tasks, verifier, workers, advance)
        leaky = _leaks(tasks, verifier) if leaks else {}
        isolation = getattr(verifier.backend, "name", "")
    wall = time.monotonic() - start
    if out is not None:
        lines = [c.to_json() for _, c, _ in rows if c is not None]
        (out / "calibrations.jsonl").write_text("".join(line + "\n" for line in lines))
    if json:
        _print_json(rows, leaky, wall)
    else:
        _print(rows, leaky, wall, isolation, workers)
    failed = any(c is None for _, c, _ in rows)
    unusable = any(c is not None and not c.ok for _, c, _ in rows)
    raise typer.Exit(4 if failed else 3 if unusable else 0)


Row = tuple["Task", "Calibration | None", str]


def _calibrate_all(tasks: Sequence[Task], verifier: Verifier, workers: int, advance: Any) -> list[Row]:
    """(task, calibration, error) in the tasks' order; one task's trouble leaves the others alone."""
    from ..envs.errors import AcidtestError

    def one(task: Task) -> Row:
        try:
            return task, verifier.calibration(task), ""
        except AcidtestError as error:
            return task, None, f"{type(error).__name__}: {error}"
        finally:
            advance(task.task_id)

    with ThreadPoolExecutor(max_workers=workers) as pool:
        return list(pool.map(one, tasks))


def _leaks(tasks: Sequence[Task], verifier: Verifier) -> dict[str, tuple[str, ...]]:
    from ..envs.leaks import audit_leaks

    found = {}
    for task in tasks:
        report = audit_leaks(task, backend=verifier.backend)
        found[task.task_id] = tuple(f"leak {f.check}: {f.title}" for f in report.leaks)
    return found


def _print(
    rows: list[Row], leaky: dict[str, tuple[str, ...]], wall: float, isolation: str, workers: int
) -> None:
    from .console import console
    from .tables import number, table

    made = table(
        "Calibration", "task", "usable", "gold", "no-op", "#ids", "#excluded", "#s", "flags and reasons"
    )
    for task, found, error in rows:
        if found is None:
            made.add_row(task.task_id, "error", "", "", "", "", "", error)
            continue
        made.add_row(
            task.task_id,
            "yes" if found.ok else "NO",
            f"{found.gold_passed}/{found.gold_runs}",
            found.noop_outcome,
            str(found.ids_expected),
            str(len(found.ids_excluded)),
            number(found.seconds.get("gold")),
            "; ".join([*found.reasons, *leaky.get(task.task_id, ())]),
        )
    console().print(made)
    good = [c for _, c, _ in rows if c is not None and c.ok]
    flags = Counter(flag for _, c, _ in rows if c is not None for flag in c.flags)
    console().print(
        f"Usable: {len(good)} of {len(rows)} tasks (sandbox {isolation}); wall {wall:.1f} s with {workers} jobs."
    )
    console().print(
        "Flags: " + (", ".join(f"{name} {count}" for name, count in sorted(flags.items())) or "none")
    )
    for line in _per_dataset(rows):
        console().print(line)
    console().print(_forecast(rows, workers))


def _per_dataset(rows: list[Row]) -> list[str]:
    """Ids mapped and excluded, and the tests' own time, per project."""
    groups: dict[str, list[Calibration]] = {}
    for task, found, _ in rows:
        if found is not None:
            groups.setdefault(str(task.metadata.get("repo") or task.dataset), []).append(found)
    lines = []
    for name, found_ones in sorted(groups.items()):
        expected = sum(c.ids_expected for c in found_ones)
        excluded = sum(len(c.ids_excluded) for c in found_ones)
        changed = sum(len(c.ids_mapped) for c in found_ones)
        seconds = sum(c.seconds.get("gold", 0.0) for c in found_ones)
        lines.append(
            f"  {name}: {len(found_ones)} tasks, {expected} ids, {changed} mapped to other ids, {excluded} excluded, "
            f"gold's tests {seconds:.1f} s"
        )
    return lines


def _forecast(rows: list[Row], workers: int) -> str:
    """Wall time and verdicts of a whole mechanical audit, from gold's own times (twice: run and twin)."""
    repo = [c for t, c, _ in rows if c is not None and c.ok and not t.is_function]
    functions = sum(c is not None and c.ok and t.is_function for t, c, _ in rows)
    seconds = sum(AUDIT_VERDICTS * (c.seconds.get("gold", 0.0) + 0.5) for c in repo) + 2.5 * functions
    return (
        f"Forecast of a mechanical audit: about {seconds / max(1, workers) / 60:.0f} min with {workers} jobs "
        f"({len(repo)} repository tasks × {AUDIT_VERDICTS} verdicts, {functions} function tasks)."
    )


def _print_json(rows: list[Row], leaky: dict[str, tuple[str, ...]], wall: float) -> None:
    import msgspec

    body = {
        "wall_s": wall,
        "tasks": [
            {
                "task_id": task.task_id,
                "calibration": None if found is None else found.to_dict(),
                "error": error,
                "leaks": list(leaky.get(task.task_id, ())),
            }
            for task, found, error in rows
        ],
    }
    typer.echo(msgspec.json.encode(body).decode())
