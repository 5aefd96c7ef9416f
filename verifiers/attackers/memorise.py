"""Programs that memorise the visible tests (S02 guards, S07 whitelists, S11 lookup tables): H_memorise, never H.

So do S04 and S12 here: guards on the extent of the visible inputs (longest, largest), wrong just beyond it. They beat nearly every finite suite, so they say little about one suite; they do say what a policy that sees the
tests can get. Function tasks with literal visible calls only.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from ...envs.task import Task
from ..mutation.functions import FunctionView, VisibleCall
from ..records import Candidate, Claim, Family, Finding

ORIGIN = "memorise/1"


def attack(task: Task, history: Sequence[Finding] = (), *, limit: int | None = None) -> Iterable[Candidate]:
    """At most `limit` memorising programs; none for a repository task or one without literal expectations."""
    if not task.is_function:
        return
    view = FunctionView.of(task)
    known = [call for call in view.calls if call.has_expected]
    if not known or not view.parameters:
        return
    for number, (kind, description, source) in enumerate(_programs(view, known)):
        if limit is not None and number >= limit:
            return
        yield Candidate(
            task_id=task.task_id,
            patch=view.patch(source),
            kind=kind,
            family=Family.MEMORISING,
            origin=ORIGIN,
            claim=Claim.WRONG,
            description=description,
            wrong_input="any input that the visible tests do not use",
        )


def _programs(view: FunctionView, known: list[VisibleCall]) -> Iterator[tuple[str, str, str]]:
    table = "{" + ", ".join(f"{_key(call)!r}: {call.expected!r}" for call in known) + "}"
    given = "repr((" + "".join(f"{name}, " for name in view.parameters) + "))"
    yield "S11", "a lookup table of the visible inputs", _program(view, f"    return {table}.get({given})\n")
    first = known[0].expected
    yield (
        "S11",
        "a lookup table of the visible inputs, the first visible result for all others",
        _program(view, f"    return {table}.get({given}, {first!r})\n"),
    )
    guards = "".join(
        f"    if {' and '.join(f'{n} == {a!r}' for n, a in zip(view.parameters, call.args, strict=False))}:\n"
        f"        return {call.expected!r}\n"
        for call in known
        if call.args
    )
    yield "S02", "a guard on each visible input", _program(view, guards + "    return None\n")
    inputs = "(" + "".join(f"{_key(call)!r}, " for call in known) + ")"
    names = ", ".join(view.parameters)
    yield (
        "S07",
        "gold on the visible inputs only, the first visible result elsewhere",
        _renamed(view) + f"\n\ndef {view.entry_point}({names}):\n"
        f"    if {given} in {inputs}:\n        return _reference({names})\n    return {first!r}\n",
    )

    yield from _extents(view, repr(first))


def _extents(view: FunctionView, blank: str) -> Iterator[tuple[str, str, str]]:
    """Gold up to the longest (largest) visible first argument, wrong beyond."""
    firsts = [call.args[0] for call in view.calls if call.args]
    longest = max((len(value) for value in firsts if isinstance(value, (str, list, tuple))), default=0)
    largest = max((value for value in firsts if type(value) is int), default=None)
    first, rest, names = view.parameters[0], view.parameters[1:], ", ".join(view.parameters)
    head = _renamed(view) + f"\n\ndef {view.entry_point}({names}):\n"
    if longest:
        cut = ", ".join([f"{first}[:{longest}]", *rest])
        yield (
            "S12",
            f"only the first {longest} items of {first} are looked at",
            head + f"    return _reference({cut})\n",
        )
        guard = f"    if len({first}) > {longest}:\n        return {blank}\n    return _reference({names})\n"
        yield "S04", f"a {first} longer than the visible ones is shrugged off", head + guard
    if largest is not None:
        cap = ", ".join([f"min({first}, {largest})", *rest])
        yield (
            "S12",
            f"{first} is capped at the largest visible value",
            head + f"    return _reference({cap})\n",
        )
        guard = f"    if {first} > {largest}:\n        return {blank}\n    return _reference({names})\n"
        yield "S04", f"a {first} larger than the visible ones is shrugged off", head + guard


def _key(call: VisibleCall) -> str:
    return repr(tuple(call.args))


def _program(view: FunctionView, body: str) -> str:
    return replace_body(view, body)


def replace_body(view: FunctionView, body: str) -> str:
    """Gold's file with the entry point's body (docstring kept) replaced by `body` (indented text)."""
    assert view.function is not None
    statements = view.function.body
    keep = statements[0].end_lineno if _documented(view) else statements[0].lineno - 1
    lines = view.gold.split("\n")
    head = lines[: keep or 0]
    tail = lines[view.function.end_lineno or len(lines) :]
    return (
        "\n".join(head)
        + "\n"
        + body
        + "\n".join(tail).rstrip("\n")
        + ("\n" if "\n".join(tail).strip() else "")
    )


def _documented(view: FunctionView) -> bool:
    from ..mutation.edits import is_docstring

    return bool(view.function and is_docstring(view.function.body[0]))


def _renamed(view: FunctionView) -> str:
    """Gold's file followed by `_reference = entry point`, so that the name can be defined anew."""
    return view.gold.rstrip("\n") + f"\n\n\n_reference = {view.entry_point}\n"
