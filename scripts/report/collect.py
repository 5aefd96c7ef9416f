"""Everything a run directory holds, read once: audit records, tasks, repairs, model audit, zoo, inflation, incidents."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from ...envs.errors import ConfigError
from ...envs.incident import Incident
from ...envs.record import Record
from ...envs.task import Task
from ...repair.records import RepairRecord
from ...training_hooks.jsonl_sink import read_incidents
from ...verifiers.audit_record import AuditRecord
from ...verifiers.inflation.analysis import Inflation
from ...verifiers.llm_rates import LLMRates, rates
from ...verifiers.llm_record import LLMAuditResult
from ...verifiers.rundir import CONFIG, RunDir
from ...verifiers.summary import Summary, summarise
from ...verifiers.zoo.matrix import Matrix

R = TypeVar("R", bound=Record)
INCIDENTS, ZOO, INFLATION = "incidents.jsonl", "zoo.json", "inflation.json"


@dataclass(frozen=True, kw_only=True)
class Material:
    """What a report is made of. records are in the order of the audit; a training run has incidents only.

    audited: day of the newest audit record (UTC, ISO). tasks, repairs: by task id.
    """

    path: Path
    config: Mapping[str, Any] = field(default_factory=dict)
    records: Sequence[AuditRecord] = ()
    tasks: Mapping[str, Task] = field(default_factory=dict)
    repairs: Mapping[str, RepairRecord] = field(default_factory=dict)
    llm: Sequence[LLMAuditResult] = ()
    incidents: Sequence[Incident] = ()
    zoo: Matrix | None = None
    inflation: Inflation | None = None
    audited: str = ""

    @property
    def name(self) -> str:
        return self.path.resolve().name

    @property
    def summary(self) -> Summary:
        return summarise(self.records)

    @property
    def llm_rates(self) -> LLMRates | None:
        return rates(self.llm) if self.llm else None

    @property
    def dataset(self) -> str:
        """Source of the run, else the data sets of its records."""
        return str(
            self.config.get("source") or ", ".join(sorted({r.dataset for r in self.records if r.dataset}))
        )


def collect(path: str | Path) -> Material:
    """Read a run directory. Raises ConfigError when it holds neither an audit nor incidents."""
    folder = Path(path)
    if not folder.is_dir():
        raise ConfigError(
            f"No run directory {folder}.", mend="Give the --out folder of an audit or a training run."
        )
    run = RunDir(folder)
    records = list(run.latest("audit", AuditRecord).values())
    incidents = read_incidents(folder / INCIDENTS) if (folder / INCIDENTS).is_file() else []
    if not records and not incidents:
        raise ConfigError(
            f"{folder} holds neither audit records nor incidents.", mend="Run `acidtest audit … --out` first."
        )
    return Material(
        path=folder,
        config=run.config if (folder / CONFIG).is_file() else {},
        records=records,
        tasks=run.latest("tasks", Task),
        repairs=run.latest("repairs", RepairRecord),
        llm=list(run.latest("llm", LLMAuditResult).values()),
        incidents=incidents,
        zoo=_one(folder, (ZOO,), Matrix.from_json),
        inflation=_one(folder, (f"inflation/{INFLATION}", INFLATION), Inflation.from_json),
        audited=_day(folder / "audit.jsonl"),
    )


def _one(folder: Path, names: Sequence[str], read: Callable[[str], R]) -> R | None:
    for name in names:
        if (folder / name).is_file():
            return read((folder / name).read_text(encoding="utf-8"))
    return None


def _day(file: Path) -> str:
    if not file.is_file():
        return ""
    return dt.datetime.fromtimestamp(file.stat().st_mtime, tz=dt.UTC).date().isoformat()
