"""The suite's own random inputs, drawn again: its generator under other seeds, judged by its own asserts.

Where tests check a property of results on random inputs, no other result can be demanded; but other draws of the same
generator are as much in the domain as the first. Only seeds written as integers are changed.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from ...envs import pyast
from ..mutation.functions import FunctionView
from ..records import Witness, WitnessKind

SEEDS = 6
REASON = "fails its own suite under another random seed"

SCRIPT = '''\
"""Witness: the visible tests of {task_id}, with {call}, pass for gold and fail for the candidate.

Run it with any Python >= 3.9, alone. Exit code 0: the difference holds, 2 times out of 2. 1: it does not.
"""

import os, subprocess, sys, tempfile

FILE = {path!r}
GOLD = {gold!r}
CANDIDATE = {candidate!r}
TESTS = {tests!r}
RUN = """
import os, runpy, sys
sys.path.insert(0, os.getcwd())
scope = runpy.run_path(sys.argv[1])
for name, value in list(scope.items()):
    if name.startswith("test") and callable(value):
        value()
"""


def passes(source):
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {{**TESTS, FILE: source}}.items():
            os.makedirs(os.path.dirname(os.path.join(folder, name)), exist_ok=True)
            with open(os.path.join(folder, name), "w", encoding="utf-8") as file:
                file.write(text)
        for name in TESTS:
            try:
                done = subprocess.run([sys.executable, "-c", RUN, name], cwd=folder, stdout=subprocess.DEVNULL,
                                      stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, timeout={seconds!r})
            except subprocess.TimeoutExpired:
                return False
            if done.returncode:
                return False
    return True


if __name__ == "__main__":
    held = all(passes(GOLD) and not passes(CANDIDATE) for _ in range(2))
    print("holds" if held else "does not hold")
    sys.exit(0 if held else 1)
'''


def reseeded(tests: Mapping[str, str]) -> list[tuple[int, dict[str, str]]]:
    """(step, tests with every literal seed moved by it); empty when the tests write no seed."""
    found: list[tuple[int, dict[str, str]]] = []
    for step in range(1, SEEDS + 1):
        changed = {path: _moved(text, step) for path, text in tests.items()}
        if changed == {path: ast.unparse(pyast.parse(text)) for path, text in tests.items()}:
            return []
        found.append((step, changed))
    return found


def _moved(text: str, step: int) -> str:
    return ast.unparse(_Move(step).visit(pyast.parse(text)))


class _Move(ast.NodeTransformer):
    def __init__(self, step: int) -> None:
        self.step = step

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        name = getattr(node.func, "id", getattr(node.func, "attr", ""))
        if name in ("Random", "seed", "default_rng", "RandomState") and len(node.args) == 1:
            seed = node.args[0]
            if isinstance(seed, ast.Constant) and type(seed.value) is int:
                node.args = [ast.copy_location(ast.Constant(seed.value + self.step), seed)]
        return node


def script(
    *,
    task_id: str,
    path: str,
    gold: str,
    candidate: str,
    tests: Mapping[str, str],
    call: str,
    seconds: float = 30.0,
) -> str:
    """The standalone script: exit 0 when gold passes the reseeded tests and the candidate fails them, twice."""
    return SCRIPT.format(
        task_id=task_id,
        call=call,
        path=path,
        gold=gold,
        candidate=candidate,
        tests=dict(tests),
        seconds=seconds,
    )


def witness(view: FunctionView, text: str, tests: Mapping[str, str], step: int, rating: float) -> Witness:
    """That gold passes these reseeded tests and the program `text` fails them, seen twice."""
    call = f"every random seed of the tests moved by {step}"
    return Witness(
        kind=WitnessKind.TEST,
        call=call,
        expected="the visible asserts hold",
        observed="one fails",
        script=script(
            task_id=view.task_id, path=view.path, gold=view.gold, candidate=text, tests=tests, call=call
        ),
        test="\n".join(tests.values()),
        rating=rating,
        runs=2,
        in_domain="drawn by the visible tests' own generator",
    )
