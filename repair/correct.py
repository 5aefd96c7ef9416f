"""Programs that are known to be correct: the control that tells a strict test from one that is too strict.

Three sources: alternatives that the task carries, alternatives from a file (`verifiers/alternatives.py`), and
behaviour-preserving variants of gold. One that the original suite itself does not pay is left out and named: the
suite, not the added test, refuses it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from ..envs.patch import Patch
from ..envs.task import Task
from ..verifiers.alternatives import known_correct
from .bench import Judge


@dataclass(frozen=True)
class Correct:
    """patches: name -> program that must pass. left_out: name -> why it can't serve."""

    patches: Mapping[str, Patch] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)


def correct_programs(
    task: Task, judge: Judge, *, alternatives: Sequence[Patch] = (), variants: Iterable[Patch] = ()
) -> Correct:
    """Collect and check them: each has to resolve the task's original suite, and each is taken once."""
    named = {f"alternative {n}": p for n, p in enumerate(known_correct(task, alternatives), 1)}
    named |= {f"variant {n} of gold": p for n, p in enumerate(variants, 1)}
    kept: dict[str, Patch] = {}
    left_out: dict[str, str] = {}
    for name, patch in named.items():
        if patch.text == task.gold_patch or patch in kept.values():
            continue
        verdict = judge.verify(task, patch, task.suite.original)
        if verdict.resolved:
            kept[name] = patch
        else:
            left_out[name] = f"the original suite says {verdict.outcome}"
    return Correct(kept, left_out)
