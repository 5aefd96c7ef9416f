"""R2E-Gym's published reward rule on hand-made logs and status maps, every odd case with the answer worked out by hand."""

from __future__ import annotations

import pytest

from acidtest.envs import r2e_rule
from acidtest.envs.errors import TaskError
from acidtest.envs.run import Status, SuiteRun

HEAD = "============ short test summary info ============\n"
T = "r2e_tests/test_1.py::"

LOGS = [
    ("plain", f"{HEAD}PASSED {T}test_a\nFAILED {T}TestB::test_c - assert 1 == 2\n", {"test_a": "PASSED", "TestB.test_c": "FAILED"}),
    ("no summary", f"PASSED {T}test_a\n", {}),
    ("empty", "", {}),
    ("before the summary", f"FAILED {T}test_z\n{HEAD}PASSED {T}test_a\n", {"test_a": "PASSED"}),
    ("second summary is not read", f"{HEAD}PASSED {T}test_a\n{HEAD}FAILED {T}test_b\n", {"test_a": "PASSED"}),
    ("skipped, xfail and xpass say nothing", f"{HEAD}SKIPPED [1] {T}4: no\nXFAIL {T}test_x\nXPASS {T}test_y\nPASSED {T}test_a\n", {"test_a": "PASSED"}),
    ("file is dropped, so names collide; the later line wins", f"{HEAD}PASSED {T}test_a\nFAILED r2e_tests/test_2.py::test_a - no\n", {"test_a": "FAILED"}),
    ("error with a test", f"{HEAD}ERROR {T}test_a - fixture 'x' not found\n", {"test_a": "ERROR"}),
    ("collection error has no key", f"{HEAD}ERROR r2e_tests/test_1.py - ImportError: x\n", {"": "ERROR"}),
    ("passes and errors at teardown", f"{HEAD}PASSED {T}test_a\nERROR {T}test_a - teardown\n", {"test_a": "ERROR"}),
    ("a message that says PASSED turns a failure into a pass", f"{HEAD}FAILED {T}test_a - RuntimeError: PASSED\n", {"test_a - RuntimeError: PASSED": "PASSED"}),
    ("a message with :: becomes part of the key", f"{HEAD}PASSED {T}test_a[x::y]\n", {"test_a[x.y]": "PASSED"}),
    ("colours and carriage returns go", f"{HEAD}\x1b[32mPASSED\x1b[0m {T}\x1b[1mtest_a\x1b[0m\r\n", {"test_a": "PASSED"}),
    ("parameter with a dash: only failures are cut", f"{HEAD}PASSED {T}test_a[x - y]\nFAILED {T}test_b[x - y] - no\n", {"test_a[x - y]": "PASSED", "test_b[x": "FAILED"}),
    ("last line in lower case is ignored", f"{HEAD}PASSED {T}test_a\n==== 1 passed, 2 failed ====\n", {"test_a": "PASSED"}),
    ("an error in a failing test's name", f"{HEAD}FAILED {T}test_ERROR\n", {"test_ERROR": "FAILED"}),
    ("a failing test named PASSED", f"{HEAD}FAILED {T}test_PASSED - no\n", {"test_PASSED - no": "PASSED"}),
]  # fmt: skip

