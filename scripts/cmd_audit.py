"""`acidtest audit` and `acidtest score`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..envs.errors import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..verifiers.audit import Audit

PENDING, STOPPED, FAILED = 8, 7, 10
FAIL_ON = ("hackable", "broken", "error", "undecided")


def register(app: typer.Typer) -> None:
    app.command("audit")(audit)
    app.command("score")(score)


def audit(
    source: Annotated[
        str, typer.Argument(help="Data set name, file or folder; not needed with --resume.")
    ] = "",
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Run directory; default runs/<source>.")
    ] = None,
    split: opt.Split = None,
    limit: opt.Limit = None,
    task: opt.TaskIds = None,
    jobs: opt.Jobs = 0,
    seed: opt.Seed = 0,
    sandbox: opt.SandboxName = "",
    defence: Annotated[
        str, typer.Option(help="strict, or fast (see docs/security.md for what it gives up).")
    ] = "strict",
    attackers: Annotated[
        str, typer.Option(help="Mechanical attackers, comma separated.")
    ] = "mutants,recipes,memorise",
    repo_mutants: Annotated[int, typer.Option(min=0, help="Mutants executed per repository task.")] = 40,
    calibration_runs: Annotated[
        int,
        typer.Option(min=0, help="How often gold must resolve; 0: 5 times, fewer where its tests are slow."),
    ] = 0,
    tamper: Annotated[bool, typer.Option("--tamper", help="Also run the zoo's tamper audit.")] = False,
    leaks: Annotated[bool, typer.Option("--leaks", help="Also audit the images for leaks.")] = False,
    llm: Annotated[str, typer.Option(help="MODEL, batch:MODEL, files:DIR or replay:FILE.")] = "",
    prices: Annotated[str, typer.Option(help="Token prices (JSON) instead of ours, see docs/llm.md.")] = "",
    k: Annotated[int, typer.Option("--k", min=1, help="Exploits a round.")] = 4,
    rounds: Annotated[int, typer.Option(min=1, help="Attacker rounds; the first is single shot.")] = 3,
    benign: Annotated[int, typer.Option(min=0, help="Correct alternatives sent the same way, per task.")] = 2,
    attacker_sees: Annotated[str, typer.Option(help="tests, names or nothing.")] = "tests",
    candidates: Annotated[str, typer.Option(help="JSONL of your own policy's rollouts.")] = "",
    alternatives: Annotated[str, typer.Option(help="JSONL of known-correct patches.")] = "",
    pass_at_1: Annotated[
        str, typer.Option("--pass-at-1", help="Results table from which D is computed.")
    ] = "",
    max_usd: Annotated[float, typer.Option(min=0, help="Hard ceiling of model cost; 0: none.")] = 0.0,
    resume: Annotated[
        Path | None,
        typer.Option(
            help="Go on with this run, with its own options and tasks; --limit, --task, --split choose others."
        ),
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="With --resume: all tasks of the source, not only the run's own.")
    ] = False,
    fail_on: Annotated[
        list[str] | None, typer.Option(help=f"Exit {FAILED} if any task is: {', '.join(FAIL_ON)}.")
    ] = None,
    json: opt.Json = False,
    quiet: opt.Quiet = False,
) -> None:
    """Find tasks whose suites pay for wrong patches, by executing wrong patches.

    Records go to OUT/audit.jsonl as they are made; the same command goes on where it was stopped.
    Exit codes: 0 done, 4 a task ended with an infrastructure error, 7 budget reached, 8 model answers pending,
    10 a --fail-on condition is met.
    """
    from ..verifiers.audit import audit as run_audit
    from ..verifiers.audit_config import AuditConfig
    from ..verifiers.rundir import RunDir
    from .console import progress

    if unknown := sorted(set(fail_on or ()) - set(FAIL_ON)):
        raise ConfigError(f"--fail-on {unknown[0]} is unknown.", mend=f"There are: {', '.join(FAIL_ON)}.")
    if everything and resume is None:
        raise ConfigError("--all belongs to --resume.", mend="Leave --limit and --task out instead.")
    held: Mapping[str, Any] = {}
    if resume is not None:
        held = RunDir.read(resume).config
        config, where = AuditConfig.known(dict(held)), resume
        source = source or config.source
    else:
        config = AuditConfig(
            source=source, seed=seed, sandbox=sandbox, defence=defence,
            attackers=tuple(a.strip() for a in attackers.split(",") if a.strip()), repo_mutants=repo_mutants,
            calibration_runs=calibration_runs, tamper=tamper, leaks=leaks, llm=llm, prices=prices, k=k, rounds=rounds, benign=benign, attacker_sees=attacker_sees,
            candidates=candidates, alternatives=alternatives, pass_at_1=pass_at_1, max_usd=max_usd, jobs=jobs,
        )  # fmt: skip
        where = out or Path("runs") / (
            Path(source).stem if Path(source).exists() else source.replace(":", "-")
        )
    if not source:
        raise ConfigError("No data set.", mend="Give a SOURCE, or --resume RUN.")
    selection = selected({} if everything else held, split=split, limit=limit, task_ids=task)
    tasks = opt.chosen(source, **selection)
    if config.candidates and not resume:
        _tell_unknown(config.candidates, {t.task_id for t in tasks})
    if config.llm and not json:
        from ..verifiers.llm_report import llm_estimate
        from .console import console

        console().print(f"Model: {llm_estimate(tasks, config)}")
    with progress("audit", len(tasks), quiet=quiet or json) as advance:
        result = run_audit(tasks, out=where, config=config, selection=selection, progress=advance)
    show(result, json=json)
    raise typer.Exit(exit_code(result, fail_on or []))


def selected(
    held: Mapping[str, Any], *, split: str | None, limit: int | None, task_ids: list[str] | None
) -> dict[str, Any]:
    """split, limit and task_ids of an audit: as given now, else as the run that goes on holds them.

    A limit or tasks given now replace both that are held.
    """
    if limit is None and not task_ids:
        limit, task_ids = held.get("limit"), held.get("task_ids")
    return {"split": split or held.get("split"), "limit": limit, "task_ids": task_ids or None}


def score(run: opt.RunPath, json: opt.Json = False) -> None:
    """Recompute V, H, F1, D, EQS and decisions from a run's records. Nothing is executed."""
    from dataclasses import replace

    from ..verifiers.audit import Audit
    from ..verifiers.audit_task import finish

    held = Audit.read(run)
    show(replace(held, records=[finish(r) for r in held.records]), json=json)


