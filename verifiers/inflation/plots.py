"""Forest plot and permutation histogram (matplotlib without pyplot; PNG and SVG)."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .analysis import Inflation
from .text import CONDITIONAL, permutation_p, points

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, BLUE, RED, GREY = "#1f2933", "#2f6fb0", "#c2410c", "#9aa5b1"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": GREY,
    "text.color": INK,
    "axes.labelcolor": INK,
    "svg.hashsalt": "acidtest",
    "svg.fonttype": "none",
}


def forest_plot(found: Inflation, *, most: int = 160) -> Figure:
    """One line a submission (sorted by difference), pooled diamonds, and the task-level interval below."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    units = sorted(found.units, key=lambda unit: unit.estimate)
    units = (
        units if len(units) <= most else [units[i] for i in np.linspace(0, len(units) - 1, most).astype(int)]
    )
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 1.6 + 0.06 * len(units) + 1.2), layout="constrained")
        axes = figure.subplots()
        y = np.arange(len(units)) + 8
        x = 100 * np.array([unit.estimate for unit in units])
        reach = 196 * np.array([unit.se for unit in units])
        axes.hlines(y, x - reach, x + reach, color=GREY, lw=0.7, zorder=1)
        axes.scatter(x, y, s=6, color=BLUE, zorder=2, label=f"{len(found.units)} submissions (95 % interval)")
        _summaries(axes, found)
        axes.axvline(0, color=INK, lw=0.8)
        axes.set_ylim(-0.5, len(units) + 9)
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.set_xlabel("Difference in Pass@1, flagged minus unflagged (points)")
        axes.set_title(
            f"{found.flagged} flagged vs {found.audited - found.flagged} unflagged tasks, "
            f"stratified by {' × '.join(found.strata) or 'nothing'}",
            loc="left",
            fontsize=10,
        )
        axes.legend(loc="upper left", frameon=False, fontsize=8)
    return figure


def _summaries(axes: object, found: Inflation) -> None:
    from matplotlib.axes import Axes
    from matplotlib.patches import Polygon

    assert isinstance(axes, Axes)
    place = 5.5
    for method in ("DL", "REML"):
        row = next((p for p in found.pooled if p.method == method and not p.hartung_knapp), None)
        if row is not None:
            low, mid, high = 100 * row.low, 100 * row.estimate, 100 * row.high
            corners = [(low, place), (mid, place + 0.8), (high, place), (mid, place - 0.8)]
            axes.add_patch(Polygon(corners, closed=True, facecolor=GREY, edgecolor=INK, lw=0.5))
            label = f"pooled {method} {points(row.estimate)}, {CONDITIONAL}"
            axes.annotate(label, (high, place), (6, 0), textcoords="offset points", va="center", fontsize=8)
        place -= 2.2
    low, high = 100 * found.interval.low, 100 * found.interval.high
    axes.plot([low, high], [place, place], color=RED, lw=2.2, solid_capstyle="butt")
    axes.plot([100 * found.estimate], [place], "D", color=RED, ms=5)
    axes.annotate(
        f"task level {points(found.estimate)} [{points(found.interval.low)}, {points(found.interval.high)}]",
        (high, place),
        (6, 0),
        textcoords="offset points",
        va="center",
        fontsize=8,
        color=RED,
        weight="bold",
    )


def permutation_plot(found: Inflation) -> Figure:
    """Histogram of the shuffled differences, with the observed one."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    test = found.primary
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(7.2, 3.2), layout="constrained")
        axes = figure.subplots()
        edges = 100 * np.array(test.edges)
        beyond = edges[:-1] >= 100 * test.observed
        colours = [RED if b else BLUE for b in beyond]
        axes.bar(edges[:-1], test.counts, np.diff(edges), align="edge", color=colours, alpha=0.75, lw=0)
        axes.axvline(100 * test.observed, color=RED, lw=1.6)
        axes.annotate(
            f"observed {points(test.observed)}\none-sided {permutation_p(test)}",
            (100 * test.observed, max(test.counts, default=1)),
            (6, -4),
            textcoords="offset points",
            va="top",
            color=RED,
            weight="bold",
        )
        axes.set_yticks([])
        axes.spines["left"].set_visible(False)
        axes.margins(x=0.15)
        axes.set_xlabel("Mean difference with shuffled flags (points)")
        axes.set_title(
            f"{test.permutations:,} shuffles of the flags within {' × '.join(test.within) or 'all tasks'}",
            loc="left",
            fontsize=10,
        )
    return figure


def svg(figure: Figure) -> str:
    """The figure as SVG text, the same bytes for the same figure."""
    import matplotlib as mpl

    buffer = io.StringIO()
    with mpl.rc_context(STYLE):
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()


def save(found: Inflation, folder: Path) -> list[Path]:
    """forest.{png,svg} and permutation.{png,svg} in `folder`."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, figure in (("forest", forest_plot(found)), ("permutation", permutation_plot(found))):
        png, vector = folder / f"{name}.png", folder / f"{name}.svg"
        figure.savefig(png, dpi=150)
        vector.write_text(svg(figure), encoding="utf-8")
        paths += [png, vector]
    return paths
