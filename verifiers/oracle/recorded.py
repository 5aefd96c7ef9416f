"""Mechanical witnesses for repositories: calls recorded while the suite runs under gold, replayed with the candidate.

A difference there is PROVEN only where it is a regression: a public function, a plainly comparable value, the same
under gold twice and under the *base* (so the issue does not ask for a change there), and under every known-correct
alternative; yet another value (or an exception) under the candidate. Anything else stays a LEAD with its difference
in the reasons, for the judge. Not covered: functions whose arguments do not pickle, generators, class and static
methods, behaviour without a return value.
"""

from __future__ import annotations

import ast
import base64
import json
import pickle
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Any

from ...envs import pyast
from ...envs.errors import PatchError
from ...envs.patch import Patch
from ...envs.protocols import (
    Exec,
    ExecResult,
    Framework,
    Op,
    Read,
    ReadResult,
    SandboxBackend,
    SandboxSpec,
    Write,
)
from ...envs.registry import find
from ...envs.resolve_suite import resolve
from ...envs.task import Task
from ..interpreter import python_of
from ..mutation.apply import parse_diff
from ..records import Candidate, Standing, Witness, WitnessKind
from ..source import SourceTree
from .equality import same, show

MAX_WITNESSES = 3


@dataclass(frozen=True)
class Call:
    """One recorded call. packed: base64 pickle of (args, kwargs); text: their repr, bounded."""

    module: str
    name: str
    packed: str
    text: str

    @property
    def shown(self) -> str:
        return f"{self.module}.{self.name}{self.text}"

    @property
    def literal_arguments(self) -> str | None:
        """The arguments as they would be written in a call; None unless their text gives the very same pickle."""
        raw = base64.b64decode(self.packed)
        try:
            args, kwargs = pyast.literal(self.text)
            if raw[:1] != b"\x80" or pickle.dumps((args, kwargs), raw[1]) != raw:
                return None
        except (ValueError, SyntaxError, TypeError, LookupError, MemoryError, RecursionError):
            return None
        return ", ".join([*map(repr, args), *(f"{name}={value!r}" for name, value in kwargs.items())])

    @property
    def public(self) -> bool:
        """No private part in the dotted path (a private helper's result is nobody's contract)."""
        return not any(part.startswith("_") for part in (*self.module.split("."), *self.name.split(".")))


Answer = tuple[str, Any, str]
"""(kind, encoded result or exception name, arguments afterwards); kind v, e, or ? (could not be called)"""


