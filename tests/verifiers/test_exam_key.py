"""A kept examination is taken up again only for the same rollouts, on the same backend, under the same limits."""

from __future__ import annotations

from pathlib import Path

from acidtest.envs.load import load_tasks
from acidtest.envs.protocols import Limits
from acidtest.envs.verify import Verifier
from acidtest.verifiers.audit_config import AuditConfig
from acidtest.verifiers.audit_task import Auditor


def test_what_an_examination_depends_on_is_in_its_key(tmp_path: Path) -> None:
    (task,) = load_tasks("toy", task_ids=["toy/add_weak"])
    rollouts = tmp_path / "rollouts.jsonl"
    rollouts.write_text("{}\n")
    config = AuditConfig(candidates=str(rollouts))
    with Verifier(sandbox="local") as verifier:
        first = Auditor(config, verifier, None)._exam_key(task, ())
        assert Auditor(config, verifier, None)._exam_key(task, ()) == first
        rollouts.write_text('{"other": 1}\n')
        second = Auditor(config, verifier, None)._exam_key(task, ())
    with Verifier(sandbox="local", limits=Limits(pids=100)) as other:
        third = Auditor(config, other, None)._exam_key(task, ())
    assert len({first, second, third}) == 3
