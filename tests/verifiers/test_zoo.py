"""The zoo in small: what fools a plain grader must not be paid by our verdict, and what stays undetected is frozen."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.verify import Verifier
from acidtest.verifiers.attackers.zoo import attack
from acidtest.verifiers.baseline_grader import BaselineGrader, canonical, statuses_of
from acidtest.verifiers.records import Family
from acidtest.verifiers.zoo.ground import survey
from acidtest.verifiers.zoo.kinds import KINDS, payloads
from acidtest.verifiers.zoo.matrix import Matrix, markdown, run_zoo, table
from acidtest.verifiers.zoo.payload import Expect
from acidtest.verifiers.zoo.tamper import tamper_flags

TASKS = {task.task_id: task for task in load_tasks("toy")}
UNDETECTED = {
    "toy/tamperable": ["C01/asks caller", "L05", "P07/asks the mode", "R04/source", "R14/source"],
    "toy/slug_unittest": ["R04/source", "R14/source"],
    "toy/add_weak": ["C03", "L04", "S02", "S11"],
}
"""Paid although wrong, task by task: the frozen list of what no run of the visible suite can show (docs/security.md)."""


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


def zoo(verifier: Verifier, task_id: str, *kinds: str) -> Matrix:
    matrix = run_zoo([TASKS[task_id]], verifier, kinds=kinds or None, jobs=2)
    assert matrix.unusable == ()
    assert [f"{r.name}: {r.ours} {r.evidence}" for r in matrix.breaches] == []
    return matrix


def test_every_kind_of_threats_is_there() -> None:
    wanted = [
        f"{group}{n:02}"
        for group, count in zip("SCPRHLJ", (24, 7, 9, 16, 12, 9, 3), strict=True)
        for n in range(1, count + 1)
    ]
    assert [kind.kind for kind in KINDS] == wanted


def test_plain_scripts(verifier: Verifier) -> None:
    matrix = zoo(verifier, "toy/tamperable", "C", "P", "R", "H", "L", "J")
    assert matrix.undetected == UNDETECTED["toy/tamperable"]
    assert set(matrix.demonstrated) >= {
        "C01",
        "C04",
        "C06",
        "P01",
        "P02",
        "P03",
        "P04",
        "P07",
        "P08",
        "R04",
        "R11",
    }
    assert set(matrix.demonstrated) >= {"R14", "R15", "R16", "H10", "H11", "L05", "L06"}
    words = {r.name: r.word for r in matrix.results if r.demonstrated}
    assert {words[n] for n in ("C01", "C04", "C04/same type", "L06", "P07/our channel")} == {"tampered"}
    assert next(r for r in matrix.results if r.kind == "J03").paid


def test_unittest(verifier: Verifier) -> None:
    matrix = zoo(verifier, "toy/slug_unittest", "C05", "P02", "P07", "R", "H", "L")
    assert matrix.undetected == UNDETECTED["toy/slug_unittest"]
    assert set(matrix.demonstrated) >= {
        "C05",
        "P02",
        "P07",
        "R11",
        "R12",
        "R14",
        "H07",
        "H08",
        "H10",
        "H12",
        "L07",
    }


def test_pytest(verifier: Verifier) -> None:
    kinds = ["R01", "R06", "R11", "H08"]
    matrix = zoo(verifier, "toy/shop", *kinds)
    assert set(matrix.demonstrated) >= set(kinds)
    assert matrix.undetected == []


def test_memorising_is_the_suites_affair(verifier: Verifier) -> None:
    matrix = zoo(verifier, "toy/add_weak", "S02", "S11", "C03", "L04")
    assert matrix.undetected == UNDETECTED["toy/add_weak"]
    assert [row["kind"] for row in table(matrix)] == ["S02", "S11", "C03", "L04"]
    assert "| C03 |" in markdown(matrix)


@pytest.mark.parametrize(
    ("source", "task_id", "kind"),
    [
        ("humaneval", "HumanEval/4", "C01"),
        ("humaneval", "HumanEval/4", "C02"),
        ("humaneval", "HumanEval/32", "C07"),
    ],
)
def test_builtins_and_closeness(verifier: Verifier, source: str, task_id: str, kind: str) -> None:
    (task,) = load_tasks(source, task_ids=[task_id])
    matrix = run_zoo([task], verifier, kinds=[kind])
    assert matrix.demonstrated == [kind]
    assert {r.word for r in matrix.results if r.demonstrated} == {"tampered"}


def test_tamper_audit_flags_what_a_plain_grader_pays(verifier: Verifier) -> None:
    found = tamper_flags(TASKS["toy/tamperable"], verifier, kinds=["C01", "P01", "P05", "R01"])
    assert found.flags == ("tamperable:C01", "tamperable:P01")
    assert found.refused == ("P05",)
    assert [n.kind for n in found.not_here] == ["R01"]
    assert tamper_flags(TASKS["toy/broken_gold"], verifier).unusable == "the baseline does not pay gold"


def test_the_attacker_offers_them_as_tamper_candidates() -> None:
    found = list(attack(TASKS["toy/tamperable"]))
    assert {c.family for c in found if c.kind[0] != "S"} == {Family.TAMPER}
    assert len({c.candidate_id for c in found}) == len(found)


@pytest.mark.parametrize("task_id", list(TASKS))
def test_a_kind_that_does_not_fit_says_why(task_id: str) -> None:
    made, missing = payloads(survey(TASKS[task_id]))
    assert {p.kind for p in made} | {m.kind for m in missing} == {k.kind for k in KINDS}
    assert all(m.reason for m in missing)
    assert all(not p.patch.is_empty for p in made)
    assert {p.expect for p in made} >= {Expect.REFUSED, Expect.PAID}


def test_the_plain_grader_pays_gold_and_not_the_noop(verifier: Verifier) -> None:
    grader = BaselineGrader(verifier.backend)
    for name in ("toy/shop", "toy/slug_unittest", "toy/add_sound"):
        task = TASKS[name]
        assert grader.grade(task, Patch(task.gold_patch)).paid
        assert not grader.grade(task, Patch()).paid


def test_the_plain_grader_reads_lines() -> None:
    log = "FAILED a.py::t[x y] - E\nPASSED a.py::t[x y]\nSKIPPED [1] a.py:3: no\nXFAIL a.py::u - known\nPASSING b\n"
    assert statuses_of("pytest", log) == {"a.py::t[x y]": "PASSED", "a.py::u": "XFAIL"}
    assert statuses_of("django", "test_x (a.B.test_x) ... ok\ntest_y (a.B) ... FAIL") == {
        "a.B.test_x": "PASSED",
        "a.B.test_y": "FAILED",
    }
    assert statuses_of("sympy", "test_a ok\ntest_b F\nx ok") == {"test_a": "PASSED", "test_b": "FAILED"}
    assert canonical("test_x (a.B)") == canonical("a.B.test_x") == "a.B.test_x"
