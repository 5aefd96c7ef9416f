"""One small audit, made once: two hackable function tasks, kept in a run folder that tests copy."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.repair.repair import repair
from acidtest.verifiers.audit import audit


@pytest.fixture(scope="session")
def audited(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run folder with the audit of `toy/add_weak` and of a second task like it."""
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    folder = tmp_path_factory.mktemp("audited") / "run"
    result = audit(
        [task, replace(task, task_id="toy/add_again")],
        out=folder,
        sandbox="local",
        attackers=("mutants",),
        jobs=2,
    )
    assert [record.error for record in result.records] == ["", ""]
    assert len(result.hackable) == 2
    return folder


@pytest.fixture
def run_folder(audited: Path, tmp_path: Path) -> Path:
    """A copy of that run folder."""
    return Path(shutil.copytree(audited, tmp_path / "run"))


@pytest.fixture(scope="session")
def repaired(audited: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same audit, repaired once (the hardened suites not audited again)."""
    folder = Path(shutil.copytree(audited, tmp_path_factory.mktemp("repaired") / "run"))
    report = repair(folder, reaudit=False, jobs=2)
    assert len(report.repaired) == 2, report.lines()
    return folder


@pytest.fixture
def repaired_folder(repaired: Path, tmp_path: Path) -> Path:
    """A copy of that run folder."""
    return Path(shutil.copytree(repaired, tmp_path / "repaired"))
