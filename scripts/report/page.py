"""The page: one HTML file without network, under a limit of bytes whatever the run's size."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from markupsafe import Markup

from ...verifiers.inflation import text as words
from ...verifiers.llm_rates import LEVELS
from . import facts, figures
from .collect import Material
from .details import ROOMS, Room, incident_detail, task_detail
from .markup import inline_svg

if TYPE_CHECKING:
    from jinja2 import Environment
    from matplotlib.figure import Figure

TEMPLATES = Path(__file__).parent / "templates"
LIMIT_BYTES = 4_800_000


def render(material: Material, *, limit_bytes: int = LIMIT_BYTES) -> str:
    """The whole page. Details are shortened, room by room, until it fits; the page says when they were."""
    shared = _shared(material)
    for place, room in enumerate(ROOMS):
        html = _page(shared, material, room, shortened=place > 0)
        if len(html.encode()) <= limit_bytes:
            break
    return html


def write(material: Material, path: Path) -> int:
    """Write the page; returns its size in bytes."""
    data = render(material).encode("utf-8", "replace")
    part = path.with_suffix(".part")
    part.write_bytes(data)
    part.replace(path)
    return len(data)


def _shared(material: Material) -> dict[str, Any]:
    from ...envs.version import __version__

    return {
        "name": material.name,
        "material": material,
        "summary": material.summary,
        "version": __version__,
        "cards": facts.headline(material) if material.records else [],
        "rates": facts.rates(material) if material.records else [],
        "facts": facts.facts(material) if material.records else [],
        "rows": facts.task_rows(material),
        "kinds": facts.kinds_table(material.records),
        "standings": [str(s) for s in facts.STANDINGS],
        "zoo": facts.zoo_table(material.zoo) if material.zoo else [],
        "repair": facts.repair_facts(material.repairs),
        "incidents": facts.incident_rows(material.incidents),
        "rounds": material.llm_rates.rounds if material.llm_rates else (),
        "levels": LEVELS,
        "inflation": _inflation(material),
        "figures": _figures(material),
    }


def _figures(material: Material) -> dict[str, Markup | None]:
    made: dict[str, tuple[Figure | None, str]] = {
        "eqs": (figures.eqs_figure(material.records), "Histogram of EQS by decision"),
        "kinds": (figures.kinds_figure(material.records), "Paid programs by kind and standing"),
        "repair": (figures.repair_figure(material.repairs.values()), "EQS before and after repair"),
    }
    if material.llm_rates is not None:
        made["curve"] = (figures.curve_figure(material.llm_rates), "Hackable tasks over K and rounds")
    if material.inflation is not None:
        from ...verifiers.inflation.plots import forest_plot, permutation_plot

        made["forest"] = (forest_plot(material.inflation), "Differences by submission")
        made["permutation"] = (permutation_plot(material.inflation), "Shuffled differences")
    names = ("eqs", "kinds", "curve", "repair", "forest", "permutation")
    drawn = {
        name: inline_svg(figure, name, title) for name, (figure, title) in made.items() if figure is not None
    }
    return {name: drawn.get(name) for name in names}


def _inflation(material: Material) -> list[Markup]:
    """The analysis' text as paragraphs (its Markdown is bold, lists and nothing else)."""
    if material.inflation is None:
        return []
    blocks = words.summary(material.inflation).strip().split("\n\n")[1:]
    return [_markdown(block) for block in blocks]


def _markdown(block: str) -> Markup:
    import re

    from markupsafe import escape

    lines = [
        re.sub(
            r"\*\*(.+?)\*\*",
            r"<strong>\1</strong>",
            re.sub(r"(?<!\*)\*(?!\*)([^*]+)\*(?!\*)", r"<em>\1</em>", str(escape(line))),
        )
        for line in block.split("\n")
    ]
    if all(line.startswith("- ") for line in lines):
        return Markup("<ul>" + "".join(f"<li>{line[2:]}</li>" for line in lines) + "</ul>")
    return Markup("<p>" + "<br>".join(lines) + "</p>")


def _page(shared: dict[str, Any], material: Material, room: Room, *, shortened: bool) -> str:
    template = _environment().get_template("task.html.jinja")
    details = {
        record.task_id: template.render(detail=task_detail(record, material, room))
        for record in material.records
    }
    if not material.records:
        one = _environment().get_template("incident.html.jinja")
        details = {
            incident.key: one.render(detail=incident_detail(incident, room))
            for incident in material.incidents
        }
    body = json.dumps(details, ensure_ascii=False).replace("<", "\\u003c")
    return (
        _environment()
        .get_template("report.html.jinja")
        .render(details=Markup(body), shortened=shortened, **shared)
    )


@cache
def _environment() -> Environment:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    made = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters["number"] = lambda value, digits=2: "–" if value is None else f"{value:.{digits}f}"
    made.filters["duration"] = facts.duration
    return made