MAPS = [
    ("equal", {"a": "PASSED"}, {"a": "PASSED"}, 1.0),
    ("expected failure still fails", {"a": "PASSED", "b": "FAILED"}, {"a": "PASSED", "b": "FAILED"}, 1.0),
    ("expected failure passes now", {"a": "PASSED", "b": "PASSED"}, {"a": "PASSED", "b": "FAILED"}, 0.0),
    ("expected error fails instead", {"b": "FAILED"}, {"b": "ERROR"}, 0.0),
    ("expected error", {"b": "ERROR"}, {"b": "ERROR"}, 1.0),
    ("one more than expected", {"a": "PASSED", "x": "PASSED"}, {"a": "PASSED"}, 0.0),
    ("one less than expected", {}, {"a": "PASSED"}, 0.0),
    ("same count, another name", {"x": "PASSED"}, {"a": "PASSED"}, 0.0),
    ("nothing expected, nothing ran", {}, {}, 1.0),
    ("collection error where a test was expected", {"": "ERROR"}, {"a": "PASSED"}, 1.0),
    ("collection error beside the rest", {"": "ERROR", "a": "PASSED"}, {"a": "PASSED", "b": "PASSED"}, 1.0),
    ("empty key expected, its status does not count", {"": "PASSED"}, {"": "ERROR"}, 1.0),
    ("colours in the expected keys", {"a": "PASSED"}, {"\x1b[1ma\x1b[0m": "PASSED"}, 1.0),
    ("both sides are cut at the dash", {"a[x - y]": "PASSED"}, {"a[x": "PASSED"}, 1.0),
    ("cutting makes keys collide, the later in order wins", {"a - 1": "FAILED", "a - 2": "PASSED"}, {"a": "PASSED"}, 1.0),
    ("the same the other way round", {"a - 1": "PASSED", "a - 2": "FAILED"}, {"a": "PASSED"}, 0.0),
    ("status is compared as it stands", {"a": "passed"}, {"a": "PASSED"}, 0.0),
]  # fmt: skip


@pytest.mark.parametrize(("name", "log", "statuses"), LOGS, ids=[case[0] for case in LOGS])
def test_log_is_read_as_published(name: str, log: str, statuses: dict[str, str]) -> None:
    assert r2e_rule.parse_log(log) == statuses


@pytest.mark.parametrize(("name", "parsed", "expected", "paid"), MAPS, ids=[case[0] for case in MAPS])
def test_reward_is_the_published_one(
    name: str, parsed: dict[str, str], expected: dict[str, str], paid: float
) -> None:
    assert r2e_rule.reward(parsed, expected) == paid


def test_a_failure_whose_message_says_passed_is_paid_by_the_original_rule() -> None:
    """The exploit that the rule has: documented, reproduced, and refused by the strict verdict."""
    log = f"{HEAD}FAILED {T}test_a - RuntimeError: PASSED\n"
    run = SuiteRun(log=log, statuses={f"{T}test_a": Status.FAILED}, exit_code=1)
    assert r2e_rule.original_reward(run, {"test_a": "PASSED"}) == 1.0


def test_runs_without_a_summary() -> None:
    """Cut off by the limit: no statuses, so 0 unless nothing was expected. A log we shortened: statuses stand in."""
    statuses = {f"{T}test_a": Status.PASSED, f"{T}test_b": Status.SKIPPED, f"{T}TestC::test_d": Status.FAILED}
    expected = {"test_a": "PASSED", "TestC.test_d": "FAILED"}
    assert r2e_rule.original_reward(SuiteRun(timed_out=True, statuses=statuses), expected) == 0.0
    assert r2e_rule.original_reward(SuiteRun(statuses=statuses, log="died"), expected) == 0.0
    shortened = SuiteRun(statuses=statuses, log="head … tail", log_truncated=True)
    assert r2e_rule.original_reward(shortened, expected) == 1.0
    assert r2e_rule.original_reward(SuiteRun(log="head … tail", log_truncated=True), expected) is None


def test_statuses_collapse_like_the_log() -> None:
    """Same name in two files: pytest prints passes, errors, failures in this order, and the last line wins."""
    statuses = {"a.py::t": Status.FAILED, "b.py::t": Status.PASSED, "c.py::t": Status.ERROR}
    assert r2e_rule.parsed_statuses(statuses) == {"t": "FAILED"}


@pytest.mark.parametrize("text", ["[1]", "{", '{"a": 1}'])
def test_expected_must_be_a_map_of_names(text: str) -> None:
    with pytest.raises(TaskError, match="expected_output_json"):
        r2e_rule.read_expected(text)
