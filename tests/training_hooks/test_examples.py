"""Every example is run, with the options a test needs; each is at most 20 lines of code."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "examples"
MINE = (
    "gym_episode",
    "shell_episode",
    "score_rollouts",
    "trl_train",
    "verl_rows",
    "prime_taskset",
    "openenv_client",
)


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"example_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def needs(library: str) -> pytest.MarkDecorator:
    return pytest.mark.skipif(importlib.util.find_spec(library) is None, reason=f"{library} is not installed")


@pytest.mark.parametrize("name", MINE)
def test_examples_are_short(name: str) -> None:
    lines = [line for line in (FOLDER / f"{name}.py").read_text().splitlines() if line.strip()]
    assert len(lines) <= 20, len(lines)


def test_gym_episode(capsys: pytest.CaptureFixture[str]) -> None:
    load("gym_episode").main(sandbox="local")
    assert "a + b: paid 1.0" in capsys.readouterr().out


def test_score_rollouts(capsys: pytest.CaptureFixture[str]) -> None:
    load("score_rollouts").main(sandbox="local")
    out = capsys.readouterr().out
    assert "[1.0, 0.0]" in out
    assert "patch_rejected" in out


@pytest.mark.docker
def test_shell_episode(engine: str, capsys: pytest.CaptureFixture[str]) -> None:
    load("shell_episode").main(sandbox="docker")
    assert "reward 1.0 valid True" in capsys.readouterr().out


@needs("trl")
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_trl_train(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, helper: Callable[[str], ModuleType]
) -> None:
    from trl import GRPOConfig

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("ACIDTEST_SANDBOX", "local")
    weak = helper("weak_add")
    model, tokenizer = helper("tiny_model").build([weak.GOLD, weak.GARBAGE])
    config = GRPOConfig(
        output_dir=str(tmp_path),
        max_steps=1,
        num_generations=4,
        per_device_train_batch_size=4,
        max_completion_length=1,
        use_cpu=True,
        bf16=False,
        report_to="none",
        save_strategy="no",
        log_completions=True,
    )
    load("trl_train").main(model, incidents=tmp_path / "i.jsonl", config=config, processing_class=tokenizer)
    assert list(tmp_path.glob("completions/*.parquet"))


def test_verl_rows(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    load("verl_rows").main(tmp_path / "rows.parquet")
    assert "pkg://acidtest.training_hooks.verl_reward" in capsys.readouterr().out
    row = pd.read_parquet(tmp_path / "rows.parquet").iloc[0]
    assert row["reward_model"]["ground_truth"] == row["extra_info"]["task_id"]


@needs("verifiers")
def test_prime_taskset(tmp_path: Path) -> None:
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "ACIDTEST_SANDBOX": "local"}
    command = [sys.executable, str(FOLDER / "prime_taskset.py")]
    done = subprocess.run(
        command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.startswith("toy/")


@needs("openenv")
def test_openenv_client_against_acidtest_serve(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command line's own server, in a process of its own, ended by SIGTERM."""
    env = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "PYTHONUNBUFFERED": "1"}
    command = [
        sys.executable,
        "-m",
        "acidtest.scripts.cli",
        "serve",
        "toy",
        "--port",
        "0",
        "--sandbox",
        "local",
    ]
    with subprocess.Popen(command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, text=True) as server:
        try:
            assert server.stdout is not None
            url = ""
            while not url:
                line = server.stdout.readline()
                assert line, "the server ended"
                found = re.search(r"http://\S+", line)
                url = found.group() if found else ""
            assert load("openenv_client").main(url) == 1.0
        finally:
            server.terminate()
            server.wait(30)
    assert "incident none" in capsys.readouterr().out
