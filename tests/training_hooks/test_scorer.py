"""The Scorer: order, the hard limit, deadlines, cache, asyncio, forks, and nothing left behind."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Iterator

import pytest

import acidtest as at
from acidtest.envs.errors import ConfigError, EngineTimeout, SandboxDied, UnknownName
from acidtest.envs.run import SuiteRun
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.training_hooks.scorer import Scorer


def make_task(task_id: str) -> at.Task:
    suite = at.Suite(command="true", framework="plain", fail_to_pass=("t::a",))
    return at.Task(task_id=task_id, dataset="unit", prompt="p", suite=suite, gold_patch="")


TASKS = [make_task(f"t{i}") for i in range(4)]


@pytest.fixture(autouse=True)
def _no_thread_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


def diff(name: str) -> str:
    return f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+{name}\n"


def test_order_is_kept_and_the_limit_is_hard_whoever_asks() -> None:
    def script(task: at.Task, patch: at.Patch) -> at.Outcome:
        number = int(patch.text.split("+n")[-1])
        time.sleep(0.002 * (number % 7))
        return at.Outcome.RESOLVED if number % 3 == 0 else at.Outcome.UNRESOLVED

    verifier = ScriptedVerifier(script)
    wanted = [1.0 if i % 3 == 0 else 0.0 for i in range(64)]
    with Scorer(TASKS, verifier=verifier, max_concurrent=5) as scorer:
        answers: dict[int, list[float | None]] = {}

        def ask(k: int) -> None:
            answers[k] = [s.reward for s in scorer.score([(f"t{k}", diff(f"n{i}")) for i in range(64)])]

        threads = [threading.Thread(target=ask, args=(k,)) for k in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert answers == dict.fromkeys(range(4), wanted)
    assert 2 <= verifier.peak <= 5
    assert verifier.calls == 4 * 64


def test_infrastructure_and_undecided_are_masked_never_zero() -> None:
    script = {
        diff("gone"): SandboxDied("lost"),
        diff("slow"): EngineTimeout("no answer"),
        diff("unsure"): at.Outcome.UNDECIDED,
        diff("good"): at.Outcome.RESOLVED,
    }
    with Scorer(TASKS, verifier=ScriptedVerifier(script)) as scorer:
        scores = scorer.score([("t0", diff(n)) for n in ("gone", "good", "slow", "unsure", "bad")])
    assert [s.reward for s in scores] == [None, 1.0, None, None, 0.0]
    assert "SandboxDied: lost" in scores[0].error
    assert scores[3].error == "scripted"
    assert scores[0].incident is None


def test_decisive_verdicts_are_cached_and_equal_questions_share_one_verdict() -> None:
    verifier = ScriptedVerifier({diff("late"): at.Outcome.TIMED_OUT}, seconds=0.05)
    with Scorer(TASKS, verifier=verifier, max_concurrent=8) as scorer:
        same = [("t0", diff("x"))] * 16
        assert [s.reward for s in scorer.score(same)] == [0.0] * 16
        assert verifier.calls == 1
        scorer.score(same)
        assert verifier.calls == 1
        scorer.score([("t1", diff("x"))])
        assert verifier.calls == 2
        for _ in range(2):
            scorer.score([("t0", diff("late"))])
        assert verifier.calls == 4, "a timeout is never cached"


def test_infrastructure_trouble_is_not_cached() -> None:
    state = {"broken": True}

    def script(task: at.Task, patch: at.Patch) -> at.Outcome | Exception:
        return SandboxDied("lost") if state["broken"] else at.Outcome.RESOLVED

    with Scorer(TASKS, verifier=ScriptedVerifier(script)) as scorer:
        assert scorer.rewards(["t0"], [diff("x")]) == [None]
        state["broken"] = False
        assert scorer.rewards(["t0"], [diff("x")]) == [1.0]


def test_deadline_masks_the_hanging_one_only() -> None:
    release = threading.Event()

    def script(task: at.Task, patch: at.Patch) -> at.Outcome:
        if "hang" in patch.text:
            release.wait(10)
        return at.Outcome.RESOLVED

    with Scorer(TASKS, verifier=ScriptedVerifier(script), max_concurrent=3, deadline_s=0.2) as scorer:
        start = time.monotonic()
        rewards = scorer.rewards(["t0"] * 5, [diff(n) for n in ("a", "hang1", "b", "hang2", "c")])
        assert time.monotonic() - start < 5
        assert rewards == [1.0, None, 1.0, None, 1.0]
        release.set()


def test_wait_s_bounds_the_queue_too() -> None:
    release = threading.Event()

    def script(task: at.Task, patch: at.Patch) -> at.Outcome:
        release.wait(10)
        return at.Outcome.RESOLVED

    with Scorer(TASKS, verifier=ScriptedVerifier(script), max_concurrent=1, wait_s=0.2) as scorer:
        assert scorer.rewards(["t0"] * 3, [diff(n) for n in "abc"]) == [None] * 3
        release.set()


async def test_asyncio_does_not_block_the_loop() -> None:
    with Scorer(TASKS, verifier=ScriptedVerifier(default=at.Outcome.RESOLVED, seconds=0.1)) as scorer:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticker = asyncio.create_task(tick())
        scores = await scorer.ascore([("t0", diff(f"n{i}")) for i in range(16)])
        ticker.cancel()
        assert [s.reward for s in scores] == [1.0] * 16
        assert ticks > 5
        waiting = asyncio.create_task(scorer.ascore([("t1", diff("z"))]))
        await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await scorer.ascore([("t1", diff("z"))]))[0].reward == 1.0


def test_a_forked_child_scores_and_closes_cleanly() -> None:
    scorer = Scorer(TASKS, verifier=lambda: ScriptedVerifier(default=at.Outcome.RESOLVED, seconds=0.01))
    assert scorer.rewards(["t0"] * 4, [diff(f"n{i}") for i in range(4)]) == [1.0] * 4
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            got = scorer.rewards(["t1"] * 8, [diff(f"m{i}") for i in range(8)])
            scorer.close()
            os.write(write, repr(got).encode())
            code = 0
        finally:
            os._exit(code)
    os.close(write)
    try:
        assert os.read(read, 1000).decode() == repr([1.0] * 8)
        assert os.waitpid(pid, 0)[1] == 0
    finally:
        os.close(read)
        scorer.close()


def test_closing_masks_what_waits_and_refuses_what_comes() -> None:
    started, release = threading.Event(), threading.Event()

    def script(task: at.Task, patch: at.Patch) -> at.Outcome:
        started.set()
        release.wait(10)
        return at.Outcome.RESOLVED

    scorer = Scorer(TASKS, verifier=ScriptedVerifier(script), max_concurrent=1)
    running, queued = scorer.submit("t0", diff("a")), scorer.submit("t0", diff("b"))
    started.wait(10)
    closing = threading.Thread(target=scorer.close)
    closing.start()
    assert queued.result(5).error == "the Scorer was closed"
    release.set()
    closing.join(5)
    assert running.result(0).reward == 1.0
    with pytest.raises(ConfigError):
        scorer.submit("t0", diff("c"))
    scorer.close()


def test_mistakes_of_the_user_are_loud() -> None:
    with pytest.raises(ConfigError, match="Two tasks"):
        Scorer([*TASKS, TASKS[0]])
    with pytest.raises(ConfigError):
        Scorer(TASKS, max_concurrent=0)
    with pytest.raises(ConfigError, match="unknown"):
        Scorer(TASKS, unknown=3)
    with pytest.raises(ConfigError, match="no_such"):
        Scorer(TASKS, defence="no_such")
    with pytest.raises(UnknownName, match="no_such"):
        Scorer(TASKS, sandbox="no_such")
    with pytest.raises(ConfigError, match="one was given"):
        Scorer(TASKS, verifier=ScriptedVerifier(), sandbox="local")
    with pytest.raises(ConfigError, match="unknown"):
        at.CodeEnv(TASKS, unknown=3)
    Scorer(TASKS, sandbox="local", defence="fast", retries=1, seed=3).close()
    with Scorer(TASKS, verifier=ScriptedVerifier(lambda t, p: 1 / 0)) as scorer:
        with pytest.raises(ZeroDivisionError):
            scorer.score([("t0", diff("x"))])
        with pytest.raises(UnknownName):
            scorer.submit("nobody", "")
    odd = Scorer(TASKS, verifier=ScriptedVerifier(), reward=lambda t, v: float("nan"))
    with odd, pytest.raises(ConfigError, match="finite"):
        odd.score([("t0", diff("x"))])


def test_long_logs_do_not_fill_the_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """The cache is bounded by what the verdicts' logs hold, not only by their number."""
    monkeypatch.setattr("acidtest.training_hooks.scorer.CACHED_LOG_CHARS", 1000)
    asked: list[str] = []

    class Chatty:
        def verify(self, task: at.Task, patch: at.Patch) -> at.Verdict:
            asked.append(patch.text)
            return at.Verdict(
                task_id=task.task_id, patch_digest=patch.digest, suite_digest=task.suite.digest,
                outcome=at.Outcome.UNRESOLVED, original_outcome=at.Outcome.UNRESOLVED, run=SuiteRun(log="x" * 300),
            )  # fmt: skip

    with Scorer(TASKS, verifier=Chatty(), max_concurrent=1) as scorer:
        for number in [0, 1, 2, 3, 4, 4, 0]:
            scorer.score([("t0", diff(f"n{number}"))])
        assert len(scorer._cache) == 3
    assert [text.strip()[-1] for text in asked] == list("012340")
