"""Files of proposals, merging accepted ones, recomputing expectations, and the overlay export."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import ConfigError, TaskError
from acidtest.envs.patch import Patch
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.repair.bench import reversed_tests
from acidtest.repair.gates.trial import AddedRun
from acidtest.repair.lock import Lock, load_lock, write_lock
from acidtest.repair.merge import merge
from acidtest.repair.overlay import apply_overlay, export_overlay, overlay_rows
from acidtest.repair.proposals import read_proposals, write_proposals
from acidtest.repair.recompute import comparisons, recompute
from acidtest.repair.records import HardenedSuite
from acidtest.repair.render import Case, render

TASK = Task(
    task_id="toy/add",
    dataset="toy",
    prompt="p",
    suite=Suite(
        command="python test_solution.py",
        framework="plain",
        test_files={
            "test_solution.py": "from solution import add\n\ndef test_check():\n    assert add(2, 2) == 4\n"
        },
        fail_to_pass=("test_solution.py::test_check",),
    ),
    gold_patch="gold",
    files={"solution.py": "def add(a, b):\n    raise NotImplementedError\n"},
    metadata={"entry_point": "add", "solution_file": "solution.py"},
)


def test_a_file_of_proposals_reads_back_as_written(tmp_path: Path) -> None:
    file = tmp_path / "p.jsonl"
    text = "def test_a():\n    assert add(1, 3) == 4\n\n\ndef test_b():\n    assert add(0, 5) == 5\n"
    line = {
        "task_id": "toy/add",
        "files": {"test_h.py": text},
        "wrong": {"product": "def add(a, b):\n    return a * b\n"},
        "expect": "gold passes",
    }
    file.write_text(json.dumps(line) + "\n\n")
    (read,) = read_proposals(file)
    proposal = read.proposal(TASK)
    assert proposal.added.command == "python test_h.py"
    assert proposal.added.test_ids == ("test_h.py::test_a", "test_h.py::test_b")
    (candidate,) = read.wrong_candidates(TASK)
    assert "+    return a * b" in candidate.patch.text
    write_proposals(file, [read])
    assert read_proposals(file) == [read]


@pytest.mark.parametrize(
    "text", ["{", '{"files": {}}', '{"task_id": "t"}', '{"task_id": 3, "files": {"a": "b"}}']
)
def test_a_bad_line_is_named(tmp_path: Path, text: str) -> None:
    file = tmp_path / "p.jsonl"
    file.write_text(text + "\n")
    with pytest.raises(TaskError, match=r"p\.jsonl:1"):
        read_proposals(file)


def added(command: str, path: str, *names: str, framework: str = "plain") -> AddedTests:
    return AddedTests(
        command=command,
        framework=framework,
        test_files={path: "x = 1\n"},
        test_ids=tuple(f"{path}::{name}" for name in names),
    )


def test_merging_runs_both_with_one_command() -> None:
    both = merge(added("python a.py", "a.py", "test_1"), added("python b.py", "b.py", "test_2"))
    assert both.command == "python a.py b.py"
    assert both.test_ids == ("a.py::test_1", "b.py::test_2")
    django = "python tests/runtests.py --parallel 1"
    labels = merge(added(f"{django} x.one", "x/one.py", "t"), added(f"{django} x.two", "x/two.py", "t"))
    assert labels.command == f"{django} x.one x.two"


def test_a_rewritten_file_replaces_the_earlier_one() -> None:
    later = added("python a.py", "a.py", "test_2")
    assert merge(added("python a.py", "a.py", "test_1"), later) == later


def test_frameworks_are_not_mixed() -> None:
    with pytest.raises(ConfigError):
        merge(
            added("python a.py", "a.py", "t"), added("python -m pytest b.py", "b.py", "t", framework="pytest")
        )


def test_test_functions_are_reversed_and_the_rest_stays() -> None:
    text = "import x\n\n\ndef test_a():\n    pass\n\n\nHELP = 1\n\n\n@mark\ndef test_b():\n    pass\n\n\ndef test_c():\n    pass\n"
    turned = reversed_tests(text)
    assert [line for line in turned.splitlines() if line] == [
        "import x",
        "def test_c():",
        "    pass",
        "HELP = 1",
        "@mark",
        "def test_b():",
        "    pass",
        "def test_a():",
        "    pass",
    ]
    assert reversed_tests("def test_(:") == "def test_(:"


def test_comparisons_with_a_literal_are_found() -> None:
    text = (
        "def test_a(self):\n    assert add(1, 2) == 4\n    assert 5 == add(2, 2)\n    assert add(1, 1) == other()\n"
        "    self.assertEqual(add(1, 1), [1, 'ä'])\n    assert add(1, 1) != 3\n"
    )
    assert [(c.computed, c.expected) for c in comparisons(text)] == [
        ("add(1, 2)", "4"),
        ("add(2, 2)", "5"),
        ("add(1, 1)", "[1, 'ä']"),
    ]


@dataclass
class DirectBench:
    """Runs the files with this interpreter in a folder where the gold solution lies."""

    folder: Path
    task: Task = TASK

    def run(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> AddedRun:
        for path, text in added.test_files.items():
            (self.folder / path).write_text(text)
        done = subprocess.run(
            [sys.executable, "-B", *added.test_files],
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        outcome = Outcome.RESOLVED if done.returncode == 0 else Outcome.UNRESOLVED
        return AddedRun(outcome=outcome, log=done.stderr)

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"{name} is not needed here")


def test_wrong_expectations_are_taken_from_gold(tmp_path: Path) -> None:
    (tmp_path / "solution.py").write_text("def add(a, b):\n    return a + b\n")
    text = (
        "from __future__ import annotations\nfrom solution import add\n\n\ndef test_a():\n    assert add(1, 3) == 5\n"
        "    assert 'ä' + str(add(1, 1)) == 'ä3'; assert add(2, 2) == 4\n\n\ntest_a()\n"
    )
    tests = replace(added("python t.py", "t.py", "test_a"), test_files={"t.py": text})
    bench = DirectBench(tmp_path)
    assert bench.run(Patch(), tests).outcome is Outcome.UNRESOLVED
    mended, changes = recompute(bench, tests)
    assert sorted(changes.values()) == ["'ä2'", "4"]
    assert "assert add(1, 3) == 4" in mended.test_files["t.py"]
    assert bench.run(Patch(), mended).outcome is Outcome.RESOLVED


def entry(task: Task, tests: AddedTests) -> HardenedSuite:
    suite = replace(task.suite, added=tests)
    return HardenedSuite(
        task_id=task.task_id,
        original_digest=task.suite.digest,
        hardened_digest=suite.digest,
        image_digest="",
        suite=suite,
        files={},
    )


def overlay_of(tests: AddedTests) -> dict[str, Any]:
    (row,) = overlay_rows(Lock({TASK.task_id: entry(TASK, tests)}))
    return json.loads(json.dumps(row))  # type: ignore[no-any-return]


def test_overlay_on_a_humaneval_row_refuses_what_the_added_tests_refuse() -> None:
    overlay = overlay_of(
        render(TASK, [Case(call="add(1, 3)", expected="4"), Case(call="add(0.5, 1)", expected="1.5")])
    )
    row = {
        "task_id": "x",
        "entry_point": "add",
        "test": "def check(candidate):\n    assert candidate(2, 2) == 4\n",
    }
    harder = apply_overlay(row, overlay)["test"]
    for program, passes in (("a + b", True), ("a * b", False)):
        space: dict[str, Any] = {}
        exec(f"def add(a, b):\n    return {program}\n{harder}", space)
        if passes:
            space["check"](space["add"])
        else:
            with pytest.raises(AssertionError):
                space["check"](space["add"])


def test_overlay_on_swe_bench_r2e_and_mbpp_rows() -> None:
    overlay = overlay_of(render(TASK, [Case(call="add(1, 3)", expected="4")]))
    swe = apply_overlay({"FAIL_TO_PASS": '["a"]', "test_patch": "x"}, overlay)
    assert "test_hardened_toy_add.py::test_add_1_3" in json.loads(swe["FAIL_TO_PASS"])
    assert "+++ b/test_hardened_toy_add.py" in swe["test_patch"]
    r2e = apply_overlay({"expected_output_json": '{"T.t": "PASSED"}'}, overlay)
    assert json.loads(r2e["expected_output_json"]) == {"T.t": "PASSED", "test_add_1_3": "PASSED"}
    mbpp = apply_overlay({"test_list": ["assert add(2, 2) == 4"]}, overlay)
    assert mbpp["test_list"] == ["assert add(2, 2) == 4", "assert add(1, 3) == 4"]
    with pytest.raises(ConfigError):
        apply_overlay({"question": "?"}, overlay)


def test_overlay_files(tmp_path: Path) -> None:
    import pyarrow.parquet as pq

    from acidtest.repair.lock import file_digest, task_digest

    tests = render(TASK, [Case(call="add(1, 3)", expected="4")])
    held = replace(
        entry(TASK, tests),
        files={path: file_digest(text) for path, text in tests.test_files.items()},
        task_digest=task_digest(TASK),
    )
    write_lock(tmp_path, [held])
    lock = load_lock(tmp_path)
    assert export_overlay(lock, tmp_path / "o.jsonl") == 1
    assert export_overlay(lock, tmp_path / "o.parquet") == 1
    row = json.loads((tmp_path / "o.jsonl").read_text())
    flat = pq.read_table(tmp_path / "o.parquet").to_pylist()[0]
    assert json.loads(flat["added_files"]) == row["added_files"]
    with pytest.raises(ConfigError):
        export_overlay(lock, tmp_path / "o.xml")
