"""The search worker: what may share a fork, that sharing changes no answer, and that it runs on any Python."""

from __future__ import annotations

import os
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
from acidtest.verifiers import search_boot
from acidtest.verifiers.attackers import memorise, mutants, recipes
from acidtest.verifiers.oracle import Oracle
from acidtest.verifiers.search import FunctionSearch, Probe
from acidtest.verifiers.search_programs import BATCH, Plain

GOLD = "def f(a, b):\n    return a + b\n"
FORGES = """\
import os
for number in range(3, 60):
    try:
        os.write(number, b'{"survivor": true}\\n' * 9)
    except OSError:
        pass
def f(a, b):
    return 0
"""
TESTS = "    assert f(2, 2) == 4\n    assert f(0, 9) == 9\n    assert f(7, 1) == 8\n"


@pytest.fixture(scope="module")
def backend() -> Iterator[SandboxBackend]:
    opened = open_backend("local")
    yield opened
    opened.close()


def task() -> Task:
    stub = "def f(*args):\n    raise NotImplementedError\n"
    return Task(
        task_id="written/f",
        dataset="written",
        prompt="",
        suite=Suite(
            command="python test_solution.py",
            framework="plain",
            test_files={"test_solution.py": f"from solution import f\n\n\ndef test_all():\n{TESTS}"},
            fail_to_pass=("test_solution.py::test_all",),
        ),
        gold_patch=Patch.writing({"solution.py": GOLD}, {"solution.py": stub}).text,
        files={"solution.py": stub},
        metadata={"entry_point": "f", "solution_file": "solution.py"},
    )


def probed(backend: SandboxBackend, programs: list[str], jobs: int = 1) -> list[Probe]:
    with FunctionSearch(task(), backend, jobs=jobs) as search:
        search.set_inputs([(a, b) for a in range(6) for b in range(6)])
        return search.probe(programs)


@pytest.mark.parametrize(
    "source",
    [
        GOLD,
        "import math\nfrom typing import List\n\ndef f(a, b):\n    return math.floor(a + b)\n",
        "_seen = {}\ndef f(a, b):\n    _seen[a] = b\n    return len(_seen)\n",
        "if __name__ == '__main__':\n    f = 1\n",
    ],
)
def test_a_program_that_reaches_only_its_own_module_is_plain(source: str) -> None:
    __import__("typing")
    assert Plain("solution").holds(compile(source, "solution.py", "exec"))


@pytest.mark.parametrize(
    "source",
    [
        "import sys\n",
        "import math\nmath.floor = None\n",
        "def f(a):\n    import os\n",
        "def f(a):\n    return (lambda: a.__class__)()\n",
        "import collections\ncollections._sys.modules.clear()\n",
        "import random\ndel random.random\n",
        "import math\nfor math.pi in [3]:\n    pass\n",
        "def f(a):\n    exec(a)\n",
        "import math\nsetattr(math, 'pi', 3)\n",
        "from functools import update_wrapper\n",
        "def f(a):\n    f.calls = 1\n",
        "\n".join(f"n{i} = {i}" for i in range(300)) + "\nimport math, socket\n",
    ],
)
def test_a_program_that_could_change_anything_else_is_not(source: str) -> None:
    assert not Plain("solution").holds(compile(source, "solution.py", "exec"))


