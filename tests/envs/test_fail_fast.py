"""Fail-fast: the added tests end at the first that fails; the reward is that of the whole run, the twin never stops."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace

import pytest

from acidtest.envs.agent.run import refuses
from acidtest.envs.defence import FAST, STRICT, Defence
from acidtest.envs.incident import Severity, incident_of
from acidtest.envs.ledger import Ledger
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import (
    Channel,
    Exec,
    ExecResult,
    Op,
    OpResult,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
)
from acidtest.envs.report import observe
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.sandboxes._session import _channel
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.envs.verify import Verifier

STOPPING = replace(STRICT, fail_fast=True)
IDS = ["t.py::a", "t.py::b"]


def said(*fields: object) -> bytes:
    return json.dumps(fields, separators=(",", ":")).encode()


def stops(ids: Sequence[str]) -> tuple[bytes, ...]:
    """The rule as it is sent to the agent."""
    rules = _channel(Channel(stop=tuple(ids)))
    assert rules is not None
    return tuple(text.encode() for text in rules["stop"])


@pytest.mark.parametrize(
    ("message", "ends"),
    [
        (said("e", "t.py::a", "failed", 0.1), True),
        (said("e", "t.py::b", "error", 0), True),
        (said("e", "t.py::a", "passed", 0.1), False),
        (said("e", "t.py::a", "skipped", 0.1), False),
        (said("e", "t.py::c", "failed", 0.1), False),
        (said("s", "t.py::a", "failed", 0.1), False),
        (said("e", "t.py::a", "failed"), False),
        (said("e", "t.py::a", "failed", "0.1"), False),
        (said("e", ["t.py::a"], "failed", 0.1), False),
        (b'?["e", "t.py::a", "failed", 0.1]', False),
        (b"[", False),
        (b"\xff", False),
        (b'["e",' + b"[" * 100_000, False),
        (b'["e","t.py::a","failed",}', False),
        (b'["e","t.py::a","failed",nan]', False),
        (b'["e","t.py::a","failed",01]', False),
        (b'["e","t.py::a","failed",1_0]', False),
        (said("e", "t.py::a", "failed", 1.5e-05), True),
    ],
)
def test_the_rule(message: bytes, ends: bool) -> None:
    assert refuses(message, stops(IDS)) is ends
    assert refuses(message, stops([])) is False
    failed = {ident for ident, status in observe([message]).statuses.items() if status in {"failed", "error"}}
    assert bool(failed & set(IDS)) is ends, "host and agent read messages alike"


def test_what_only_the_host_reads_stops_nothing() -> None:
    """The agent knows the form that helpers write; in another form a failure counts all the same, at the end."""
    odd = [
        json.dumps(["e", "t.py::a", "failed", 0.1]).encode(),
        b'["e","t.py::a","failed",1' + b"0" * 400 + b"]",
    ]
    assert not any(refuses(message, stops(IDS)) for message in odd)
    assert all(observe([message]).statuses == {"t.py::a": "failed"} for message in odd)


def test_a_message_no_test_would_send_is_read_as_none() -> None:
    """What is nested too deep is no message, nor what holds half a character; times are finite, whatever was sent."""
    long = b'["e", "x", "passed", 1' + b"0" * 400 + b"]"
    odd = [
        b'["e", "%s", "passed", %s]' % pair for pair in ((b"y", b"NaN"), (b"y", b"-1e999"), (b"z", b"1e999"))
    ]
    half = [b'["%s", "\\ud800", "passed", 1]' % kind for kind in (b"e", b"s", b"i", b"a")]
    seen = observe(
        [
            b"[" * 100_000,
            long,
            b"[1, 2]",
            *odd,
            *half,
            b'["e", "\xed\xa0\x80", "passed", 1]',
            b'["i", "\\ud800"]',
        ]
    )
    assert seen.statuses == {"x": "passed", "y": "passed", "z": "passed"}
    assert seen.durations == {"x": 1e9, "y": 0.0, "z": 1e9}
    assert not seen.replaced
    assert observe([b'["s", "\\u00e9 \\ud83d\\ude00"]', b"?k"]).keys == {"\u00e9 \U0001f600": {"k": 1}}


TALK = """
import os, socket, time
s = socket.socket(fileno=int(os.environ["ACIDTEST_FD"]))
for m in MESSAGES: s.send(m)
s.send(b"?go on?"); print(s.recv(9)); time.sleep(SLEEP)
"""


def told(messages: Sequence[bytes], sleep: float = 0.0) -> tuple[str, ...]:
    return ("python", "-c", TALK.replace("MESSAGES", repr(list(messages))).replace("SLEEP", str(sleep)))


@pytest.fixture(
    params=[pytest.param("docker", marks=pytest.mark.docker), "local", "local plain"], scope="module"
)
def box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    if request.param == "docker":
        request.getfixturevalue("base_image")
    options = {"bubblewrap": False} if request.param == "local plain" else {}
    backend = open_backend(request.param.split()[0], **options)
    with backend.open(SandboxSpec(image=None, workdir="/testbed")) as sandbox:
        yield sandbox
    backend.close()


def run(box: Sandbox, messages: Sequence[bytes], stop: Sequence[str], **options: float) -> ExecResult:
    op = Exec(
        command=told(messages, options.pop("sleep", 0.0)), channel=Channel(stop=tuple(stop)), timeout_s=20.0
    )
    result = box.script([op])[0]
    assert isinstance(result, ExecResult)
    return result


def test_the_agent_ends_the_command_at_the_first_failure(box: Sandbox) -> None:
    bad = said("e", IDS[0], "failed", 0.1)
    started = time.monotonic()
    result = run(
        box, [said("e", IDS[1], "passed", 0.1), bad, said("e", IDS[1], "failed", 0.1)], IDS, sleep=9.0
    )
    assert time.monotonic() - started < 5.0
    assert (result.stopped, result.timed_out, result.exit_code) == (True, False, None)
    assert result.messages[-1] == bad, "nothing is kept behind it, whoever was faster"
    assert len(result.messages) == 2


def test_nothing_ends_without_a_rule_or_a_failure(box: Sandbox) -> None:
    failed = [said("e", IDS[0], "failed", 0.1)]
    for messages, stop in (
        (failed, []),
        (failed, ["t.py::other"]),
        ([said("e", IDS[0], "passed", 0.1)], IDS),
    ):
        result = run(box, messages, stop)
        assert (result.stopped, result.exit_code, result.output) == (False, 0, b"b'go'\n")
        assert len(result.messages) == 2


STUB = "def add(a, b):\n    raise NotImplementedError\n"
RIGHT = "def add(a, b):\n    return a + b\n"
WRONG = "def add(a, b):\n    return a * b\n"
WEAK = "from solution import add\n\n\ndef test_weak():\n    assert add(2, 2) == 4\n"
SLOW = """import time
from solution import add


