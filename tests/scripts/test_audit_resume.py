"""`audit --resume` goes on with the tasks that the run was begun with."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from acidtest.envs.errors import ConfigError
from acidtest.scripts.cli import build
from acidtest.scripts.cmd_audit import selected
from acidtest.verifiers.audit import Audit
from acidtest.verifiers.rundir import RunDir


def run(*words: str) -> None:
    made = CliRunner().invoke(build(), ["audit", *words, "--quiet", "--json"])
    assert made.exit_code == 0, made.output


def test_a_run_of_some_tasks_stays_one(tmp_path: Path) -> None:
    out = str(tmp_path / "run")
    run("toy", "--limit", "1", "--sandbox", "local", "--attackers", "", "--out", out)
    first = [record.task_id for record in Audit.read(out).records]
    assert len(first) == 1
    run("--resume", out)
    assert [record.task_id for record in Audit.read(out).records] == first
    assert RunDir.read(out).config["limit"] == 1
    run("--resume", out, "--task", "toy/too_narrow")
    assert [record.task_id for record in Audit.read(out).records] == [*first, "toy/too_narrow"]
    assert RunDir.read(out).config["task_ids"] == ["toy/too_narrow"]


@pytest.mark.parametrize(
    ("given", "then"),
    [
        ({}, {"split": "test", "limit": 5, "task_ids": None}),
        ({"limit": 9}, {"split": "test", "limit": 9, "task_ids": None}),
        ({"task_ids": ["a"]}, {"split": "test", "limit": None, "task_ids": ["a"]}),
        ({"split": "dev"}, {"split": "dev", "limit": 5, "task_ids": None}),
    ],
)
def test_what_is_given_now_replaces_what_is_held(given: dict[str, Any], then: dict[str, Any]) -> None:
    asked = {"split": None, "limit": None, "task_ids": None} | given
    assert selected({"split": "test", "limit": 5, "seed": 3}, **asked) == then
    assert selected({}, **asked) == asked


def test_all_belongs_to_resume() -> None:
    made = CliRunner().invoke(build(), ["audit", "toy", "--all"])
    assert isinstance(made.exception, ConfigError)
