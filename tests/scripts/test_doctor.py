"""doctor says what is there, what is not, and what to do about each."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acidtest.scripts.cli import build
from acidtest.scripts.doctor import Level, diagnose


def by_name(**options: bool) -> dict[str, tuple[Level, str, str]]:
    return {f.name: (f.level, f.detail, f.mend) for f in diagnose(**options)}


def test_whatever_is_not_well_has_a_mend() -> None:
    found = diagnose()
    assert [f for f in found if f.level is not Level.OK and not f.mend] == []
    assert {"python", "packages", "disk", "engine", "bubblewrap", "ANTHROPIC_API_KEY", "clock"} <= {
        f.name for f in found
    }


def test_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    level, detail, mend = by_name()["engine"]
    assert (level, "none.sock" in detail, "DOCKER_HOST" in mend) == (Level.WARN, True, True)
    assert by_name(docker_required=True)["engine"][0] is Level.FAIL
    runner = CliRunner()
    assert runner.invoke(build(), ["doctor", "--docker", "--json"]).exit_code == 4
    assert runner.invoke(build(), ["doctor"]).exit_code == 0


def test_a_file_that_is_no_engine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dead.sock").touch()
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/dead.sock")
    assert "start the engine" in by_name()["engine"][2]


def test_keys_are_reported_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-secret")
    assert by_name()["ANTHROPIC_API_KEY"] == (Level.OK, "set", "")
    out = CliRunner().invoke(build(), ["doctor", "--json"]).output
    assert "sk-secret" not in out


@pytest.mark.docker
def test_with_an_engine(engine: str) -> None:
    found = by_name(docker_required=True)
    assert found["engine"][0] is Level.OK
    assert engine in found["engine"][1]
    assert {"storage driver", "cgroup", "architecture", "engine clock", "base image", "leftovers"} <= set(
        found
    )
    out = json.loads(CliRunner().invoke(build(), ["doctor", "--json"]).output)
    assert {"name", "level", "detail", "mend"} == set(out[0])
