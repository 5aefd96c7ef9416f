"""The page's figures (matplotlib): EQS, kinds × standing, curves over K and rounds, before and after repair."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from ...repair.records import RepairRecord
from ...verifiers.audit_record import AuditRecord
from ...verifiers.eqs import DEFAULT
from ...verifiers.llm_rates import LEVELS, LLMRates
from ...verifiers.records import Decision, Standing
from .markup import INK

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

GREY = "#8b97a5"
COLOURS = {"KEEP": "#2f9e6e", "FIX": "#d99a1e", "DROP": "#cf4a3f", "UNDECIDED": "#8b97a5"}
STANDING = {
    Standing.PROVEN: "#cf4a3f",
    Standing.JUDGED: "#e08a3c",
    Standing.CLAIMED: "#e3c14f",
    Standing.DIFFERS: "#7ba7cc",
    Standing.LEAD: "#b8c2cc",
}
LEVEL_COLOURS = {"claimed": "#e3c14f", "judged": "#e08a3c", "proven": "#cf4a3f"}
STYLE: Any = {
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "axes.labelcolor": INK,
    "text.color": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
    "svg.fonttype": "none",
}


def _figure(width: float, height: float) -> tuple[Figure, Axes]:
    import matplotlib as mpl
    from matplotlib.figure import Figure

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, height), layout="constrained")
        return figure, figure.subplots()


def _whole() -> MaxNLocator:
    from matplotlib.ticker import MaxNLocator

    return MaxNLocator(integer=True, nbins=6)


def eqs_figure(records: Sequence[AuditRecord]) -> Figure | None:
    """Histogram of EQS coloured by decision, thresholds drawn; None without a scored task."""
    import numpy as np

    scored = [(r.score.eqs, str(r.decision)) for r in records if r.score and r.score.eqs is not None]
    if not scored:
        return None
    figure, axes = _figure(6.4, 2.9)
    edges = np.linspace(0, 1, 26)
    bottom = np.zeros(len(edges) - 1)
    for decision, colour in COLOURS.items():
        values = [eqs for eqs, name in scored if name == decision]
        counts, _ = np.histogram(values, edges)
        if values:
            axes.bar(
                edges[:-1],
                counts,
                np.diff(edges),
                bottom,
                align="edge",
                color=colour,
                label=f"{decision} {len(values)}",
                lw=0,
            )
        bottom = bottom + counts
    for threshold in (DEFAULT.drop, DEFAULT.keep):
        axes.axvline(threshold, color=INK, lw=1, ls=(0, (4, 3)))
        axes.text(threshold, bottom.max() * 1.06, f" {threshold:.2f}", fontsize=9)
    axes.set_xlim(0, 1)
    axes.set_xlabel("EQS")
    axes.set_ylabel("tasks")
    axes.yaxis.set_major_locator(_whole())
    axes.legend(frameon=False, fontsize=9, loc="upper left")
    return figure


def kinds_figure(records: Iterable[AuditRecord], most: int = 24) -> Figure | None:
    """Paid candidates by kind and standing (horizontal, stacked); None when nothing was paid."""
    counts: Counter[tuple[str, Standing]] = Counter(
        (finding.candidate.kind, finding.standing) for record in records for finding in record.findings
    )
    totals: Counter[str] = Counter()
    for (kind, _), count in counts.items():
        totals[kind] += count
    kinds = [kind for kind, _ in sorted(totals.items(), key=lambda item: (item[1], item[0]))][-most:]
    if not kinds:
        return None
    figure, axes = _figure(6.4, 0.9 + 0.25 * len(kinds))
    left = [0] * len(kinds)
    for standing, colour in STANDING.items():
        values = [counts[kind, standing] for kind in kinds]
        if any(values):
            axes.barh(kinds, values, left=left, color=colour, label=str(standing), lw=0, height=0.72)
            left = [a + b for a, b in zip(left, values, strict=True)]
    for place, total in enumerate(left):
        axes.text(total, place, f" {total}", va="center", fontsize=9)
    axes.tick_params(axis="y", length=0)
    axes.margins(x=0.08)
    axes.xaxis.set_major_locator(_whole())
    axes.set_xlabel("paid programs")
    axes.legend(frameon=False, fontsize=9, loc="lower right")
    return figure


def curve_figure(rates: LLMRates) -> Figure | None:
    """Share of tasks with a paid exploit over K single-shot samples, and the added rounds; None where there is no curve."""
    longest = max((len(rates.curve.get(level, ())) for level in LEVELS), default=0)
    if longest == 0 or (longest == 1 and len(rates.rounds) < 2):
        return None
    figure, axes = _figure(6.4, 2.9)
    for level in LEVELS:
        points = rates.curve[level]
        ks, shares = [k for k, _, _ in points], [100 * s for _, s, _ in points]
        axes.plot(ks, shares, "o-", color=LEVEL_COLOURS[level], label=level, lw=1.8, ms=4)
        final = rates.iterated[level].share.rate
        if final is not None and len(rates.rounds) > 1:
            axes.plot([ks[-1] + 1], [100 * final], "D", color=LEVEL_COLOURS[level], ms=6)
    last = max(k for k, _, _ in rates.curve[LEVELS[0]])
    ticks = list(range(1, last + 1))
    labels = [str(k) for k in ticks]
    if len(rates.rounds) > 1:
        ticks, labels = [*ticks, last + 1], [*labels, f"all {len(rates.rounds)} rounds"]
    axes.set_xticks(ticks, labels)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("exploits asked for in one shot (K)")
    axes.set_ylabel("% of tasks")
    axes.legend(frameon=False, fontsize=9)
    return figure


def repair_figure(repairs: Iterable[RepairRecord]) -> Figure | None:
    """EQS of each repaired task before and after, as a slope; None when no task has both."""
    pairs = [
        (float(r.before["eqs"]), float(r.after["eqs"]), str(r.after.get("decision") or Decision.UNDECIDED))
        for r in repairs
        if r.before.get("eqs") is not None and r.after.get("eqs") is not None
    ]
    if not pairs:
        return None
    figure, axes = _figure(6.4, 3.1)
    for before, after, decision in pairs:
        axes.plot([0, 1], [before, after], color=COLOURS.get(decision, GREY), lw=1.3, alpha=0.75)
        axes.plot([0, 1], [before, after], "o", color=COLOURS.get(decision, GREY), ms=4)
    for threshold in (DEFAULT.drop, DEFAULT.keep):
        axes.axhline(threshold, color=INK, lw=1, ls=(0, (4, 3)))
        axes.text(1.06, threshold, f"{threshold:.2f}", va="center", fontsize=9)
    axes.set_xlim(-0.15, 1.18)
    axes.set_ylim(0, 1)
    axes.set_xticks([0, 1], ["original suite", "hardened suite"])
    axes.set_ylabel("EQS")
    return figure
