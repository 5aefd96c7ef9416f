"""`files:DIR` end to end: ten HumanEval tasks and five Verified rows in Docker, three rounds, judge, witnesses, control."""

from __future__ import annotations

import contextlib
import importlib.util
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import AnswersPending
from acidtest.envs.ledger import Ledger
from acidtest.envs.verify import Verifier
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.open import open_llm
from acidtest.verifiers.llm.scripted import ScriptedModel, answer_files
from acidtest.verifiers.llm_audit import llm_audit
from acidtest.verifiers.llm_rates import rates, text
from acidtest.verifiers.llm_record import LLMAuditResult
from acidtest.verifiers.records import Standing
from acidtest.verifiers.source import SourceTree

pytestmark = [pytest.mark.campaign, pytest.mark.docker, pytest.mark.data]
spec = importlib.util.spec_from_file_location("files_script", Path(__file__).with_name("files_script.py"))
assert spec is not None
assert spec.loader is not None
script: Any = importlib.util.module_from_spec(spec)
sys.modules["files_script"] = script
spec.loader.exec_module(script)


def run(
    tasks: list[Any], model: ScriptedModel, verifier: Verifier, folder: Path, **options: Any
) -> list[LLMAuditResult]:
    """Sweep over the tasks, answer the files, again, as a person would; at most eight times."""
    found: dict[str, LLMAuditResult] = {}
    with CallStore(folder / "ledger.sqlite") as store:
        llm = open_llm(f"files:{folder / 'qa'}", store=store)
        for turn in range(8):
            started = time.monotonic()
            for task in tasks:
                if task.task_id not in found:
                    with contextlib.suppress(AnswersPending):
                        found[task.task_id] = llm_audit(task, verifier, llm, rounds=3, benign=1, **options)
            print(
                f"turn {turn}: {len(found)} of {len(tasks)} tasks done, {time.monotonic() - started:.1f} s",
                flush=True,
            )
            if len(found) == len(tasks):
                break
            with pytest.raises(AnswersPending):
                llm.flush()
            print(f"  {answer_files(folder / 'qa', model)} questions answered", flush=True)
    results = [found[task.task_id] for task in tasks]
    print(text(rates(results)), flush=True)
    return results


def test_ten_human_eval_tasks(engine: str, base_image: str, data_dir: Path, tmp_path: Path) -> None:
    tasks, rows = script.human_tasks(data_dir)
    model = ScriptedModel()
    with (
        Ledger(tmp_path / "verdicts.sqlite") as ledger,
        Verifier(sandbox="docker", ledger=ledger) as verifier,
    ):
        for task in tasks:
            script.human_script(task, rows[task.task_id], SourceTree(task), model)
        results = run(tasks, model, verifier, tmp_path, k=2)
    assert len(results) == 10
    for result in results:
        first = next(
            f
            for f in result.findings
            if f.candidate.wrong_behaviour == "returns None" and f.candidate.round == 1
        )
        assert first.standing is Standing.PROVEN, (result.task_id, first.reasons)
        assert result.control.called_wrong == 0
    assert sum(r.control.held for r in results) >= 9


def test_five_verified_rows(engine: str, sdist_image: Any, data_dir: Path, tmp_path: Path) -> None:
    tasks = script.row_tasks(data_dir)
    for task in tasks:
        sdist_image(task.task_id)
    model = ScriptedModel()
    with (
        Ledger(tmp_path / "verdicts.sqlite") as ledger,
        Verifier(sandbox="docker", ledger=ledger) as verifier,
    ):
        for task in tasks:
            script.row_script(task, SourceTree(task, verifier.backend), model)
        results = run(tasks, model, verifier, tmp_path, k=2)
    for result in results:
        standings = [f.standing for f in result.findings]
        assert standings[0] is Standing.PROVEN, (result.task_id, [f.reasons for f in result.findings])
        assert result.control.held == 1, result.notes
        assert all(s is Standing.DIFFERS for s in standings[1:]), result.task_id
