"""The endurance and agreement measurements on a small scale; their full forms are campaigns (docs/measurements.md)."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from acidtest.scripts import measure_agreement, measure_endurance


def row(**paths: str) -> dict[str, Any]:
    named = {name.replace("_", " "): outcome for name, outcome in paths.items()}
    return {
        "task_id": "t",
        "what": "mutant S22",
        "digest": "d",
        "paths": named,
        "evidence": ["a fact"],
        "failed": "",
    }


@pytest.mark.parametrize(
    ("paths", "expected"),
    [
        ({"strict": "resolved", "fast": "resolved", "cached": "resolved"}, []),
        ({"strict": "unresolved", "fast": "timed_out", "search": "refused"}, []),
        ({"strict": "tampered", "fast": "resolved"}, [("fast", "fast lacks the layer that saw it: a fact")]),
        ({"strict": "tampered", "cached": "unresolved"}, [("cached", "")]),
        ({"strict": "resolved", "fast": "unresolved"}, [("fast", "")]),
        ({"strict": "unresolved", "search": "resolved"}, [("search", "")]),
        ({"strict": "unresolved", "docker": "tampered", "docker_warm": "tampered"}, []),
        ({"strict": "unresolved", "docker": "tampered", "docker_warm": "unresolved"}, [("docker warm", "")]),
    ],
)  # fmt: skip
def test_what_counts_as_a_disagreement(paths: dict[str, str], expected: list[tuple[str, str]]) -> None:
    assert list(measure_agreement.disagreements(row(**paths))) == expected


def test_agreement_on_one_task_and_nothing_is_asked_twice(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    argv = [
        "--rows",
        str(tmp_path / "rows.jsonl"),
        "--limit",
        "1",
        "-t",
        "toy/add_sound",
        "--every",
        "0",
        "--mutants",
        "2",
    ]
    assert measure_agreement.main(argv) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["patches"] >= 5
    assert {"bare", "cached", "fast", "kept", "no twin", "search"} <= set(found["paths"])
    size = (tmp_path / "rows.jsonl").stat().st_size
    assert measure_agreement.main(argv) == 0
    assert (tmp_path / "rows.jsonl").stat().st_size == size


def test_endurance_of_forty_verdicts(tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    found = measure_endurance.endure(40, 0, jobs=2, every=10, rows=rows)
    assert [json.loads(line)["verdicts"] for line in rows.read_text().splitlines()] == [10, 20, 30, 40]
    assert measure_endurance.problems(found) == []
    assert found["descriptors"]["trend"] == found["threads"]["trend"] == 0


def test_growth_is_a_problem() -> None:
    flat = measure_endurance.course([{"verdicts": n, "x": 5 + n % 2} for n in range(40)], "x")
    rising = measure_endurance.course([{"verdicts": n, "x": 5 + n // 10} for n in range(40)], "x")
    found = {
        "wrong verdicts": [], "cached verdicts": 0, "containers left": 1, "threads": flat,
        "rss_mib": {**flat, "lowest": 5.0, "highest": 60.0}, "descriptors": rising,
    }  # fmt: skip
    assert measure_endurance.problems(found) == [
        "memory moved by 55.0 MiB",
        "descriptors grew",
        "1 containers left",
    ]


@pytest.mark.campaign
@pytest.mark.docker
@pytest.mark.timeout(3600)
def test_ten_thousand_verdicts(base_image: str, tmp_path: Path) -> None:
    """Must show: memory within 50 MiB, descriptors and threads flat, 0 containers left."""
    assert measure_endurance.main(["--rows", str(tmp_path / "endurance.jsonl")]) == 0


@pytest.mark.campaign
@pytest.mark.docker
@pytest.mark.data
@pytest.mark.timeout(7200)
def test_a_thousand_patches_on_every_path(base_image: str, data_dir: Path) -> None:
    """Must show: strict and every quick path agree, or each disagreement is explained. Goes on where it was stopped."""
    folder = Path(os.environ.get("ACIDTEST_CAMPAIGN", "runs/campaign"))
    folder.mkdir(parents=True, exist_ok=True)
    rows, domains = folder / "agreement.jsonl", data_dir / "humaneval_domains_dev.jsonl"
    assert measure_agreement.main(["--rows", str(rows), "--domains", str(domains)]) == 0
    assert len(rows.read_text().splitlines()) >= 1000


@pytest.mark.campaign
@pytest.mark.docker
@pytest.mark.data
@pytest.mark.timeout(7200)
def test_patches_of_real_rows_on_every_path(sdist_image: Any, data_dir: Path) -> None:
    names = ["pallets__flask-5014", "django__django-16801", "pytest-dev__pytest-10051"]
    for name in names:
        sdist_image(name)
    folder = Path(os.environ.get("ACIDTEST_CAMPAIGN", "runs/campaign"))
    folder.mkdir(parents=True, exist_ok=True)
    argv = ["--rows", str(folder / "agreement_rows.jsonl"), "--docker-rows", str(data_dir)]
    assert measure_agreement.main([*argv, *[word for name in names for word in ("-t", name)]]) == 0
