"""What an audit and a repair say of the suite that is *served*: for a hardened task the audit after repair counts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..envs.errors import ConfigError
from ..envs.task import Task
from ..verifiers.audit import Audit
from ..verifiers.audit_record import UNPROVEN
from ..verifiers.records import Decision
from ..verifiers.rundir import RunDir


@dataclass(frozen=True, kw_only=True)
class Facts:
    """EQS, decision and flags of the suite that a task is served with. hardened: whether they are of the hardened one."""

    eqs: float | None = None
    decision: str = str(Decision.UNDECIDED)
    firm: bool = False
    flags: tuple[str, ...] = ()
    hardened: bool = False

    def as_info(self) -> dict[str, Any]:
        """The keys of an environment's `info`."""
        return {
            "eqs": self.eqs,
            "decision": Decision(self.decision),
            "decision_firm": self.firm,
            "flags": self.flags,
        }


def records_of(audit: Any) -> dict[str, Any]:
    """Audit records by task_id, of a run folder, an `Audit`, or records. Raises ConfigError when there are none.

    Records that infrastructure cut short (`error`) are left out: such a task counts as not audited.
    """
    if isinstance(audit, str | Path):
        found: Any = Audit.read(audit).records
    else:
        found = getattr(audit, "records", audit)
        found = found.values() if isinstance(found, Mapping) else found
    if not isinstance(found, Iterable):
        raise ConfigError(
            f"{type(audit).__name__} is no audit.", mend="Give a run folder, an Audit or records."
        )
    return {record.task_id: record for record in found if not record.error}


def after_repair(hardened: Any) -> dict[str, Mapping[str, Any]]:
    """task_id -> EQS, decision and flags of the hardened suite, when `hardened` is a run folder that repair wrote."""
    if not isinstance(hardened, str | Path) or not (Path(hardened) / "repairs.jsonl").is_file():
        return {}
    from ..repair import records

    kind: Any = records.RepairRecord
    return {
        key: record.after
        for key, record in RunDir.read(hardened).latest("repairs", kind).items()
        if record.after
    }


def facts_of(task: Task, record: Any, after: Mapping[str, Any] | None = None) -> Facts:
    """The facts of the suite that is served. Without an audit after repair the original suite's stand, `hardened` False."""
    if task.suite.added is not None and after:
        return Facts(
            eqs=after.get("eqs"),
            decision=str(after.get("decision") or Decision.UNDECIDED),
            firm=bool(after.get("decision_firm")),
            flags=tuple(after.get("flags", ())),
            hardened=True,
        )
    return Facts(
        eqs=record.score.eqs if record.score else None,
        decision=str(record.decision),
        firm=bool(record.score and record.score.decision_firm),
        flags=tuple(dict.fromkeys([*record.flags, *([UNPROVEN] if record.unproven else [])])),
    )
