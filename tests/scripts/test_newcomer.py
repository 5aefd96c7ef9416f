"""What a newcomer types wrong gives one line and a documented exit code; an own data set goes the whole way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import acidtest as at

ROW = {
    "task_id": "mine/double",
    "prompt": 'def double(x: int) -> int:\n    """Twice x.\n\n    >>> double(3)\n    6\n    """\n',
    "files": {"solution.py": "def double(x: int) -> int:\n    raise NotImplementedError\n"},
    "gold_files": {"solution.py": "def double(x: int) -> int:\n    return 2 * x\n"},
    "suite": {
        "command": "python test_solution.py",
        "framework": "plain",
        "fail_to_pass": ["test_solution.py::test_check"],
        "test_files": {
            "test_solution.py": "from solution import double\n\n\ndef test_check():\n    assert double(2) == 4\n"
        },
    },
    "metadata": {"entry_point": "double", "solution_file": "solution.py"},
}


def typed(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """One command in a folder, without a terminal, 80 columns."""
    environment = {**os.environ, "ACIDTEST_SANDBOX": "local", "COLUMNS": "80"}
    environment["PYTHONPATH"] = str(Path(at.__file__).parents[1])
    command = [sys.executable, "-m", "acidtest.scripts.cli", *words]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


@pytest.mark.parametrize(
    ("files", "words", "code", "said"),
    [
        ({"a.jsonl": '{"task_id": '}, "validate a.jsonl", 3, "a.jsonl: line 1: not JSON"),
        ({"a.jsonl": "\n[1]\n"}, "validate a.jsonl", 3, "line 2: a row is a JSON object, not list"),
        ({"a.jsonl": ""}, "validate a.jsonl", 3, "no row in it"),
        ({"a.jsonl": '{"task_id": "a", "prompt": "p"}'}, "validate a.jsonl", 3, "line 1: no field 'suite'"),
        ({"r": "{}"}, "audit toy -t toy/add_weak --candidates r", 2, "r:1: a row needs a task_id"),
        ({}, "audit toy -t toy/add_weak --candidates none", 2, "none: No such file"),
        ({}, "audit toy -t toy/add_weak --attackers bogus", 2, "'bogus'"),
        ({"taken": ""}, "validate toy -t toy/add_weak --out taken/x", 2, "taken"),
    ],
)
def test_what_cannot_be_used_is_one_line(
    tmp_path: Path, files: dict[str, str], words: str, code: int, said: str
) -> None:
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    done = typed(tmp_path, *words.split())
    assert done.returncode == code, done.stderr
    assert said in done.stderr
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "runs").exists()


def test_an_own_data_set_is_audited_repaired_and_scored(tmp_path: Path) -> None:
    (tmp_path / "mine.jsonl").write_text(json.dumps(ROW) + "\n", encoding="utf-8")
    audited = typed(tmp_path, "audit", "mine.jsonl", "--out", "run", "-q")
    assert audited.returncode == 0, audited.stderr
    assert max(map(len, audited.stdout.splitlines())) <= 80
    repaired = typed(tmp_path, "repair", "run", "-q")
    assert repaired.returncode == 0, repaired.stderr
    assert "1 repaired" in repaired.stdout
    wrong = typed(tmp_path, "repair", "run", "--decision", "bogus")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
    unwritable = typed(tmp_path, "export", "run", "--out", "mine.jsonl/x")
    assert (unwritable.returncode, unwritable.stderr.count("\n")) == (2, 1)
    tasks = at.load_tasks(tmp_path / "mine.jsonl", audit=tmp_path / "run", hardened=tmp_path / "run")
    scorer = at.Scorer(tasks, sandbox="local")
    try:
        square, right = scorer.score(
            [("mine/double", f"def double(x):\n    return {body}\n") for body in ("x * x", "x + x")]
        )
    finally:
        scorer.close()
    assert (square.reward, right.reward) == (0.0, 1.0)
    assert square.incident is not None