class RecordedOracle:
    """Records once per task, replays per candidate. backend: opens the task's image; alternatives: known correct."""

    def __init__(self, task: Task, backend: SandboxBackend, *, alternatives: Sequence[Patch] = ()) -> None:
        self.task, self.backend = task, backend
        self.tree = SourceTree(task, backend)
        self.alternatives = tuple(alternatives)
        self.calls: list[Call] = []
        self._gold: list[Answer] = []
        self._base: list[Answer] = []
        self._others: list[list[Answer]] = []
        self._tests: Mapping[str, bytes] = {}

    def prepare(self) -> int:
        """Record under gold, replay under gold (twice), base and alternatives; the number of usable calls.

        Raises SandboxError and PatchError (a gold patch that does not match its tree).
        """
        targets = changed_functions(self.task, self.tree)
        calls = self._record(targets) if targets else []
        if not calls:
            return 0
        one, two = (
            self._replay(calls, Patch(self.task.gold_patch), 0),
            self._replay(calls, Patch(self.task.gold_patch), 1),
        )
        keep = [i for i in range(len(calls)) if _steady(one[i], two[i])]
        self.calls = [calls[i] for i in keep]
        self._gold = [one[i] for i in keep]
        if self.calls:
            self._base = self._replay(self.calls, Patch(), 0)
            self._others = [self._replay(self.calls, patch, 0) for patch in self.alternatives]
        return len(self.calls)

    def prove(
        self, candidates: Iterable[Candidate]
    ) -> list[tuple[Candidate, tuple[Witness, ...], Standing, tuple[str, ...]]]:
        """(candidate, witnesses, standing, reasons) for paid candidates; PROVEN or LEAD, nothing else."""
        return [(candidate, *self._prove(candidate)) for candidate in candidates]

    def _prove(self, candidate: Candidate) -> tuple[tuple[Witness, ...], Standing, tuple[str, ...]]:
        if not self.calls:
            return (), Standing.LEAD, ("no call of the changed functions could be recorded and repeated",)
        one, two = self._replay(self.calls, candidate.patch, 0), self._replay(self.calls, candidate.patch, 1)
        differing = [
            at
            for at in range(len(self.calls))
            if one[at][0] in "ve"
            and _steady(one[at], two[at], any_kind=True)
            and not _same(self._gold[at], one[at])
        ]
        proven = [at for at in differing if self._regression(at)]
        if proven:
            chosen = proven[:MAX_WITNESSES]
            found = tuple(self._witness(candidate, at, one[at]) for at in chosen)
            return (
                found,
                Standing.PROVEN,
                (f"breaks what base and gold agree on, in {len(proven)} recorded calls",),
            )
        if differing:
            at = differing[0]
            what = f"{self.calls[at].shown}: gold {_told(self._gold[at])}, candidate {_told(one[at])}"
            return (
                (),
                Standing.LEAD,
                (f"differs from gold in {len(differing)} recorded calls, e.g. {what}"[:600],),
            )
        return (), Standing.LEAD, (f"no difference in {len(self.calls)} recorded calls",)

    def _regression(self, at: int) -> bool:
        """Whether base, gold and every alternative agree there, on something that is a contract."""
        gold = self._gold[at]
        plain = bool(_effect(gold)) or is_plain(gold[1]) or bool(self._others)
        return (
            self.calls[at].public
            and plain
            and _same(gold, self._base[at])
            and all(_same(gold, other[at]) for other in self._others)
        )

    def _witness(self, candidate: Candidate, at: int, got: Answer) -> Witness:
        call, gold = self.calls[at], self._gold[at]
        agreed = f", {len(self._others)} known-correct alternatives" if self._others else ""
        effect = bool(_effect(gold)) and got[0] == "v"
        kind = (
            WitnessKind.MUTATION if effect else WitnessKind.VALUE if got[0] == "v" else WitnessKind.EXCEPTION
        )
        return Witness(
            kind=kind,
            call=call.shown,
            expected=(_effect(gold) or show(gold[1]))[:2000],
            observed=_effect(got) or _told(got),
            test=_test(call, gold),
            in_domain=f"the suite itself makes this call; base, gold{agreed} agree on its result",
            rating=(0.85 if self._others else 0.75) - 0.1 * effect,
            runs=2,
        )

    def _record(self, targets: Mapping[str, Sequence[str]]) -> list[Call]:
        """Run the suite with spies at the end of the changed modules; the calls they wrote down."""
        task, framework = self.task, framework_of(self.task)
        self._tests = resolve(self.backend, task, task.suite, framework).files
        after = self.tree.after(Patch(task.gold_patch))
        with self.backend.open(SandboxSpec.of(task)) as sandbox:
            log, helper = f"{sandbox.scratch}/calls.jsonl", f"{sandbox.scratch}/acid_recorder.py"
            spied = {
                path: text + _hook(helper, targets[path], log) if path in targets else text
                for path, text in after.items()
            }
            ops: list[Op] = [
                Write(files={helper: recorder_source().encode(), **_encoded(spied)}),
                Write(files=dict(self._tests)),
                Exec(
                    command=task.suite.command,
                    timeout_s=task.timeout_s,
                    env=dict(task.suite.env),
                ),
                Read(path=log, limit=8_000_000),
            ]
            result = sandbox.script(ops)[-1]
        rows = result.data.split(b"\n") if isinstance(result, ReadResult) and result.found else []
        found: dict[str, Call] = {}
        for row in rows:
            try:
                call = Call(*json.loads(row))
            except (ValueError, TypeError):
                continue
            found.setdefault(call.module + call.name + call.packed, call)
        return list(found.values())[:200]

    def _replay(self, calls: Sequence[Call], patch: Patch, seed: int) -> list[Answer]:
        """The calls' answers in a fresh sandbox with `patch` applied; ("?", …) where they could not be made."""
        none: Answer = ("?", "no answer", "")
        try:
            files = self.tree.after(patch) if not patch.is_empty else {}
        except PatchError:
            return [none] * len(calls)
        folders = " ".join(
            shlex.quote(f) for f in sorted({str(PurePosixPath(p).parent) for p in self._tests})
        )
        rows = "\n".join(json.dumps([c.module, c.name, c.packed, ""]) for c in calls)
        with self.backend.open(SandboxSpec.of(self.task)) as sandbox:
            helper, listing = f"{sandbox.scratch}/acid_recorder.py", f"{sandbox.scratch}/calls.jsonl"
            ops: list[Op] = [
                Write(files={helper: recorder_source().encode(), listing: rows.encode(), **_encoded(files)}),
                Write(files=dict(self._tests)),
                Exec(
                    command=f"{python_of(self.task.suite.command)} -B -W ignore {helper} replay {listing} {folders}",
                    timeout_s=120,
                    env={**self.task.suite.env, "PYTHONHASHSEED": str(seed)},
                    output_bytes=16_000_000,
                ),
            ]
            result = sandbox.script(ops)[-1]
        answers = [none] * len(calls)
        for line in result.output.split(b"\n") if isinstance(result, ExecResult) else []:
            try:
                number, answer = json.loads(line)
                answers[number] = (str(answer[0]), answer[1], str(answer[2]))
            except (ValueError, TypeError, LookupError):
                continue
        return answers


def changed_functions(task: Task, tree: SourceTree) -> dict[str, list[str]]:
    """path -> dotted names of module-level functions and methods that the gold patch changes or adds lines in."""
    after = tree.after(Patch(task.gold_patch))
    found: dict[str, list[str]] = {}
    for part in parse_diff(task.gold_patch):
        if not part.path.endswith(".py") or part.path not in after:
            continue
        lines = part.touched_lines(None if part.created else tree.read(part.path))
        try:
            module = pyast.parse(after[part.path])
        except SyntaxError:
            continue
        names = [
            name
            for name, node in _functions(module)
            if lines & set(range(node.lineno, (node.end_lineno or 0) + 1))
        ]
        if names:
            found[part.path] = names
    return found


