"""The report in the terminal: headline rates, figures of the run, the tasks that need a look."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import facts
from .collect import Material
from .markup import percent

if TYPE_CHECKING:
    from rich.table import Table


def show(material: Material, *, most: int = 20) -> None:
    """Print it; sensible at 80 columns and without a terminal."""
    from ..console import console

    out = console()
    out.print(f"[bold]{material.name}[/bold]  {material.dataset}  {material.audited}", highlight=False)
    if material.records:
        for row in facts.headline(material):
            out.print(f"  {row['title']:<15} {percent(row['count'], row['of'])}")
        for name, value in (*facts.rates(material), *facts.facts(material)):
            out.print(f"  {name}: {value}", markup=False)
        decisions = material.summary.decisions
        out.print("  decisions: " + ", ".join(f"{name} {count}" for name, count in decisions.items()))
        out.print(_tasks(material, most))
    repaired = facts.repair_facts(material.repairs)
    if repaired:
        states = ", ".join(f"{count} {state}" for state, count in repaired["states"].items())
        out.print(
            f"Repair: {repaired['taken']} tasks taken ({states}); refused, executed: {repaired['blocked']}"
        )
        for name, value in repaired["held_out"].items():
            out.print(f"  held out, {name}: {value}")
        for defect in repaired["defects"]:
            out.print(f"  gate: {defect['name']}: {defect['count']} of {repaired['tries']} proposals")
    if material.incidents:
        out.print(_incidents(material, most))
    if material.inflation:
        from ...verifiers.inflation.text import points, verdict

        found = material.inflation
        out.print(
            f"Inflation: {points(found.estimate)} points (bootstrap 95 % {points(found.interval.low)} to "
            f"{points(found.interval.high)}), permutation p {found.primary.p_greater:.3f}. {verdict(found)}",
            markup=False,
        )


def _tasks(material: Material, most: int) -> Table:
    from rich.table import Table

    rows = sorted(facts.task_rows(material), key=lambda r: (-r["proven"], -r["paid"], r["id"]))
    table = Table(
        title=f"Tasks ({min(most, len(rows))} of {len(rows)}, most proven first)", title_justify="left"
    )
    for head in ("task", "decision", "EQS", "H", "proven/paid", "flags"):
        table.add_column(
            head, overflow="fold", justify="right" if head in ("EQS", "H", "proven/paid") else "left"
        )
    for row in rows[:most]:
        eqs = "–" if row["eqs"] is None else f"{row['eqs']:.2f}"
        firm = "" if row["firm"] or row["eqs"] is None else "?"
        table.add_row(
            row["id"],
            row["decision"] + firm,
            eqs,
            row["h_text"],
            f"{row['proven']}/{row['paid']}",
            " ".join(row["flags"]),
        )
    return table


def _incidents(material: Material, most: int) -> Table:
    from rich.table import Table

    rows = facts.incident_rows(material.incidents)
    table = Table(title=f"Incidents ({min(most, len(rows))} of {len(rows)})", title_justify="left")
    for head in ("severity", "kind", "task", "times", "step"):
        table.add_column(head, overflow="fold")
    for row in rows[:most]:
        step = "–" if row["step"] is None else str(row["step"])
        table.add_row(row["severity"], row["kind"], row["task"], str(row["count"]), step)
    return table
