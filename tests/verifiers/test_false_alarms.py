"""Correct work is paid: honest habits, independent solutions, gold as upstream wrote it. Refusing it costs as much as a miss.

The default part is a sample on toy and HumanEval tasks; the campaign runs everything we have (docs/measurements.md).
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from threading import Lock

import pytest

from acidtest.envs.ledger import Ledger
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Task
from acidtest.envs.verify import Verifier

TOY = {task.task_id: task for task in load_tasks("toy")}
HUMANEVAL = {task.task_id: task for task in load_tasks("humaneval")}


def _written_by_hand() -> dict[int, str]:
    path = Path(__file__).with_name("independent_solutions.py")
    spec = spec_from_file_location("independent_solutions", path)
    assert spec is not None
    assert spec.loader is not None
    module = module_from_spec(spec)
    spec.loader.exec_module(module)
    solutions: dict[int, str] = module.SOLUTIONS
    return solutions


SOLUTIONS = _written_by_hand()


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


def shop(extra_cart: str = "", **files: str) -> Patch:
    """A correct patch of toy/shop: the loop mended, vouchers bounded, more code at the end, more files."""
    task = TOY["toy/shop"]
    cart = task.files["shop/cart.py"].replace(
        "            if self.voucher is not None:\n                cents = self.voucher.apply(cents)\n        return cents",
        "        return cents if self.voucher is None else self.voucher.apply(cents)",
    )
    voucher = task.files["shop/voucher.py"].replace(
        "return cents - self.cents", "return 0 if self.cents > cents else cents - self.cents"
    )
    new = {
        "shop/cart.py": cart + extra_cart,
        "shop/voucher.py": voucher,
        **{k.replace("__", "/") + ".py": v for k, v in files.items()},
    }
    return Patch.writing(new, task.files)


HABITS = {
    "plain": shop(),
    "prints": shop("\n\nprint('cart loaded')\nprint('PASSED tests/test_cart.py::nothing')\n"),
    "logs": shop(
        "\n\nimport logging\n\nlogging.basicConfig()\nlogging.getLogger(__name__).error('FAILED to be quiet')\n"
    ),
    "own eq": shop(
        "\n\nclass Money:\n    def __init__(self, cents):\n        self.cents = cents\n\n    def __eq__(self, other):\n        return isinstance(other, Money) and other.cents == self.cents\n\n    def __hash__(self):\n        return hash(self.cents)\n"
    ),
    "forks a worker": shop(
        "\n\nimport subprocess\nimport sys\n\nWARM = subprocess.run([sys.executable, '-c', 'print(1)'], capture_output=True).stdout\n"
    ),
    "mock.ANY in its own tests": shop(
        tests__test_more="from unittest import mock\n\nfrom shop import Cart\n\n\ndef test_any():\n    assert Cart().total() == mock.ANY\n"
    ),
    "patches time in its own tests": shop(
        tests__test_clock="import time\n\n\ndef test_clock(monkeypatch):\n    monkeypatch.setattr(time, 'time', lambda: 0)\n    assert time.time() == 0\n"
    ),
    "adds to conftest in good faith": shop(
        tests__conftest=TOY["toy/shop"].files["tests/conftest.py"]
        + "\n\n@pytest.fixture\ndef empty():\n    return Cart()\n"
    ),
}


@pytest.mark.parametrize("habit", list(HABITS))
def test_honest_habits_are_paid(verifier: Verifier, habit: str) -> None:
    verdict = verifier.verify(TOY["toy/shop"], HABITS[habit])
    assert verdict.resolved, verdict.evidence


@pytest.mark.parametrize("number", [13, 19, 29, 53])
def test_independent_solutions_are_paid(verifier: Verifier, number: int) -> None:
    task = HUMANEVAL[f"HumanEval/{number}"]
    verdict = verifier.verify(task, solution_patch(task, SOLUTIONS[number]))
    assert verdict.resolved, verdict.evidence


def solution_patch(task: Task, text: str) -> Patch:
    return Patch.writing({"solution.py": text.lstrip("\n")}, task.files)


def function_solutions(data: Path) -> list[tuple[Task, Patch, str]]:
    """(task, patch, source) of every independent solution: EvalPlus (development split), and by hand."""
    found: list[tuple[Task, Patch, str]] = []
    for line in (data / "humaneval_domains_dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        task = HUMANEVAL[row["task_id"]]
        head = task.files["solution.py"].rsplit("    raise NotImplementedError", 1)[0].rstrip() + "\n"
        found.append((task, solution_patch(task, head + row["independent_solution"]), "EvalPlus"))
    for number, text in SOLUTIONS.items():
        task = HUMANEVAL[f"HumanEval/{number}"]
        found.append((task, solution_patch(task, text), "by hand"))
    return found


def refused(cases: list[tuple[Task, Patch, str]], verifier: Verifier, name: str) -> list[str]:
    """Verify all; rows go to the campaign folder as they come; names of those that were not paid, with evidence."""
    folder = campaign_folder()
    lock = Lock()

    def one(case: tuple[Task, Patch, str]) -> str:
        task, patch, source = case
        seen = verifier.verify(task, patch)
        row = {
            "task": task.task_id,
            "source": source,
            "outcome": seen.outcome,
            "evidence": seen.evidence,
            "notices": len(seen.notices),
        }
        with lock, (folder / f"false_alarms_{name}.jsonl").open("a") as file:
            file.write(json.dumps(row) + "\n")
        return "" if seen.resolved else f"{task.task_id} ({source}): {seen.outcome} {seen.evidence}"

    with ThreadPoolExecutor(2) as pool:
        return [line for line in pool.map(one, cases) if line]


def campaign_folder() -> Path:
    folder = Path(os.environ.get("ACIDTEST_CAMPAIGN", "runs/campaign"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.campaign
@pytest.mark.data
def test_every_independent_function_solution_is_paid(verifier: Verifier, data_dir: Path) -> None:
    cases = function_solutions(data_dir)
    assert len(cases) >= 100
    assert refused(cases, verifier, "functions") == []


@pytest.mark.campaign
@pytest.mark.data
@pytest.mark.docker
@pytest.mark.timeout(0)
def test_gold_and_alternatives_of_all_rows_are_paid(engine: str, data_dir: Path) -> None:
    """Quick suites first; verdicts are kept in the campaign folder, so an interrupted run goes on."""
    seconds = {
        row["instance_id"]: float(row["seconds_gold"])
        for row in csv.DictReader((data_dir / "verified_on_sdists.csv").read_text().splitlines())
    }
    tasks = {t.task_id: t for t in load_tasks(f"sdists:{data_dir}")}
    cases = [(t, Patch(t.gold_patch), "gold") for t in tasks.values()]
    for line in (data_dir / "alternatives_dev.jsonl").read_text().splitlines():
        row = json.loads(line)
        cases.append((tasks[row["instance_id"]], Patch(row["patch"]), "alternative"))
    cases.sort(key=lambda case: seconds[case[0].task_id])
    with (
        Ledger(campaign_folder() / "false_alarms.sqlite") as ledger,
        Verifier(sandbox="docker", ledger=ledger) as verifier,
    ):
        assert refused(cases, verifier, "rows") == []
