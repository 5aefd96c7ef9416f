"""Partial gold patches: one hunk left out, one file left out, half of the hunks, one of several paths only."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

from ...envs.edits import parse_quietly
from ...envs.patch import Patch
from ...envs.task import Task
from .apply import FileDiff, Hunk, apply_diff, parse_diff

Part = tuple[str, int]
"""(path, index of the hunk in that file)"""


def partial_patches(task: Task, texts: Mapping[str, str]) -> Iterator[tuple[str, str, Patch]]:
    """(kind, description, patch): S23 a hunk or half reverted, S06 one path only, S09 hollow bodies.

    texts: pristine texts of the files that gold touches; files that are missing there are left out.
    """
    files = [f for f in parse_diff(task.gold_patch) if not f.deleted and (f.created or f.path in texts)]
    before = {f.path: texts[f.path] for f in files if not f.created}
    parts: list[Part] = [(f.path, i) for f in files for i in range(len(f.hunks))]
    seen = {Patch.writing(apply_diff(before, task.gold_patch) if _covers(task, files) else {}, before).digest}
    for kind, description, kept in _choices(files, parts):
        patch = _keeping(files, before, kept)
        if not patch.is_empty and patch.digest not in seen:
            seen.add(patch.digest)
            yield kind, description, patch
    for path, name, text in _hollow(files, before):
        patch = Patch.writing({**_after(files, before), path: text}, before)
        if patch.digest not in seen:
            seen.add(patch.digest)
            yield "S09", f"{name} in {path} is hollow", patch


def _covers(task: Task, files: Sequence[FileDiff]) -> bool:
    return len(files) == len(parse_diff(task.gold_patch))


def _choices(files: Sequence[FileDiff], parts: Sequence[Part]) -> Iterator[tuple[str, str, set[Part]]]:
    if len(parts) < 2:
        return
    for part in parts:
        yield "S23", f"hunk {part[1] + 1} of {part[0]} is left out", set(parts) - {part}
    if len(files) > 1:
        for file in files:
            kept = {p for p in parts if p[0] != file.path}
            yield "S06", f"{file.path} is left out", kept
            yield "S06", f"only {file.path} is changed", set(parts) - kept
    half = len(parts) // 2
    yield "S23", "the first half of the hunks", set(parts[:half])
    yield "S23", "the second half of the hunks", set(parts[half:])


def _keeping(files: Sequence[FileDiff], before: Mapping[str, str], kept: set[Part]) -> Patch:
    after: dict[str, str] = {}
    for file in files:
        hunks = [h for i, h in enumerate(file.hunks) if (file.path, i) in kept]
        if hunks:
            after[file.path] = _apply(file, hunks, before.get(file.path, ""))
    return Patch.writing(after, {path: text for path, text in before.items() if path in after})


def _apply(file: FileDiff, hunks: list[Hunk], text: str) -> str:
    return FileDiff(file.path, file.created, False, hunks).apply(text)


def _after(files: Sequence[FileDiff], before: Mapping[str, str]) -> dict[str, str]:
    return {f.path: f.apply(before.get(f.path, "")) for f in files}


def _hollow(files: Sequence[FileDiff], before: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """(path, function name, text) with each function that gold adds completely made hollow."""
    for path, text in _after(files, before).items():
        added = next(f for f in files if f.path == path).added_lines(before.get(path))
        try:
            tree = parse_quietly(text)
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)) or not node.end_lineno:
                continue
            if all(line in added for line in range(node.lineno, node.end_lineno + 1)):
                lines = text.split("\n")
                first = node.body[0].lineno
                indent = " " * node.body[0].col_offset
                if first > node.lineno:
                    yield (
                        path,
                        node.name,
                        "\n".join([*lines[: first - 1], indent + "return None", *lines[node.end_lineno :]]),
                    )
