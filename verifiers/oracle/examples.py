"""Examples and bounds that a task's text states: doctests, ``f(1) == 2``, ``f(1) => 2``, ``1 <= n <= 100``.

They are the best evidence of the domain there is. Not covered: examples in prose, or under another function's name.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from ...envs import pyast

ARROW = re.compile(
    r"^\s*(?:==>|=>|==|=|-+>|➞|➡|→|⇒|returns?\b|should\s+return\b|should\s+be\b|is\b|#\s*(?:=>|->|returns?)?)\s*(.+)$"
)
BOUND = r"(-?\d+)"
CHAIN = re.compile(BOUND + r"\s*(<=|<|≤)\s*(?:len\()?([A-Za-z_]\w*)\)?\s*(<=|<|≤)\s*" + BOUND)
ONE = re.compile(r"(?<![\w<≤])([A-Za-z_]\w*)\s*(>=|>|≥)\s*" + BOUND)


@dataclass(frozen=True)
class Example:
    """A stated call. expected only where `has_expected`; text: the words it stands in."""

    args: tuple[Any, ...]
    has_expected: bool
    expected: Any
    text: str


def stated_examples(text: str, name: str) -> list[Example]:
    """Examples of calls of `name` with literal arguments, in order, each argument tuple once."""
    found: dict[str, Example] = {}
    for match in re.finditer(rf"(?<![\w.]){re.escape(name)}\s*\(", text):
        end = _call_end(text, match.start())
        if end is None:
            continue
        args = _args(text[match.start() : end])
        if args is None:
            continue
        known, expected, shown = _expectation(text, match.start(), end)
        key = repr(args)
        if key not in found or (known and not found[key].has_expected):
            found[key] = Example(args, known, expected, shown)
    return list(found.values())


def _call_end(text: str, start: int) -> int | None:
    """End of the balanced parenthesis that opens after `start`, strings respected; None when there is none."""
    depth, quote, at = 0, "", start
    while at < min(len(text), start + 2000):
        char = text[at]
        if quote:
            if char == "\\":
                at += 1
            elif char == quote:
                quote = ""
        elif char in "'\"":
            quote = char
        elif char in "([{":
            depth += 1
        elif char in ")]}":
            depth -= 1
            if depth == 0:
                return at + 1
        at += 1
    return None


def _args(call: str) -> tuple[Any, ...] | None:
    try:
        node = pyast.expression(" ".join(call.split("\n")).strip()).body
        if not isinstance(node, ast.Call) or node.keywords:
            return None
        return tuple(pyast.literal(arg) for arg in node.args)
    except (SyntaxError, ValueError, TypeError, MemoryError):
        return None


def _expectation(text: str, start: int, end: int) -> tuple[bool, Any, str]:
    line_start = text.rfind("\n", 0, start) + 1
    rest, _, after = text[end:].partition("\n")
    shown = text[line_start:end].strip() + rest
    if ">>>" in text[line_start:start] and not rest.strip():
        line = after.split("\n")[0]
        known, value = _value(line)
        return known, value, shown + "\n" + line.strip()
    match = ARROW.match(rest)
    if not match:
        return False, None, shown
    known, value = _value(match[1])
    return known, value, shown


def _value(text: str) -> tuple[bool, Any]:
    """The literal a text consists of or begins with (before a comment, a dash, or a final stop)."""
    text = text.strip().strip("`")
    options = [
        text,
        text.split("#")[0],
        text.rstrip(".;,"),
        re.split(r"\s+(?:-+\s+[A-Za-z]|because|since|//)", text)[0],
    ]
    if " = " in text:
        options.append(text.rpartition(" = ")[2])
    for candidate in options:
        try:
            return True, pyast.literal(candidate.strip())
        except (SyntaxError, ValueError, TypeError, MemoryError):
            continue
    words = text.split(" ")[:20]
    for end in range(len(words) - 1, 0, -1):
        if words[end][:1].isalpha():
            try:
                return True, pyast.literal(" ".join(words[:end]).rstrip(".;,"))
            except (SyntaxError, ValueError, TypeError, MemoryError):
                continue
    return False, None


def stated_bounds(text: str, names: tuple[str, ...]) -> dict[str, tuple[float, float]]:
    """Bounds on numbers by parameter name, as the text states them in symbols; infinite where one side is open."""
    found: dict[str, tuple[float, float]] = {}
    for low, left, name, right, high in CHAIN.findall(text):
        if name in names:
            found[name] = (int(low) + (left == "<"), int(high) - (right == "<"))
    for name, sign, low in ONE.findall(text):
        if name in names and name not in found:
            found[name] = (int(low) + (sign == ">"), math.inf)
    return found


def stated_floor(text: str) -> int | None:
    """1 where the text speaks of positive integers, 0 of non-negative ones, None where it says neither."""
    lower = text.lower()
    if re.search(r"non[- ]?negative (?:int|num|whole)", lower):
        return 0
    if re.search(r"positive (?:int|num|whole|natural)|natural number", lower):
        return 1
    return None


def says_any_order(text: str) -> bool:
    """Whether the text leaves the order of the result open."""
    return bool(
        re.search(
            r"any order|order (?:does|is) ?n[o']t (?:matter|important)|order does not matter|unordered",
            text.lower(),
        )
    )


def examples_in(texts: Iterator[str] | list[str], name: str) -> list[Example]:
    """`stated_examples` over several texts, each argument tuple once."""
    found: dict[str, Example] = {}
    for text in texts:
        for example in stated_examples(text, name):
            key = repr(example.args)
            if key not in found or (example.has_expected and not found[key].has_expected):
                found[key] = example
    return list(found.values())