def test_first():
    assert add(2, 0) == 2


def test_more():
    assert add(2, 3) == 5


def test_late():
    time.sleep(SLEEP)
    assert add(7, 1) == 8
"""
NAMES = ("test_first", "test_more", "test_late")


def task_with(added: str, names: Sequence[str] = NAMES) -> Task:
    tests = AddedTests(
        command="python3 test_added.py",
        framework="plain",
        test_files={"test_added.py": added},
        test_ids=tuple(f"test_added.py::{name}" for name in names),
    )
    suite = Suite(
        command="python3 test_solution.py",
        framework="plain",
        test_files={"test_solution.py": WEAK},
        fail_to_pass=("test_solution.py::test_weak",),
        added=tests,
    )
    return Task(
        task_id="toy/fail-fast",
        dataset="toy",
        prompt="Write add(a, b).",
        suite=suite,
        gold_patch=Patch.writing({"solution.py": RIGHT}, {"solution.py": STUB}).text,
        files={"solution.py": STUB},
        timeout_s=30.0,
        metadata={"entry_point": "add", "solution_file": "solution.py"},
    )


def submission(text: str) -> Patch:
    return Patch.writing({"solution.py": text}, {"solution.py": STUB})


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


def is_unrun(verdict: Verdict, *names: str) -> None:
    idents = tuple(f"test_added.py::{name}" for name in names)
    assert verdict.unrun_added == idents
    assert not set(idents) & {*verdict.statuses, *verdict.failed_added}


def test_a_test_behind_the_failure_is_not_waited_for(verifier: Verifier) -> None:
    task = task_with(SLOW.replace("SLEEP", "5"))
    verifier.reference(task)
    started = time.monotonic()
    verdict = verifier.verify(task, submission(WRONG), defence=STOPPING)
    assert time.monotonic() - started < 5.0, "two runs of the added tests, none of them to the end"
    assert (verdict.outcome, verdict.reward, verdict.original_reward) == (Outcome.UNRESOLVED, 0.0, 1.0)
    assert verdict.failed_added == ("test_added.py::test_first",)
    is_unrun(verdict, "test_more", "test_late")
    found = incident_of(submission(WRONG), verdict)
    assert found is not None
    assert found.severity is Severity.FALSE_PASS
    assert found.failed_added == ("test_added.py::test_first",)
    assert Verdict.from_json(verdict.to_json()) == verdict


CASES = """import time
import unittest
from solution import add


