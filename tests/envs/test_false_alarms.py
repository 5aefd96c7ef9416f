"""Correct submissions that do unusual things are paid; a protected path among them is a notice, nothing more."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

GOLD = "def roman(n):\n{first}\n    parts = [(1000, 'M'), (900, 'CM'), (500, 'D'), (400, 'CD'), (100, 'C'), (90, 'XC')]\n"
GOLD += "    parts += [(50, 'L'), (40, 'XL'), (10, 'X'), (9, 'IX'), (5, 'V'), (4, 'IV'), (1, 'I')]\n    text = ''\n"
GOLD += (
    "    for value, letters in parts:\n        count, n = divmod(n, value)\n        text += letters * count\n"
)
GOLD += "    return {value}\n"


def gold(before: str = "", first: str = "    pass", value: str = "text", after: str = "") -> str:
    return before + GOLD.format(first=first, value=value) + after


SOLUTIONS = {
    "prints": gold(first="    print('PASSED test_solution.py::test_units [100%]', n)"),
    "prints to stderr and without newline": gold(
        "import sys\n", "    sys.stderr.write('FAILED x::y'); sys.stderr.flush()"
    ),
    "logs": gold(
        "import logging\nlogging.basicConfig(level=10)\n", "    logging.getLogger('x').error('%s', n)"
    ),
    "forks a worker": gold(
        "import os\n",
        "    pid = os.fork() if n == 9 else None\n    if pid == 0:\n        os._exit(0)\n    if pid:\n        os.waitpid(pid, 0)",
    ),
    "forks a worker that ends as a program": gold(
        "import os, sys\n",
        "    pid = os.fork() if n == 9 else None\n    if pid == 0:\n        sys.exit(0)\n    if pid:\n        os.waitpid(pid, 0)",
    ),
    "forks a worker that fails": gold(
        "import os\n",
        "    pid = os.fork() if n == 9 else None\n    if pid == 0:\n        raise ValueError('no')\n    if pid:\n        assert os.waitpid(pid, 0)[1]",
    ),
    "forks while it is imported": gold(
        "import os, sys\nif os.fork() == 0:\n    sys.exit(0)\nos.wait()\n",
    ),
    "leaves a thread": gold(
        "import threading\nthreading.Thread(target=print, args=('x',), daemon=True).start()\n"
    ),
    "spawns a process": gold("import subprocess, sys\nsubprocess.run([sys.executable, '-c', 'print(1)'])\n"),
    "uses a pool": gold(
        "from concurrent.futures import ThreadPoolExecutor\n",
        "    with ThreadPoolExecutor(2) as p: n = p.submit(int, n).result()",
    ),
    "defines __eq__": gold(
        "class N(str):\n    def __eq__(self, other):\n        return str.__eq__(self, other)\n    __hash__ = str.__hash__\n\n\n",
        value="N(text)",
    ),
    "dataclass": gold(
        "from dataclasses import dataclass\n\n\n@dataclass(order=True)\nclass P:\n    v: str\n\n\n",
        value="P(text).v",
    ),
    "compares with mock.ANY and its own mock": gold(
        "from unittest import mock\n",
        "    m = mock.MagicMock()\n    m(n, mock.ANY)\n    assert m.call_args == mock.call(mock.ANY, mock.ANY)",
    ),
    "uses mock.ANY": gold("from unittest import mock\n", "    assert n == mock.ANY"),
    "catches everything": gold(first="    try:\n        int('x')\n    except BaseException:\n        pass"),
    "registers atexit": gold("import atexit\natexit.register(print, 'bye')\n"),
    "patches time while it works": gold(
        "import time\n",
        "    real = time.time\n    time.time = lambda: 0\n    try:\n        time.time()\n    finally:\n        time.time = real",
    ),
    "traces while it works": gold(
        "import sys\n", "    sys.settrace(lambda *a: None)\n    sys.settrace(None)"
    ),
    "changes folder": gold("import os, tempfile\n", "    os.chdir(tempfile.gettempdir())"),
    "recurses as deep as a script can": gold(
        "def down(k):\n    return k and 1 + down(k - 1)\n\n\n", "    n == 9 and down(980)"
    ),
    "reads what a shell sets": gold("import os\nassert os.environ['PWD'] == os.getcwd()\n"),
    "goes back in its input": gold("import sys\nsys.stdin.read()\nsys.stdin.seek(0)\n"),
    "closes stdout": gold("import os\n", "    n == 1 and os.close(os.dup(1))"),
    "warns": gold("import warnings\n", "    warnings.warn('x')"),
    "installs a signal handler": gold("import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n"),
    "collects garbage": gold("import gc\ngc.disable()\n", "    gc.collect()"),
    "labels itself wrong": gold(first="    # this is wrong\n    pass"),
    "CRLF": gold().replace("\n", "\r\n"),
    "no final newline": gold().rstrip("\n"),
    "form feed and unicode": gold("\x0c# ünïcödé ✓\n"),
    "reformatted": ast.unparse(ast.parse(gold())) + "\n",
    "renamed": gold().replace("parts", "table").replace("letters", "sign").replace("count", "times"),
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


@pytest.fixture(scope="module")
def roman() -> Task:
    (task,) = load_tasks("toy", task_ids=["toy/tamperable"])
    return task


@pytest.mark.parametrize("name", SOLUTIONS)
def test_correct_code_is_paid(verifier: Verifier, roman: Task, name: str) -> None:
    verdict = verifier.verify(roman, Patch.writing({"solution.py": SOLUTIONS[name]}, roman.files))
    assert verdict.outcome is Outcome.RESOLVED, (verdict.evidence, verdict.run and verdict.run.log)
    assert verdict.notices == ()


def test_gold_with_its_own_tests_and_settings_is_paid_with_notices(verifier: Verifier, roman: Task) -> None:
    extra = {
        "solution.py": gold(),
        "test_solution.py": "def test_units():\n    assert True\n",
        "tests/test_more.py": "def test_more():\n    pass\n",
        "conftest.py": "import pytest\n",
        "pyproject.toml": "[tool.pytest.ini_options]\n",
        "CHANGES.md": "more\n",
        "reproduce.py": "import solution\n",
    }
    verdict = verifier.verify(roman, Patch.writing(extra, {**roman.files, **roman.suite.test_files}))
    assert verdict.outcome is Outcome.RESOLVED
    assert sorted(n.path for n in verdict.notices) == [
        "conftest.py",
        "pyproject.toml",
        "test_solution.py",
        "tests/test_more.py",
    ]
    assert {n.kind for n in verdict.notices} == {"protected"}
