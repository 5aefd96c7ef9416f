"""Search and oracle on toy tasks and written ones: what is proven, what must not be, and that witnesses stand alone."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import SandboxBackend
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.task import Suite, Task
from acidtest.verifiers.attackers import memorise, mutants, recipes
from acidtest.verifiers.mutation.functions import FunctionView
from acidtest.verifiers.oracle import Examined, Oracle
from acidtest.verifiers.oracle.prove import VISIBLE_SECONDS
from acidtest.verifiers.records import Candidate, Claim, Family, Standing, WitnessKind
from acidtest.verifiers.search import FunctionSearch, SearchLimits, SearchUnsupported, worker_source


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    opened = open_backend("local")
    yield opened
    opened.close()


def function_task(gold: str, tests: str, entry: str = "f", prompt: str = "") -> Task:
    stub = "def f(*args):\n    raise NotImplementedError\n"
    return Task(
        task_id="written/f",
        dataset="written",
        prompt=prompt,
        suite=Suite(
            command="python test_solution.py",
            framework="plain",
            test_files={"test_solution.py": f"from solution import {entry}\n\n\ndef test_all():\n{tests}"},
            fail_to_pass=("test_solution.py::test_all",),
        ),
        gold_patch=Patch.writing({"solution.py": gold}, {"solution.py": stub}).text,
        files={"solution.py": stub},
        metadata={"entry_point": entry, "solution_file": "solution.py"},
    )


def candidate(task: Task, source: str) -> Candidate:
    return Candidate(
        task_id=task.task_id,
        patch=FunctionView.of(task).patch(source),
        kind="x",
        family=Family.ROLLOUT,
        origin="test",
        claim=Claim.UNKNOWN,
    )


def examine(task: Task, backend: SandboxBackend, *sources: str) -> list[Examined]:
    with FunctionSearch(task, backend) as search:
        oracle = Oracle(search)
        oracle.prepare()
        return oracle.examine([candidate(task, source) for source in sources])


ADD = "def f(a, b):\n    return a + b\n"
ADD_TESTS = "    assert f(2, 2) == 4\n    assert f(0, 9) == 9\n    assert f(7, 1) == 8\n"


def test_weak_add_has_five_proven_programs_and_the_sound_one_none(backend: SandboxBackend) -> None:
    weak = load_tasks("toy", task_ids=["toy/add_weak"])[0]
    sound = load_tasks("toy", task_ids=["toy/add_sound"])[0]
    found: dict[str, list[Examined]] = {}
    for task in (weak, sound):
        with FunctionSearch(task, backend) as search:
            oracle = Oracle(search)
            oracle.prepare()
            found[task.task_id] = oracle.examine([*mutants.attack(task), *recipes.attack(task)])
    proven = [one for one in found[weak.task_id] if one.standing is Standing.PROVEN and not one.duplicate_of]
    texts = [one.candidate.patch.text for one in proven]
    assert len(proven) >= 5
    assert any("+    return a * b" in text for text in texts)
    assert any("+    return a ** b" in text for text in texts)
    assert not [one for one in found[sound.task_id] if one.standing is Standing.PROVEN]


def test_a_comment_accuses_nobody(backend: SandboxBackend) -> None:
    (found,) = examine(
        function_task(ADD, ADD_TESTS), backend, "def f(a, b):\n    return b + a  # this is wrong\n"
    )
    assert found.probe.accepted
    assert found.standing is Standing.LEAD
    assert found.witnesses == ()


def test_witness_scripts_hold_alone_and_fail_for_a_correct_candidate(
    backend: SandboxBackend, tmp_path: Path
) -> None:
    wrong = "def f(a, b):\n    return a + b if a < 5 or b < 5 else 0\n"
    task = function_task(ADD, ADD_TESTS + "    assert f(9, 3) == 12\n    assert f(3, 9) == 12\n")
    (found,) = examine(task, backend, wrong)
    assert found.standing is Standing.PROVEN
    assert all(w.kind is WitnessKind.VALUE and w.in_domain and w.rating > 0.5 for w in found.witnesses)
    path = tmp_path / "witness.py"
    path.write_text(found.witnesses[0].script)
    assert subprocess.run([sys.executable, path], capture_output=True, check=False).returncode == 0
    path.write_text(found.witnesses[0].script.replace(repr(wrong), repr(ADD)))
    assert subprocess.run([sys.executable, path], capture_output=True, check=False).returncode == 1


def test_witness_tests_pass_gold_and_fail_the_candidate(backend: SandboxBackend, tmp_path: Path) -> None:
    wrong = "def f(a, b):\n    return a + b if a != 5 else 0\n"
    (found,) = examine(function_task(ADD, ADD_TESTS), backend, wrong)
    for source, code in ((ADD, 0), (wrong, 1)):
        (tmp_path / "solution.py").write_text(source)
        name = found.witnesses[0].test.rpartition("def ")[2].partition("(")[0]
        (tmp_path / "check.py").write_text(found.witnesses[0].test + f"\n{name}()\n")
        done = subprocess.run([sys.executable, "check.py"], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == code


def test_differences_outside_the_visible_domain_prove_nothing(backend: SandboxBackend) -> None:
    """Negative numbers, texts and huge numbers are nowhere in the tests or the text."""
    sources = [
        "def f(a, b):\n    return a + b if a >= 0 else 0\n",
        "def f(a, b):\n    return int(a) + int(b)\n",
        "def f(a, b):\n    return a + b if a < 1000 else 0\n",
    ]
    for found in examine(function_task(ADD, ADD_TESTS), backend, *sources):
        assert found.probe.accepted
        assert found.standing is not Standing.PROVEN


def test_exceptions_endless_loops_and_kept_state_are_proven(backend: SandboxBackend) -> None:
    sources = {
        WitnessKind.EXCEPTION: "def f(a, b):\n    return a + b if a != 5 else 1 // 0\n",
        WitnessKind.TERMINATION: "def f(a, b):\n    while a in (3, 4, 5, 6):\n        pass\n    return a + b\n",
        WitnessKind.VALUE: "seen = {}\ndef f(a, b):\n    return seen.setdefault(b, a + b)\n",
    }
    for kind, found in zip(
        sources, examine(function_task(ADD, ADD_TESTS), backend, *sources.values()), strict=True
    ):
        assert found.standing is Standing.PROVEN, kind
        assert found.witnesses[0].kind is kind


def test_floats_within_tolerance_and_tuples_for_lists_do_not_differ(backend: SandboxBackend) -> None:
    gold = "def f(x):\n    return [x / 3, x * 0.1]\n"
    other = "def f(x):\n    return (x * (1 / 3), x / 10)\n"
    tests = "".join(f"    assert list(f({x})) == [{x} / 3, {x} * 0.1] or True\n" for x in (1, 5, 9, 30))
    (found,) = examine(function_task(gold, tests), backend, other)
    assert found.standing is Standing.LEAD


def test_property_checks_do_not_demand_golds_own_result(backend: SandboxBackend) -> None:
    gold = "def f(n):\n    return 2 * n\n"
    tests = "".join(f"    got = f({n})\n    assert got % 2 == 0 and got > {n}\n" for n in (3, 5, 9, 12))
    (found,) = examine(function_task(gold, tests), backend, "def f(n):\n    return 4 * n\n")
    assert found.standing is Standing.DIFFERS


def test_order_is_ignored_where_the_task_says_so(backend: SandboxBackend) -> None:
    gold = "def f(xs):\n    return [x for x in xs if x > 2]\n"
    other = "def f(xs):\n    return [x for x in xs if x > 2][::-1]\n"
    tests = "".join(
        f"    assert sorted(f({xs})) == {sorted(x for x in xs if x > 2)}\n"
        for xs in ([1, 2, 3], [4, 3], [], [5, 1, 4, 9])
    )
    (found,) = examine(function_task(gold, tests), backend, other)
    assert found.standing is Standing.LEAD
    text = "Return them in any order."
    plain = "    assert f([1, 2, 3]) == [3]\n    assert f([4, 1]) == [4]\n    assert f([1, 2, 9]) == [9]\n"
    (found,) = examine(function_task(gold, plain, prompt=text), backend, other)
    assert found.standing is Standing.LEAD
    (found,) = examine(function_task(gold, plain), backend, other)
    assert found.standing is Standing.PROVEN


def test_gold_that_contradicts_its_own_example_is_a_finding_about_gold(backend: SandboxBackend) -> None:
    task = function_task(ADD, ADD_TESTS, prompt="For example f(3, 4) == 8 and f(1, 1) == 2.")
    with FunctionSearch(task, backend) as search:
        oracle = Oracle(search)
        oracle.prepare()
        assert [(d.call, d.expected, d.observed) for d in oracle.doubts] == [("f(3, 4)", "8", "7")]
        assert (3, 4) not in [one.args for one in oracle.inputs if one.rating > 0.5]


def test_memorising_programs_are_proven_and_hostile_ones_do_not_break_the_search(
    backend: SandboxBackend,
) -> None:
    task = function_task(ADD, ADD_TESTS)
    hostile = [
        "import os\nos._exit(0)\n",
        "def f(a, b):\n    import os, sys\n    os.write(1, b'[0, {}]\\n' * 1000)\n    return a + b\n",
        "def f(a, b):\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass\n",
        "def f(a, b):\n    return 'x' * 10**9\n",
        "def f(:\n",
        "def f(a, b):\n    import os\n    os.fork()\n    return a + b\n",
    ]
    with FunctionSearch(task, backend) as search:
        oracle = Oracle(search)
        oracle.prepare()
        memorised = oracle.examine(memorise.attack(task))
        found = oracle.examine([candidate(task, source) for source in hostile])
    assert [one.standing for one in memorised if one.candidate.kind == "S11"] == [Standing.PROVEN] * 2
    assert [one.probe.accepted for one in found] == [False, True, False, False, False, True]


def test_the_same_examination_twice_gives_the_same_witnesses(backend: SandboxBackend) -> None:
    task = load_tasks("humaneval", task_ids=["HumanEval/40"])[0]
    runs = []
    for _ in range(2):
        with FunctionSearch(task, backend) as search:
            oracle = Oracle(search)
            oracle.prepare()
            runs.append(
                [
                    (e.candidate.candidate_id, e.standing, e.witnesses)
                    for e in oracle.examine(mutants.attack(task))
                ]
            )
    assert runs[0] == runs[1]
    assert sum(standing is Standing.PROVEN for _, standing, _ in runs[0]) > 5


def test_variants_of_gold_are_the_correct_end_of_the_pool(backend: SandboxBackend) -> None:
    task = load_tasks("humaneval", task_ids=["HumanEval/40"])[0]
    with FunctionSearch(task, backend) as search:
        oracle = Oracle(search)
        oracle.prepare()
        points = oracle.variant_points()
    assert points
    assert {(point.s, point.q, point.accepted) for point in points} == {(1.0, 1.0, True)}


def test_a_slow_suite_stops_at_the_first_failed_assert(backend: SandboxBackend) -> None:
    task = function_task(ADD, ADD_TESTS)
    wrong = "def f(a, b):\n    return 9 if a == 0 else 8 if a == 7 else 0\n"
    shares = []
    for slow in (10.0, 0.0):
        with FunctionSearch(task, backend, limits=SearchLimits(slow_suite=slow)) as search:
            (probe,) = search.probe([wrong])
            assert not probe.accepted
            shares.append(probe.share)
    assert shares == [2 / 3, 0.0]


def test_mutants_of_a_slow_suite_are_thinned_out_and_nothing_else(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    (task,) = load_tasks("humaneval", task_ids=["HumanEval/0"])
    given = [c for module in (mutants, recipes, memorise) for c in module.attack(task)]
    others = [c for c in given if c.family is not Family.MUTANT]
    with FunctionSearch(task, backend) as search:
        quick = search.record()
        assert Oracle(search).affordable(given) == given
        slow = replace(quick, seconds=VISIBLE_SECONDS / (len(others) + 20))
        monkeypatch.setattr(search, "record", lambda: slow)
        chosen = Oracle(search).affordable(given)
        assert chosen == Oracle(search).affordable(given)
    assert [c for c in chosen if c.family is not Family.MUTANT] == others
    assert len(chosen) == len(others) + 20 < len(given)
    assert {c.candidate_id for c in chosen} < {c.candidate_id for c in given}


def test_an_entry_point_named_like_a_test_is_not_taken_for_one(backend: SandboxBackend) -> None:
    gold = "def test_f(x):\n    return x + 1\n"
    tests = "    assert test_f(1) == 2\n    assert test_f(5) == 6\n    assert test_f(3) == 4\n"
    task = function_task(gold, tests, entry="test_f")
    with FunctionSearch(task, backend) as search:
        assert len(search.record().calls) == 3


def test_gold_that_fails_its_tests_cannot_be_searched(backend: SandboxBackend) -> None:
    task = function_task(ADD, "    assert f(1, 1) == 3\n")
    with FunctionSearch(task, backend) as search, pytest.raises(SearchUnsupported, match="1 asserts fail"):
        search.record()


def test_the_suites_own_generator_under_other_seeds(backend: SandboxBackend) -> None:
    gold = "def f(n):\n    return n * n\n"
    tests = (
        "    import random\n    rng = random.Random(1)\n    for _ in range(3):\n        n = rng.randint(1, 20)\n"
        "        root = f(n)\n        assert root % n == 0\n"
    )
    wrong = "def f(n):\n    return n * n if n in (5, 19, 3) else n * n + 1\n"
    (found,) = examine(function_task(gold, tests), backend, wrong)
    assert found.probe.accepted
    assert found.standing is Standing.PROVEN
    assert found.witnesses[0].kind is WitnessKind.TEST
    done = subprocess.run([sys.executable, "-c", found.witnesses[0].script], capture_output=True, check=False)
    assert done.returncode == 0


def test_the_worker_is_one_standard_library_script() -> None:
    source = worker_source()
    compile(source, "worker.py", "exec")
    assert "from .oracle" not in source