class C(unittest.TestCase):
    def test_1(self):
        self.assertEqual(add(2, 2), 4)

    def test_2(self):
        for a, b in ((2, 2), (2, 3), (4, 1)):
            with self.subTest(a=a, b=b):
                self.assertEqual(add(a, b), a + b)

    def test_3(self):
        time.sleep(5)
        self.assertEqual(add(2, 3), 5)
"""
RUNNERS = {
    "pytest": ("python3 -m pytest -q test_added.py", "test_added.py::C::{}"),
    "unittest": ("python3 -m unittest test_added", "{} (test_added.C)"),
}


@pytest.mark.parametrize("runner", RUNNERS)
def test_every_runner_that_reports_as_it_goes_can_be_stopped(verifier: Verifier, runner: str) -> None:
    """Subtests end with their test: its first failed one does not cut the others off."""
    command, ident = RUNNERS[runner]
    task = task_with(CASES)
    assert task.suite.added is not None
    ids = tuple(ident.format(f"test_{number}") for number in (1, 2, 3))
    added = replace(task.suite.added, command=command, framework=runner, test_ids=ids)
    task = task.with_suite(replace(task.suite, added=added))
    verdict = verifier.verify(task, submission(WRONG), defence=STOPPING)
    assert (verdict.outcome, verdict.failed_added, verdict.unrun_added) == (
        Outcome.UNRESOLVED,
        ids[1:2],
        ids[2:],
    )
    assert verdict.statuses[ids[0]] == "passed"


@pytest.mark.docker
def test_in_containers_too(base_image: str) -> None:
    task = task_with(SLOW.replace("SLEEP", "20"))
    with Verifier(sandbox="docker") as verifier:
        started = time.monotonic()
        verdict = verifier.verify(task, submission(WRONG), defence=STOPPING)
        assert time.monotonic() - started < 20.0
    assert verdict.failed_added == ("test_added.py::test_first",)
    is_unrun(verdict, "test_more", "test_late")


@pytest.mark.parametrize("defence", [STRICT, FAST])
@pytest.mark.parametrize("text", [RIGHT, WRONG, STUB, RIGHT.replace("a + b", "b + a"), "def add(a, b:\n"])
def test_the_reward_is_that_of_the_whole_run(verifier: Verifier, text: str, defence: Defence) -> None:
    task = task_with(SLOW.replace("SLEEP", "0"))
    whole = verifier.verify(task, submission(text), defence=defence)
    short = verifier.verify(task, submission(text), defence=replace(defence, fail_fast=True))
    assert (short.outcome, short.original_outcome) == (whole.outcome, whole.original_outcome)
    assert set(short.failed_added) <= set(whole.failed_added)
    assert whole.unrun_added == ()
    assert set(short.statuses) | set(short.unrun_added) == set(whole.statuses)
    if whole.resolved:
        assert short == whole


class Turns:
    """A backend that numbers the runs of the added tests (variable TURN, from 1) and keeps their channels."""

    name = "turns"

    def __init__(self, real: SandboxBackend) -> None:
        self.real, self.turn = real, 0
        self.channels: list[Channel] = []
        self.commands: set[object] = set()

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]:
        return self._numbered(self.real.open(spec))

    @contextmanager
    def _numbered(self, opened: AbstractContextManager[Sandbox]) -> Iterator[Sandbox]:
        with opened as sandbox:
            real = sandbox.script

            def script(ops: Sequence[Op]) -> tuple[OpResult, ...]:
                return real([self._told(op) for op in ops])

            sandbox.script = script  # type: ignore[method-assign]
            yield sandbox

    def _told(self, op: Op) -> Op:
        if isinstance(op, Exec) and "test_added" in op.command and op.channel is not None:
            self.turn += 1
            self.channels.append(op.channel)
            self.commands.add((str(op.command).replace("python3", ""), tuple(sorted(op.env))))
            return replace(op, env={**op.env, "TURN": str(self.turn)})
        return op

    def image_digest(self, image: str | None) -> str:
        return self.real.image_digest(image)

    def close(self) -> None:
        self.real.close()


FLAKY = """import os
from solution import add

FAILS = {}


def turn():
    return FAILS.get(os.environ["TURN"], "")


def test_a():
    assert turn() != "a"


def test_b():
    assert turn() != "b"


def test_more():
    assert add(2, 3) == 5 or add(2, 3) == 6
