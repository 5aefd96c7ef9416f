"""`acidtest explain TASK --run RUN`: one task, or one incident, with all its evidence in the terminal."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..envs.errors import ConfigError
from . import options as opt

if TYPE_CHECKING:
    from ..envs.incident import Incident
    from ..envs.task import Task
    from ..verifiers.audit import Audit
    from ..verifiers.audit_record import AuditRecord
    from ..verifiers.records import Finding


def register(app: typer.Typer) -> None:
    app.command("explain")(explain)


def explain(
    what: Annotated[str, typer.Argument(metavar="TASK", help="Task id, or the key of an incident.")],
    run: Annotated[
        Path, typer.Option("--run", "-r", help="Run directory of an audit or of a training run.")
    ] = Path("runs"),
    findings: Annotated[int, typer.Option(min=0, help="Findings shown in full.")] = 3,
    json: opt.Json = False,
) -> None:
    """Why a task has its score: calibration, findings with diff, witness and the command to reproduce them."""
    from ..verifiers.audit import Audit

    if (incident := _incident(run, what)) is not None:
        typer.echo(incident.to_json()) if json else show_incident(incident)
        return
    held = Audit.read(_run_of(run, what))
    record = next((r for r in held.records if r.task_id == what), None)
    if record is None:
        raise ConfigError(
            f"{run} has no record of task {what!r}.",
            mend=f"It has: {', '.join(r.task_id for r in held.records[:8])} …",
        )
    if json:
        typer.echo(record.to_json())
        return
    show_record(record, held, findings)


def _run_of(run: Path, task_id: str) -> Path:
    """The run itself, or the newest run below a folder of runs that knows the task."""
    from ..verifiers.audit import Audit

    if (run / "config.toml").is_file() or not run.is_dir():
        return run
    folders = sorted((p.parent for p in run.glob("*/config.toml")), key=lambda p: -p.stat().st_mtime)
    for folder in folders:
        if any(r.task_id == task_id for r in Audit.read(folder).records):
            return folder
    return run


def _incident(run: Path, key: str) -> Incident | None:
    from ..training_hooks.jsonl_sink import read_incidents

    file = run / "incidents.jsonl"
    found = read_incidents(file) if file.is_file() else []
    return next((incident for incident in found if incident.key == key), None)


def show_record(record: AuditRecord, held: Audit, findings: int) -> None:
    from ..verifiers.eqs import discrimination, hackability, hackability_memorising, hackability_paper
    from .console import console
    from .tables import number, share

    print_ = console().print
    scored = record.score
    print_(f"[bold]{record.task_id}[/bold]  ({record.dataset})  flags: {' '.join(record.flags) or 'none'}")
    if record.error:
        print_(f"Not audited: {record.error}")
        return
    if scored is not None:
        print_(
            f"EQS {number(scored.eqs, 3)} ({'complete' if scored.eqs_complete else 'terms missing'}; from "
            f"{scored.eqs_low:.3f} to {scored.eqs_high:.3f})  decision {scored.decision}"
            f"{' (firm)' if scored.decision_firm else ' (not firm)'}  {'; '.join(scored.reasons)}"
        )
        print_(
            f"V {number(scored.v, 3)}   H {share(hackability(record.attempts))}   F1 {number(scored.f1, 3)}   "
            f"D {number(scored.d, 3)}"
        )
    print_(
        f"H_memorise {share(hackability_memorising(record.attempts))}   H_paper (claims counted) "
        f"{share(hackability_paper(record.attempts))}   V's pool {discrimination(record.pool).size} programs"
    )
    print_(f"Suite {record.suite_digest}   image {record.image_digest or 'none'}   seed {record.seed}")
    for note in (*record.notes, *record.leaks):
        print_(f"Note: {note}")
    for doubt in record.gold_findings:
        print_(
            f"About gold: {doubt.call} is said to give {doubt.says}, gold gives {doubt.does} ({doubt.source})"
        )
    shown = sorted(record.findings, key=_rank)
    print_(f"Paid candidates: {len(shown)}, of them proven wrong {len(record.proven)}")
    for finding in shown[:findings]:
        show_finding(finding, held, record)
    if len(shown) > findings:
        rest = [f"{f.candidate.kind} {f.standing} {f.candidate.candidate_id}" for f in shown[findings:]]
        print_("Further: " + "; ".join(rest[:20]) + (" …" if len(rest) > 20 else ""))


def show_finding(finding: Finding, held: Audit, record: AuditRecord) -> None:
    """One paid candidate in full: diff, witnesses, verdict, and how to run it again."""
    from .console import console

    candidate = finding.candidate
    console().print(
        f"\n[bold]{finding.standing.upper()}[/bold]  {candidate.kind} ({candidate.family}, {candidate.origin})  "
        f"id {candidate.candidate_id}  outcome {finding.verdict.outcome} under {finding.verdict.defence}"
    )
    if candidate.description:
        console().print(f"What: {candidate.description}")
    print_diff(exploit_diff(finding, _task(held.tasks, record.task_id)))
    for witness in finding.witnesses:
        console().print(
            f"Witness ({witness.kind}, rating {witness.rating:.2f}): {witness.call}\n  gold:      {witness.expected}\n"
            f"  candidate: {witness.observed}\n  in domain: {witness.in_domain or witness.citation or 'not established'}",
            markup=False,
        )
    for reason in finding.reasons:
        console().print(f"Reason: {reason}", markup=False)
    if held.path is not None:
        where = held.path / "witnesses" / f"{candidate.candidate_id}.py"
        if where.is_file():
            console().print(f"Reproduce: python3 {where}", markup=False)
        console().print(
            f"Verdict again: acidtest verify {record.task_id} --run {held.path} --candidate {candidate.candidate_id}",
            markup=False,
        )


def exploit_diff(finding: Finding, task: Task | None) -> str:
    """The candidate against gold for function tasks (what is wrong is what differs), else the patch itself."""
    if task is None or not task.is_function:
        return finding.candidate.patch.text
    from ..envs.patch import Patch
    from ..verifiers.mutation.functions import FunctionView

    view = FunctionView.of(task)
    text = view.source_of(finding.candidate.patch)
    if text is None:
        return finding.candidate.patch.text
    return Patch.writing({view.path: text}, {view.path: view.gold}).text


def print_diff(text: str, limit: int = 60) -> None:
    from rich.syntax import Syntax

    from .console import console

    lines = text.splitlines()
    body = "\n".join(lines[:limit]) + (f"\n… {len(lines) - limit} more lines" if len(lines) > limit else "")
    console().print(Syntax(body, "diff", theme="ansi_dark", background_color="default", word_wrap=True))


def show_incident(incident: Incident) -> None:
    from .console import console

    console().print(
        f"[bold]{incident.severity}[/bold]  {incident.kind}  task {incident.task_id}  step {incident.step}  "
        f"seen {incident.count} times\noriginal suite pays {incident.reward_original}, hardened suite pays "
        f"{incident.reward_hardened}"
    )
    for line in (*incident.evidence, *(f"failed added test: {t}" for t in incident.failed_added)):
        console().print(f"Evidence: {line}", markup=False)
    if incident.unrun_added:
        console().print(f"Not run after that: {len(incident.unrun_added)} added tests")
    print_diff(incident.patch)


def _task(tasks: Iterable[Task], task_id: str) -> Task | None:
    return next((t for t in tasks if t.task_id == task_id), None)


def _rank(finding: Finding) -> tuple[int, int, str]:
    """Proven first, exploits and mutants before memorising ones, then by id."""
    from ..verifiers.records import Family, Standing

    order = [Standing.PROVEN, Standing.JUDGED, Standing.CLAIMED, Standing.DIFFERS, Standing.LEAD]
    return (
        order.index(finding.standing),
        finding.candidate.family is Family.MEMORISING,
        finding.candidate.candidate_id,
    )