def _functions(module: ast.Module) -> Iterable[tuple[str, ast.FunctionDef]]:
    for node in module.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for inner in node.body:
                if isinstance(inner, ast.FunctionDef):
                    yield f"{node.name}.{inner.name}", inner


def framework_of(task: Task) -> Framework:
    """The framework object of the task's suite."""
    framework: Framework = find("acidtest.envs.frameworks", task.suite.framework).framework()
    return framework


@cache
def recorder_source() -> str:
    """The in-sandbox script: `equality.py` pasted in place of its import."""
    folder = Path(__file__).parent
    text = (folder / "recorder.py").read_text(encoding="utf-8").replace("from .equality import encode\n", "")
    return (folder / "equality.py").read_text(encoding="utf-8") + "\n" + text


@cache
def _left_source() -> str:
    """The recorder's own function that tells what a call did to its arguments, to stand in a test."""
    text = (Path(__file__).parent / "recorder.py").read_text(encoding="utf-8")
    found = text[text.index("def _left(") : text.index("def replay(")]
    return found.replace("args: Any, kwargs: Any) -> str", "args, kwargs)").rstrip() + "\n\n"


def _hook(helper: str, names: Sequence[str], log: str) -> str:
    """Text at the end of a module that loads the recorder apart from the module's own names."""
    return (
        f"\n\n_acid = {{'__name__': 'acid_recorder'}}\nexec(compile(open({helper!r}).read(), 'acid_recorder', 'exec'), _acid)"
        f"\n_acid['wrap'](globals(), {list(names)!r}, {log!r})\ndel _acid\n"
    )


def _encoded(files: Mapping[str, str]) -> dict[str, bytes]:
    return {path: text.encode("utf-8", "surrogateescape") for path, text in files.items()}


def _steady(one: Answer, two: Answer, any_kind: bool = False) -> bool:
    """The same answer twice, and one that can be compared."""
    if one[0] != two[0] or one[0] == "?" or (one[0] == "e" and not any_kind):
        return False
    return one[0] == "e" or (_same(one, two) and comparable(one[1]))


def _same(gold: Answer, other: Answer) -> bool:
    if gold[0] != other[0] or gold[0] != "v":
        return gold[:2] == other[:2]
    return same(gold[1], other[1]) and _effect(gold) == _effect(other)


def _effect(answer: Answer) -> str:
    """What a call without a result did: its arguments afterwards; "" for a call with a result."""
    return answer[2] if answer[0] == "v" and answer[1] is None else ""


def comparable(encoded: Any) -> bool:
    """Whether an encoded value holds nothing that cannot be compared (objects that print their address)."""
    if not isinstance(encoded, dict):
        return True
    tag, value = next(iter(encoded.items()))
    if tag == "x":
        return False
    if tag == "d":
        return all(comparable(k) and comparable(v) for k, v in value)
    return tag not in "lts" or all(map(comparable, value))


def is_plain(encoded: Any) -> bool:
    """Whether an encoded value is made of plain data only (no objects compared by their text), and is no None."""
    return encoded is not None and _plain(encoded)


def _plain(encoded: Any) -> bool:
    if not isinstance(encoded, dict):
        return True
    tag, value = next(iter(encoded.items()))
    if tag == "d":
        return all(_plain(k) and _plain(v) for k, v in value)
    return tag in "bci" or (tag in "lts" and all(map(_plain, value)))


def _told(answer: Answer) -> str:
    return show(answer[1])[:300] if answer[0] == "v" else f"raises {answer[1]}"


_TEST = '''\
import base64
import importlib
import pickle
import re


{left}
def test_recorded_call():
    """{shown}"""
    function = importlib.import_module({module!r})
    for part in {name!r}.split("."):
        function = getattr(function, part)
    args, kwargs = pickle.loads(base64.b64decode({packed!r}))
    value = function(*args, **kwargs)
    assert {check}
'''


def _test(call: Call, gold: Answer) -> str:
    """A test of the call: its value, the text of its object, or what it did to its arguments."""
    check = f"value == {show(gold[1])}" if is_plain(gold[1]) else f"repr(value) == {show(gold[1])!r}"
    if _effect(gold):
        check = f"_left(args, kwargs) == {_effect(gold)!r}"
    elif (arguments := call.literal_arguments) is not None and "." not in call.name:
        return (
            f"from {call.module} import {call.name}\n\n\ndef test_recorded_call():\n"
            f"    value = {call.name}({arguments})\n    assert {check}\n"
        )
    shown = call.shown.replace("\\", "\\\\").replace('"""', "'''")[:200]
    left = _left_source() if _effect(gold) else ""
    return _TEST.format(
        shown=shown, module=call.module, name=call.name, packed=call.packed, check=check, left=left
    )
