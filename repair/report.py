"""What a repair came to: counts with their denominators, gate defects by class, held-out rates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..verifiers.stats import wilson
from .lock import Lock
from .records import RepairRecord, RepairStatus


@dataclass
class RepairReport:
    """records: one for each task that was taken, in order. path: the run folder (None: nothing kept).

    tried: tasks of the audit; hackable: those with a proven finding of a non-memorising kind. errors: task id -> what
    infrastructure did; those tasks have no record and are taken again by the next call. stopped: why it ended early.
    """

    records: list[RepairRecord]
    lock: Lock
    path: Path | None = None
    tried: int = 0
    hackable: int = 0
    errors: Mapping[str, str] = field(default_factory=dict)
    stopped: str = ""

    def with_status(self, *statuses: RepairStatus) -> list[RepairRecord]:
        return [record for record in self.records if record.status in statuses]

    @property
    def repaired(self) -> list[RepairRecord]:
        return self.with_status(RepairStatus.REPAIRED)

    def defects(self) -> dict[str, tuple[int, int]]:
        """Class of a failed gate -> (proposals, tasks that had one); see `proposals` for the denominator."""
        return defects_of(self.records)

    @property
    def proposals(self) -> int:
        return sum(len(record.tries) for record in self.records)

    def held_out(self) -> dict[str, tuple[int, int]]:
        """Name -> (rejected, of), summed over tasks."""
        total: dict[str, tuple[int, int]] = {}
        for record in self.records:
            for name, (part, whole) in record.held_out.items():
                held = total.get(name, (0, 0))
                total[name] = (held[0] + part, held[1] + whole)
        return total

    def lines(self) -> list[str]:
        """The summary as plain text lines."""
        repaired, partly = len(self.repaired), len(self.with_status(RepairStatus.PARTLY))
        taken = len(self.records)
        out = [
            f"{self.tried} tried -> {self.hackable} hackable (proven) -> {repaired} repaired, {partly} in part, of {taken} taken",
        ]
        targets = sum(len(r.targets) for r in self.records)
        blocked = sum(len(r.blocked) for r in self.records)
        out.append(f"proven wrong programs refused, executed repeatedly: {rate(blocked, targets)}")
        for name, (part, whole) in sorted(self.held_out().items()):
            out.append(f"held out, {name}: {rate(part, whole)}")
        if self.proposals:
            failed = sum(count for count, _ in self.defects().values())
            out.append(f"proposals stopped by a gate: {rate(failed, self.proposals)}")
        for name, (count, tasks) in sorted(self.defects().items(), key=lambda item: -item[1][0]):
            out.append(f"  {name}: {count} of {self.proposals} proposals, in {tasks} tasks")
        moved = [r for r in self.records if r.before.get("decision") != r.after.get("decision") and r.after]
        if moved:
            steps = Counter(f"{r.before.get('decision')} -> {r.after.get('decision')}" for r in moved)
            out.append("decisions: " + ", ".join(f"{step} {n}" for step, n in sorted(steps.items())))
        out += [f"{task_id}: {why}" for task_id, why in self.errors.items()]
        return [*out, *([self.stopped] if self.stopped else [])]

    def to_dict(self) -> dict[str, Any]:
        return {
            "tried": self.tried,
            "hackable": self.hackable,
            "records": [record.to_dict() for record in self.records],
            "defects": self.defects(),
            "held_out": self.held_out(),
            "proposals": self.proposals,
            "errors": dict(self.errors),
            "stopped": self.stopped,
        }


def defects_of(records: Iterable[RepairRecord]) -> dict[str, tuple[int, int]]:
    """Defect class -> (failed proposals, tasks with at least one). A mended expectation counts as its own class."""
    proposals: Counter[str] = Counter()
    tasks: dict[str, set[str]] = {}
    for record in records:
        for one in record.tries:
            check = one.result.failed_check
            name = (
                (check.defect or check.name) if check else ("mended expected value" if one.recomputed else "")
            )
            if name:
                proposals[name] += 1
                tasks.setdefault(name, set()).add(record.task_id)
    return {name: (count, len(tasks[name])) for name, count in proposals.items()}


def rate(part: int, whole: int) -> str:
    """`part of whole (x %, Wilson 95 % a to b)`; a rate never stands without its pair."""
    interval = wilson(part, whole)
    if interval is None:
        return "0 of 0"
    return f"{part} of {whole} ({part / whole:.1%}, Wilson 95 % {interval[0]:.1%} to {interval[1]:.1%})"
