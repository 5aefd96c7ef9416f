"""`AuditWrapper`: what the audit knows of a task and of the very patch that was submitted, in `info`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Protocol, SupportsFloat

import gymnasium

from ..envs.patch import Patch
from ..envs.task_env import TaskEnv
from .eqs import Score
from .records import Decision, Finding


class Audited(Protocol):
    """What the wrapper reads of an audit record."""

    @property
    def task_id(self) -> str: ...
    @property
    def findings(self) -> tuple[Finding, ...]: ...
    @property
    def flags(self) -> tuple[str, ...]: ...
    @property
    def score(self) -> Score | None: ...
    @property
    def decision(self) -> Decision: ...


class AuditWrapper(gymnasium.Wrapper[str, str, str, str]):
    """Adds to `info` of reset and step: eqs, decision, decision_firm, flags; and of step: standing.

    records: audit records, by task_id or as a plain iterable. `eqs` is None where undefined or never audited; `decision` of
    a task without a record is UNDECIDED. standing: "proven", "judged", … when the submitted patch is one of the
    audit's findings, else "". served: task_id -> eqs, decision, decision_firm, flags of
    the hardened suite; they go before the record's while a task is served with added tests. Findings also name the kind of an incident (their zoo id) in the wrapped environment.
    """

    def __init__(
        self,
        env: gymnasium.Env[str, str],
        records: Mapping[str, Any] | Iterable[Any],
        *,
        served: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        super().__init__(env)
        self.served = dict(served or {})
        items: Iterable[Any] = records.values() if isinstance(records, Mapping) else records
        self.records: dict[str, Audited] = {record.task_id: record for record in items}
        self.standings = standings(self.records.values())
        inner = env.unwrapped
        if isinstance(inner, TaskEnv):
            inner.known.update(known_kinds(self.records.values()))

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        observation, info = self.env.reset(seed=seed, options=options)
        return observation, info | self._of(info.get("task_id"))

    def step(self, action: str) -> tuple[str, SupportsFloat, bool, bool, dict[str, Any]]:
        observation, reward, terminated, truncated, info = self.env.step(action)
        info = info | self._of(info.get("task_id"))
        if "patch" in info:
            info["standing"] = self.standings.get((info["task_id"], Patch(info["patch"]).digest), "")
        return observation, reward, terminated, truncated, info

    def _of(self, task_id: Any) -> dict[str, Any]:
        record = self.records.get(str(task_id))
        task = getattr(self.env.unwrapped, "task", None)
        if task is not None and task.suite.added is not None and task.task_id in self.served:
            return dict(self.served[task.task_id])
        if record is None:
            return {"eqs": None, "decision": Decision.UNDECIDED, "decision_firm": False, "flags": ()}
        return {
            "eqs": record.score.eqs if record.score else None,
            "decision": record.decision,
            "decision_firm": bool(record.score and record.score.decision_firm),
            "flags": tuple(record.flags),
        }


def standings(records: Iterable[Audited]) -> dict[tuple[str, str], str]:
    """(task_id, patch digest) -> standing of every finding."""
    return {
        (record.task_id, finding.candidate.patch.digest): str(finding.standing)
        for record in records
        for finding in record.findings
    }


def known_kinds(records: Iterable[Audited]) -> dict[str, str]:
    """Patch digest -> kind of every finding, to name incidents by what the audit already proved."""
    return {f.candidate.patch.digest: f.candidate.kind for record in records for f in record.findings}
