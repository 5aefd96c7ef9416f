"""`acidtest repair`: strengthen the suites of hackable tasks, gated and proven by execution."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..envs.errors import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..repair.report import RepairReport

PENDING, STOPPED, FAILED = 8, 7, 10


def register(app: typer.Typer) -> None:
    app.command("repair")(repair)


def repair(
    run: Annotated[Path | None, typer.Argument(help="Run directory of an audit.")] = None,
    iterations: Annotated[int, typer.Option(min=1, help="Rounds of proposals per task.")] = 5,
    llm: Annotated[str, typer.Option(help="MODEL, batch:MODEL, files:DIR or replay:FILE.")] = "",
    max_usd: Annotated[float, typer.Option(min=0, help="Hard ceiling of model cost; 0: none.")] = 0.0,
    task: opt.TaskIds = None,
    decision: Annotated[
        list[str] | None, typer.Option(help="Only tasks of this decision: KEEP, FIX, DROP or UNDECIDED.")
    ] = None,
    augmenter: Annotated[
        list[str] | None, typer.Option(help="differential, llm or a dotted path (repeatable).")
    ] = None,
    alternatives: Annotated[str, typer.Option(help="JSONL of known-correct patches.")] = "",
    proposals: Annotated[
        Path | None,
        typer.Option(help="Only put these proposals (JSONL) through the gates; nothing is locked."),
    ] = None,
    arms: Annotated[
        bool,
        typer.Option("--arms", help="Compare four ways to decide on the same proposals; nothing is locked."),
    ] = False,
    source: Annotated[str, typer.Option(help="Data set of --proposals where no run is given.")] = "",
    memorisable: Annotated[
        bool, typer.Option("--memorisable", help="Also tasks whose only proven findings memorise the tests.")
    ] = False,
    reaudit: Annotated[bool, typer.Option(help="Audit the hardened suites again.")] = True,
    allow_unspecified: Annotated[
        bool, typer.Option("--allow-unspecified", help="Keep model proposals that cite no sentence.")
    ] = False,
    sandbox: opt.SandboxName = "",
    jobs: opt.Jobs = 0,
    seed: opt.Seed = 1,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Propose tests, gate them, prove them by execution, lock what holds: every hackable task of RUN.

    Results go to RUN/repairs.jsonl, RUN/suites/ and RUN/suites.lock.json; the same command goes on where it stopped.
    Exit codes: 0 done, 4 a task ended with an infrastructure error, 5 lock or suite files were changed, 7 budget
    reached, 8 model answers pending, 10 a proposal's `expect` was not met.
    """
    if proposals is not None or arms:
        from .proposal_runs import print_arms, print_tried

        settings: dict[str, Any] = {"source": source, "alternatives": alternatives, "sandbox": sandbox}
        if arms:
            print_arms(run, proposals, json=json, **settings)
        elif not print_tried(proposals, run, json=json, **settings):
            raise typer.Exit(FAILED)
        return
    if run is None:
        raise ConfigError("No run.", mend="Give the --out folder of an audit, or --proposals FILE.")
    from ..repair.repair import repair as run_repair
    from ..verifiers.audit import Audit
    from .console import progress

    held = Audit.read(run)
    with progress("repair", len(held.hackable), quiet=quiet or json) as advance:
        report = run_repair(
            held,
            iterations=iterations,
            llm=llm,
            max_usd=max_usd or None,
            task_ids=task,
            decision=decision,
            augmenters=augmenter,
            alternatives=alternatives or None,
            sandbox=sandbox or None,
            jobs=jobs,
            seed=seed,
            reaudit=reaudit,
            allow_unspecified=allow_unspecified,
            memorisable=memorisable,
            progress=lambda record: advance(record.task_id),
        )
    show(report, json=json)
    raise typer.Exit(exit_code(report))


def show(report: RepairReport, *, json: bool) -> None:
    """A line a task, then the summary; or everything as JSON."""
    if json:
        import msgspec

        typer.echo(msgspec.json.encode(report.to_dict()).decode())
        return
    for record in report.records:
        added = record.hardened.suite.added if record.hardened else None
        tests = f"{len(added.test_ids)} tests added" if added else record.reason
        moved = _moved(record.before, record.after)
        typer.echo(
            f"{record.task_id}: {record.status}, {len(record.blocked)} of {len(record.targets)} blocked; {tests}{moved}"
        )
    for line in report.lines():
        typer.echo(line)
    if report.path is not None and len(report.lock):
        typer.echo(f"Hardened suites: {report.path}/suites, locked in {report.path}/suites.lock.json")


def _moved(before: Any, after: Any) -> str:
    if not after or before.get("eqs") is None or after.get("eqs") is None:
        return ""
    return f"; EQS {before['eqs']:.2f} -> {after['eqs']:.2f}, {before['decision']} -> {after['decision']}"


def exit_code(report: RepairReport) -> int:
    if report.stopped:
        return PENDING if "answer" in report.stopped.lower() else STOPPED
    return 4 if report.errors else 0