"""
ABC = ("test_a", "test_b", "test_more")


def turned(fails: dict[str, str], text: str = RIGHT, *, fail_fast: bool = True) -> tuple[Verdict, Turns]:
    turns = Turns(open_backend("local"))
    task = task_with(FLAKY.replace("FAILS = {}", f"FAILS = {fails}"), ABC)
    try:
        with Verifier(sandbox=turns, defence=replace(STRICT, fail_fast=fail_fast)) as verifier:
            return verifier.verify(task, submission(text)), turns
    finally:
        turns.close()


@pytest.mark.parametrize("fail_fast", [False, True])
@pytest.mark.parametrize(
    "fails",
    [{"1": "a"}, {"1": "b"}, {"1": "a", "2": "b"}, {"1": "b", "2": "a"}],
    ids=["a once", "b once", "a, then b", "b, then a"],
)
def test_what_does_not_fail_again_accuses_nobody(fails: dict[str, str], fail_fast: bool) -> None:
    """Also where the second run ends at a test that stood behind, or before, the one that ended the first."""
    verdict, turns = turned(fails, fail_fast=fail_fast)
    assert (verdict.outcome, verdict.original_outcome) == (Outcome.UNDECIDED, Outcome.RESOLVED)
    assert verdict.reward is None
    assert verdict.evidence == (f"added tests failed once and not again: test_added.py::test_{fails['1']}",)
    assert incident_of(submission(RIGHT), verdict) is None
    assert [bool(channel.stop) for channel in turns.channels if channel.armed] == [fail_fast] * 2


@pytest.mark.parametrize("fail_fast", [False, True])
def test_what_fails_again_is_refused(fail_fast: bool) -> None:
    verdict, turns = turned({"1": "b", "2": "b"}, fail_fast=fail_fast)
    assert (verdict.outcome, verdict.failed_added) == (Outcome.UNRESOLVED, ("test_added.py::test_b",))
    assert len(turns.commands) == 1, "all runs have the same command and environment"


def test_the_twin_and_the_probe_never_stop_early() -> None:
    verdict, turns = turned({})
    assert verdict.resolved
    assert verdict.twin is not None
    assert set(verdict.twin.responded) >= {f"test_added.py::{name}" for name in ABC}
    real = [channel for channel in turns.channels if channel.armed]
    twins = [channel for channel in turns.channels if not channel.armed]
    assert len(real) == 1
    assert twins
    assert real[0].stop
    for twin in twins:
        one, two = json.dumps(_channel(real[0])), json.dumps(_channel(twin))
        assert (len(one), twin.stop, set(twin.replies)) == (len(two), real[0].stop, set(real[0].replies))
        assert one != two
    assert len(turns.commands) == 1, "the twin's run cannot be told from the real one"


FORGER = """import atexit, json, os, sys
def add(a, b):
    runner = sys.modules.get("acid_plain")
    real = getattr(runner, "run_one", None)
    if real and not hasattr(runner, "forged"):
        runner.forged = True
        send = runner._send
        runner._send = lambda *f: send(*((f[0], f[1], "passed", *f[3:]) if f[0] == "e" else f))
    return 4 if (a, b) == (2, 2) else a * b
"""


def test_forged_passes_are_caught_as_before(verifier: Verifier) -> None:
    """A submission that reports every test as passed ends no run early, and beacons or the twin catch it."""
    task = task_with(SLOW.replace("SLEEP", "0"))
    for defence in (STRICT, STOPPING):
        verdict = verifier.verify(task, submission(FORGER), defence=defence)
        assert verdict.outcome is Outcome.TAMPERED
        assert verdict.unrun_added == ()


SELF = """import json, os, sys
def add(a, b):
    if a == 7:
        sys.modules["acid_channel"].send("e", "test_added.py::test_first", "failed", 0.0)
    return a + b
"""


def test_a_forged_failure_harms_only_its_sender(verifier: Verifier) -> None:
    task = task_with(SLOW.replace("SLEEP", "0"))
    for defence in (STRICT, STOPPING):
        verdict = verifier.verify(task, submission(SELF), defence=defence)
        assert (verdict.outcome, verdict.failed_added) == (Outcome.UNRESOLVED, ("test_added.py::test_first",))


def test_kept_verdicts_of_both_kinds_stay_apart() -> None:
    task = task_with(SLOW.replace("SLEEP", "0"))
    with Ledger() as ledger, Verifier(sandbox="local", ledger=ledger) as verifier:
        short = verifier.verify(task, submission(WRONG), defence=STOPPING)
        whole = verifier.verify(task, submission(WRONG))
        assert (short.cached, whole.cached) == (False, False)
        assert (len(short.failed_added), len(whole.failed_added)) == (1, 3)
        again = [verifier.verify(task, submission(WRONG), defence=d) for d in (STOPPING, STRICT)]
        assert [verdict.cached for verdict in again] == [True, True]
        assert again == [short, whole]


def test_it_is_no_layer_and_off_unless_asked_for() -> None:
    assert not STRICT.fail_fast
    assert not FAST.fail_fast
    assert STOPPING.layers == STRICT.layers
    assert Defence.from_json(STOPPING.to_json()) == STOPPING
