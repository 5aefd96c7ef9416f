"""`vf-validate` and `vf-eval` over our Taskset, with a loopback model server. Tested with verifiers 0.4.0."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("verifiers") is None or importlib.util.find_spec("verifiers.v1") is None,
    reason="verifiers (Prime Intellect) is not installed",
)


def run(tmp_path: Path, tool: str, *args: str) -> list[dict[str, Any]]:
    """Run their command line; gives the rows of its results or traces file."""
    env = {
        **os.environ,
        "PYTHONPATH": str(ROOT / "src"),
        "DUMMY_KEY": "x",
        "HOME": str(tmp_path),
        "ACIDTEST_SANDBOX": "local",
    }
    command = [
        str(Path(sys.executable).with_name(tool)),
        "acidtest-verifiers",
        *args,
        "-o",
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    name = "results.jsonl" if tool == "vf-validate" else "traces.jsonl"
    (file,) = (tmp_path / "out").glob(f"*/{name}")
    return [json.loads(line) for line in file.read_text().splitlines()]


def test_vf_validate_accepts_gold_and_refuses_the_untouched_task(tmp_path: Path) -> None:
    rows = run(
        tmp_path,
        "vf-validate",
        "--taskset.source",
        "toy",
        "--taskset.limit",
        "2",
        "--runtime.type",
        "subprocess",
    )
    assert [(row["valid"], row["reason"]) for row in rows] == [(True, "valid")] * 2
    assert all(row[check]["valid"] for row in rows for check in ("gold", "noop"))


def test_vf_eval_pays_by_verdict_and_logs_flags(tmp_path: Path, helper: Callable[[str], ModuleType]) -> None:
    """A model that always answers a*b: the sound suite refuses it, the weak one pays."""
    with helper("model_server").serving(
        lambda prompt: "```python\ndef add(a, b):\n    return a * b\n```"
    ) as url:
        rows = run(
            tmp_path,
            "vf-eval",
            *(
                "--env.taskset.source",
                "toy",
                "--env.taskset.limit",
                "2",
                "--env.taskset.allow-hackable",
                "true",
            ),
            *("--env.agent.runtime.type", "subprocess", "-m", "tiny", "--no-push"),
            *("--client.base-url", url, "--client.api-key-var", "DUMMY_KEY"),
        )
    traces = {row["task"]["data"]["task_id"]: row["traces"][0] for row in rows}
    paid = {task: trace["rewards"]["resolved"] for task, trace in traces.items()}
    values = {task: reward["score"] if isinstance(reward, dict) else reward for task, reward in paid.items()}
    assert values == {"toy/add_sound": 0.0, "toy/add_weak": 1.0}
    info = traces["toy/add_sound"]["info"]["acidtest"]
    assert (info["outcome"], info["form"]) == ("unresolved", "code")
    assert not any("assert" in json.dumps(row["task"]) for row in rows), "no test goes over the wire"


def test_their_verifiers_is_imported_not_our_folder() -> None:
    code = "import verifiers, acidtest.verifiers.wrapper as ours; print(verifiers.__file__, ours.__file__, sep='\\n')"
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=True
    )
    theirs, ours = done.stdout.split()
    assert "site-packages" in theirs
    assert "site-packages" not in ours or "acidtest" in ours
