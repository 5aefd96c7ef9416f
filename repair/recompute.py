"""Where only the expected value of a proposed test is wrong, take gold's value: rewritten, gated again, recorded.

Covered: `assert CALL == LITERAL`, `assertEqual(CALL, LITERAL)` and their mirror images. Gold is asked once, in the
sandbox, by the proposed test itself with each such comparison replaced by a print of the computed value. A value that
has no plain literal form is left as it was. This trusts gold on the proposed input: the domain of the input and the
correct alternatives are for the gates that follow.
"""

from __future__ import annotations

import ast
import json
import secrets
from dataclasses import dataclass, replace

from ..envs import pyast
from ..envs.patch import Patch
from ..envs.task import AddedTests
from .gates.trial import Bench
from .observer import first_line
from .render import literal

EQUALS = frozenset(
    {
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
    }
)


@dataclass(frozen=True)
class Comparison:
    """One assertion of a computed value against a literal; columns are UTF-8 byte offsets, as `ast` gives them."""

    test: str
    line: int
    computed: str
    expected: str
    where: tuple[int, int, int, int]


def comparisons(text: str) -> list[Comparison]:
    """All comparisons with a literal on exactly one side, in source order."""
    try:
        tree = pyast.parse(text)
    except (SyntaxError, ValueError):
        return []
    found = []
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and function.name.startswith("test"):
            for node in ast.walk(function):
                sides = _sides(node)
                if sides is not None:
                    found.append(_comparison(text, function.name, *sides))
    return sorted((c for c in found if c is not None), key=lambda c: c.where)


def _sides(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare) and len(node.test.ops) == 1:
        if isinstance(node.test.ops[0], ast.Eq):
            return node.test.left, node.test.comparators[0]
    if isinstance(node, ast.Expr) and isinstance(node.value, ast.Call) and len(node.value.args) >= 2:
        if isinstance(node.value.func, ast.Attribute) and node.value.func.attr in EQUALS:
            return node.value.args[0], node.value.args[1]
    return None


def _comparison(text: str, test: str, left: ast.expr, right: ast.expr) -> Comparison | None:
    parts = [ast.get_source_segment(text, side) or "" for side in (left, right)]
    plain = [literal(part) is not None for part in parts]
    if plain[0] == plain[1]:
        return None
    computed, expected = (0, 1) if plain[1] else (1, 0)
    node = (left, right)[expected]
    where = (node.lineno, node.col_offset, node.end_lineno or node.lineno, node.end_col_offset or 0)
    return Comparison(test, node.lineno, parts[computed], parts[expected], where)


def recompute(bench: Bench, added: AddedTests) -> tuple[AddedTests, dict[str, str]]:
    """The tests with gold's values, and what was changed: "test: computed == expected" -> new expected.

    Unchanged tests and {} when there is nothing to change or gold's values are no literals.
    """
    files, changes = dict(added.test_files), {}
    for path, text in added.test_files.items():
        found = comparisons(text)
        values = _ask_gold(bench, added, path, text, found)
        for index in sorted(values, reverse=True):
            comparison, value = found[index], values[index]
            old, new = literal(comparison.expected), literal(value)
            if old is None or new is None or repr(old.value) == repr(new.value):
                continue
            files[path] = _splice(files[path], comparison, value)
            changes[f"{comparison.test}: {comparison.computed} == {comparison.expected}"] = value
    return replace(added, test_files=files), changes


def _ask_gold(
    bench: Bench, added: AddedTests, path: str, text: str, found: list[Comparison]
) -> dict[int, str]:
    """Index of a comparison -> repr of what gold computes there."""
    if not found:
        return {}
    nonce = secrets.token_hex(8)
    asked = _with_prints(text, found, nonce)
    tests = replace(added, test_files={**added.test_files, path: asked})
    run = bench.run(Patch(bench.task.gold_patch), tests, repeat=1)
    values: dict[int, str] = {}
    for line in run.log.splitlines():
        start = line.find(f"acidtest-value {nonce} ")
        if start >= 0:
            try:
                index, value = json.loads(line[start:].split(" ", 2)[2])
            except ValueError:
                continue  # cut by the log's bound: this value stays as proposed
            values[int(index)] = str(value)
    return values


def _with_prints(text: str, found: list[Comparison], nonce: str) -> str:
    """Each literal becomes a call that prints what it is compared with; written to stderr past any capture."""
    out = text
    for index in sorted(range(len(found)), key=lambda i: found[i].where, reverse=True):
        out = _splice(out, found[index], f"_AcidAsked({index}, {found[index].expected})")
    helper = (
        "\nclass _AcidAsked:\n    def __init__(self, index, value):\n        self.index, self.value = index, value\n"
        "    def __eq__(self, other):\n        import json as _j\n        _ACID.append(_j.dumps([self.index, repr(other)]))\n"
        "        return True\n    __hash__ = None\n\n_ACID = []\n\ndef _acid_report():\n    import os as _os\n    for line in _ACID:\n"
        f"        _os.write(2, ('\\nacidtest-value {nonce} ' + line + '\\n').encode())\n\n"
        "import atexit as _acid_atexit\n_acid_atexit.register(_acid_report)\n"
    )
    lines = out.splitlines(keepends=True)
    at = first_line(out)
    return "".join(lines[:at]) + helper + "".join(lines[at:])


def _splice(text: str, comparison: Comparison, new: str) -> str:
    lines = text.splitlines(keepends=True)
    start_line, start, end_line, end = comparison.where
    first, last = lines[start_line - 1].encode(), lines[end_line - 1].encode()
    joined = first[:start] + new.encode() + last[end:]
    lines[start_line - 1 : end_line] = [joined.decode()]
    return "".join(lines)