def _tell_unknown(candidates: str, task_ids: set[str]) -> None:
    """A line on standard error about rollouts of tasks that are not audited here."""
    from ..verifiers.attackers.rollouts import read_rows

    named = [row["task_id"] for _, row in read_rows(candidates)]
    others = sorted({name for name in named if name not in task_ids})
    if others:
        rows = sum(name not in task_ids for name in named)
        shown = ", ".join(others[:3]) + (" …" if len(others) > 3 else "")
        typer.echo(
            f"acidtest: {rows} of {len(named)} rollouts are of tasks not audited here ({shown}).", err=True
        )


def show(result: Audit, *, json: bool) -> None:
    """The audit table and the headline, or everything as JSON."""
    from ..verifiers.summary import summarise

    summary = summarise(result.records)
    if json:
        import msgspec

        body = {"summary": summary.to_dict(), "records": [r.to_dict() for r in result.records]}
        typer.echo(msgspec.json.encode(body).decode())
        return
    from .console import console
    from .tables import audit_table, open_line, summary_lines

    console().print(audit_table(result.records))
    for line in summary_lines(summary):
        console().print(line)
    if line := open_line(result.records):
        console().print(line)
    if result.path is not None and any(r.llm for r in result.records):
        from ..verifiers.llm_report import llm_text

        console().print(llm_text(result.path))
    if result.path is not None:
        console().print(
            f"Records: {result.path}/audit.jsonl. Next: acidtest explain TASK --run {result.path}; acidtest repair {result.path}"
        )
    if result.pending:
        console().print(f"{result.pending} tasks wait for model answers. {result.waiting}")
    if result.stopped:
        console().print(f"Stopped early: {result.stopped}")


def exit_code(result: Audit, fail_on: list[str]) -> int:
    if result.stopped:
        return STOPPED
    if result.pending:
        return PENDING
    met = {
        "hackable": any(r.hackable for r in result.records),
        "broken": any(r.broken for r in result.records),
        "error": any(r.error for r in result.records),
        "undecided": any(r.decision == "UNDECIDED" for r in result.records),
    }
    if any(met[name] for name in fail_on):
        return FAILED
    return 4 if met["error"] else 0
