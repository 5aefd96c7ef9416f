"""Added tests stand in the order of their past kill rate, in files, command and ids, and still are the same tests."""

from __future__ import annotations

import ast
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from acidtest.envs.defence import STRICT
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.run import Status
from acidtest.envs.task import AddedTests
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.envs.verify import Verifier
from acidtest.repair.gates.trial import AddedRun, GateLimits
from acidtest.repair.lock import hardened, load_lock
from acidtest.repair.loop import _proven
from acidtest.repair.order import Kills, cost_class, in_order, moved
from acidtest.repair.repair import repair
from acidtest.scripts import measure_fail_fast
from acidtest.verifiers.audit import audit

FILE = '''"""Title."""

import pytest
from solution import f


def test_a():
    assert f(1) == 1


# why b
# is here
@pytest.mark.parametrize("x", [1, 2])
def test_b(x):
    assert f(x) == x


async def test_c():
    assert f("\\x0c") == """
def test_a(): no test
"""


class TestD:
    def helper(self):
        return 1

    def test_x(self):
        assert f(3)

    def test_y(self):
        assert f(4)


if __name__ == "__main__":
    test_a()
    print("between")
    test_c()'''
IDS = (
    "t.py::test_a",
    "t.py::test_b[1]",
    "t.py::test_b[2]",
    "t.py::test_c",
    "t.py::TestD::test_x",
    "t.py::TestD::test_y",
)


def kills(cost: dict[str, int] | None = None, **by_name: str) -> Kills:
    """kills(a="12") : t.py::test_a refused programs 1 and 2."""
    by_id = {f"t.py::{name}": frozenset(programs) for name, programs in by_name.items()}
    return Kills(of=4, by_id=by_id, cost=cost or {})


def named(*names: str) -> Kills:
    """The first refuses most."""
    return Kills(of=9, by_id={f"t.py::{n}": frozenset("123456789"[k:]) for k, n in enumerate(names)})


def added(text: str = FILE, ids: tuple[str, ...] = IDS, **fields: object) -> AddedTests:
    made = AddedTests(
        command="python -m pytest -q t.py", framework="pytest", test_files={"t.py": text}, test_ids=ids
    )
    return replace(made, **fields)  # type: ignore[arg-type]


def defined(text: str) -> list[str]:
    return [
        n.name
        for n in ast.parse(text).body
        if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
    ]


def test_files_and_ids_carry_the_order() -> None:
    done = in_order(added(), named("TestD::test_y", "test_c", "test_b[2]", "test_a", "test_b[1]"))
    text = done.test_files["t.py"]
    assert defined(text) == ["TestD", "test_c", "test_b", "test_a"]
    assert done.test_ids == (
        "t.py::TestD::test_y",
        "t.py::TestD::test_x",
        "t.py::test_c",
        "t.py::test_b[1]",
        "t.py::test_b[2]",
        "t.py::test_a",
    )
    assert "# why b\n# is here\n@pytest.mark.parametrize" in text, "the comment goes with its test"
    assert text.endswith('    test_c()\n    print("between")\n    test_a()\n')
    assert sorted(text.split()) == sorted(FILE.split())
    assert in_order(done, named("TestD::test_y", "test_c", "test_b[2]", "test_a", "test_b[1]")) == done


def test_ties_go_by_cost_then_name() -> None:
    text = "".join(f"def test_{name}():\n    pass\n\n\n" for name in "dcba")
    ids = tuple(f"t.py::test_{name}" for name in "dcba")
    even = {ident: frozenset("1") for ident in ids}
    done = in_order(added(text, ids), Kills(of=2, by_id=even, cost={"t.py::test_a": 2, "t.py::test_c": 1}))
    assert defined(done.test_files["t.py"]) == ["test_b", "test_d", "test_c", "test_a"]
    assert done.test_ids == tuple(f"t.py::test_{name}" for name in "bdca")
    assert [cost_class(s) for s in (0, 0.24, 0.25, 0.99, 1, 4, 1e9)] == [0, 0, 1, 1, 2, 3, 12]
    assert Kills(of=2, by_id=even).rates == dict.fromkeys(ids, 0.5)


