"""Ids as data sets print them -> ids as they are executed. One-to-many where printing lost something: all must pass.

Published rows name tests as old logs printed them. The forms, each mapped by construction (`form_of`):

| form | example | rule |
| --- | --- | --- |
| exact | ``tests/test_a.py::test_b[x-y]`` | the executed id |
| cut | ``test_stem[png-w/`` | every executed id whose text before its first blank is this |
| method | ``test_x (app.Cls)``, ``test_x (app.Cls.test_x)`` | both are one test |
| dotted | ``app.Cls.test_x`` | the method |
| subtest | ``test_x (app.Cls) (i=1)``, ``test_x (app.Cls) [message]`` | the method that holds it |
| description | ``Named URLs should be reversible`` | every test whose docstring begins with this line |
| name | ``test_latex_basic`` (sympy) | every executed function of that name |
| progress | ``[100%]`` | no test: excluded and listed |
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import StrEnum

from .protocols import IdMap


class Form(StrEnum):
    EXACT = "exact"
    CUT = "cut"
    METHOD = "method"
    DOTTED = "dotted"
    SUBTEST = "subtest"
    DESCRIPTION = "description"
    NAME = "name"
    PROGRESS = "progress"
    UNKNOWN = "unknown"


METHOD = re.compile(r"(?P<name>\w+) \((?P<cls>[\w.]+)\)(?P<rest>.*)", re.S)
PROGRESS = re.compile(r"\[\s*\d+%\]")
UNANSWERED = "no executed test answers to it"


def form_of(framework: str, ident: str) -> Form:
    """Which form an id has, by its text alone."""
    if PROGRESS.fullmatch(ident.strip()):
        return Form.PROGRESS
    if framework in {"django", "unittest"}:
        match = METHOD.fullmatch(ident)
        if match:
            return Form.SUBTEST if match["rest"].strip() else Form.METHOD
        if re.fullmatch(r"\w+(\.\w+)+", ident):
            return Form.DOTTED
        return Form.DESCRIPTION if ident.strip() else Form.UNKNOWN
    if framework == "sympy":
        return Form.NAME if re.fullmatch(r"\w+", ident) else Form.EXACT if ":" in ident else Form.UNKNOWN
    if "::" in ident:
        return Form.CUT if "[" in ident.split("::", 1)[1] and not ident.endswith("]") else Form.EXACT
    return Form.UNKNOWN


def method_id(ident: str) -> str:
    """`test_x (app.Cls.test_x)`, `test_x (app.Cls) (i=1)`, `app.Cls.test_x` -> `test_x (app.Cls)`; else as it is."""
    match = METHOD.fullmatch(ident)
    if not match:
        if re.fullmatch(r"[\w.]+\.\w+", ident):
            cls, _, name = ident.rpartition(".")
            return f"{name} ({cls})"
        return ident
    name, cls = match["name"], match["cls"]
    return f"{name} ({cls.removesuffix('.' + name)})"


def place_of(ident: str) -> str:
    """Where a test stands, as far as its id says: file, class or sympy's file; "" for a bare name or a description."""
    if "::" in ident:
        return ident.split("::", 1)[0]
    if match := METHOD.fullmatch(method_id(ident)):
        return match["cls"]
    path, mark, name = ident.rpartition(":")
    return path if mark and re.fullmatch(r"\w+", name) and path.endswith(".py") else ""


def map_by(
    wanted: Iterable[str], executed: Iterable[str], rules: Sequence[Callable[[str], Sequence[str]]]
) -> IdMap:
    """The first rule that answers decides. `executed` ids map to themselves."""
    known = set(executed)
    mapped: dict[str, tuple[str, ...]] = {}
    unmapped: dict[str, str] = {}
    for ident in wanted:
        if ident in known:
            mapped[ident] = (ident,)
        elif PROGRESS.fullmatch(ident.strip()):
            unmapped[ident] = "a progress mark, not a test"
        else:
            found = next((tuple(ids) for rule in rules if (ids := rule(ident))), ())
            if found:
                mapped[ident] = found
            else:
                unmapped[ident] = UNANSWERED
    return IdMap(mapped=mapped, unmapped=unmapped)


def index_by(key: Callable[[str], str], executed: Iterable[str]) -> Callable[[str], Sequence[str]]:
    """A rule: executed ids whose `key` is the wanted text."""
    index: dict[str, list[str]] = {}
    for ident in executed:
        index.setdefault(key(ident), []).append(ident)
    return lambda wanted: index.get(wanted, [])


def before_blank(ident: str) -> str:
    """What a log parser that splits at blanks keeps of an id."""
    return ident.split(None, 1)[0] if ident.split() else ident


def option_basename(ident: str) -> str:
    """Some published logs keep only the last part of a path in brackets: ``t[/tmp/a]`` -> ``t[/a]``."""
    match = re.fullmatch(r"(.*?)\[(.*)\]", ident, re.S)
    if match and match[2].startswith("/") and not match[2].startswith("//") and "*" not in match[2]:
        return f"{match[1]}[/{match[2].rsplit('/', 1)[-1]}]"
    return ident


def mouse_buttons(ident: str) -> str:
    """Matplotlib's published ids carry the numbers of an enumeration that later printed its names."""
    return ident.replace("MouseButton.LEFT", "1").replace("MouseButton.RIGHT", "3")


def unique_suffix(executed: Iterable[str]) -> Callable[[str], Sequence[str]]:
    """A rule: the one executed id that ends with the wanted one after a slash, or the reverse (another root folder)."""
    by_tail: dict[str, list[str]] = {}
    for ident in executed:
        by_tail.setdefault(_tail(ident), []).append(ident)

    def rule(wanted: str) -> Sequence[str]:
        near = by_tail.get(_tail(wanted), [])
        found = [i for i in near if i.endswith("/" + wanted) or wanted.endswith("/" + i)]
        return found if len(found) == 1 else []

    return rule


def _tail(ident: str) -> str:
    path, mark, rest = ident.partition("::")
    return path.rsplit("/", 1)[-1] + mark + rest


def pytest_map(wanted: Sequence[str], executed: Sequence[str]) -> IdMap:
    rules = [
        index_by(before_blank, executed),
        index_by(option_basename, executed),
        index_by(mouse_buttons, executed),
        index_by(lambda i: before_blank(mouse_buttons(i)), executed),
        unique_suffix(executed),
    ]
    return map_by(wanted, executed, rules)


def method_map(
    wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]]
) -> IdMap:
    by_method = index_by(method_id, executed)
    by_alias = {" ".join(alias.split()): ids for alias, ids in aliases.items()}

    def described(ident: str) -> Sequence[str]:
        return by_alias.get(" ".join(ident.split()), ())

    return map_by(wanted, executed, [lambda i: by_method(method_id(i)), described])


def name_map(wanted: Sequence[str], executed: Sequence[str]) -> IdMap:
    return map_by(wanted, executed, [index_by(lambda i: i.rsplit(":", 1)[-1], executed)])
