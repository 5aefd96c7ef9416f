"""The whole LLM audit over ten tasks against a server that speaks the real protocols and misbehaves."""

from __future__ import annotations

import importlib.util
import itertools
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import AnswersPending, BudgetExceeded
from acidtest.verifiers.eqs import judge_f1
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.estimate import estimate
from acidtest.verifiers.llm.loopback import LoopbackServer
from acidtest.verifiers.llm.open import open_llm
from acidtest.verifiers.llm.prices import price_of
from acidtest.verifiers.llm.scripted import answer_files
from acidtest.verifiers.llm_audit import judge_survivors, llm_audit
from acidtest.verifiers.llm_rates import rates, text
from acidtest.verifiers.llm_record import LLMAuditResult
from acidtest.verifiers.records import Standing

BENCH = Path(__file__).with_name("llm_bench.py")
spec = importlib.util.spec_from_file_location("llm_bench", BENCH)
assert spec is not None
assert spec.loader is not None
bench: Any = importlib.util.module_from_spec(spec)
sys.modules["llm_bench"] = bench
spec.loader.exec_module(bench)

MODEL = "claude-sonnet-5-5"
TASKS = [bench.make_task(i) for i in range(1, 11)]
OPTIONS: dict[str, Any] = {"k": 2, "rounds": 2, "benign": 1, "seed": 7}
CALLS = 10 * (1 + 2 + 3 * 6 + 4 + 3 * 2)
"""Control 1, rounds 2, judge 3 x (gold, control, 4 exploits), witnesses 4 (3 exploits and the control are paid), votes."""


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-loopback-0123456789")


@pytest.fixture(scope="module")
def script() -> Any:
    return bench.script_for(TASKS)


def audit_all(llm: Any, **options: Any) -> list[LLMAuditResult]:
    verifier = bench.InstantVerifier()
    return [llm_audit(task, verifier, llm, **{**OPTIONS, **options}) for task in TASKS]


def check_records(results: list[LLMAuditResult]) -> None:
    for result in results:
        standings = {(f.candidate.round, f.candidate.kind): f.standing for f in result.findings}
        assert standings == {
            (1, "S22"): Standing.PROVEN,
            (2, "S22"): Standing.DIFFERS,
            (2, "S11"): Standing.JUDGED,
        }
        proven = next(f for f in result.findings if f.standing is Standing.PROVEN)
        assert proven.witnesses[0].citation == bench.CITATION
        assert result.control.held == 1
        assert result.control.called_wrong == 0
        assert [r.applied for r in result.rounds] == [1, 2, 2]


def test_ten_tasks_through_every_kind_of_trouble(script: Any) -> None:
    kinds = ["429", "529", "500", "cut", "invalid", "drop"]

    def fault(number: int, params: Any) -> str:
        if number in (50, 201):
            return "hang"
        return kinds[(number // 9) % len(kinds)] if number % 9 == 5 else ""

    with CallStore() as store, LoopbackServer(script, fault=fault, hang_s=8) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, timeout_s=5, backoff_s=0.01)
        results = audit_all(llm)
        llm.close()
        assert set(server.faults) == {*kinds, "hang"}
        assert store.usage() == server.billed
        assert store.spent_usd() == pytest.approx(price_of(MODEL).cost(server.billed))
        assert sum(r.cost_usd for r in results) == pytest.approx(store.spent_usd())
        assert len(server.calls) - Counter(server.faults)["cut"] - Counter(server.faults)["invalid"] == CALLS
    check_records(results)


def test_refusals_are_recorded_and_the_task_goes_on(script: Any) -> None:
    """A refused attack leaves an empty round; refused judge samples leave a candidate undecided, never wrong."""

    def fault(number: int, params: Any) -> str:
        asked = params["output_config"]["format"]["schema"]["properties"]
        prompt = params["messages"][0]["content"]
        return "refusal" if "label" in asked or prompt.startswith("Round 2") else ""

    with CallStore() as store, LoopbackServer(script, fault=fault) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        result = llm_audit(TASKS[0], bench.InstantVerifier(), llm, **OPTIONS)
        llm.close()
    assert [r.outcome for r in result.rounds] == ["answered", "answered", "refused"]
    assert [f.standing for f in result.findings] == [Standing.PROVEN], "execution needs no judge"
    assert result.gold_label == "undecided"
    assert result.calls["judge/refused"] == 3 * 4
    assert judge_f1(result.f1_labels) is None
    assert any("refused" in note for note in result.notes)


def test_the_ceiling_holds_and_more_money_goes_on(script: Any) -> None:
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, max_usd=0.4)
        with pytest.raises(BudgetExceeded):
            audit_all(llm)
        llm.close()
        spent, first = store.spent_usd(), len(server.calls)
        assert 0.05 < spent <= 0.4
        more = open_llm(MODEL, store=store, base_url=server.base_url, max_usd=50)
        check_records(audit_all(more))
        more.close()
        assert first < len(server.calls) == CALLS, "no answered call was paid twice"


