"""The audit after a repair asks the repair's own model, and none where the repair was given none."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidtest.envs.errors import AnswersPending
from acidtest.envs.load import load_tasks
from acidtest.envs.verify import Verifier
from acidtest.repair.reaudit import audited_again
from acidtest.verifiers.audit_config import AuditConfig
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.files import FilesLLM


def test_the_first_audits_model_is_not_asked_behind_the_repairs_back(tmp_path: Path) -> None:
    """It has neither ceiling nor flush there: a folder of questions used to be waited for without end."""
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    config = AuditConfig(llm=f"files:{tmp_path / 'first'}", k=1, rounds=1, benign=0, attackers=("mutants",))
    with Verifier(sandbox="local") as verifier:
        record = audited_again(task, task.suite, verifier, config, 2)
        assert record.llm == {}
        assert not (tmp_path / "first").exists()
        with CallStore(":memory:") as store:
            model = FilesLLM(tmp_path / "own", store)
            with pytest.raises(AnswersPending):
                audited_again(task, task.suite, verifier, config, 2, model)
            with pytest.raises(AnswersPending, match="questions are waiting"):
                model.flush()
            model.close()
    assert (tmp_path / "own" / "requests.jsonl").read_text()
    assert not (tmp_path / "first").exists()