@pytest.mark.parametrize(
    "text",
    [
        "def test_a():\n    pass\ntest_a.mark = 1\ndef test_b():\n    pass\n",
        "def test_a():\n    pass\ndef deco(f):\n    return f\n@deco\ndef test_b():\n    pass\n",
        "def test_a():\n    pass\ndef test_b(x=test_a):\n    pass\n",
        "class TestA:\n    pass\nclass TestB(TestA):\n    def test_b(self):\n        pass\n",
        "def test_b():\n    pass\ndef test_a():\n    pass\ndef test_b():\n    pass\n",
        "def test_a():\r\n    pass\r\ndef test_b():\r\n    pass\r\n",
        "def test_a(:\n",
        "def test_b():\n    pass",
    ],
    ids=["used between", "decorator between", "default", "base", "same name", "returns", "no Python", "one"],
)
def test_what_cannot_be_moved_safely_stays(text: str) -> None:
    ids = ("t.py::test_a", "t.py::test_b", "t.py::TestB::test_b")
    assert moved(text, "t.py", ids, named("test_b", "TestB::test_b", "test_a")) == text


def test_helpers_between_the_tests_stay_where_they_are() -> None:
    text = "def test_a():\n    pass\n\n\nX = 1\n\n\ndef test_b():\n    assert X"
    done = moved(text, "t.py", ("t.py::test_a", "t.py::test_b"), named("test_b", "test_a"))
    assert done == "def test_b():\n    assert X\n\n\nX = 1\n\n\ndef test_a():\n    pass\n"


def test_the_command_names_the_best_file_first() -> None:
    texts = dict.fromkeys(("t.py", "u.py", "v.py"), "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n")
    ids = tuple(f"{path}::test_{name}" for path in texts for name in "ab")
    suite = added(ids=ids, test_files=texts, command="python -m pytest -q t.py u.py -x v.py")
    best = Kills(of=3, by_id={"v.py::test_b": frozenset("123"), "u.py::test_a": frozenset("1")})
    done = in_order(suite, best)
    assert done.command == "python -m pytest -q v.py u.py -x t.py"
    assert done.test_ids[:3] == ("v.py::test_b", "v.py::test_a", "u.py::test_a")
    assert defined(done.test_files["v.py"]) == ["test_b", "test_a"]
    nodes = replace(suite, command="pytest t.py::test_a v.py::test_b")
    assert in_order(nodes, best).command == "pytest v.py::test_b t.py::test_a"
    for odd in ("pytest t.py && pytest v.py", "pytest t.py v.py t.py"):
        assert in_order(replace(suite, command=odd), best).command == odd


def test_where_the_runner_sorts_only_the_ids_do() -> None:
    ids = ("test_a (t.C)", "test_b (t.C)")
    suite = added(ids=ids, framework="unittest", command="python -m unittest t")
    done = in_order(suite, Kills(of=1, by_id={"test_b (t.C)": frozenset("1")}))
    assert done == replace(suite, test_ids=ids[::-1])


class OnlyFirst:
    """A bench where `all` is refused by test_b, and `state` by whatever test runs first, if that is test_a."""

    def __init__(self) -> None:
        self.task = SimpleNamespace(gold_patch="gold")

    def failed(self, patch: Patch, tests: AddedTests) -> tuple[str, ...]:
        bad = {"all": tests.test_ids[1:] if tests.test_ids[0].endswith("a") else tests.test_ids[:1]}
        bad["state"] = tests.test_ids[:1] if tests.test_ids[0].endswith("test_a") else ()
        return bad.get(patch.text, ())

    def run(self, patch: Patch, tests: AddedTests, *, repeat: int = 0) -> AddedRun:
        failed = self.failed(patch, tests)
        statuses = {i: Status.FAILED if i in failed else Status.PASSED for i in tests.test_ids}
        return AddedRun(outcome=Outcome.UNRESOLVED if failed else Outcome.RESOLVED, statuses=statuses)

    def whole(self, patch: Patch, tests: AddedTests, *, repeat: int = 0) -> Verdict:
        failed = self.failed(patch, tests)
        outcome = Outcome.UNRESOLVED if failed else Outcome.RESOLVED
        return Verdict(
            task_id="t",
            patch_digest="",
            suite_digest="",
            outcome=outcome,
            original_outcome=Outcome.RESOLVED,
            failed_added=failed,
        )