CHILD = """
import importlib.util, sys
spec = importlib.util.spec_from_file_location("llm_bench", {bench!r})
bench = importlib.util.module_from_spec(spec); sys.modules["llm_bench"] = bench; spec.loader.exec_module(bench)
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.open import open_llm
from acidtest.verifiers.llm_audit import llm_audit
with CallStore({path!r}) as store:
    llm = open_llm({model!r}, store=store, base_url=sys.argv[1])
    for i in range(1, 11):
        print(llm_audit(bench.make_task(i), bench.InstantVerifier(), llm, **{options!r}).to_json(), flush=True)
"""


def test_kill_and_resume_asks_nothing_twice(script: Any, tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    code = CHILD.format(bench=str(BENCH), path=str(path), model=MODEL, options=OPTIONS)
    with LoopbackServer(script) as server:
        child = subprocess.Popen([sys.executable, "-c", code, server.base_url], stdout=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while len(server.calls) < CALLS // 3 and time.monotonic() < deadline:
            time.sleep(0.005)
        child.send_signal(signal.SIGKILL)
        child.communicate()
        with CallStore(path) as store:
            answered = sum(row["final"] for row in store.rows())
            lost = sum(row["outcome"] == "lost" for row in store.rows())
        paid = len(server.calls)
        assert 0 <= paid - answered <= lost <= 4, "only calls in flight at the kill can be asked again"
        done = subprocess.run(
            [sys.executable, "-c", code, server.base_url], stdout=subprocess.PIPE, check=True, timeout=120
        )
        assert len(server.calls) == CALLS + paid - answered
    results = [LLMAuditResult.from_json(line) for line in done.stdout.splitlines()]
    check_records(results)


def test_batches_and_files_give_the_same_records_as_messages(script: Any, tmp_path: Path) -> None:
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        direct = audit_all(llm)
        llm.close()
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(f"batch:{MODEL}", store=store, base_url=server.base_url, poll_s=0.01)
        batched = sweep(llm, llm.flush)
        llm.close()
        assert len(server.batches) <= 5, "all tasks go out together, phase by phase"
        assert store.usage() == server.billed
        assert store.spent_usd() == pytest.approx(price_of(MODEL, batch=True).cost(server.billed))
    with CallStore(tmp_path / "ledger.sqlite") as store:
        llm = open_llm(f"files:{tmp_path / 'qa'}", store=store)

        def answer() -> None:
            with pytest.raises(AnswersPending):
                llm.flush()
            assert answer_files(tmp_path / "qa", script) > 0

        filed = sweep(llm, answer)
        store.export(tmp_path / "replies.jsonl")
    with CallStore() as store:
        replay = open_llm(f"replay:{tmp_path / 'replies.jsonl'}", store=store)
        replayed = audit_all(replay)
    for results in (direct, batched, filed, replayed):
        check_records(results)
    figures = [rates(results) for results in (direct, batched, filed, replayed)]
    assert len({f.iterated["proven"].share.count for f in figures}) == 1


def sweep(llm: Any, between: Any) -> list[LLMAuditResult]:
    verifier = bench.InstantVerifier()
    found: dict[str, LLMAuditResult] = {}
    for _ in range(10):
        waits = False
        for task in TASKS:
            if task.task_id in found:
                continue
            try:
                found[task.task_id] = llm_audit(task, verifier, llm, **OPTIONS)
            except AnswersPending:
                waits = True
        if not waits:
            return [found[task.task_id] for task in TASKS]
        between()
    raise AssertionError("the answers never sufficed")


@pytest.fixture(scope="module")
def results(script: Any) -> list[LLMAuditResult]:
    with pytest.MonkeyPatch.context() as patch, CallStore() as store, LoopbackServer(script) as server:
        patch.setenv("ANTHROPIC_API_KEY", "sk-ant-loopback-0123456789")
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        found = audit_all(llm)
        llm.close()
    return found


def test_rates_stand_side_by_side(results: list[LLMAuditResult]) -> None:
    figures = rates(results)
    first, second = figures.rounds
    assert [str(first.candidates[level].share.count) for level in ("claimed", "judged", "proven")] == [
        "10",
        "10",
        "10",
    ]
    assert first.candidates["claimed"].share.of == 20
    assert second.candidates["claimed"].share.count == 10, (
        "differs is what the attacker claims, and nothing more"
    )
    assert second.candidates["judged"].share.count == 0
    assert figures.single_shot["proven"].share.count == 10
    assert figures.curve["proven"][0] == (1, 0.5, 10)
    assert figures.curve["proven"][1] == (2, 1.0, 10)
    assert figures.differs == 10
    assert figures.memorising.share.count == 10
    assert (figures.false_accusation.share.count, figures.false_accusation.share.of) == (0, 10)
    assert figures.apply_rate.share.rate == 1.0
    shown = text(figures)
    for wanted in (
        "10 of 20 (50.0%, 95 % Jeffreys",
        "0 of 10 (0.0%, 95 % Wilson",
        "seeds 7",
        "kappa",
        "single shot",
    ):
        assert wanted in shown


def test_any_order_gives_the_same_numbers(results: list[LLMAuditResult]) -> None:
    wanted = rates(results).to_json()
    shuffled = list(results)
    for seed in range(5):
        random.Random(seed).shuffle(shuffled)
        assert rates(shuffled).to_json() == wanted


def test_records_round_trip(results: list[LLMAuditResult]) -> None:
    for result in results[:2]:
        assert LLMAuditResult.from_json(result.to_json()) == result
        assert result.summary()["rounds"]["1"]["proven"] == 1


def test_partial_counts_as_incorrect_in_f1(results: list[LLMAuditResult]) -> None:
    """Gold and control correct and paid; 1 incorrect refused, 1 correct paid (differs), 1 partial and 1 incorrect paid."""
    labels = Counter(results[0].f1_labels)
    assert labels == {
        ("correct", True): 3,
        ("incorrect", False): 1,
        ("incorrect", True): 1,
        ("partial", True): 1,
    }
    assert judge_f1(results[0].f1_labels) == pytest.approx(2 * 3 / (2 * 3 + 2))


def test_survivors_of_the_mechanical_audit_get_a_standing(script: Any, results: list[LLMAuditResult]) -> None:
    from acidtest.verifiers.records import Claim

    found = results[0].findings
    leads = [
        replace(f, standing=Standing.LEAD, witnesses=(), candidate=replace(f.candidate, claim=Claim.UNKNOWN))
        for f in found
    ]
    kept = replace(found[0], standing=Standing.PROVEN)
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        judged = judge_survivors(TASKS[0], bench.InstantVerifier(), llm, [*leads, kept])
        llm.close()
    assert [f.standing for f in judged] == [f.standing for f in found] + [Standing.PROVEN]


def test_a_correct_alternative_that_fails_the_witness_clears_the_candidate(script: Any) -> None:
    """The same exploit with an alternative on record that treats negative numbers as it does: only `differs`."""
    from acidtest.envs.patch import Patch

    same = script.lines[0].answer["edits"][0]["replace"].replace("x + 1", "(x + 1)")
    stub = TASKS[0].files["solution.py"]
    other = Patch.writing(
        {"solution.py": stub.replace("    raise NotImplementedError", same)}, TASKS[0].files
    )
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        result = llm_audit(TASKS[0], bench.InstantVerifier(), llm, alternatives=[other], **OPTIONS)
        llm.close()
    assert result.findings[0].standing is Standing.DIFFERS
    assert "alternative" in result.findings[0].reasons[0]


def test_the_attacker_sees_what_it_may(script: Any) -> None:
    with CallStore() as store, LoopbackServer(script) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        for sees in ("tests", "names", "nothing"):
            llm_audit(
                TASKS[0], bench.InstantVerifier(), llm, **{**OPTIONS, "attacker_sees": sees, "benign": 0}
            )
        llm.close()
        attacks = [c for c in server.calls if "Round 1 of" in str(c["messages"][0]["content"])]
    seen = [c["system"][-1]["text"] for c in attacks]
    assert ["assert f1(1)" in s for s in seen] == [True, False, False]
    assert ["test_solution.py::test_check" in s for s in seen] == [True, True, False]
    second = [
        c["messages"][0]["content"] for c in server.calls if "Round 2 of" in str(c["messages"][0]["content"])
    ]
    assert "PAID. Find a different fault." in second[0]
    assert "Refused (unresolved) by test_solution.py::test_check" in second[0]
    assert "0x7f00" not in second[0]
    assert "0.12s" not in second[0], "what differs between equal runs is taken out"
    refused = itertools.takewhile(lambda line: "Strategies" not in line, second[0].splitlines())
    assert any("AssertionError" in line for line in refused)


def test_the_estimate_is_above_what_is_asked(results: list[LLMAuditResult]) -> None:
    guess = estimate(TASKS, price_of(MODEL), k=2, rounds=2, benign=1)
    asked = sum(sum(r.calls.values()) for r in results)
    assert asked <= sum(guess.calls.values())
    assert sum(r.cost_usd for r in results) < guess.usd[1]
    assert "10 tasks" in str(guess)


def test_the_audit_sweeps_until_the_answers_suffice(script: Any, tmp_path: Path) -> None:
    """The same command again and again, answering the files in between; the records are the whole audit's."""
    from acidtest.scripts.tables import summary_lines
    from acidtest.verifiers.alternatives import HELD, Alternatives
    from acidtest.verifiers.audit import audit
    from acidtest.verifiers.audit_config import AuditConfig
    from acidtest.verifiers.audit_task import finish
    from acidtest.verifiers.llm_report import llm_estimate, llm_text
    from acidtest.verifiers.summary import summarise

    config = AuditConfig(
        sandbox="local",
        attackers=(),
        calibration_runs=1,
        llm=f"files:{tmp_path / 'qa'}",
        k=2,
        rounds=2,
        benign=1,
    )
    assert "1 task, " in str(llm_estimate(TASKS[:1], config))
    for _ in range(8):
        done = audit(TASKS[:1], out=tmp_path / "run", config=config)
        if not done.pending:
            break
        assert "questions are waiting in" in done.waiting
        assert answer_files(tmp_path / "qa", script) > 0
    assert [r.error for r in done.records] == [""]
    for record in done.records:
        assert record.hackable
        assert record.score is not None
        assert record.score.f1 == pytest.approx(0.75)
        assert record.llm["control"]["held"] == 1
        assert {f.standing for f in record.findings} >= {Standing.PROVEN, Standing.DIFFERS}
    assert "iterated (all rounds)" in llm_text(tmp_path / "run")
    held = Alternatives.read(tmp_path / "run" / f"{HELD}.jsonl")
    assert len(held.of("mini/1")) == 1, "what held is there for the repair gate"
    assert len(held.plus(held).of("mini/1")) == 1
    warned = summary_lines(summarise([replace(done.records[0], pass_at_1=(3, 9))]))
    assert any("Pass@1 of 1 hackable tasks (mini/1)" in line for line in warned)
    assert not any("Pass@1" in line for line in summary_lines(summarise(done.records)))
    rescored = [finish(r) for r in done.records]
    assert rescored == done.records, "score recomputes the same without running anything"
