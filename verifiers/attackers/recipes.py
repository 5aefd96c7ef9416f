"""Semantic recipes for wrong programs (THREATS.md S01, S03, S04, S09, S10, S12-S15, S17, S18, S20, S23, S24): H.

Function tasks: wrappers around gold and stubs in its place. Repository tasks: hunks of the gold patch left out
(S23), whole files left out (S06), hollow additions (S09). Deterministic, without duplicates by normalised AST.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...envs.patch import Patch
from ...envs.task import Task
from ..mutation.edits import normal_form
from ..mutation.functions import FunctionView
from ..mutation.hunks import partial_patches
from ..records import Candidate, Claim, Family, Finding
from .memorise import replace_body

ORIGIN = "recipes/1"
Recipe = tuple[str, str, str]
"""(kind, description, program text)"""


def attack(
    task: Task,
    history: Sequence[Finding] = (),
    *,
    limit: int | None = None,
    texts: Mapping[str, str] | None = None,
) -> Iterable[Candidate]:
    """At most `limit` recipe programs. texts: pristine files of a repository task (see `mutants.attack`)."""
    made = (
        _functions(task)
        if task.is_function
        else partial_patches(task, texts if texts is not None else task.files)
    )
    for number, (kind, description, patch) in enumerate(made):
        if limit is not None and number >= limit:
            return
        yield Candidate(
            task_id=task.task_id,
            patch=patch,
            kind=kind,
            family=Family.EXPLOIT,
            origin=ORIGIN,
            claim=Claim.WRONG,
            description=description,
        )


def _functions(task: Task) -> Iterator[tuple[str, str, Patch]]:
    view = FunctionView.of(task)
    if view.function is None:
        return
    seen = {normal_form(view.gold)}
    for kind, description, text in _recipes(view):
        form = normal_form(text)
        if form is not None and form not in seen:
            seen.add(form)
            yield kind, description, view.patch(text)


def _recipes(view: FunctionView) -> Iterator[Recipe]:
    yield from _stubs(view)
    yield from _wrappers(view)
    yield from _halves(view)


def _stubs(view: FunctionView) -> Iterator[Recipe]:
    """Hollow bodies, identities, constants."""
    expected = [call.expected for call in view.calls if call.has_expected]
    yield "S09", "hollow body", replace_body(view, "    pass\n")
    for name in view.parameters:
        yield "S09", f"the argument {name} is returned as it came", replace_body(view, f"    return {name}\n")
    for empty in _empties(expected):
        yield "S09", f"always {empty}", replace_body(view, f"    return {empty}\n")
    counted = Counter(repr(value) for value in expected)
    for number, (text, _) in enumerate(counted.most_common(3)):
        kind = "S01" if number else "S13"
        yield kind, f"always the visible result {text[:60]}", replace_body(view, f"    return {text}\n")


def _empties(expected: Sequence[object]) -> list[str]:
    blanks = {
        bool: "False",
        int: "0",
        float: "0.0",
        str: "''",
        list: "[]",
        tuple: "()",
        dict: "{}",
        set: "set()",
    }
    kinds = {type(value) for value in expected}
    found = [text for kind, text in blanks.items() if kind in kinds]
    return found + (["True"] if bool in kinds else [])


def _wrappers(view: FunctionView) -> Iterator[Recipe]:
    """Gold kept under another name, with a wrong program around it."""
    names = ", ".join(view.parameters)
    if not names:
        return
    first = view.parameters[0]
    expected = [call.expected for call in view.calls if call.has_expected]
    kinds = {type(value) for value in expected}
    longest = max((len(c.args[0]) for c in view.calls if c.args and hasattr(c.args[0], "__len__")), default=0)
    blank = (_empties(expected) or ["None"])[0]

    def program(kind: str, description: str, *lines: str) -> Recipe:
        body = "".join(f"    {line}\n" for line in lines)
        head = view.gold.rstrip("\n") + f"\n\n\n_full = {view.entry_point}\n\n\n"
        return kind, description, head + f"def {view.entry_point}({names}):\n" + body

    if longest:
        yield program("S03", f"an empty {first} returns early", f"if not {first}:", f"    return {blank}",
                      f"return _full({names})")  # fmt: skip
        yield program("S12", f"a single item of {first} is not handled", f"if len({first}) == 1:",
                      f"    return {blank}", f"return _full({names})")  # fmt: skip
    yield program("S10", "every failure is swallowed, with a blank result", "try:", f"    return _full({names})",
                  "except Exception:", f"    return {blank}")  # fmt: skip
    if float in kinds:
        for digits in (0, 1, 2):
            yield program(
                "S14", f"the result is rounded to {digits} digits", f"return round(_full({names}), {digits})"
            )
        yield program("S14", "the result loses its fraction", f"return float(int(_full({names})))")
    if int in kinds and bool not in kinds:
        yield program("S12", "negative results become their absolute value", f"return abs(_full({names}))")
        yield program("S17", "the result counts double", f"return 2 * _full({names})")
    if kinds & {list, tuple}:
        yield program("S17", "duplicates are dropped from the result",
                      f"value = _full({names})", "return type(value)(dict.fromkeys(value)) if value else value")  # fmt: skip
        yield program("S18", "right length, hollow content", f"value = _full({names})",
                      "return type(value)([None] * len(value)) if value else value")  # fmt: skip
        yield program("S18", "the result in sorted order", f"value = _full({names})",
                      "return type(value)(sorted(value)) if value else value")  # fmt: skip
    yield program("S20", "the result as text", f"return str(_full({names}))")
    yield program("S24", "the first result is kept for all later calls", f"if not hasattr({view.entry_point}, 'kept'):",
                  f"    {view.entry_point}.kept = _full({names})", f"return {view.entry_point}.kept")  # fmt: skip
    yield program("S24", "results are kept by type and size of the argument",
                  f"key = (type({first}).__name__, len({first}) if hasattr({first}, '__len__') else {first})",
                  f"kept = {view.entry_point}.__dict__.setdefault('kept', {{}})", "if key not in kept:",
                  f"    kept[key] = _full({names})", "return kept[key]")  # fmt: skip


def _halves(view: FunctionView) -> Iterator[Recipe]:
    """S23: the first half of gold's statements; S15: each branch or guard without which the file still parses."""
    assert view.function is not None
    body = [node for node in view.function.body if node.lineno in view.lines] or view.function.body
    lines = view.gold.split("\n")
    for keep in range(1, len(body)):
        last = body[keep - 1].end_lineno or 0
        end = view.function.end_lineno or len(lines)
        targets = [
            n.id for n in ast.walk(body[keep - 1]) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        ]
        value = targets[-1] if targets else "None"
        text = "\n".join([*lines[:last], f"    return {value}", *lines[end:]])
        yield "S23", f"gold up to statement {keep} of {len(body)}", text
    for node in body[:-1]:
        if isinstance(node, (ast.If, ast.Try, ast.For, ast.While)):
            text = "\n".join([*lines[: node.lineno - 1], "    pass", *lines[node.end_lineno or 0 :]])
            yield "S15", f"the block in line {node.lineno} is deleted", text
