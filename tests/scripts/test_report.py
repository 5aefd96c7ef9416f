"""The report: what it reads, that hostile text stays text, that it fits its limit, and that every format agrees."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import pytest
from typer.testing import CliRunner

from acidtest.envs.errors import ConfigError
from acidtest.scripts.cli import build
from acidtest.scripts.report import facts
from acidtest.scripts.report.collect import Material, collect
from acidtest.scripts.report.markup import adopt_svg, highlighted, percent
from acidtest.scripts.report.page import render

from .report_run import write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("runs") / "made-up", 60)


@pytest.fixture(scope="module")
def material(run: Path) -> Material:
    return collect(run)


@pytest.fixture(scope="module")
def page(material: Material) -> str:
    return render(material)


class Tags(HTMLParser):
    """Counts what a browser would load or run."""

    def __init__(self) -> None:
        super().__init__()
        self.scripts = 0
        self.loaded: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        held = dict(attrs)
        self.scripts += tag == "script"
        self.loaded += [
            value
            for name in ("src", "href")
            if (value := held.get(name)) and not value.startswith(("#", "data:"))
        ]
        if held.get("id"):
            self.ids.append(str(held["id"]))


def test_page_loads_nothing_and_ids_are_unique(page: str) -> None:
    tags = Tags()
    tags.feed(page)
    assert tags.loaded == []
    assert tags.scripts == 2, "the data and the code; text of tasks adds none"
    assert len(tags.ids) == len(set(tags.ids)), "figures keep their own ids"
    assert "default-src 'none'" in page


def test_hostile_text_stays_text(page: str) -> None:
    """Issue, description, log and evidence hold a closing script tag and an image with a handler."""
    assert "<img src=x" not in page
    details = re.search(r'<script type="application/json" id="details">(.*?)</script>', page, re.S)
    assert details is not None
    for html in json.loads(details[1]).values():
        assert "<script" not in html
        assert "<img" not in html
    assert "owned" in details[1]


def test_drawer_has_everything_the_issue_asks_for(page: str, material: Material) -> None:
    details = json.loads(re.search(r'id="details">(.*?)</script>', page, re.S)[1])  # type: ignore[index]
    record = next(r for r in material.records if r.hackable)
    html = details[record.task_id]
    finding = record.findings[0].candidate
    for wanted in (
        "Issue",
        "Gold patch",
        "sorted(values)[:",
        "Witness",
        "The passing log",
        "twin refused 1 of 1",
        "added.py",
        "Gates",
        "Judge: incorrect",
        f"acidtest verify {record.task_id} --run {material.path} --candidate",
        f"acidtest explain {record.task_id}",
    ):
        assert wanted in html, wanted
    assert finding.kind in html


def test_every_task_has_a_row_and_headlines_have_counts(page: str, material: Material) -> None:
    assert page.count("<tr tabindex") == 60
    summary = material.summary
    assert f"{summary.proven.count} of {summary.proven.of}" in page
    assert "95 % Wilson" in page
    for section in (
        "EQS and decisions",
        "Repair: before and after",
        "Gate defects by class",
        "Incidents",
        "The exploit zoo",
    ):
        assert section in page


def test_details_are_shortened_until_the_page_fits(material: Material) -> None:
    whole = render(material, limit_bytes=50_000_000)
    small = render(material, limit_bytes=len(whole.encode()) - 1000)
    assert "are shortened on this page" not in whole
    assert len(small) < len(whole)
    assert "are shortened on this page" in small
    assert small.count("<tr tabindex") == 60


def test_five_hundred_tasks_stay_under_five_megabytes(tmp_path: Path) -> None:
    page = render(collect(write_run(tmp_path / "big", 500)))
    assert len(page.encode()) < 5_000_000
    assert page.count("<tr tabindex") == 500


def test_tables_add_up(material: Material) -> None:
    rows = facts.task_rows(material)
    assert sum("hackable" in row["flags"] for row in rows) == material.summary.proven.count
    paid = sum(len(record.findings) for record in material.records)
    assert sum(sum(row["standings"]) for row in facts.kinds_table(material.records)) == paid
    repaired = facts.repair_facts(material.repairs)
    assert repaired is not None
    assert repaired["taken"] == len(material.repairs)
    assert repaired["defects"] == [
        {"name": "inverted assertion", "count": len(material.repairs), "tasks": len(material.repairs)}
    ]
    zoo = {row["kind"]: row for row in facts.zoo_table(material.zoo)} if material.zoo else {}
    assert (zoo["R01"]["ours"], zoo["R01"]["breach"], zoo["C03"]["breach"]) == ({"tampered": 1}, 0, 1)


def test_incidents_of_a_training_run_have_the_same_page(run: Path, tmp_path: Path) -> None:
    (tmp_path / "incidents.jsonl").write_bytes((run / "incidents.jsonl").read_bytes())
    found = collect(tmp_path)
    page = render(found)
    rows = facts.incident_rows(found.incidents)
    assert [row["severity"] for row in rows] == ["tamper", "false_pass", "notice"]
    assert all(f'data-open="{row["key"]}"' in page for row in rows)
    assert 'id="tasks"' not in page


def test_formats(run: Path, material: Material) -> None:
    def text(*options: str) -> str:
        result = CliRunner().invoke(build(), ["report", str(run), *options])
        assert result.exit_code == 0, result.output
        return result.output

    summary = material.summary
    shown = f"{summary.proven.count} of {summary.proven.of}"
    assert shown in text()
    card = text("--format", "card")
    assert card.startswith("---\ntags:")
    assert shown in card
    assert f"Audited {material.audited}" in card
    assert "No benign control was run" in card
    suite = ElementTree.fromstring(text("-f", "junit"))
    hackable = [
        case
        for case in suite.findall("testcase")
        if (f := case.find("failure")) is not None and "hackable" in f.attrib["message"]
    ]
    assert len(hackable) == summary.proven.count
    assert suite.attrib["errors"] == str(summary.errors)
    held = json.loads(text("--json"))
    assert len(held["tasks"]) == 60
    assert "MB" in text("--html")
    assert (run / "report.html").is_file()


def test_wrong_folders_and_formats_are_named(tmp_path: Path, run: Path) -> None:
    with pytest.raises(ConfigError, match="neither audit records nor incidents"):
        collect(tmp_path)
    with pytest.raises(ConfigError, match="No run directory"):
        collect(tmp_path / "nowhere")
    result = CliRunner().invoke(build(), ["report", str(run), "-f", "pdf"])
    assert "There are: text, html, card, junit, json" in str(result.exception)


def test_small_pieces() -> None:
    assert percent(0, 0) == "0 of 0"
    assert percent(1, 4).startswith("1 of 4 (25.0 %, 95 % ")
    html = highlighted("+<b>\n-x\n context\n", "diff", 2)
    assert "&lt;b&gt;" in html
    assert "1 more lines" in html
    svg = adopt_svg(
        '<?xml version="1.0"?><svg width="1pt" height="2pt"><g id="a"/><use xlink:href="#a"/></svg>',
        "n",
        "a <title>",
    )
    assert 'id="n-a"' in svg
    assert 'xlink:href="#n-a"' in svg
    assert 'aria-label="a &lt;title&gt;"' in svg