def test_hostile_and_endless_programs_change_nothing_for_their_neighbours(backend: SandboxBackend) -> None:
    wrong = "def f(a, b):\n    return a + b if a != 5 else 0\n"
    between = [
        "import os\nos._exit(0)\n",
        "import builtins\nbuiltins.len = None\nimport math\nmath.floor = None\ndef f(a, b):\n    return a + b\n",
        "def f(a, b):\n    while True:\n        pass\n",
        "def f(a, b):\n    return pow(7, 10 ** 9)\n",
        "def f(a, b):\n    return [0] * 10 ** 8 and a + b\n",
        FORGES,
        "def f(a, b):\n    return f(a, b)\n",
        "def f(:\n",
        "import random\nrandom.seed(5)\ndef f(a, b):\n    return a + b\n",
    ]
    programs = [text for one in between for text in (wrong, one, GOLD)]
    (clean_wrong, clean_gold) = probed(backend, [wrong, GOLD])
    for jobs in (1, 2):
        found = probed(backend, programs, jobs=jobs)
        for at in range(0, len(programs), 3):
            assert replace(found[at], seconds=0) == replace(clean_wrong, seconds=0), programs[at + 1]
            assert replace(found[at + 2], seconds=0) == replace(clean_gold, seconds=0), programs[at + 1]
        accepted = [found[at + 1].accepted for at in range(0, len(programs), 3)]
        assert accepted[:4] == [False, True, False, False]
        assert accepted[6:] == [False, False, True]
        assert [found[at + 1].error for at in (6, 9)] == ["out of time"] * 2


def test_imports_are_no_work_of_the_program(backend: SandboxBackend) -> None:
    names = [
        "ast, re",
        "dataclasses",
        "typing",
        "json",
        "inspect",
        "decimal",
        "collections.abc",
        "random",
        "uuid",
    ]
    programs = [f"import {name}\n{GOLD}" for name in names]
    found = probed(backend, [*programs, "".join(programs)])
    assert [one.accepted for one in found] == [True] * len(found)


def test_state_of_one_program_is_not_seen_by_the_next(backend: SandboxBackend) -> None:
    keeps = "seen = []\ndef f(a, b):\n    seen.append(a)\n    return a + b if len(seen) < 9 else 0\n"
    found = probed(backend, [keeps] * (BATCH + 3))
    assert len({(one.accepted, one.codes, one.behaviour) for one in found}) == 1
    assert found[0].accepted
    assert "v" in found[0].codes


def test_a_batch_gives_the_answers_of_a_fork_each(
    backend: SandboxBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    (one,) = load_tasks("humaneval", task_ids=["HumanEval/10"])
    candidates = [c for module in (mutants, recipes, memorise) for c in module.attack(one)]
    source = search_boot.worker_source()
    found = []
    for text in (source, source.replace(f"BATCH = {BATCH}\n", "BATCH = 1\n")):
        assert found == [] or text != source
        code = {"worker.py": text.encode()}
        monkeypatch.setattr(search_boot, "files", lambda code=code: code)
        with FunctionSearch(one, backend, jobs=1) as search:
            oracle = Oracle(search)
            oracle.prepare()
            found.append([replace(e.probe, seconds=0) for e in oracle.examine(candidates)])
    assert found[0] == found[1]


def test_the_worker_starts_from_ready_code_and_from_its_text(tmp_path: Path) -> None:
    """A sandbox with another Python compiles the text once and keeps what it compiled."""
    job = {
        "mode": "record",
        "module": "solution",
        "entry_point": "f",
        "gold": GOLD,
        "record_limit": 9.0,
        "imports": [],
    }
    job |= {
        "tests": {"test_solution.py": f"from solution import f\n\n\ndef test_all():\n{TESTS}"},
        "packed": [],
    }
    (tmp_path / "job").write_bytes(search_boot.job_bytes(job))
    (tmp_path / "worker.py").write_bytes(search_boot.files()["worker.py"])
    command = [sys.executable, *search_boot.COMMAND[1:], str(tmp_path)]
    first = subprocess.run(command, capture_output=True, check=True).stdout
    kept = set(os.listdir(tmp_path)) - {"job", "worker.py"}
    assert kept == set(search_boot.files()) - {"worker.py"}
    (tmp_path / "worker.py").write_text("raise SystemExit(3)\n")
    second = subprocess.run(command, capture_output=True, check=True).stdout
    assert b'"clean": true' in first
    assert b'"clean": true' in second