@pytest.mark.parametrize(("programs", "first"), [(("all",), "test_b"), (("all", "all", "state"), "test_a")])
def test_the_order_that_refuses_more_is_locked(programs: tuple[str, ...], first: str) -> None:
    """A program that keeps state between calls can get past the better order: then the tests stay as they were."""
    text = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"
    names = [f"{name}{number}" for number, name in enumerate(programs)]
    findings = [
        SimpleNamespace(candidate=SimpleNamespace(candidate_id=name, patch=Patch(name[:-1])))
        for name in names
    ]
    tries = [SimpleNamespace(result=SimpleNamespace(passed=True, blocked=tuple(names)))]
    state: Any = SimpleNamespace(added=added(text, ("t.py::test_a", "t.py::test_b")), tries=tries)
    job: Any = SimpleNamespace(bench=OnlyFirst(), correct={}, limits=GateLimits())
    locked, proof = _proven(job, state, findings)  # type: ignore[arg-type]
    assert defined(locked.test_files["t.py"])[0] == first
    assert set(proof.blocked) == set(names)
    assert proof.kill_rates["t.py::test_b"] > proof.kill_rates["t.py::test_a"]


def test_a_repair_locks_the_best_killer_first(tmp_path: Path) -> None:
    """Of a real repair: the locked tests, run to the end against every proven program, refuse less and less."""
    (task,) = load_tasks("toy", task_ids=["toy/too_narrow"])
    found = audit([task], out=tmp_path / "run", sandbox="local", attackers=("recipes",), jobs=1)
    report = repair(found, reaudit=False, sandbox="local", jobs=1)
    entry = load_lock(tmp_path / "run").entries[task.task_id]
    assert report.repaired
    assert entry.suite.added is not None
    ((path, text),) = entry.suite.added.test_files.items()
    assert [f"{path}::{name}" for name in defined(text)] == list(entry.suite.added.test_ids)
    served = hardened(task, load_lock(tmp_path / "run"))
    findings = found.records[0].findings
    wrong = {f.candidate.candidate_id: f.candidate.patch for f in findings if f.standing == "proven"}
    counts = dict.fromkeys(entry.suite.added.test_ids, 0)
    complete = replace(STRICT, twin=0.0, probe=False, repeat=False)
    with Verifier(sandbox="local", defence=complete) as verifier:
        for patch in wrong.values():
            whole = verifier.verify(served, patch)
            short = verifier.verify(served, patch, defence=replace(complete, fail_fast=True))
            assert (short.outcome, short.failed_added) == (whole.outcome, whole.failed_added[:1])
            for ident in whole.failed_added:
                counts[ident] += 1
    assert list(counts.values()) == sorted(counts.values(), reverse=True)
    assert len(set(counts.values())) > 1, "an order that says something"
    rates = {ident: round(n / len(wrong), 4) for ident, n in counts.items()}
    assert entry.proof["kill_rates"] == rates
    proposed = next(one.proposal.added for one in report.records[0].tries if one.result.passed)
    assert sorted(proposed.test_ids) == sorted(counts)
    assert proposed.test_ids != entry.suite.added.test_ids, "it was not in that order before"


def test_the_measurement_finds_the_same_rewards(repaired: Path, tmp_path: Path) -> None:
    rows = tmp_path / "rows.jsonl"
    argv = [str(repaired), "--rounds", "1", "--limit", "5", "--rows", str(rows), "--slow", "0.3"]
    assert measure_fail_fast.main([*argv, "--defence", "fast"]) == 0
    found = [json.loads(line) for line in rows.read_text().splitlines()]
    assert {row["reward"] for row in found} == {0.0, 1.0}
    wrong = [row for row in found if row["kind"] == "proven wrong"]
    assert {(row["fail_fast"], row["unrun"]) for row in wrong} == {(False, 0), (True, 1)}
    assert all(row["added_seconds"] > 0.3 for row in found if not (row["fail_fast"] and row in wrong))
    assert measure_fail_fast.disagreements(found) == []
    other = {**wrong[0], "reward": 1.0}
    assert measure_fail_fast.disagreements([*found, other]) == [f"{other['task_id']} {other['program']}"]
    assert measure_fail_fast.summary([*found, other])[-2] == "programs whose rewards differ: 1"
