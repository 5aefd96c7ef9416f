"""The order of added tests: those that refused most of the task's proven wrong programs come first.

It is fixed before the proof and stands in the locked suite itself (files, command, ids): the real run, its repeat and
the twin have one and the same command. A verdict that ends at the first failure (`Defence.fail_fast`) so ends early.
Equal tests go by their time under gold, in coarse classes (`cost_class`: a repair that is resumed has to lock what an
undisturbed one locks), then by name. Programs that keep state between calls may be refused by another test, or by none,
in another order: `loop.py` proves the order that is locked.
A file whose tests cannot be moved safely keeps its order. Not moved: methods of
classes with a base, and whatever a runner sorts itself (unittest, Django, sympy: there only the ids are sorted).
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from ..envs import pyast
from ..envs.patch import Patch
from ..envs.run import Status
from ..envs.task import AddedTests
from ..verifiers.records import Candidate
from .bench import IN_ORDER_OF_FILE, VerifierBench

REFUSED = {Status.FAILED, Status.ERROR}
SMALL_S = 0.25
"""Below this many seconds all tests cost the same; from there on a class ends at four times its beginning."""
MOST_CLASSES = 12
SHELL = re.compile(r"[;&|<>$`(){}'\"\\\n]")

Key = tuple[float, int, str]
Unit = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
N = TypeVar("N", bound=ast.stmt)


@dataclass(frozen=True, kw_only=True)
class Kills:
    """What is known of added tests. of: executed programs. by_id: added id -> programs that it refused. cost: its class."""

    of: int = 0
    by_id: Mapping[str, frozenset[str]] = field(default_factory=dict)
    cost: Mapping[str, int] = field(default_factory=dict)

    def key(self, ids: Iterable[str], name: str) -> Key:
        """How a test (or file) with these ids is compared: refusals, most first, then cost, then its name."""
        held = list(ids)
        refused = frozenset[str]().union(*(self.by_id.get(i, frozenset()) for i in held))
        return -float(len(refused)), max((self.cost.get(i, 0) for i in held), default=0), name

    @property
    def rates(self) -> dict[str, float]:
        """Added id -> share of the executed programs that it refused."""
        return {i: round(len(found) / self.of, 4) if self.of else 0.0 for i, found in self.by_id.items()}


def kills_of(bench: VerifierBench, added: AddedTests, targets: Sequence[Candidate]) -> Kills:
    """Execute every target once under the added tests, to the end (mostly remembered from the gates)."""
    found: dict[str, set[str]] = {ident: set() for ident in added.test_ids}
    for target in targets:
        statuses = bench.run(target.patch, added).statuses
        for ident in added.test_ids:
            if statuses.get(ident) in REFUSED:
                found[ident].add(target.candidate_id)
    durations = bench.run(Patch(bench.task.gold_patch), added).durations
    return Kills(
        of=len(targets),
        by_id={ident: frozenset(names) for ident, names in found.items()},
        cost={ident: cost_class(durations.get(ident, 0.0)) for ident in added.test_ids},
    )


def cost_class(seconds: float) -> int:
    """0 below SMALL_S, then one more at every four times that."""
    classes = 0
    while seconds >= SMALL_S and classes < MOST_CLASSES:
        seconds /= 4
        classes += 1
    return classes


def in_order(added: AddedTests, kills: Kills) -> AddedTests:
    """The same tests, best first."""
    if added.framework not in IN_ORDER_OF_FILE:
        by_key = sorted(added.test_ids, key=lambda i: kills.key([i], i))
        return replace(added, test_ids=tuple(by_key))
    texts = {path: moved(text, path, added.test_ids, kills) for path, text in added.test_files.items()}
    places = {path: _places(text, path) for path, text in texts.items()}
    command = _command(added.command, added.test_files, added.test_ids, kills)
    words = command.split()

    def place(ident: str) -> tuple[int, int]:
        path, _, name = ident.partition("::")
        at = min((n for n, word in enumerate(words) if word.split("::", 1)[0] == path), default=len(words))
        return at, places.get(path, {}).get(name.split("[", 1)[0], 0)

    return replace(
        added, command=command, test_files=texts, test_ids=tuple(sorted(added.test_ids, key=place))
    )


def moved(text: str, path: str, ids: Sequence[str], kills: Kills) -> str:
    """A test file with its tests in order; unchanged where moving them could change what they do."""
    new = text if text.endswith("\n") else text + "\n"
    try:
        before = pyast.parse(new)
        for cls in before.body:
            if isinstance(cls, ast.ClassDef) and _is_test(cls) and not cls.bases:
                new = _sorted(new, _body_of(new, cls.name), f"{path}::{cls.name}", ids, kills)
        new = _sorted(new, pyast.parse(new).body, path, ids, kills)
        same = "\r" not in new and _shape(before) == _shape(pyast.parse(new))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return text
    return new if same and new.rstrip("\n") != text.rstrip("\n") else text


def _shape(node: ast.Module | ast.ClassDef | ast.If) -> list[str]:
    """All statements, in no order."""
    nested = (ast.ClassDef, ast.If)
    return sorted(repr(_shape(n)) if isinstance(n, nested) else ast.dump(n) for n in node.body)


def _body_of(text: str, name: str) -> list[ast.stmt]:
    return next(n.body for n in pyast.parse(text).body if isinstance(n, ast.ClassDef) and n.name == name)


def _sorted(text: str, body: Sequence[ast.stmt], prefix: str, ids: Sequence[str], kills: Kills) -> str:
    units = [node for node in body if isinstance(node, Unit) and _is_test(node)]
    if len(units) < 2 or not _may_move(body, units):
        return text

    def key(name: str) -> Key:
        start = f"{prefix}::{name}"
        own = [i for i in ids if i == start or i.startswith((f"{start}::", f"{start}["))]
        return kills.key(own, name)

    text = _permuted(text, units, lambda node: key(node.name))
    calls = {node.name for node in units}
    for block in body:
        if isinstance(block, ast.If):
            lines = [n for n in block.body if _call(n) in calls and n.lineno == n.end_lineno]
            text = _permuted(text, lines, lambda node: key(_call(node)))
    return text


def _permuted(text: str, nodes: Sequence[N], key: Callable[[N], Key]) -> str:
    """The nodes in another order, each in the place of one; what stands between them stays. `nodes` in order of lines."""
    lines = text.split("\n")
    spans = {id(node): _span(node, lines) for node in nodes}
    out, at = [], 0
    for node, other in zip(nodes, sorted(nodes, key=key), strict=True):
        start, end = spans[id(node)]
        first, last = spans[id(other)]
        out += lines[at:start] + lines[first:last]
        at = end
    return "\n".join(out + lines[at:])


def _span(node: ast.stmt, lines: Sequence[str]) -> tuple[int, int]:
    """First and last line (from 0, end excluded): decorators and the comment right above belong to it."""
    start = min([node.lineno, *(d.lineno for d in getattr(node, "decorator_list", ()))]) - 1
    while start and lines[start - 1].lstrip().startswith("#"):
        start -= 1
    return start, node.end_lineno or node.lineno


def _is_test(node: Unit) -> bool:
    return node.name.startswith("Test" if isinstance(node, ast.ClassDef) else "test")


def _call(node: ast.stmt) -> str:
    """`f` of a statement `f()`, else nothing."""
    call = node.value if isinstance(node, ast.Expr) else None
    bare = isinstance(call, ast.Call) and not call.args and not call.keywords
    return call.func.id if bare and isinstance(call.func, ast.Name) else ""  # type: ignore[union-attr]


def _may_move(body: Sequence[ast.stmt], units: Sequence[Unit]) -> bool:
    """Whether the order of definition is seen by nobody: what is evaluated there names no other test, and nothing else
    stands between the tests, or what does and they do not need each other while they are defined."""
    names = [unit.name for unit in units]
    if len(set(names)) < len(names) or any(_at_definition(unit) & ({*names} - {unit.name}) for unit in units):
        return False
    first, last = body.index(units[0]), body.index(units[-1])
    between = [node for node in body[first:last] if node not in units]
    if not between:
        return True
    plain = all(not isinstance(unit, ast.ClassDef) and not _at_definition(unit) for unit in units)
    return plain and not any(_names(node) & {*names} for node in between)


def _at_definition(unit: Unit) -> set[str]:
    """Names that are looked up when the test is defined: decorators, defaults, annotations; of a class, all it holds."""
    if isinstance(unit, ast.ClassDef):
        return _names(unit)
    return set().union(*(_names(n) for n in [*unit.decorator_list, unit.args, *filter(None, [unit.returns])]))


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _places(text: str, path: str) -> dict[str, int]:
    """Name of a test as its id has it (`name`, `Class::name`) -> its line."""
    try:
        tree = pyast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return {}
    found: dict[str, int] = {}
    for node in tree.body:
        if isinstance(node, Unit):
            found[node.name] = node.lineno
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{n.name}": n.lineno for n in node.body if isinstance(n, Unit)}
    return found


def _command(command: str, files: Iterable[str], ids: Sequence[str], kills: Kills) -> str:
    """The command with the words that name files or tests of the suite in order; unchanged where it is more than a call."""
    parts, known = re.split(r"(\s+)", command), set(files)
    at = [n for n, word in enumerate(parts) if word.split("::", 1)[0] in known]
    if len(at) < 2 or len({parts[n] for n in at}) < len(at) or SHELL.search(command):
        return command

    def key(word: str) -> Key:
        """A file counts as its best test, so that the best of all stands first."""
        own = [i for i in ids if i == word or i.startswith((f"{word}::", f"{word}["))]
        return min((kills.key([i], word) for i in own), default=kills.key([], word))

    for n, word in zip(at, sorted((parts[n] for n in at), key=key), strict=True):
        parts[n] = word
    return "".join(parts)
