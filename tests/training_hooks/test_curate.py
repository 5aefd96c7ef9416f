"""Curated tasks: what is dropped and why, hardened suites swapped in, wrappers composed, rows for trainers."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import acidtest as at
from acidtest.envs.errors import ConfigError, LockError
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.envs.task import AddedTests
from acidtest.repair.lock import Lock, write_lock
from acidtest.repair.records import HardenedSuite
from acidtest.repair.wrapper import HardenedSuiteWrapper
from acidtest.training_hooks.curate import REFUSED, load_tasks
from acidtest.training_hooks.datasets import rows_of
from acidtest.verifiers.audit_record import AuditRecord
from acidtest.verifiers.audit_task import finish
from acidtest.verifiers.eqs import PoolPoint, Score
from acidtest.verifiers.records import Candidate, Decision, Family, Finding, Standing
from acidtest.verifiers.wrapper import AuditWrapper

ADDED = AddedTests(
    command="python test_added.py",
    framework="plain",
    test_files={
        "test_added.py": "from solution import add\n\n\ndef test_more():\n    assert add(2, 3) == 5\n"
    },
    test_ids=("test_added.py::test_more",),
)
EXPLOIT = at.Patch("--- a/solution.py\n+++ b/solution.py\n@@ -1 +1 @@\n-a\n+b\n")


def audited(
    task_id: str, flags: tuple[str, ...] = (), findings: tuple[Finding, ...] = (), **more: Any
) -> AuditRecord:
    return AuditRecord(task_id=task_id, flags=flags, findings=findings, **more)


def scored(eqs: float | None, decision: Decision = Decision.KEEP, firm: bool = True) -> Score:
    return Score(eqs=eqs, eqs_low=0, eqs_high=1, eqs_complete=False, decision=decision, decision_firm=firm)


def finding(task: at.Task) -> Finding:
    candidate = Candidate(
        task_id=task.task_id, patch=EXPLOIT, kind="S21", family=Family.EXPLOIT, origin="test"
    )
    verdict = at.Verdict(
        task_id=task.task_id,
        patch_digest=EXPLOIT.digest,
        suite_digest="s",
        outcome=at.Outcome.RESOLVED,
        original_outcome=at.Outcome.RESOLVED,
    )
    return Finding(candidate=candidate, verdict=verdict, standing=Standing.PROVEN)


def toy() -> dict[str, at.Task]:
    return {task.task_id.removeprefix("toy/"): task for task in load_tasks("toy")}


def lock_of(task: at.Task, folder: Path) -> Lock:
    suite = replace(task.suite, added=ADDED)
    from acidtest.repair.lock import file_digest

    entry = HardenedSuite(
        task_id=task.task_id,
        original_digest=task.suite.digest,
        hardened_digest=suite.digest,
        image_digest="",
        suite=suite,
        files={path: file_digest(text) for path, text in ADDED.test_files.items()},
    )
    return write_lock(folder, [entry])


def records() -> list[AuditRecord]:
    tasks = toy()
    return [
        audited("toy/add_sound", score=scored(0.9)),
        audited(
            "toy/add_weak",
            ("hackable", "weak_tests"),
            (finding(tasks["add_weak"]),),
            score=scored(0.5, Decision.FIX),
        ),
        audited("toy/broken_gold", ("broken_gold",), broken="broken_gold"),
        audited("toy/flaky", ("flaky",), score=scored(0.8, firm=False)),
        audited("toy/slow", score=scored(None, Decision.UNDECIDED, firm=False)),
        audited("toy/tamperable", ("tamperable:R01",), score=scored(0.75)),
        audited("toy/two_paths", error="engine lost"),
    ]


def names(tasks: list[at.Task]) -> set[str]:
    return {task.task_id.removeprefix("toy/") for task in tasks}


def test_without_an_audit_everything_is_there() -> None:
    tasks = load_tasks("toy")
    assert len(tasks) == len(tasks.report.kept) >= 8
    assert tasks.report.dropped == {}


def test_the_report_says_what_was_dropped_and_why() -> None:
    tasks = load_tasks("toy", audit=records())
    assert names(tasks) == {"add_sound", "flaky", "slow", "tamperable"}
    why = tasks.report.dropped
    assert why["toy/add_weak"] == REFUSED
    assert why["toy/broken_gold"] == "broken task (broken_gold)"
    assert why["toy/two_paths"] == "not audited", "an audit that infrastructure cut short is none"
    assert "dropped 1: hackable and not hardened (toy/add_weak)" in str(tasks.report)


@pytest.mark.parametrize(
    ("options", "kept"),
    [
        ({"min_eqs": 0.75}, {"add_sound", "flaky", "tamperable"}),
        ({"min_eqs": 0.76}, {"add_sound", "flaky"}),
        ({"firm": True}, {"add_sound", "tamperable"}),
        ({"decision": "keep"}, {"add_sound", "flaky", "tamperable"}),
        ({"decision": ["FIX"], "allow_hackable": True}, {"add_weak"}),
        ({"flags": ["!flaky"]}, {"add_sound", "slow", "tamperable"}),
        ({"flags": ["flaky"]}, {"flaky"}),
        ({"allow_hackable": True}, {"add_sound", "add_weak", "flaky", "slow", "tamperable"}),
    ],
)
def test_filters(options: dict[str, Any], kept: set[str]) -> None:
    assert names(load_tasks("toy", audit=records(), **options)) == kept


def test_filters_need_an_audit_and_known_names() -> None:
    with pytest.raises(ConfigError, match="need an audit"):
        load_tasks("toy", min_eqs=0.7)
    with pytest.raises(ConfigError, match="MAYBE"):
        load_tasks("toy", audit=records(), decision="maybe")


def test_hardened_suites_are_swapped_in_and_the_task_is_served(tmp_path: Path) -> None:
    lock_of(toy()["add_weak"], tmp_path)
    tasks = load_tasks("toy", audit=records(), hardened=tmp_path)
    assert tasks.report.hardened == ("toy/add_weak",)
    assert tasks.report.still_hackable == (), "no audit after repair says so"
    loose = load_tasks("toy", audit=records(), allow_hackable=True)
    assert loose.report.still_hackable == ("toy/add_weak",)
    served = next(task for task in tasks if task.task_id == "toy/add_weak")
    assert served.suite.added == ADDED
    assert served.suite.original.digest == toy()["add_weak"].suite.digest


def test_a_lock_of_another_suite_is_refused(tmp_path: Path) -> None:
    other = toy()["add_weak"]
    lock = lock_of(replace(other, suite=replace(other.suite, command="python3 test_solution.py")), tmp_path)
    with pytest.raises(LockError, match="hardened on original suite"):
        load_tasks("toy", audit=records(), hardened=lock)


def test_the_hardened_suites_own_eqs_is_what_counts(tmp_path: Path) -> None:
    """`repairs.jsonl` of the run folder carries the audit after repair."""
    from acidtest.training_hooks import audits

    task = replace(toy()["add_weak"], suite=replace(toy()["add_weak"].suite, added=ADDED))
    record = records()[1]
    after = {"eqs": 0.93, "decision": "KEEP", "decision_firm": True, "flags": ["memorisable"]}
    assert audits.facts_of(task, record, after).eqs == 0.93
    assert audits.facts_of(task, record, after).flags == ("memorisable",)
    assert audits.facts_of(task, record).eqs == 0.5
    assert audits.facts_of(toy()["add_weak"], record, after).eqs == 0.5, "the original suite is served"


def test_make_composes_the_wrappers(tmp_path: Path) -> None:
    lock_of(toy()["add_weak"], tmp_path)
    tasks = load_tasks("toy", audit=records(), hardened=tmp_path, task_ids=["toy/add_weak"])
    judge = ScriptedVerifier(default=(at.Outcome.UNRESOLVED, at.Outcome.RESOLVED))
    env = at.make(tasks, verifier=judge)
    assert isinstance(env, AuditWrapper)
    assert isinstance(env.env, HardenedSuiteWrapper)
    _, info = env.reset(seed=0)
    assert (info["eqs"], info["decision"], info["decision_firm"]) == (0.5, Decision.FIX, True)
    assert info["flags"] == ("hackable", "weak_tests")
    _, reward, _, _, info = env.step(EXPLOIT.text)
    assert (reward, info["reward_original"], info["reward_hardened"]) == (0.0, 1.0, 0.0)
    assert info["standing"] == "proven"
    assert info["hardened"] is True
    assert (info["incident"].severity, info["incident"].kind) == ("false_pass", "S21")
    env.reset()
    assert env.step("something else")[4]["standing"] == ""
    env.close()


def test_vector_environments_overlap_and_keep_their_order() -> None:
    import time

    tasks = load_tasks("toy", task_ids=["toy/add_sound", "toy/add_weak", "toy/slow"])
    judge = ScriptedVerifier(
        lambda t, p: at.Outcome.RESOLVED if "good" in p.text else at.Outcome.UNRESOLVED, seconds=0.3
    )
    envs = at.make(tasks, num_envs=8, verifier=judge)
    texts, infos = envs.reset(seed=5)
    assert len(texts) == 8
    start = time.monotonic()
    actions = tuple("good" if i % 2 else "bad" for i in range(8))
    _, rewards, terminated, truncated, infos = envs.step(actions)
    assert time.monotonic() - start < 1.5, "eight verdicts of 0.3 s overlap"
    assert rewards.tolist() == [0.0, 1.0] * 4
    assert terminated.all()
    assert not truncated.any()
    assert [str(o) for o in infos["outcome"]] == ["unresolved", "resolved"] * 4
    mask = np.array([True, False] * 4)
    envs.reset(options={"reset_mask": mask})
    with pytest.raises(ValueError, match="7 actions"):
        envs.step(("x",) * 7)
    envs.close()
    assert judge.peak > 1


@pytest.mark.parametrize("form", ["trl", "trl-text", "verl", "verifiers", "openrlhf", "skyrl", "nemo"])
def test_rows_carry_the_task_id_and_no_secret(form: str) -> None:
    tasks = load_tasks("toy")
    rows = rows_of(tasks, form)
    assert len(rows) == len(tasks)
    for row, task in zip(rows, tasks, strict=True):
        text = json.dumps(row)
        assert task.task_id in text
        assert json.dumps(task.gold_patch)[1:-1] not in text
        assert not any(json.dumps(test)[1:-1] in text for test in task.suite.test_files.values())


def test_to_dataset_is_a_dataset_and_unknown_forms_are_named() -> None:
    made = at.to_dataset(load_tasks("toy"))
    assert made.column_names == ["prompt", "task_id"]
    with pytest.raises(ConfigError, match="trl-text"):
        at.to_dataset([], "csv")


def test_tasks_with_nothing_but_unproven_leads_can_be_left_out() -> None:
    tasks = toy()
    lead = replace(finding(tasks["add_weak"]), standing=Standing.LEAD)
    pool = (PoolPoint(s=1.0, q=1.0, accepted=True), PoolPoint(s=0.0, q=0.0, accepted=False))
    known = replace(scored(0.9), v=1.0)
    made = [
        audited("toy/add_weak", (), (lead,), score=scored(1.0, firm=False), searched=40),
        audited("toy/add_sound", (), (lead,), score=known, searched=40, pool=pool),
        audited("toy/two_paths", (), (lead,), score=scored(1.0)),
    ]
    ids = [record.task_id for record in made]
    assert [record.unproven for record in made] == [True, False, False]
    assert len(load_tasks("toy", task_ids=ids, audit=made)) == 3, "served unless told otherwise"
    kept = load_tasks("toy", task_ids=ids, audit=made, drop_unproven=True)
    assert kept.report.dropped == {"toy/add_weak": "flag unproven"}
    assert [r.task_id for r in made if "unproven" in finish(r).flags] == ["toy/add_weak"]
    with pytest.raises(ConfigError, match="drop_unproven"):
        load_tasks("toy", drop_unproven=True)
