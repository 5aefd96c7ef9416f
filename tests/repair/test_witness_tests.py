"""What proved a repository's programs wrong becomes tests of its suite, run as the suite is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from acidtest.envs.patch import Patch
from acidtest.envs.protocols import SandboxBackend
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Suite, Task
from acidtest.envs.verdict import Outcome, Verdict
from acidtest.envs.verify import Verifier
from acidtest.repair.augmenters import differential
from acidtest.repair.bench import VerifierBench
from acidtest.repair.loop import Job, repair_task
from acidtest.repair.records import Check, GateResult, RepairStatus, Try
from acidtest.repair.witness_tests import added_of, only
from acidtest.verifiers.oracle.recorded import RecordedOracle
from acidtest.verifiers.records import Candidate, Family, Finding, Standing, Witness, WitnessKind

BASE = "def area(a, b):\n    return a + b\n\n\ndef shown(items):\n    return ', '.join(items)\n"
GOLD = BASE.replace("a + b", "a * b").replace("join(items)", "join(map(str, items))")
WRONG = GOLD.replace("', '.join", "','.join")
TESTS = """\
from shapes import area, shown


def test_area():
    assert area(2, 3) == 6


def test_shown():
    assert shown(['a', 'b'])
    assert shown([1]) == '1'


if __name__ == "__main__":
    test_area()
    test_shown()
"""
TASK = Task(
    task_id="written/shapes",
    dataset="written",
    prompt="An area is the product of its sides. Items are shown with a comma and a blank between them.",
    suite=Suite(
        command="python test_shapes.py",
        framework="plain",
        test_files={"test_shapes.py": TESTS},
        fail_to_pass=("test_shapes.py::test_area", "test_shapes.py::test_shown"),
    ),
    gold_patch=Patch.writing({"shapes.py": GOLD}, {"shapes.py": BASE}).text,
    files={"shapes.py": BASE},
)
CANDIDATE = Candidate(
    task_id=TASK.task_id,
    patch=Patch.writing({"shapes.py": WRONG}, {"shapes.py": BASE}),
    kind="S22",
    family=Family.MUTANT,
    origin="test",
)


@pytest.mark.parametrize(
    ("command", "wanted"),
    [
        ("python -m pytest -q tests", "python -m pytest -q new.py"),
        (
            "PYTHONWARNINGS='ignore' .venv/bin/python -W ignore -m pytest -rA r2e_tests",
            "PYTHONWARNINGS='ignore' .venv/bin/python -W ignore -m pytest -rA new.py",
        ),
        (
            ". /opt/miniconda3/bin/activate testbed && pytest -rA -p no:cacheprovider a/test_b.py 'c.py::t[1]'",
            ". /opt/miniconda3/bin/activate testbed && pytest -rA -p no:cacheprovider new.py",
        ),
        ("pytest", "pytest new.py"),
    ],
)
def test_other_files_in_place_of_the_suites_own(command: str, wanted: str) -> None:
    assert only(command, ["new.py"]) == wanted


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    opened = open_backend("local")
    yield opened
    opened.close()


def finding(witness: Witness) -> Finding:
    verdict = Verdict(
        task_id=TASK.task_id,
        outcome=Outcome.RESOLVED,
        original_outcome=Outcome.RESOLVED,
        patch_digest=CANDIDATE.patch.digest,
        suite_digest=TASK.suite.digest,
    )
    return Finding(candidate=CANDIDATE, verdict=verdict, standing=Standing.PROVEN, witnesses=(witness,))


def test_a_recorded_call_repairs_a_suite_that_makes_it_and_does_not_look(backend: SandboxBackend) -> None:
    """The suite calls `shown` with two items and asks only whether there is a result: the witness asks for it."""
    oracle = RecordedOracle(TASK, backend)
    assert oracle.prepare() >= 2
    ((_, witnesses, standing, _),) = oracle.prove([CANDIDATE])
    assert standing is Standing.PROVEN
    with Verifier(sandbox=backend) as verifier:
        assert verifier.verify(TASK, CANDIDATE.patch).resolved, "the suite pays it"
        bench = VerifierBench(TASK, verifier)
        job = Job(
            task=TASK,
            findings=[finding(witnesses[0])],
            bench=bench,
            augmenters={"differential": differential.propose},
        )
        record, added, proof = repair_task(job)
    assert record.status is RepairStatus.REPAIRED, record.tries
    assert proof is not None
    assert proof.holds
    assert added is not None
    assert added.command == "python test_hardened_written_shapes_1.py"
    (text,) = added.test_files.values()
    assert "shown(['a', 'b'])" in text, "readable: the call as one would write it"


def test_a_pytest_suite_gets_them_in_its_own_folder_and_by_its_own_command() -> None:
    command = ".venv/bin/python -W ignore -m pytest -rA r2e_tests"
    suite = Suite(command=command, framework="pytest", test_files={"r2e_tests/test_1.py": TESTS})
    test = "def test_b():\n    assert 2\n"
    witness = Witness(kind=WitnessKind.TEST, call="b", expected="2", observed="3", test=test)
    added = added_of(replace(TASK, suite=suite), [witness, witness])
    paths = ["r2e_tests/test_hardened_written_shapes_1.py", "r2e_tests/test_hardened_written_shapes_2.py"]
    assert added.framework == "pytest"
    assert added.command == f".venv/bin/python -W ignore -m pytest -rA {' '.join(paths)}"
    assert added.test_ids == (f"{paths[0]}::test_b", f"{paths[1]}::test_b_2"), "R2E-Gym drops the file's name"


def test_what_a_gate_refused_is_not_proposed_again() -> None:
    good = Witness(
        kind=WitnessKind.TEST,
        call="test_a",
        expected="passes",
        observed="fails",
        test="def test_a():\n    assert 1\n",
        rating=0.5,
        citation="so",
    )
    best = replace(good, test="def test_b():\n    assert 2\n", rating=0.9)
    held = replace(finding(good), witnesses=(good, best))
    (first,) = differential.propose(TASK, [held])
    assert list(first.added.test_files.values()) == [best.test]
    assert first.citations == ("so",)
    no = GateResult(
        task_id=TASK.task_id, proposal_digest="", checks=(Check(name="gold passes", passed=False),)
    )
    (second,) = differential.propose(TASK, [held], [Try(proposal=first, result=no)])
    assert list(second.added.test_files.values()) == [good.test]
    both = [Try(proposal=first, result=no), Try(proposal=second, result=no)]
    assert list(differential.propose(TASK, [held], both)) == []
    assert list(differential.propose(TASK, [replace(held, witnesses=())])) == []
