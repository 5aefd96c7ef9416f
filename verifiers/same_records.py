"""Whether two audits of the same tasks found the same: records compared field by field, without times and printed logs."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import Any

from .audit_record import AuditRecord

TIMES = frozenset({"seconds", "durations", "twin_seconds"})
PRINTED = frozenset({"log", "log_truncated"})
"""Logs hold times, addresses and paths of their own sandbox."""
HOW = frozenset({"cached"})
"""Whether it was run or remembered, not what came of it."""
SKIPPED = TIMES | PRINTED | HOW
SLOW = re.compile(r"slow$|gold takes [\d.]+ s$")
"""A flag and its reason that say how long something took: a time too."""


def differences(one: Sequence[AuditRecord], other: Sequence[AuditRecord]) -> list[str]:
    """`task.field.…: this | that` for every value that differs; a task that only one side has differs as a whole."""
    left = {r.task_id: bare(json.loads(r.to_json())) for r in one}
    right = {r.task_id: bare(json.loads(r.to_json())) for r in other}
    found = [f"{task_id}: only on one side" for task_id in sorted(left.keys() ^ right.keys())]
    for task_id in left.keys() & right.keys():
        found += _differ(left[task_id], right[task_id], task_id)
    return sorted(found)


def bare(value: Any) -> Any:
    """A record without what two equal runs may differ in."""
    if isinstance(value, dict):
        return {key: bare(_twin(key, item)) for key, item in value.items() if key not in SKIPPED}
    if not isinstance(value, list):
        return value
    return [bare(item) for item in value if not (isinstance(item, str) and SLOW.match(item))]


def _twin(key: str, value: Any) -> Any:
    """How often a twin had to be asked is no finding."""
    if key == "twin" and isinstance(value, dict):
        return {name: item for name, item in value.items() if name != "attempts"}
    return value


def _differ(one: Any, other: Any, path: str) -> Iterable[str]:
    if isinstance(one, dict) and isinstance(other, dict):
        for key in sorted(one.keys() | other.keys()):
            yield from _differ(one.get(key), other.get(key), f"{path}.{key}")
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        for number, (left, right) in enumerate(zip(one, other, strict=True)):
            yield from _differ(left, right, f"{path}[{number}]")
    elif one != other:
        yield f"{path}: {str(one)[:120]} | {str(other)[:120]}"
