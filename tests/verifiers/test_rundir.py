"""A run directory resumes, refuses other options and a second writer, and survives a cut line."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from acidtest.envs.errors import ConfigError, RunConflict
from acidtest.envs.verdict import Notice
from acidtest.verifiers.rundir import RunDir


def test_records_come_back_and_a_cut_line_is_dropped(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "r", {"seed": 1}) as run:
        run.append("notices", Notice(kind="a"))
        run.append("notices", Notice(kind="b"))
    with (tmp_path / "r" / "notices.jsonl").open("a") as file:
        file.write('{"kind": "c", "pa')
    assert [n.kind for n in RunDir.read(tmp_path / "r").records("notices", Notice)] == ["a", "b"]
    with RunDir.create(tmp_path / "r", {"seed": 1}) as run:
        run.append("notices", Notice(kind="d"))
        assert [n.kind for n in run.records("notices", Notice)] == ["a", "b", "d"]


def test_other_options_are_refused_and_free_ones_are_not(tmp_path: Path) -> None:
    RunDir.create(tmp_path / "r", {"seed": 1, "jobs": 1}).close()
    RunDir.create(tmp_path / "r", {"seed": 1, "jobs": 2, "limit": 5}).close()
    with pytest.raises(RunConflict, match="seed: 1 there, 2 now"):
        RunDir.create(tmp_path / "r", {"seed": 2})
    RunDir.create(tmp_path / "r", {"seed": 1}).close()


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    with RunDir.create(tmp_path / "r", {}), pytest.raises(RunConflict, match="being written by process"):
        RunDir.create(tmp_path / "r", {})


def test_a_folder_without_a_run_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is no run directory"):
        RunDir.read(tmp_path)


FULL = """
import resource, sys
from acidtest.envs.errors import DiskFull
from acidtest.envs.verdict import Notice
from acidtest.verifiers.rundir import RunDir
with RunDir.create(sys.argv[1], {}) as run:
    run.append("notices", Notice(kind="a"))
    size = (run.path / "notices.jsonl").stat().st_size
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 40, resource.RLIM_INFINITY))
    try:
        run.append("notices", Notice(kind="b" * 200))
    except DiskFull as error:
        assert "notices.jsonl" in str(error)
    else:
        raise AssertionError("nothing was raised")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    run.append("notices", Notice(kind="c"))
"""


def test_a_line_that_does_not_fit_leaves_no_part_of_it(tmp_path: Path) -> None:
    """Cut in the middle of a write, like on a full disk: the next line must not be glued to the rest of it."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path / "r")], env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert [n.kind for n in RunDir.read(tmp_path / "r").records("notices", Notice)] == ["a", "c"]
