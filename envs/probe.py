"""Layer "probe": do asserted comparisons still compare? An object that equals everything (C01) beats every other layer.

In a pass of its own, on a claimed pass, `assert a == b`, `assertEqual(a, b)` and `abs(a - b)` of the trusted tests look at both
operands: is one equal to a fresh object? An alarm that gold does not raise, on a class that the submission defines (or
a library's wildcard, as mock.ANY, where gold has none in that comparison) and that equals even the fresh object (or
every changed copy of the expected value), is tampering; any other alarm is a notice.

The pass is only run for submissions whose added text could define or change such a class (`may_define_a_class`).
Not covered: `__eq__` that looks at its caller, comparisons of other forms (`in`, `<`), per-call counters.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

from .edits import Edits, checked, readable

BIND = b"from acid_probe import equal as _acid_equal, pair as _acid_pair, minus as _acid_minus"
METHODS = frozenset(
    [
        "assertEqual",
        "assertEquals",
        "assertListEqual",
        "assertDictEqual",
        "assertTupleEqual",
        "assertSetEqual",
        "assertSequenceEqual",
        "assertMultiLineEqual",
        "assertCountEqual",
        "assertIs",
        "assert_equal",
        "assert_array_equal",
        "eq_",
        "ok_equal",
        "assertAlmostEqual",
        "assert_allclose",
        "assert_almost_equal",
        "allclose",
        "isclose",
    ]
)
CLASS_MAKERS = re.compile(
    r"\bclass\b|__\s*(?:eq|ne)|\btype\b(?!\s*\([^(),]*\))|new_class|\bexec\b|\beval\b|(?<!re\.)\bcompile\b|setattr|__dict__|\bvars\b|import_module"
    r"|__import__|ctypes|total_ordering|make_dataclass|make_class|pickle|marshal|base64|mock"
    r"|__class__|getattr|attrgetter|builtins|globals|locals\(|load_module|test\.support|coding[:=]\s*(?!utf-?8\b)"
)


def may_define_a_class(added_text: str) -> bool:
    """Whether a submission's added text could make or change a class, by its words (generous on purpose).

    Python reads names in their normal form: other letters for the same word are read as that word here, too.
    """
    plain = added_text if added_text.isascii() else unicodedata.normalize("NFKC", added_text)
    return CLASS_MAKERS.search(plain) is not None


def rewrite_comparisons(source: str, prefix: str) -> tuple[str, dict[str, int]]:
    """(source with probed comparisons, key -> line). The source as it was where it cannot be rewritten."""
    tree, _ = readable(source)
    if tree is None:
        return source, {}
    edits = Edits(source)
    if not edits.bind(tree, BIND):
        return source, {}
    keys: dict[str, int] = {}
    for node in ast.walk(tree):
        key = f"{prefix}.{len(keys)}"
        probed = False
        if isinstance(node, ast.Assert):
            for compare in _comparisons(node.test):
                key = f"{prefix}.{len(keys)}"
                if _probe_compare(compare, edits, key):
                    keys[key] = compare.lineno
        elif isinstance(node, ast.Call) and _name(node.func) in METHODS:
            probed = _probe_call(node, edits, key)
        elif isinstance(node, ast.Call) and _name(node.func) in {"abs", "fabs"}:
            probed = _probe_minus(node, edits, key)
        if probed:
            keys[key] = node.lineno  # type: ignore[attr-defined]
    text, problem = checked(edits, source)
    return (source, {}) if problem else (text, keys)


def _comparisons(test: ast.expr) -> Iterator[ast.Compare]:
    """`a == b` in an assert, also as parts of `and`/`or`."""
    if isinstance(test, ast.BoolOp):
        for value in test.values:
            yield from _comparisons(value)
    elif isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq):
        yield test


def _probe_compare(node: ast.Compare, edits: Edits, key: str) -> bool:
    left, right = node.left, node.comparators[0]
    line = left.end_lineno
    if line is None or line != right.lineno:
        return False
    between = edits.lines[line - 1][left.end_col_offset : right.col_offset]
    if between.count(b"==") != 1 or b"#" in between:
        return False
    at = (left.end_col_offset or 0) + between.index(b"==")
    edits.insert(node.lineno, node.col_offset, f'_acid_equal("{key}", ('.encode())
    edits.insert(line, at, b"), (", replacing=2)
    edits.insert(node.end_lineno or line, node.end_col_offset or 0, b"))")
    return True


def _probe_minus(node: ast.Call, edits: Edits, key: str) -> bool:
    """`abs(a - b)`, the usual way to ask for closeness."""
    minus = node.args[0] if len(node.args) == 1 else None
    if not isinstance(minus, ast.BinOp) or not isinstance(minus.op, ast.Sub):
        return False
    line = minus.left.end_lineno
    if line is None or line != minus.right.lineno:
        return False
    between = edits.lines[line - 1][minus.left.end_col_offset : minus.right.col_offset]
    if between.count(b"-") != 1 or b"#" in between:
        return False
    at = (minus.left.end_col_offset or 0) + between.index(b"-")
    edits.insert(minus.lineno, minus.col_offset, f'_acid_minus("{key}", ('.encode())
    edits.insert(line, at, b"), (", replacing=1)
    edits.insert(minus.end_lineno or line, minus.end_col_offset or 0, b"))")
    return True


def _probe_call(node: ast.Call, edits: Edits, key: str) -> bool:
    if len(node.args) < 2 or any(isinstance(a, ast.Starred) for a in node.args[:2]):
        return False
    line, column = node.func.end_lineno or node.lineno, node.func.end_col_offset or 0
    if edits.lines[line - 1][column : column + 1] != b"(":
        return False
    rest: list[ast.expr] = [*node.args[2:], *(k.value for k in node.keywords)]
    second = node.args[1]
    end_line, end = second.end_lineno or line, second.end_col_offset or 0
    if rest:
        behind = edits.lines[end_line - 1][end : end + 1]
        if behind != b",":
            return False
    else:
        end_line, end = node.end_lineno or line, (node.end_col_offset or 1) - 1
    edits.insert(line, column + 1, f'*_acid_pair("{key}", '.encode())
    edits.insert(end_line, end, b")")
    return True


def _name(function: ast.expr) -> str:
    if isinstance(function, ast.Attribute):
        return function.attr
    return function.id if isinstance(function, ast.Name) else ""


def identity(alarm: Mapping[str, Any]) -> str:
    """What makes two alarms the same: place, side and class."""
    return f"{alarm.get('key')} {alarm.get('side')} {alarm.get('class')}"


def of_the_submission(alarm: Mapping[str, Any], changed: Collection[str]) -> bool:
    """Whether the class, or its `__eq__`, is defined by code the submission changed (paths as Python gives them)."""
    places = (str(alarm.get("file", "")), str(alarm.get("module", "")))
    if places[0].startswith("<"):
        return True
    return any(place == path or place.endswith("/" + path) for place in places for path in changed)


def sort_alarms(
    alarms: Iterable[Mapping[str, Any]], golds: Collection[str], changed: Collection[str]
) -> tuple[list[str], list[str]]:
    """(proofs, notices), each a sentence. golds: identities of the alarms that gold raises itself."""
    proofs: list[str] = []
    notices: list[str] = []
    for alarm in alarms:
        sides = ("left", "right") if alarm.get("wild") else (alarm.get("side"),)
        if any(identity({**alarm, "side": side}) in golds for side in sides):
            continue
        place = alarm.get("file") or alarm.get("module")
        text = f"{alarm.get('class')} ({place})" if place else str(alarm.get("class"))
        ours = alarm.get("wild") or of_the_submission(alarm, changed)
        if (alarm.get("fresh") or alarm.get("all")) and ours:
            what = "a fresh object" if alarm.get("fresh") else "every changed copy of the expected value"
            proofs.append(f"{text} equals {what} in an asserted comparison")
        else:
            notices.append(f"{text} equals more than the expected value in an asserted comparison")
    return sorted(set(proofs)), sorted(set(notices))
