"""Recorded calls: regressions are proven, gold's own changes, private helpers and equal programs are not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.patch import Patch
from acidtest.envs.protocols import SandboxBackend
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Suite, Task
from acidtest.verifiers.oracle.recorded import RecordedOracle, changed_functions, recorder_source
from acidtest.verifiers.records import Candidate, Family, Standing, WitnessKind
from acidtest.verifiers.source import SourceTree

BASE = """\
class Cart:
    def __init__(self):
        self.paid = 0

    def pay(self, amount):
        self.paid = self.paid + amount


def total(prices, tax):
    return sum(prices)


def _net(prices):
    return sum(prices)
"""
GOLD = (
    BASE.replace("    return sum(prices)\n\n\n", "    return _net(prices) * (1 + tax)\n\n\n")
    .replace("self.paid + amount", "self.paid + max(amount, 0)")
    .replace("def _net(prices):\n    return", "def _net(prices):\n    # the sum\n    return")
)
TESTS = """\
from shop import Cart, total


def test_total():
    assert total([10], 0.5) == 15
    assert total([1, 2], 0) is not None
    cart = Cart()
    cart.pay(5)
    cart.pay(-5)
    assert cart.paid >= 5


if __name__ == "__main__":
    test_total()
"""


@pytest.fixture(scope="module")
def oracle() -> Iterator[RecordedOracle]:
    backend: SandboxBackend = open_backend("local")
    made = RecordedOracle(task(), backend)
    assert made.prepare() >= 4
    yield made
    backend.close()


def task() -> Task:
    return Task(
        task_id="written/shop",
        dataset="written",
        prompt="Tax is ignored, and negative payments count.",
        suite=Suite(
            command="python test_shop.py",
            framework="plain",
            test_files={"test_shop.py": TESTS},
            fail_to_pass=("test_shop.py::test_total",),
        ),
        gold_patch=Patch.writing({"shop.py": GOLD}, {"shop.py": BASE}).text,
        files={"shop.py": BASE},
    )


def candidate(old: str, new: str) -> Candidate:
    assert old in GOLD
    patch = Patch.writing({"shop.py": GOLD.replace(old, new)}, {"shop.py": BASE})
    return Candidate(task_id="written/shop", patch=patch, kind="x", family=Family.MUTANT, origin="test")


def test_changed_functions_are_those_that_gold_touches() -> None:
    found = changed_functions(task(), SourceTree(task()))
    assert found == {"shop.py": ["Cart.pay", "total", "_net"]}


def test_a_regression_is_proven_by_a_call_that_the_suite_makes(
    oracle: RecordedOracle, tmp_path: Path
) -> None:
    wrong = candidate("* (1 + tax)", "* (1 + tax) if tax else 0")
    ((_, witnesses, standing, _),) = oracle.prove([wrong])
    assert standing is Standing.PROVEN
    assert witnesses[0].kind is WitnessKind.VALUE
    assert (witnesses[0].expected, witnesses[0].observed) == ("3", "0")
    for text, code in ((GOLD, 0), (GOLD.replace("* (1 + tax)", "* (1 + tax) if tax else 0"), 1)):
        (tmp_path / "shop.py").write_text(text)
        (tmp_path / "check.py").write_text(witnesses[0].test + "\ntest_recorded_call()\n")
        done = subprocess.run(
            [sys.executable, "-B", "check.py"], cwd=tmp_path, capture_output=True, check=False
        )
        assert done.returncode == code


def test_what_a_method_leaves_behind_counts(oracle: RecordedOracle) -> None:
    ((_, witnesses, standing, _),) = oracle.prove(
        [candidate("self.paid + max(amount, 0)", "9 + max(amount, 0)")]
    )
    assert standing is Standing.PROVEN
    assert witnesses[0].kind is WitnessKind.MUTATION


def test_where_base_and_gold_disagree_nothing_is_proven(oracle: RecordedOracle) -> None:
    """The issue asks for a change there, so only its text can say what is right: a lead."""
    ((_, witnesses, standing, reasons),) = oracle.prove([candidate("max(amount, 0)", "abs(amount)")])
    assert standing is Standing.LEAD
    assert witnesses == ()
    assert "differs from gold" in reasons[0]


def test_private_helpers_and_equal_programs_are_leads(oracle: RecordedOracle) -> None:
    equal = candidate("(1 + tax)", "(tax + 1)")
    private = candidate(
        "    # the sum\n    return sum(prices)", "    return sum(prices) or 0.0 if len(prices) < 2 else 3.5"
    )
    results = oracle.prove([equal, private])
    assert [standing for _, _, standing, _ in results] == [Standing.LEAD, Standing.PROVEN]
    assert "no difference" in results[0][3][0]
    assert all("_net" not in w.call for w in results[1][1])


def test_an_alternative_that_differs_there_vetoes_the_proof() -> None:
    backend = open_backend("local")
    other = Patch.writing(
        {"shop.py": GOLD.replace("* (1 + tax)", "* (1 + tax) or 7 if tax else 4")}, {"shop.py": BASE}
    )
    vetoed = RecordedOracle(task(), backend, alternatives=[other])
    vetoed.prepare()
    ((_, _, standing, _),) = vetoed.prove([candidate("* (1 + tax)", "* (1 + tax) if tax else 0")])
    backend.close()
    assert standing is Standing.LEAD


def test_the_recorder_is_one_standard_library_script() -> None:
    compile(recorder_source(), "recorder.py", "exec")
    assert "from ." not in recorder_source()
