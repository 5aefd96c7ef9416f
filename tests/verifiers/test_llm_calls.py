"""The LLM seam against a server that speaks the real protocols: records, money, retries, resumption."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import AnswersPending, BudgetExceeded, ConfigError, LLMError
from acidtest.verifiers.llm.answers import parse, scrub
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.loopback import LoopbackServer
from acidtest.verifiers.llm.open import open_llm
from acidtest.verifiers.llm.prices import price_of
from acidtest.verifiers.llm.protocol import CallOutcome, Request

SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": ["yes", "no"]}},
    "required": ["label"],
    "additionalProperties": False,
}
KEY = "sk-ant-loopback-0123456789"
MODEL = "claude-sonnet-5-5"


@pytest.fixture(autouse=True)
def key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[CallStore]:
    with CallStore(tmp_path / "ledger.sqlite") as opened:
        yield opened


def question(number: int = 0, *, sample: int = 0, context: str = "the shared context " * 20) -> Request:
    return Request(
        purpose="judge", prompt=f"Question {number}?", schema=SCHEMA, prompt_version="1", sample=sample,
        context=context, max_tokens=200, task_id=f"t{number}",
    )  # fmt: skip


def yes(params: Any) -> Any:
    return {"label": "yes"}


def faults(plan: dict[int, str]) -> Any:
    return lambda number, params: plan.get(number, "")


def ask(llm: Any, count: int) -> None:
    for number in range(count):
        llm.complete(question(number, context=""))


def same_bill(store: CallStore, server: LoopbackServer, *, batch: bool = False) -> None:
    assert store.usage() == server.billed
    assert store.spent_usd() == pytest.approx(price_of(MODEL, batch=batch).cost(server.billed))


def test_answer_is_recorded_with_tokens_and_cost(store: CallStore) -> None:
    with LoopbackServer(yes) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        replies = llm.complete_many([question(sample=i) for i in range(3)])
        again = llm.complete(question(sample=1))
        llm.close()
        assert [reply.data for reply in replies] == [{"label": "yes"}] * 3
        assert again.known
        assert len(server.calls) == 3
        assert server.billed.cache_write > 0
        assert server.billed.cache_read == 2 * server.billed.cache_write
        same_bill(store, server)
    assert {row["prompt_version"] for row in store.rows()} == {"1"}
    assert sorted(row["sample"] for row in store.rows()) == [0, 1, 2]
    sent = server.calls[0]
    assert sent["output_config"]["format"]["schema"] == SCHEMA
    assert sent["system"][-1]["cache_control"] == {"type": "ephemeral"}


@pytest.mark.parametrize("kind", ["429", "529", "500", "hang", "drop"])
def test_trouble_without_a_message_is_retried(store: CallStore, kind: str) -> None:
    with LoopbackServer(yes, fault=faults({1: kind, 2: kind}), hang_s=6) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, timeout_s=2, backoff_s=0.01)
        reply = llm.complete(question())
        llm.close()
        assert reply.answered
        assert server.faults == [kind, kind]
        same_bill(store, server)
    expected = CallOutcome.LOST if kind in ("hang", "drop") else CallOutcome.FAILED
    assert [row["outcome"] for row in store.rows()] == [expected, expected, "answered"]
    assert (store.reserved_usd() > 0) == (expected is CallOutcome.LOST)


def test_retry_after_is_honoured(store: CallStore) -> None:
    slept: list[float] = []
    with LoopbackServer(yes, fault=faults({1: "429"}), retry_after_s=7.5) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, sleep=slept.append)
        assert llm.complete(question()).answered
        llm.close()
    assert slept == [7.5]


@pytest.mark.parametrize(
    ("plan", "outcome", "messages"),
    [
        ({1: "refusal"}, CallOutcome.REFUSED, 1),
        ({1: "cut"}, CallOutcome.ANSWERED, 2),
        ({1: "invalid"}, CallOutcome.ANSWERED, 2),
        ({1: "cut", 2: "cut"}, CallOutcome.CUT_OFF, 2),
        ({1: "invalid", 2: "invalid"}, CallOutcome.INVALID, 2),
        ({1: "400"}, CallOutcome.FAILED, 0),
    ],
)
def test_unusable_answers_are_outcomes(
    store: CallStore, plan: dict[int, str], outcome: CallOutcome, messages: int
) -> None:
    with LoopbackServer(yes, fault=faults(plan)) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        assert llm.complete(question()).outcome is outcome
        resumed = llm.complete(question())
        llm.close()
        assert resumed.outcome is outcome
        assert resumed.known
        assert len(server.calls) == messages
        same_bill(store, server)
        if plan.get(1) == "cut":
            assert [call["max_tokens"] for call in server.calls] == [200, 400]


def test_an_outage_stops_the_run_and_is_asked_again(store: CallStore) -> None:
    with LoopbackServer(yes, fault=lambda number, params: "529" if number <= 10 else "") as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, retries=1, backoff_s=0.0)
        for number in range(4):
            assert llm.complete(question(number)).outcome is CallOutcome.FAILED
        with pytest.raises(LLMError, match="5 calls in a row"):
            llm.complete(question(4))
        assert llm.complete(question(0)).answered
        llm.close()


def test_a_key_never_reaches_a_record(store: CallStore, tmp_path: Path) -> None:
    with LoopbackServer(yes, fault=faults({1: "400"})) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        reply = llm.complete(question())
        llm.close()
    with LoopbackServer(yes, fault=lambda number, params: "401") as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        with pytest.raises(LLMError) as caught:
            llm.complete(question(1))
        llm.close()
    assert "[key removed]" in reply.detail
    assert KEY not in str(caught.value)
    assert all(KEY.encode() not in file.read_bytes() for file in tmp_path.iterdir())
    assert scrub(f"x {KEY} y") == "x [key removed] y"


def test_the_ceiling_is_never_passed(store: CallStore) -> None:
    with LoopbackServer(yes) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url, max_usd=0.006)
        with pytest.raises(BudgetExceeded, match="--max-usd"):
            ask(llm, 1000)
        llm.close()
        paid = len(server.calls)
        assert paid > 3
        assert store.spent_usd() <= 0.006
        same_bill(store, server)
        more = open_llm(MODEL, store=store, base_url=server.base_url, max_usd=0.008)
        for number in range(paid + 1):
            assert more.complete(question(number, context="")).answered
        more.close()
        assert len(server.calls) == paid + 1, "a resumed run pays for nothing twice"


CHILD = """
import sys
from acidtest.verifiers.llm.calls import CallStore
from acidtest.verifiers.llm.open import open_llm
from acidtest.verifiers.llm.protocol import Request
schema = {schema!r}
with CallStore({path!r}) as store:
    llm = open_llm({spec!r}, store=store, base_url=sys.argv[1], **{options!r})
    asked = [Request(purpose="judge", prompt=f"Question {{n}}?", schema=schema, prompt_version="1") for n in range(12)]
    if {spec!r}.startswith("batch:"):
        try:
            llm.complete_many(asked)
        except Exception:
            llm.flush()
    print("done", flush=True)
    llm.close()
