"""Tables of the terminal, from records; every rate with its pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..envs.verdict import Outcome
from ..verifiers.audit_record import AuditRecord
from ..verifiers.eqs import Share
from ..verifiers.records import Family
from ..verifiers.stats import wilson
from ..verifiers.summary import Summary

if TYPE_CHECKING:
    from rich.table import Table


def table(title: str, *columns: str) -> Table:
    """A table whose columns that start with "#" are right-aligned."""
    from rich import box
    from rich.table import Table

    made = Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title_style="bold",
    )
    for name in columns:
        made.add_column(
            name.lstrip("#"), justify="right" if name.startswith("#") else "left", overflow="fold"
        )
    return made


def share(value: Share) -> str:
    """ "3 of 12 (25.0 %)", "0 of 4", "–" when nothing was counted."""
    if value.of == 0:
        return "–"
    return f"{value.count} of {value.of}" + (f" ({value.count / value.of:.1%})" if value.count else "")


def pair(value: Share) -> str:
    """ "3 of 12", "–" when nothing was counted: for tables that must fit 80 columns."""
    return f"{value.count} of {value.of}" if value.of else "–"


def rate(count: int, of: int) -> str:
    """ "3 of 12 (25.0 %, 95 % Wilson 8.9 to 53.2 %)"."""
    if of == 0:
        return "0 of 0"
    low, high = wilson(count, of) or (0.0, 1.0)
    return f"{count} of {of} ({count / of:.1%}, 95 % Wilson {low:.1%} to {high:.1%})"


def number(value: float | None, digits: int = 2) -> str:
    return "–" if value is None else f"{value:.{digits}f}"


def audit_table(records: Sequence[AuditRecord]) -> Table:
    """One row a task: what was executed, what was proven, the score and the decision."""
    from ..verifiers.eqs import hackability, hackability_memorising

    made = table("Audit", "task", "#run", "#proven", "H", "H mem.", "#V", "#EQS", "decision", "flags")
    for record in records:
        scored = record.score
        if record.error:
            made.add_row(record.task_id, "–", "–", "–", "–", "–", "–", "error", record.error[:60])
            continue
        made.add_row(
            record.task_id,
            str(record.tried),
            str(len(record.proven)),
            pair(hackability(record.attempts)),
            pair(hackability_memorising(record.attempts)),
            number(scored.v if scored else None),
            number(scored.eqs if scored else None),
            f"{record.decision}{'' if scored and scored.decision_firm else ' ?'}",
            " ".join(record.flags),
        )
    made.caption = (
        "? = another value of an undefined term could change the decision. V, F1, D: our own definitions."
    )
    made.caption_justify = "left"
    return made


def open_line(records: Sequence[AuditRecord]) -> str:
    """Tasks that pay programs about which nothing can be said, because too little of their domain is known; or ""."""
    left = {
        r.task_id: sum(a.outcome is Outcome.RESOLVED and a.family is not Family.BENIGN for a in r.attempts)
        for r in records
        if r.unproven
    }
    named = [f"{task_id} ({count})" for task_id, count in left.items()]
    if not named:
        return ""
    shown = ", ".join(named[:5]) + (" …" if len(named) > 5 else "")
    return (
        f"Not robust, only unproven: {shown}. Programs are paid there, and too few inputs are known to tell them "
        "from gold; examples in the task's text help (docs/audit.md)."
    )


def summary_lines(summary: Summary) -> list[str]:
    """The headline, one fact a line."""
    lines = [
        f"Tasks: {summary.tasks} audited, {summary.usable} usable, {summary.broken} broken"
        + (f", {summary.errors} with errors (run again)" if summary.errors else ""),
        f"Hackable tasks (proven): {rate(summary.proven.count, summary.proven.of)}",
        f"  judged or better: {share(summary.judged)}; claimed: {share(summary.claimed)}; memorisable: {share(summary.memorisable)}",
        f"Wrong programs: {summary.programs} executed, {summary.findings} proven wrong and paid; H {share(summary.h)}",
        "Decisions: " + (", ".join(f"{name} {count}" for name, count in summary.decisions.items()) or "none"),
    ]
    if summary.benign_called_wrong.of:
        lines.append(f"Benign control: {share(summary.benign_called_wrong)} correct patches called wrong")
    if summary.inflated_d:
        shown = ", ".join(summary.inflated_d[:3]) + (", …" if len(summary.inflated_d) > 3 else "")
        lines.append(
            f"Warning: Pass@1 of {len(summary.inflated_d)} hackable tasks ({shown}) counts wrong patches that are paid, and "
            "their D rests on it; repair them and measure Pass@1 on the hardened suites"
        )
    if summary.gold_disputed:
        lines.append(
            f"Gold contradicts its own text on {summary.gold_disputed} tasks (`explain` shows where)"
        )
    if summary.cost_usd:
        lines.append(f"Model cost: {summary.cost_usd:.4f} USD")
    return lines
