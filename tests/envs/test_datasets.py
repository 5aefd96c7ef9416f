"""Conformance: what every file of `envs/datasets/` must do, and the particulars of each."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from acidtest.envs import registry
from acidtest.envs.datasets import _eval_script, _swe, swe_bench
from acidtest.envs.errors import AcidtestError, ConfigError, TaskError
from acidtest.envs.load import adapter_for, load_tasks
from acidtest.envs.task import Suite, Task

EXAMPLES = Path(__file__).resolve().parents[2] / "examples" / "tasks.jsonl"
SAMPLES = {
    "toy": "toy",
    "humaneval": "humaneval",
    "jsonl": f"jsonl:{EXAMPLES}",
    "mbpp": "mbpp:{data}/mbpp_sanitized.json",
    "swe-bench": "swe-bench-verified:{data}/swebench_verified.parquet",
    "sdists": "sdists:{data}",
}
"""A source for each adapter; `{data}` is the data folder. Adapters tested in a file of their own give None."""
ELSEWHERE = {"r2e-gym", "swe-gym"}


def sample(name: str, request: pytest.FixtureRequest) -> str:
    if name in ELSEWHERE and name not in SAMPLES:
        pytest.skip("tested in its own file")
    source = SAMPLES[name]
    return source.format(data=request.getfixturevalue("data_dir")) if "{data}" in source else source


@pytest.mark.parametrize("name", registry.names("acidtest.envs.datasets"))
def test_every_adapter_conforms(name: str, request: pytest.FixtureRequest) -> None:
    """Ids unique, records round-trip, gold is a diff, tests are given, prompts are not empty, two loads agree."""
    source = sample(name, request)
    tasks = load_tasks(source, limit=60)
    assert tasks
    assert len({t.task_id for t in tasks}) == len(tasks)
    assert tasks[:5] == load_tasks(source, limit=5)
    for task in tasks:
        assert Task.from_json(task.to_json()) == task
        assert task.prompt.strip()
        assert task.gold_patch.startswith("diff --git ")
        assert task.suite.fail_to_pass
        assert task.suite.test_files or task.suite.test_patch
        assert task.image or task.files
        assert task.timeout_s > 0
        assert task.workdir.startswith("/")
        json.dumps(dict(task.metadata))


def test_a_path_picks_its_adapter(data_dir: Path) -> None:
    def name(module: ModuleType) -> str:
        return module.__name__.rsplit(".", 1)[-1]

    assert name(adapter_for(data_dir)[0]) == "sdists"
    assert name(adapter_for(data_dir / "swebench_verified.parquet")[0]) == "swe_bench"
    assert name(adapter_for(data_dir / "mbpp_sanitized.json")[0]) == "mbpp"
    assert name(adapter_for(EXAMPLES)[0]) == "jsonl"
    with pytest.raises(ConfigError, match="no data set adapter knows it"):
        adapter_for(data_dir / "humaneval_domains_dev.jsonl")
    with pytest.raises(ConfigError, match=r"No file or folder 'nowhere/tasks.jsonl'"):
        adapter_for("nowhere/tasks.jsonl")


def test_verified_loads_whole_and_fast(data_dir: Path) -> None:
    start = time.perf_counter()
    tasks = load_tasks("swe-bench-verified:" + str(data_dir / "swebench_verified.parquet"))
    assert time.perf_counter() - start < 3
    assert len(tasks) == 500
    django = next(t for t in tasks if t.task_id == "django__django-16801")
    assert django.suite.framework == "django"
    assert django.suite.command.endswith("--settings=test_sqlite --parallel 1 model_fields.test_imagefield")
    assert django.image == "swebench/sweb.eval.x86_64.django_1776_django-16801:latest"
    assert all(t.metadata["difficulty"] for t in tasks)


def test_sdists_take_table_environment_and_exclusions(data_dir: Path) -> None:
    tasks = {t.task_id: t for t in load_tasks("sdists:" + str(data_dir))}
    assert len(tasks) == 60
    flask, sympy = tasks["pallets__flask-5014"], tasks["sympy__sympy-24443"]
    assert flask.image == "acidtest/sdist.pallets__flask-5014:latest"
    assert flask.suite.env["PYTHONPATH"] == "/testbed/src"
    assert len(flask.suite.exclude_ids) == 2
    assert sympy.suite.env["SYMPY_USE_CACHE"] == "no"
    assert "sympy.test(" in sympy.suite.command


def test_exclusions_join_a_suite(tmp_path: Path) -> None:
    file = tmp_path / "exclusions.json"
    file.write_text(json.dumps({"toy/shop": ["tests/test_cart.py::test_empty_cart"]}))
    (task,) = load_tasks("toy", task_ids=["toy/shop"], exclusions=file)
    assert "tests/test_cart.py::test_empty_cart" not in task.suite.expected_ids
    file.write_text('{"toy/shop": "x"}')
    with pytest.raises(ConfigError, match="toy/shop is no list of ids"):
        load_tasks("toy", exclusions=file)


def test_ids_as_list_or_json_string() -> None:
    row = _row()
    as_text = swe_bench.task_of({**row, "FAIL_TO_PASS": json.dumps(row["FAIL_TO_PASS"])}, "row 0")
    assert as_text == swe_bench.task_of(row, "row 0")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"FAIL_TO_PASS": "[1, 2"},
            r"row 7 \(x__y-1\): field 'FAIL_TO_PASS' is neither a list nor the JSON of one",
        ),
        ({"FAIL_TO_PASS": []}, r"row 7 \(x__y-1\): field 'FAIL_TO_PASS' is empty. Drop the row"),
        ({"PASS_TO_PASS": [1]}, r"field 'PASS_TO_PASS' is no list of strings"),
        ({"patch": None}, r"row 7 \(x__y-1\): no field 'patch'. Add it"),
        ({"patch": "hello"}, r"field 'patch' is no git diff"),
        ({"problem_statement": 3}, r"field 'problem_statement' is int, not str"),
        ({"instance_id": None}, r"row 7: no field 'instance_id'"),
        ({"eval_script": "pytest"}, r"field 'eval_script': no test command between"),
    ],
)
def test_a_malformed_row_is_one_clear_line(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        swe_bench.task_of({**_row(), **change}, "row 7")
    assert "\n" not in str(caught.value)
    assert caught.value.exit_code == 3


def _row() -> dict[str, Any]:
    diff = "diff --git a/{0} b/{0}\n--- a/{0}\n+++ b/{0}\n@@ -1 +1 @@\n-a\n+b\n"
    return {
        "repo": "x/y",
        "instance_id": "x__y-1",
        "base_commit": "0" * 40,
        "patch": diff.format("y/a.py"),
        "test_patch": diff.format("tests/test_a.py") + diff.format("tests/data.json"),
        "problem_statement": "It is broken.",
        "version": "1.0",
        "FAIL_TO_PASS": ["tests/test_a.py::test_b"],
        "PASS_TO_PASS": [],
    }


SCRIPT = """#!/bin/bash
set -uxo pipefail
source /opt/miniconda3/bin/activate
conda activate testbed
cd /testbed
export LANG=en_US.UTF-8
git config --global --add safe.directory /testbed
cd /testbed
git status
git -c core.fileMode=false diff abc
source /opt/miniconda3/bin/activate
python -m pip install -e .[test] --verbose
sed -i 's/pytest/pytest -rA/' tox.ini
git checkout abc tests/test_a.py
git apply -v - <<'EOF_114'
diff --git a/tests/test_a.py b/tests/test_a.py
+pip install -e .
EOF_114
: '>>>>> Start Test Output'
pytest -rA \\
  tests/test_a.py
