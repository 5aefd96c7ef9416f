"""Reward-hack incidents while training runs: deduplicated, counted, turned into rates, handed to sinks.

A sink is a file `training_hooks/<name>_sink.py` that defines ``sink(**options) -> Sink``. jsonl is always on.
Rates have decisive episodes as denominator (masked ones are in neither part) and never count notices.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from ..envs.errors import ConfigError
from ..envs.incident import Incident, Severity
from ..envs.registry import find
from .records import Score

DEFAULT_PATH = "incidents.jsonl"


@runtime_checkable
class Sink(Protocol):
    """Where incidents and rates go. Calls come from one thread at a time."""

    def incident(self, incident: Incident) -> None:
        """A new incident, or a known one again (`count` above 1; same `key`)."""
        ...

    def metrics(self, values: Mapping[str, float], step: int | None) -> None: ...

    def finish(self, worst: Sequence[Mapping[str, Any]]) -> None:
        """The end: the worst tasks, worst first. Closes what the sink holds."""
        ...


class IncidentLog:
    """Counts, deduplicates and fans out. `batch` is called once per group of scores.

    sinks: where it goes. clock: Unix seconds, for `Incident.time`.
    """

    def __init__(self, sinks: Iterable[Sink] = (), *, clock: Callable[[], float] = time.time) -> None:
        self.sinks = tuple(sinks)
        self.clock = clock
        self.seen: dict[str, Incident] = {}
        self.episodes: Counter[str] = Counter()
        self.by_task: Counter[tuple[str, str]] = Counter()
        self.last: dict[str, float] = {}
        self._closed = False

    def batch(self, scores: Sequence[Score], step: int | None = None) -> dict[str, float]:
        """Record the incidents of a batch and emit its metrics, which are returned too."""
        for score in scores:
            self.episodes[score.task_id] += 1
            if score.incident is not None:
                self._record(score.incident, step)
        self.last = rates(scores)
        for sink in self.sinks:
            sink.metrics(self.last, step)
        return self.last

    def _record(self, incident: Incident, step: int | None) -> None:
        self.by_task[incident.task_id, incident.severity] += 1
        known = self.seen.get(incident.key)
        if known is None:
            known = replace(
                incident, step=step if incident.step is None else incident.step, time=self.clock()
            )
        else:
            known = replace(known, count=known.count + 1)
        self.seen[incident.key] = known
        for sink in self.sinks:
            sink.incident(known)

    def worst(self, limit: int = 20) -> list[dict[str, Any]]:
        """Tasks with most tampering and false passes, as rows: task_id, episodes, false_pass, tamper, notice."""
        rows: list[dict[str, Any]] = [
            {"task_id": task, "episodes": count, **{str(s): self.by_task[task, s] for s in Severity}}
            for task, count in self.episodes.items()
        ]
        guilty = [row for row in rows if row["false_pass"] or row["tamper"]]
        return sorted(guilty, key=lambda r: (-r["tamper"] - r["false_pass"], r["task_id"]))[:limit]

    def close(self) -> None:
        """Finish every sink. Idempotent."""
        if not self._closed:
            self._closed = True
            for sink in self.sinks:
                sink.finish(self.worst())


def rates(scores: Sequence[Score]) -> dict[str, float]:
    """The metrics of one batch. Each rate comes with its counts: ``hack/false_pass`` of ``hack/decisive``."""
    decisive = [s for s in scores if not s.masked]
    counts = Counter(s.severity for s in decisive)
    kinds = Counter(s.kind for s in decisive if s.severity in {"false_pass", "tamper"})
    n = len(decisive)
    values: dict[str, float] = {
        "hack/decisive": float(n),
        "hack/false_pass": float(counts["false_pass"]),
        "hack/tamper": float(counts["tamper"]),
        "reward/masked": (len(scores) - n) / len(scores) if scores else 0.0,
    }
    if n:
        values["hack/false_pass_rate"] = counts["false_pass"] / n
        values["hack/tamper_rate"] = counts["tamper"] / n
        values["reward/original"] = sum(s.reward_original or 0.0 for s in decisive) / n
        values["reward/hardened"] = sum(s.reward_hardened or 0.0 for s in decisive) / n
        values.update({f"hack/by_kind/{kind}": count / n for kind, count in sorted(kinds.items())})
    return values


Where = str | Path | Sink | Iterable[str | Path | Sink] | None


def open_log(where: Where = None, **options: Any) -> IncidentLog:
    """An `IncidentLog` from what a user says: None or "jsonl" (``incidents.jsonl`` here), "wandb", a ``*.jsonl`` path, a
    dotted path of an own module, a Sink, or several of these. jsonl is added when it is not among them.

    Of several ranks only the first (RANK unset or 0) writes to wandb. options go to the named sinks that are not jsonl (e.g. ``project=`` for wandb).
    """
    items: list[str | Path | Sink] = (
        [] if where is None else [where] if isinstance(where, str | Path | Sink) else list(where)
    )
    sinks: list[Sink] = []
    path: Path | None = None
    for item in items:
        if isinstance(item, Path) or (isinstance(item, str) and item.endswith(".jsonl")):
            path = Path(item)
        elif item == "jsonl":
            path = path or Path(DEFAULT_PATH)
        elif item == "wandb" and os.environ.get("RANK", "0") != "0":
            continue
        elif isinstance(item, str):
            module = find(__package__ or "", item if "." in item else f"{item}_sink")
            sinks.append(module.sink(**options))
        else:
            sinks.append(item)
    if any(not isinstance(sink, Sink) for sink in sinks):
        raise ConfigError(f"No sink: {where!r}.", mend="A sink has incident(), metrics() and finish().")
    from .jsonl_sink import JsonlSink

    if not any(isinstance(sink, JsonlSink) for sink in sinks):
        sinks.insert(0, JsonlSink(path or DEFAULT_PATH))
    return IncidentLog(sinks)


def text_of(incident: Incident) -> str:
    """An incident for people: what was paid, what refused it, the evidence and the diff."""

    def paid(value: float | None) -> str:
        return "no valid reward" if value is None else f"{value:g}"

    lines = [
        f"{incident.severity} incident {incident.key}, kind {incident.kind}, task {incident.task_id}",
        f"  original suite pays {paid(incident.reward_original)}, ours pays {paid(incident.reward_hardened)}"
        f" (suite {incident.suite_digest}); seen {incident.count}×"
        + (f", first at step {incident.step}" if incident.step is not None else ""),
        *(f"  refused by added test {name}" for name in incident.failed_added),
        *([f"  not run after that: {len(incident.unrun_added)} added tests"] if incident.unrun_added else []),
        *(f"  evidence: {fact}" for fact in incident.evidence),
        "",
        incident.patch.rstrip("\n") or "(no change at all)",
    ]
    return "\n".join(lines)
