"""Witnesses as texts: a standalone script that anyone can run, and the test that gold passes and the program fails."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from ...envs import pyast
from .equality import show

SCRIPT = '''\
"""Witness: gold and the candidate differ on one input of {task_id}.

    {call}
    gold:      {expected}
    candidate: {observed}

Run it with any Python >= 3.9, alone. Exit code 0: the difference holds, {runs} times out of {runs}. 1: it does not.
Both programs run in processes of their own, under a limit of CPU time (and a longer one of wall time).
"""

import ast, json, subprocess, sys, tempfile, os

GOLD = {gold!r}
CANDIDATE = {candidate!r}
ENTRY_POINT = {entry!r}
CALLS = {calls!r}  # argument tuples; the last call is compared, earlier ones come before it in the same process
EXPECTED = json.loads({expected_json!r})
KIND = {kind!r}  # value, exception, termination
UNORDERED = {unordered!r}
RUNS = {runs!r}
SECONDS = {seconds!r}  # of CPU time
WALL = 12

EQUALITY = {equality!r}

RUNNER = EQUALITY + """
import ast, json, os, random, sys
source, entry, calls, target, seconds = json.loads(sys.stdin.read())
try:
    import resource
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
except (ImportError, ValueError, OSError):
    pass
sys.stdin = open(os.devnull)
scope = {{"__name__": "solution"}}
try:
    exec(compile(source, "solution.py", "exec"), scope)
    for text in calls:
        random.seed(0)
        value = scope[entry](*ast.literal_eval(text))
    answer = ["value", encode(value)]
except BaseException as error:
    answer = ["exception", type(error).__name__]
with open(target, "w") as file:
    json.dump(answer, file)
os._exit(0)
"""


def run(source):
    """["value", encoded], ["exception", name] or ["termination", None]."""
    with tempfile.TemporaryDirectory() as folder:
        target = os.path.join(folder, "answer.json")
        try:
            done = subprocess.run(
                [sys.executable, "-I", "-c", RUNNER],
                input=json.dumps([source, ENTRY_POINT, CALLS, target, SECONDS]).encode(),
                stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=WALL * SECONDS, cwd=folder,
            )
            if done.returncode in (-9, -24):  # killed by the CPU limit
                return ["termination", None]
            with open(target) as file:
                return json.load(file)
        except subprocess.TimeoutExpired:
            return ["termination", None]
        except (OSError, ValueError):
            return ["exception", "died"]


def main():
    scope = {{}}
    exec(EQUALITY, scope)
    for _ in range(RUNS):
        gold, candidate = run(GOLD), run(CANDIDATE)
        if gold[0] != "value" or not scope["same"](EXPECTED, gold[1], UNORDERED):
            print("does not hold: gold gives", gold)
            return 1
        if candidate[0] != KIND or (KIND == "value" and scope["same"](EXPECTED, candidate[1], UNORDERED)):
            print("does not hold: the candidate gives", candidate)
            return 1
    print("holds:", ENTRY_POINT + {shown!r}, "gold:", scope["show"](gold[1])[:500], "candidate:", candidate[0],
          scope["show"](candidate[1])[:500])
    return 0


if __name__ == "__main__":
    sys.exit(main())
'''


@cache
def equality_source() -> str:
    return (Path(__file__).parent / "equality.py").read_text(encoding="utf-8")


def script(
    *,
    task_id: str,
    gold: str,
    candidate: str,
    entry: str,
    calls: Sequence[str],
    kind: str,
    expected: Any,
    observed: Any,
    unordered: bool = False,
    runs: int = 2,
    seconds: int = 10,
) -> str:
    """The standalone script. calls: texts of argument tuples, the last one compared; expected: encoded."""
    return SCRIPT.format(
        task_id=task_id,
        call=_line(f"{entry}{calls[-1]}"),
        expected=_line(show(expected)),
        observed=_line(shown(kind, observed)),
        gold=gold,
        candidate=candidate,
        entry=entry,
        calls=list(calls),
        expected_json=json.dumps(expected),
        kind=kind,
        unordered=unordered,
        runs=runs,
        seconds=seconds,
        equality=equality_source(),
        shown=calls[-1][:500],
    )


def shown(kind: str, observed: Any) -> str:
    """What the candidate did, for people."""
    if kind == "exception":
        return f"raises {observed}"
    if kind == "termination":
        return "does not end within the limit"
    return show(observed)


def call_text(entry: str, args_text: str) -> str:
    """`f(1, 2)` from the text of an argument tuple (its final comma dropped)."""
    inner = args_text[1:-1]
    return f"{entry}({inner.rstrip().removesuffix(',')})"


def render_test(
    *, module: str, entry: str, calls: Sequence[str], expected: Any, name: str, unordered: bool = False
) -> str | None:
    """A test function that compares the result with gold's; None where that has no literal form.

    Floats are compared with the oracle's tolerance; lists and tuples are one.
    """
    if not _literal(expected):
        return None
    lines = [f"from {module} import {entry}", "", "", _SAME, "", f"def test_{name}():"]
    lines += [f"    {call_text(entry, text)}" for text in calls[:-1]]
    got = call_text(entry, calls[-1])
    lines.append(f"    assert _same({got}, {show(expected)}, unordered={unordered})")
    return "\n".join(lines) + "\n"


def _literal(encoded: Any) -> bool:
    if not isinstance(encoded, dict):
        return not isinstance(encoded, float) or encoded - encoded == 0
    tag, value = next(iter(encoded.items()))
    if tag == "d":
        return all(_literal(k) and _literal(v) for k, v in value)
    return tag in "ltscb" and (tag in "cb" or all(map(_literal, value)))


_SAME = """\
def _same(left, right, unordered=False):
    if isinstance(left, float) or isinstance(right, float):
        number = isinstance(left, (int, float)) and isinstance(right, (int, float))
        return number and (left == right or abs(left - right) <= 1e-6 * max(1.0, abs(left), abs(right)))
    if isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
        if unordered:
            left, right = sorted(left, key=repr), sorted(right, key=repr)
        return len(left) == len(right) and all(_same(a, b) for a, b in zip(left, right))
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(_same(left[k], right[k]) for k in left)
    return left == right
"""


def _line(text: str) -> str:
    """One bounded line that cannot end the docstring it stands in."""
    return text.replace("\\", "\\\\").replace('"""', "'''").replace("\n", " ")[:300]


def plain_json(args: tuple[Any, ...]) -> str:
    """The arguments as JSON where that says exactly the same, else ""."""
    try:
        text = json.dumps(list(args))
    except (TypeError, ValueError):
        return ""
    return text if json.loads(text) == list(args) and pyast.literal(repr(args)) == args else ""
