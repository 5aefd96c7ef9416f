"""Non-adversarial mutants of gold (S21 wrong operators, S22 off-by-one, swapped branch, dropped statement).

They enter V, and `hackable` with `weak_tests` when proven, never H. Deterministic; duplicates by normalised AST
are left out here, duplicates by behaviour where they are run (`verifiers/search.py`).
"""

from __future__ import annotations

import ast
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence

from ...envs.patch import Patch
from ...envs.task import Task
from ..mutation.apply import apply_diff, parse_diff
from ..mutation.functions import FunctionView
from ..mutation.mutate import Mutant, mutants
from ..records import Candidate, Claim, Family, Finding

ORIGIN = "mutants/1"


def attack(
    task: Task,
    history: Sequence[Finding] = (),
    *,
    seed: int = 0,
    limit: int | None = None,
    texts: Mapping[str, str] | None = None,
) -> Iterable[Candidate]:
    """Mutants of the lines that the gold patch adds.

    texts: path -> pristine text of the files that gold touches; needed for tasks whose tree is in an image
    (`verifiers.repository.pristine_texts`), taken from `task.files` otherwise. limit: sample of that size (`seed`).
    """
    if task.is_function:
        view = FunctionView.of(task)
        found = mutants(view.gold, view.lines, harvested=_harvest(view), seed=seed, limit=limit)
        yield from (_candidate(task, view.patch(mutant.text), mutant, view.path) for mutant in found)
        return
    yield from _of_repository(task, texts if texts is not None else task.files, seed, limit)


def _of_repository(task: Task, texts: Mapping[str, str], seed: int, limit: int | None) -> Iterator[Candidate]:
    """Mutants of every Python file that gold touches, shares of `limit` by number of mutants."""
    parts = [p for p in parse_diff(task.gold_patch) if p.path.endswith(".py") and not p.deleted]
    before = {p.path: texts[p.path] for p in parts if p.path in texts}
    after = apply_diff(
        before, "".join(_own_diff(task.gold_patch, p.path) for p in parts if p.path in before or p.created)
    )
    made = [
        (part.path, mutant)
        for part in parts
        if part.path in after
        for mutant in mutants(after[part.path], part.added_lines(before.get(part.path)))
    ]
    if limit is not None and len(made) > limit:
        made = [made[i] for i in sorted(random.Random(seed).sample(range(len(made)), limit))]
    for path, mutant in made:
        patch = Patch.writing({**after, path: mutant.text}, before)
        yield _candidate(task, patch, mutant, path)


def _own_diff(diff: str, path: str) -> str:
    """The part of a unified diff that concerns one file."""
    blocks, current = [], ""
    for line in diff.splitlines(keepends=True):
        if line.startswith("diff --git "):
            blocks.append(current)
            current = ""
        current += line
    blocks.append(current)
    return "".join(b for b in blocks if b and any(p.path == path for p in parse_diff(b)))


def _candidate(task: Task, patch: Patch, mutant: Mutant, path: str) -> Candidate:
    return Candidate(
        task_id=task.task_id,
        patch=patch,
        kind=mutant.kind,
        family=Family.MUTANT,
        origin=ORIGIN,
        claim=Claim.UNKNOWN,
        description=f"{mutant.operator} in line {mutant.line} of {path}",
        metadata={"operator": mutant.operator, "line": mutant.line, "path": path},
    )


def _harvest(view: FunctionView) -> list[object]:
    """Plain constants of the tests that gold's text does not have, in order of appearance."""
    own = {(type(n.value), n.value) for n in ast.walk(view.tree) if isinstance(n, ast.Constant)}
    found: dict[tuple[type, object], object] = {}
    for call in view.calls:
        for value in (*call.args, call.expected):
            if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                found.setdefault((type(value), value), value)
    return [value for key, value in found.items() if key not in own]
