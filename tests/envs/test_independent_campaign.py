"""Campaign: independent correct solutions of function tasks (not rewrites of gold) are all paid under `strict`.

Sources: 82 solutions of the even HumanEval tasks (`humaneval_domains_dev.jsonl`, EvalPlus), and 22 solutions of MBPP
tasks written for this file from the task's text.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Task
from acidtest.envs.verdict import Outcome
from acidtest.envs.verify import Verifier

pytestmark = [pytest.mark.campaign, pytest.mark.data]
MBPP = {
    3: "def is_not_prime(n):\n    return any(not n % d for d in range(2, n))\n",
    6: "def differ_At_One_Bit_Pos(a, b):\n    return bin(a ^ b).count('1') == 1\n",
    9: "def find_Rotations(s):\n    return (s + s).index(s, 1)\n",
    12: "def sort_matrix(m):\n    rows = list(m)\n    rows.sort(key=sum)\n    return rows\n",
    57: "def find_Max_Num(digits):\n    return int(''.join(sorted(map(str, digits), reverse=True)))\n",
    63: "def max_difference(pairs):\n    best = 0\n    for a, b in pairs:\n        best = max(best, a - b, b - a)\n    return best\n",
    66: "def pos_count(numbers):\n    return sum(x >= 0 for x in numbers)\n",
    72: "def dif_Square(n):\n    return n % 2 == 1 or n % 4 == 0\n",
    75: "def find_tuples(tuples, k):\n    return [t for t in tuples if not any(x % k for x in t)]\n",
    84: "def sequence(n):\n    p = [0, 1, 1]\n    for i in range(3, n + 1):\n        p.append(p[p[i - 1]] + p[i - p[i - 1]])\n    return p[n]\n",
    87: "def merge_dictionaries_three(a, b, c):\n    out = dict(c)\n    out.update(b)\n    out.update(a)\n    return out\n",
    90: "def len_log(words):\n    return max(map(len, words))\n",
    93: "def power(a, b):\n    return a**b\n",
    96: "def divisor(n):\n    return len([d for d in range(1, n + 1) if n % d == 0])\n",
    99: "def decimal_to_binary(n):\n    return format(n, 'b')\n",
    102: "def snake_to_camel(word):\n    return ''.join(part.capitalize() for part in word.split('_'))\n",
    105: "def count(values):\n    return len([v for v in values if v])\n",
    108: "def merge_sorted_list(a, b, c):\n    return sorted([*a, *b, *c])\n",
    120: "def max_product_tuple(pairs):\n    return max(abs(a * b) for a, b in pairs)\n",
    132: "def tup_string(items):\n    out = ''\n    for item in items:\n        out += item\n    return out\n",
    135: "def hexagonal_num(n):\n    return n * (2 * n - 1)\n",
    168: "def frequency(numbers, x):\n    return numbers.count(x)\n",
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[Verifier]:
    with Verifier(sandbox="local") as opened:
        yield opened


def refused(verifier: Verifier, pairs: list[tuple[Task, str]]) -> list[str]:
    out = []
    for task, text in pairs:
        verdict = verifier.verify(task, Patch.writing({"solution.py": text}, task.files))
        if verdict.outcome is not Outcome.RESOLVED or verdict.notices:
            log = verdict.run.log[-300:] if verdict.run else ""
            out.append(f"{task.task_id}: {verdict.outcome} {verdict.evidence} {verdict.notices} {log}")
    return out


def test_independent_solutions_of_humaneval(verifier: Verifier, data_dir: Path) -> None:
    rows = [json.loads(line) for line in (data_dir / "humaneval_domains_dev.jsonl").read_text().splitlines()]
    tasks = {task.task_id.rsplit("/", 1)[-1]: task for task in load_tasks("humaneval")}
    pairs = []
    for row in rows:
        task = tasks[row["task_id"].rsplit("/", 1)[-1]]
        prompt = task.files["solution.py"].replace("    raise NotImplementedError\n", "")
        pairs.append((task, prompt.rstrip("\n") + "\n" + row["independent_solution"]))
    assert len(pairs) == 82
    assert refused(verifier, pairs) == []


def test_independent_solutions_of_mbpp(verifier: Verifier, data_dir: Path) -> None:
    tasks = {int(t.task_id.rsplit("/", 1)[-1]): t for t in load_tasks(str(data_dir / "mbpp_sanitized.json"))}
    pairs = [(tasks[number], text) for number, text in MBPP.items()]
    assert len(pairs) == 22
    assert refused(verifier, pairs) == []
