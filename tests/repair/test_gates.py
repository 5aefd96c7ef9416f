"""Each gate stops what it names and lets the rest through; the bench is scripted, nothing is executed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import pytest

from acidtest.envs.patch import Patch
from acidtest.envs.run import Status
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.envs.verdict import Outcome
from acidtest.repair.gates import GATES, NAMES, run_gates
from acidtest.repair.gates.trial import AddedRun, Disturbance, Observation, Trial
from acidtest.repair.records import GateResult, Proposal
from acidtest.verifiers.records import Candidate, Family

GOLD, WRONG, OTHER = Patch("gold"), Patch("wrong"), Patch("other")
GOOD = "from solution import add\n\n\ndef test_a():\n    assert add(1, 3) == 4\n"
ID = "test_h.py::test_a"
TASK = Task(
    task_id="t",
    dataset="toy",
    prompt="Add two numbers. Raises ValueError('no text please') for text.",
    suite=Suite(
        command="python test_solution.py",
        framework="plain",
        test_files={
            "test_solution.py": "from solution import add\n\ndef test_check():\n    assert add(2, 2) == 4\n"
        },
        fail_to_pass=("test_solution.py::test_check",),
    ),
    gold_patch=GOLD.text,
    files={"solution.py": "def add(a, b):\n    raise NotImplementedError\n"},
    metadata={"entry_point": "add", "solution_file": "solution.py"},
)
PASS = AddedRun(outcome=Outcome.RESOLVED, statuses={ID: Status.PASSED})
FAIL = AddedRun(
    outcome=Outcome.UNRESOLVED,
    statuses={ID: Status.FAILED},
    log="    assert add(1, 3) == 4\nAssertionError\n",
)


@dataclass
class ScriptedBench:
    """Answers by (patch text, repeat), else by patch text; `asked` lists what was executed."""

    runs: dict[object, AddedRun] = field(default_factory=dict)
    seen: Observation = field(default_factory=Observation)
    disturbed: Disturbance = field(default_factory=Disturbance)
    turned: AddedRun = PASS
    silent: tuple[str, ...] = ()
    slowness: float = 1.0
    task: Task = TASK
    asked: list[tuple[str, int]] = field(default_factory=list)

    def run(self, patch: Patch, added: AddedTests, *, repeat: int = 0) -> AddedRun:
        self.asked.append((patch.text, repeat))
        default = FAIL if patch == WRONG else PASS
        return self.runs.get((patch.text, repeat), self.runs.get(patch.text, default))

    def other_orders(self, patch: Patch, added: AddedTests) -> Iterator[tuple[str, AddedRun]]:
        yield "reversed", self.turned

    def observe(self, added: AddedTests) -> Observation:
        return self.seen

    def disturbance(self, added: AddedTests) -> Disturbance:
        return self.disturbed

    def deaf(self, added: AddedTests) -> tuple[str, ...]:
        return self.silent

    def timed(self, added: AddedTests, suite_seconds: float) -> tuple[AddedRun, float]:
        return self.runs.get(("gold", "timed"), self.run(GOLD, added)), self.slowness

    def existing_tests(self) -> str:
        return "\n".join(self.task.suite.test_files.values())


def trial(text: str = GOOD, bench: ScriptedBench | None = None, path: str = "test_h.py") -> Trial:
    added = AddedTests(command=f"python {path}", framework="plain", test_files={path: text}, test_ids=(ID,))
    target = Candidate(task_id="t", patch=WRONG, kind="S21", family=Family.MUTANT, origin="test")
    return Trial(
        task=TASK,
        proposal=Proposal(task_id="t", added=added),
        bench=bench or ScriptedBench(),
        targets=(target,),
        correct={"another way": OTHER},
    )


def stopped_by(result: GateResult) -> str:
    assert result.failed_check is not None, "every gate let it through"
    return result.failed_check.name


def test_a_good_proposal_passes_every_gate() -> None:
    result = run_gates(trial())
    assert result.passed
    assert [check.name for check in result.checks] == list(NAMES)
    assert len(result.blocked) == 1


def test_gold_is_run_n_times_and_each_target_twice() -> None:
    bench = ScriptedBench()
    run_gates(trial(bench=bench))
    assert {repeat for text, repeat in bench.asked if text == "gold"} == {0, 1, 2}
    assert {repeat for text, repeat in bench.asked if text == "wrong"} == {0, 1}


def test_the_first_failure_stops() -> None:
    bench = ScriptedBench(runs={"gold": FAIL})
    result = run_gates(trial("def test_a(:\n", bench, path="solution.py"))
    assert [check.name for check in result.checks] == ["only new test files"]
    assert bench.asked == []
    assert result.blocked == ()


@pytest.mark.parametrize(
    "path",
    [
        "solution.py",
        "test_solution.py",
        "conftest.py",
        "tests/conftest.py",
        "tests/__init__.py",
        "random.py",
        "../test_x.py",
        "/tmp/test_x.py",
        "pytest.ini",
        "helpers.py",
        ".git/hooks/test_x.py",
        "deep/test_solution.py",
    ],
)
def test_files_that_replace_configure_or_shadow(path: str) -> None:
    assert stopped_by(run_gates(trial(path=path))) == "only new test files"


def test_an_id_that_the_suite_has_already() -> None:
    one = trial()
    added = replace(one.added, test_ids=("test_solution.py::test_check",))
    one.proposal = replace(one.proposal, added=added)
    assert stopped_by(run_gates(one)) == "only new test files"


@pytest.mark.parametrize(
    "body",
    [
        "pass",
        "add(1, 3)",
        "assert True",
        "assert 1 == 1",
        "assert 'text'",
        "print(add(1, 3))",
        "x = add(1, 3) == 4",
    ],
)
def test_tests_that_assert_nothing(body: str) -> None:
    text = f"from solution import add\n\n\ndef test_a():\n    {body}\n"
    assert stopped_by(run_gates(trial(text))) == "asserts something"


@pytest.mark.parametrize(
    "body",
    [
        "assert add(1, 3) == 4",
        "self.assertEqual(add(1, 3), 4)",
        "with pytest.raises(ValueError):\n        add('a', 1)",
        "np.testing.assert_allclose(add(1, 3), 4)",
        "check_result(add(1, 3))",
        "if add(1, 3) != 4:\n        raise AssertionError('no')",
        "if add(1, 3) != 4:\n        self.fail('no')",
    ],
)
def test_ways_to_assert(body: str) -> None:
    assert run_gates(trial(f"from solution import add\n\n\ndef test_a():\n    {body}\n")).passed


@pytest.mark.parametrize(
    ("seen", "name"),
    [
        (Observation(network=("example.org",)), "no network"),
        (Observation(writes=("solution.py",)), "writes nothing"),
        (Observation(patched=("solution.add",)), "leaves the source alone"),
    ],
)
def test_what_the_observer_saw(seen: Observation, name: str) -> None:
    assert stopped_by(run_gates(trial(bench=ScriptedBench(seen=seen)))) == name


@pytest.mark.parametrize(
    "body",
    [
        "solution.add = lambda a, b: a + b",
        "setattr(solution, 'add', max)",
        "monkeypatch.setattr('solution.add', max)",
        "monkeypatch.setattr(solution, 'add', max)",
        "mock.patch('solution.add').start()",
        "mock.patch.object(solution, 'add').start()",
        "sys.modules['solution'] = None",
        "builtins.len = max",
        "importlib.reload(solution)",
        "del solution.add",
    ],
)
def test_tests_that_patch_the_source(body: str) -> None:
    text = f"import builtins\nimport solution\n\n\ndef test_a():\n    {body}\n    assert solution.add(1, 3) == 4\n"
    assert stopped_by(run_gates(trial(text))) == "leaves the source alone"


def test_local_objects_and_classes_may_be_changed() -> None:
    text = (
        "import solution\n\n\ndef test_a():\n    box = type('Box', (), {})()\n    box.size = 3\n"
        "    assert solution.add(1, box.size) == 4\n"
    )
    assert run_gates(trial(text)).passed


def test_ids_that_are_not_executed() -> None:
    missing = AddedRun(
        outcome=Outcome.NO_TESTS_RAN, log="ImportError: cannot import name 'add2' from 'solution'"
    )
    result = run_gates(trial(bench=ScriptedBench(runs={"gold": missing})))
    assert stopped_by(result) == "collects"
    assert result.failed_check is not None
    assert result.failed_check.defect == "import error"


def test_a_run_into_the_limit_is_named_by_the_time_budget() -> None:
    slow = AddedRun(outcome=Outcome.TIMED_OUT, timed_out=True)
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={"gold": slow})))) == "within time budget"
    late = replace(PASS, seconds=10.5)
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={"gold": late})))) == "within time budget"
    imports = replace(PASS, seconds=0.1, wall=31.0)
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={"gold": imports})))) == "within time budget"
    one = trial(bench=ScriptedBench(runs={"gold": late}))
    one.suite_seconds = 60.0
    assert run_gates(one).passed, "a slow suite may take as long again"


def test_what_is_late_is_measured_again_beside_the_bare_suite() -> None:
    late, later = replace(PASS, seconds=25.0), replace(PASS, seconds=25.0, wall=250.0)
    assert run_gates(trial(bench=ScriptedBench(runs={"gold": late, ("gold", "timed"): PASS}))).passed
    loaded = ScriptedBench(runs={"gold": late}, slowness=3.0)
    assert run_gates(trial(bench=loaded)).passed, "the bare suite took three times as long, and so may this"
    for bench in (
        ScriptedBench(runs={"gold": late}, slowness=2.0),
        ScriptedBench(runs={"gold": late}, slowness=0.1),
        ScriptedBench(runs={"gold": later}, slowness=3.0),
        ScriptedBench(runs={"gold": replace(PASS, seconds=250.0)}, slowness=90.0),
    ):
        assert stopped_by(run_gates(trial(bench=bench))) == "within time budget"


def test_a_test_that_waits_gets_no_more_time_on_a_slow_machine() -> None:
    late = ScriptedBench(runs={"gold": replace(PASS, seconds=12.0)}, slowness=3.0)
    assert run_gates(trial(bench=late)).passed
    sleepy = f"import time\n{GOOD}\n\ntime.sleep(12)\n"
    assert stopped_by(run_gates(trial(sleepy, bench=late))) == "within time budget"


def test_executions_that_disagree_and_order() -> None:
    sometimes = ScriptedBench(runs={("gold", 2): FAIL})
    assert stopped_by(run_gates(trial(bench=sometimes))) == "not flaky"
    assert stopped_by(run_gates(trial(bench=ScriptedBench(turned=FAIL)))) == "not flaky"


def test_a_source_of_chance_is_run_more_often() -> None:
    bench = ScriptedBench(runs={("gold", 9): FAIL})
    text = "import random\n" + GOOD
    assert stopped_by(run_gates(trial(text, bench))) == "not flaky"


def test_gold_fails_with_the_class_of_the_defect() -> None:
    result = run_gates(trial(bench=ScriptedBench(runs={"gold": FAIL}, turned=FAIL)))
    assert stopped_by(result) == "gold passes"
    assert result.failed_check is not None
    assert result.failed_check.defect == "wrong expected value"


@pytest.mark.parametrize(
    "body",
    [
        "assert solution._helper(1) == 2",
        "assert getattr(solution, '_cache') == {}",
        "mocked.assert_called_once_with(1)",
        "assert mocked.call_count == 2",
        "assert 'return' in inspect.getsource(solution.add)",
        "assert solution.add.__code__.co_argcount == 2",
        "with pytest.raises(ValueError, match='not a number'):\n        solution.add('a', 1)",
        "with pytest.raises(ValueError) as caught:\n        solution.add('a', 1)\n    assert str(caught.value) == 'bad'",
        "self.assertRaisesRegex(ValueError, 'bad thing', solution.add, 'a', 1)",
    ],
)
def test_implementation_detail(body: str) -> None:
    text = f"import solution\n\n\ndef test_a():\n    {body}\n"
    assert stopped_by(run_gates(trial(text))) == "no implementation detail"


def test_a_message_that_the_task_states_is_no_detail() -> None:
    body = "with pytest.raises(ValueError, match='no text please'):\n        solution.add('a', 1)"
    assert run_gates(trial(f"import solution\n\n\ndef test_a():\n    {body}\n")).passed


def test_a_private_name_that_the_existing_suite_uses_is_no_detail() -> None:
    suite = replace(TASK.suite, test_files={"test_solution.py": "from solution import _helper\n"})
    bench = ScriptedBench(task=replace(TASK, suite=suite))
    text = "import solution\n\n\ndef test_a():\n    assert solution._helper(1) == 2\n"
    assert run_gates(trial(text, bench)).passed


def test_correct_programs_must_pass() -> None:
    result = run_gates(trial(bench=ScriptedBench(runs={"other": FAIL})))
    assert stopped_by(result) == "correct programs pass"
    assert result.failed_check is not None
    assert "another way" in result.failed_check.evidence


def test_existing_tests_must_keep_their_statuses() -> None:
    bench = ScriptedBench(disturbed=Disturbance(changed={"test_solution.py::test_check": "passed -> failed"}))
    assert stopped_by(run_gates(trial(bench=bench))) == "nothing disturbed"


def test_a_target_that_passes_once_is_not_blocked() -> None:
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={"wrong": PASS})))) == "blocks a target"
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={("wrong", 1): PASS})))) == "blocks a target"


def test_a_target_whose_run_died_is_not_blocked_by_a_test() -> None:
    died = AddedRun(outcome=Outcome.NO_TESTS_RAN)
    assert stopped_by(run_gates(trial(bench=ScriptedBench(runs={"wrong": died})))) == "blocks a target"


def test_a_test_that_cannot_fail_does_not_survive_the_twin() -> None:
    deaf = AddedRun(outcome=Outcome.TAMPERED, statuses={ID: Status.PASSED}, evidence=("twin: test_a passed",))
    result = run_gates(trial(bench=ScriptedBench(runs={("gold", 0): deaf})))
    assert stopped_by(result) == "survives the twin"
    assert stopped_by(run_gates(trial(bench=ScriptedBench(silent=(ID,))))) == "survives the twin"


def test_every_gate_says_what_it_demands() -> None:
    for gate in GATES:
        assert gate.__doc__, gate.__name__
