"""How much of what models get wrong in a diff is mended: the 500 gold patches of Verified, spoiled in five ways."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest

from acidtest.envs.errors import PatchError
from acidtest.verifiers.edits import patch_of
from acidtest.verifiers.mutation.apply import apply_diff, parse_diff

pytestmark = pytest.mark.data


def old_files(diff: str) -> dict[str, str]:
    """Files that hold the diff's old lines at their places, and lines of their own elsewhere."""
    files = {}
    for part in parse_diff(diff):
        if part.created:
            continue
        lines: dict[int, str] = {}
        for hunk in part.hunks:
            for offset, line in enumerate(hunk.old):
                lines[hunk.old_start + offset] = line
        last = max(lines, default=0) + 5
        files[part.path] = "".join(lines.get(n, f"# line {n}\n") for n in range(1, last))
    return files


def wrong_numbers(diff: str, rng: random.Random) -> str:
    return re.sub(
        r"(?m)^@@ -\d+(,\d+)? \+\d+(,\d+)? @@",
        lambda m: f"@@ -{rng.randrange(1, 900)},{rng.randrange(1, 9)} +{rng.randrange(1, 900)},3 @@",
        diff,
    )


def no_numbers(diff: str, rng: random.Random) -> str:
    return re.sub(r"(?m)^@@ .*$", "@@ @@", diff)


def stripped(diff: str, rng: random.Random) -> str:
    return "\n".join(
        line.rstrip() if line[:1] == " " else line for line in wrong_numbers(diff, rng).split("\n")
    )


def less_context(diff: str, rng: random.Random) -> str:
    """Context only next to changes, as models like it."""
    lines = wrong_numbers(diff, rng).split("\n")
    changed = [bool(re.match(r"[+-](?![+-]{2} )", line)) for line in lines]
    keep = [line[:1] != " " or any(changed[max(0, at - 2) : at + 3]) for at, line in enumerate(lines)]
    return "\n".join(line for line, kept in zip(lines, keep, strict=True) if kept)


def dedented(diff: str, rng: random.Random) -> str:
    """Every line of the hunks one level to the left, where all of them have one to give."""
    body = [line for line in diff.split("\n") if re.match(r"[ +-](?![+-]{2} )", line) and line[1:].strip()]
    if not all(line[1:5] == "    " for line in body):
        return wrong_numbers(diff, rng)
    return re.sub(r"(?m)^([ +-])    ", r"\1", wrong_numbers(diff, rng))


WAYS = (wrong_numbers, no_numbers, stripped, less_context, dedented)


def test_spoiled_diffs_of_verified_are_mended(data_dir: Path) -> None:
    import pandas as pd

    table = pd.read_parquet(data_dir / "swebench_verified.parquet", columns=["instance_id", "patch"])
    rng = random.Random(0)
    placed = dict.fromkeys((way.__name__ for way in WAYS), 0)
    right = dict(placed)
    total = 0
    for diff in table["patch"]:
        old = old_files(diff)
        try:
            wanted = apply_diff(old, diff)
        except PatchError:
            continue
        total += 1
        for way in WAYS:
            try:
                patch = patch_of({"diff": way(diff, rng)}, old.get)
            except PatchError:
                continue
            placed[way.__name__] += 1
            right[way.__name__] += apply_diff(old, patch.text) == wanted
    print(f"\n{total} gold patches; placed {placed}; with the very same result {right}")
    assert total >= 490
    for way in WAYS:
        assert placed[way.__name__] >= 0.95 * total, way.__name__
        assert right[way.__name__] >= 0.9 * total, way.__name__