"""


def run_child(server: LoopbackServer, path: Path, spec: str, **options: Any) -> subprocess.Popen[bytes]:
    code = CHILD.format(schema=SCHEMA, path=str(path), spec=spec, options=options)
    return subprocess.Popen([sys.executable, "-c", code, server.base_url], stdout=subprocess.PIPE)


def test_a_killed_batch_is_found_again(tmp_path: Path) -> None:
    """The process dies after the service took the batch and before its id was written down."""
    path = tmp_path / "ledger.sqlite"
    with LoopbackServer(yes) as server:
        taken = server.create_batch

        def take_and_kill(entries: list[dict[str, Any]]) -> dict[str, Any]:
            result = taken(entries)
            os.kill(child.pid, signal.SIGKILL)
            return result

        server.create_batch = take_and_kill  # type: ignore[method-assign]
        child = run_child(server, path, f"batch:{MODEL}", poll_s=0.01)
        child.communicate(timeout=60)
        server.create_batch = taken  # type: ignore[method-assign]
        assert len(server.calls) == 12
        second = run_child(server, path, f"batch:{MODEL}", poll_s=0.01)
        out, _ = second.communicate(timeout=60)
        assert out.strip() == b"done"
        assert len(server.calls) == 12, "no entry was paid twice"
        with CallStore(path) as store:
            same_bill(store, server, batch=True)
            assert store.reserved_usd() == 0


def test_batches_settle_every_kind_of_result(store: CallStore) -> None:
    plan = {2: "expired", 3: "refusal", 4: "cut", 5: "500", 6: "invalid"}
    with LoopbackServer(yes, fault=faults(plan)) as server:
        llm = open_llm(f"batch:{MODEL}", store=store, base_url=server.base_url, poll_s=0.01)
        asked = [question(number) for number in range(7)]
        with pytest.raises(AnswersPending):
            llm.complete_many(asked)
        llm.flush()
        replies = llm.complete_many(asked)
        llm.close()
        expected = ["answered"] * 7
        expected[2] = "refused"
        assert [reply.outcome for reply in replies] == expected
        assert [len(lines) for lines in server.batches.values()] == [7, 4]
        same_bill(store, server, batch=True)
    assert replies[0].cost_usd > 0


def test_batches_stay_below_the_ceiling(store: CallStore) -> None:
    with LoopbackServer(yes) as server:
        llm = open_llm(f"batch:{MODEL}", store=store, base_url=server.base_url, poll_s=0.01, max_usd=0.003)
        with pytest.raises(AnswersPending):
            llm.complete_many([question(number, context="") for number in range(120)])
        with pytest.raises(BudgetExceeded):
            llm.flush()
        llm.close()
        assert len(server.batches) > 1, "what fits is sent, and what comes in cheaper makes room"
        assert 5 < len(server.calls) < 120
        assert store.spent_usd() <= 0.003
        same_bill(store, server, batch=True)


def test_files_are_written_answered_and_read(store: CallStore, tmp_path: Path) -> None:
    folder = tmp_path / "qa"
    llm = open_llm(f"files:{folder}", store=store)
    asked = [question(number) for number in range(5)]
    with pytest.raises(AnswersPending):
        llm.complete_many(asked)
    with pytest.raises(AnswersPending, match="5 questions are waiting") as caught:
        llm.flush()
    assert caught.value.exit_code == 8
    ids = {request.custom_id for request in asked}
    lines = [json.loads(line) for line in (folder / "requests.jsonl").read_text().splitlines()]
    assert {line["custom_id"] for line in lines} == ids
    message = {"content": [{"type": "text", "text": '{"label": "no"}'}], "stop_reason": "end_turn",
               "model": "other", "usage": {"input_tokens": 5, "output_tokens": 2}}  # fmt: skip
    answers: list[dict[str, Any]] = [
        {"json": {"label": "yes"}},
        {"text": '```json\n{"label": "no"}\n```', "model": "mine"},
        {"result": {"type": "succeeded", "message": message}},
        {"error": "nobody knows"},
        {"json": {"label": "perhaps"}},
    ]
    for request, answer in zip(asked, answers, strict=True):
        with (folder / "responses.jsonl").open("a") as file:
            file.write(json.dumps({"custom_id": request.custom_id, **answer}) + "\n")
    with pytest.raises(AnswersPending):
        llm.complete_many(asked)
    with pytest.raises(AnswersPending, match=r"1 answers do not fit .*none of"):
        llm.flush()
    with (folder / "responses-2.jsonl").open("a") as file:
        file.write(json.dumps({"custom_id": asked[4].custom_id, "json": {"label": "no"}}) + "\n")
    replies = llm.complete_many(asked)
    assert [reply.outcome for reply in replies] == ["answered", "answered", "answered", "failed", "answered"]
    assert replies[1].model == "mine"
    assert replies[2].usage.input == 5
    llm.flush()
    assert (folder / "requests.jsonl").read_text() == ""
    late = question(9)
    with pytest.raises(AnswersPending):
        llm.complete(late)
    with (folder / "responses.jsonl").open("a") as file:
        file.write(json.dumps({"custom_id": late.custom_id, "json": {"label": "no"}}) + "\n")
    llm.flush()
    assert llm.complete(late).answered, "an answer that came while the question was queued counts at once"
    llm.close()


def test_replay_gives_the_recorded_replies(store: CallStore, tmp_path: Path) -> None:
    with LoopbackServer(yes, fault=faults({2: "refusal"})) as server:
        llm = open_llm(MODEL, store=store, base_url=server.base_url)
        recorded = [llm.complete(question(number)) for number in range(3)]
        llm.close()
    assert store.export(tmp_path / "replies.jsonl") == 3
    with CallStore() as empty:
        replayed = open_llm(f"replay:{tmp_path / 'replies.jsonl'}", store=empty)
        again = replayed.complete_many([question(number) for number in range(3)])
        assert [(r.outcome, r.data, r.usage) for r in again] == [
            (r.outcome, r.data, r.usage) for r in recorded
        ]
        assert empty.spent_usd() == 0
        with pytest.raises(LLMError, match="no reply"):
            replayed.complete(question(7))
        replayed.close()


def test_a_fresh_fence_leaves_the_digest() -> None:
    def fenced(fence: str) -> Request:
        return Request(
            purpose="judge", prompt=f"<{fence}>code</{fence}>", fence=fence, schema={}, prompt_version="1"
        )

    assert fenced("aa11").digest == fenced("bb22").digest
    assert (
        fenced("aa11").digest
        != Request(purpose="judge", prompt="<x>other</x>", schema={}, prompt_version="1").digest
    )


@pytest.mark.parametrize("spec", ["", "files:", "batch:", "smoke:x", "gpt-unknown"])
def test_unusable_specs_say_what_to_do(store: CallStore, spec: str) -> None:
    with pytest.raises(ConfigError, match=r"--llm|--prices"):
        open_llm(spec, store=store)


def test_parse_refuses_what_does_not_fit() -> None:
    assert parse('{"label": "yes"}', SCHEMA)[0] == {"label": "yes"}
    for text in ("", "yes", "[]", '{"label": 1}', '{"label": "maybe"}', "{}", 'Sure: {"label": "yes"}'):
        data, why = parse(text, SCHEMA)
        assert data is None
        assert why