: '>>>>> End Test Output'
git checkout abc tests/test_a.py
"""


def test_eval_script_setup_is_honoured_and_its_verdict_is_not() -> None:
    task = swe_bench.task_of({**_row(), "eval_script": SCRIPT, "image": "some/image:1"}, "row 0")
    assert task.image == "some/image:1"
    assert task.suite.command.split("\n") == [
        "source /opt/miniconda3/bin/activate",
        "conda activate testbed",
        "cd /testbed",
        "export LANG=en_US.UTF-8",
        "sed -i 's/pytest/pytest -rA/' tox.ini",
        "pytest -rA    tests/test_a.py",
    ]
    build = _row()["patch"].replace("y/a.py", "setup.py")
    rebuilt = swe_bench.task_of({**_row(), "patch": build, "eval_script": SCRIPT}, "row 0")
    assert "python -m pip install -e .[test] --verbose" in rebuilt.suite.command
    assert _eval_script.split(SCRIPT).test == "pytest -rA    tests/test_a.py"


def test_directives_leave_out_data_and_deleted_files() -> None:
    row = _row()
    deleted = "diff --git a/tests/old.py b/tests/old.py\ndeleted file mode 100644\n--- a/tests/old.py\n+++ /dev/null\n"
    assert _swe.directives("x/y", row["test_patch"] + deleted) == ["tests/test_a.py"]
    assert _swe.directives("django/django", row["test_patch"]) == ["test_a"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", r"tasks.jsonl: line 2: not JSON"),
        ("[1]", r"tasks.jsonl: line 2: a row is a JSON object, not list"),
        ('{"task_id": "a"}', r"tasks.jsonl: line 2: no field 'prompt'"),
        ("suite.command", r"line 2: no field 'suite.command'. Add it"),
        ("extra", r"line 2: unknown field 'colour'. Put what the schema does not name into 'metadata'"),
        ("type", r"line 2: field 'timeout_s': Expected `float`, got `str`"),
        ("gold", r"line 2: no field 'gold_patch' \(a git diff\) or 'gold_files'"),
        ("twice", r"task id 'example/clamp' comes twice"),
    ],
)
def test_jsonl_errors_name_file_line_and_field(tmp_path: Path, line: str, message: str) -> None:
    good = json.loads(EXAMPLES.read_text().splitlines()[0])
    row = json.loads(json.dumps(good)) | {"task_id": "other"}
    if line == "suite.command":
        del row["suite"]["command"]
    elif line == "extra":
        row["colour"] = "red"
    elif line == "type":
        row["timeout_s"] = "long"
    elif line == "gold":
        del row["gold_files"]
    elif line == "twice":
        row["task_id"] = "example/clamp"
    text = line if line[0] in "{[" else json.dumps(row)
    file = tmp_path / "tasks.jsonl"
    file.write_text(json.dumps(good) + "\n" + text + "\n")
    with pytest.raises(AcidtestError, match=message) as caught:
        load_tasks(file)
    assert "\n" not in str(caught.value)


def test_a_row_that_omits_defaults_is_the_task_that_spells_them_out(tmp_path: Path) -> None:
    suite = {
        "command": "python test_solution.py",
        "framework": "plain",
        "fail_to_pass": ["test_solution.py::test_check"],
        "test_files": {"test_solution.py": "def test_check():\n    pass\n"},
    }
    row = {"task_id": "a", "prompt": "p", "files": {"solution.py": "x = 1\n"}, "suite": suite}
    row["gold_files"] = {"solution.py": "x = 2\n"}
    file = tmp_path / "mine.jsonl"
    file.write_text(json.dumps(row) + "\n", encoding="utf-8")
    [task] = load_tasks(file)
    spelled = Suite(
        command=suite["command"],  # type: ignore[arg-type]
        framework="plain",
        fail_to_pass=("test_solution.py::test_check",),
        test_files=suite["test_files"],  # type: ignore[arg-type]
    )
    assert task.suite == spelled
    assert task.suite.digest == spelled.digest == Suite.from_json(task.suite.to_json()).digest
    assert Task.from_json(task.to_json()).digest == task.digest
