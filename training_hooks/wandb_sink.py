"""Incidents and rates to Weights & Biases, online or offline (``WANDB_MODE=offline`` needs no key).

The x axis is the trainer's own step: ``train/global_step`` is logged with every row and `step=` is never passed, so that it
does not matter who else logs into the run. Logs: ``hack/*`` and ``reward/*`` (see `incidents.rates`), the incremental table
``hack/incidents``, at the end ``hack/worst_tasks`` and an artifact with all incidents as JSON lines; one alert per
severity and kind.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs.incident import Incident, Severity

STEP = "train/global_step"
COLUMNS = (
    "step",
    "severity",
    "kind",
    "task_id",
    "reward_original",
    "reward_hardened",
    "failed_added",
    "evidence",
    "patch",
    "key",
)
WORST = ("task_id", "episodes", "false_pass", "tamper", "notice")
_CELL = 4000
_MAX_ROWS = 5000


class WandbSink:
    """Writes into the run that is active when the first batch arrives (the trainer's), else into one it starts itself.

    run: a run to use instead. alerts: whether false passes and tampering raise alerts (deduplicated by title).
    options go to ``wandb.init``. A run that we started is finished by `finish`; the trainer's is left open, unless it was
    finished before us, and then the closing table and artifact are not logged (the jsonl file has everything).
    """

    def __init__(self, run: Any = None, *, alerts: bool = True, **options: Any) -> None:
        self._run, self._own, self._defined = run, False, False
        self._options, self._alerts = options, alerts
        self._fresh: list[Incident] = []
        self._all: dict[str, Incident] = {}
        self._table: Any = None
        self._titles: set[str] = set()
        self._step = 0

    def run(self) -> Any:
        """The wandb run in use."""
        import wandb

        if self._run is None:
            self._own = wandb.run is None
            self._run = wandb.init(**self._options) if wandb.run is None else wandb.run
        if not self._defined:
            self._defined = True
            self._run.define_metric(STEP)
            for pattern in ("hack/*", "reward/*"):
                self._run.define_metric(pattern, step_metric=STEP)
        return self._run

    def incident(self, incident: Incident) -> None:
        if incident.key not in self._all:
            self._fresh.append(incident)
        self._all[incident.key] = incident

    def metrics(self, values: Mapping[str, float], step: int | None) -> None:
        run = self.run()
        self._step = self._step + 1 if step is None else step
        row: dict[str, Any] = {**values, STEP: self._step}
        if self._fresh:
            row["hack/incidents"] = self._incremental()
        run.log(row)
        if self._alerts:
            self._alert()
        self._fresh.clear()

    def _incremental(self) -> Any:
        import wandb

        if self._table is None:
            self._table = wandb.Table(columns=list(COLUMNS), log_mode="INCREMENTAL")
        for incident in self._fresh[: max(0, _MAX_ROWS - len(self._all) + len(self._fresh))]:
            self._table.add_data(*cells(incident))
        return self._table

    def _alert(self) -> None:
        for incident in self._fresh:
            if incident.severity is Severity.NOTICE:
                continue
            title = f"reward hack: {incident.severity} {incident.kind}"
            if title not in self._titles:
                self._titles.add(title)
                self.run().alert(title=title, text=f"task {incident.task_id}, incident {incident.key}")

    def finish(self, worst: Sequence[Mapping[str, Any]]) -> None:
        import wandb

        if self._run is None or getattr(self._run, "_is_finished", False):
            return
        if worst:
            rows = [[row.get(c) for c in WORST] for row in worst]
            table = wandb.Table(columns=list(WORST), data=rows)
            self._run.log({"hack/worst_tasks": table, STEP: self._step})
        if self._all:
            with tempfile.TemporaryDirectory() as folder:
                file = Path(folder) / "incidents.jsonl"
                file.write_text("".join(i.to_json() + "\n" for i in self._all.values()), encoding="utf-8")
                artifact = wandb.Artifact(f"incidents-{self._run.id}", type="incidents")
                artifact.add_file(str(file))
                self._run.log_artifact(artifact)
        self._run.summary["hack/distinct_incidents"] = len(self._all)
        if self._own:
            self._run.finish()
        self._run = None


def cells(incident: Incident) -> list[Any]:
    """One row of the table, in the order of COLUMNS; long texts are cut at 4,000 characters."""
    return [
        incident.step,
        str(incident.severity),
        incident.kind,
        incident.task_id,
        incident.reward_original,
        incident.reward_hardened,
        ", ".join(incident.failed_added)[:_CELL],
        "\n".join(incident.evidence)[:_CELL],
        incident.patch[:_CELL],
        incident.key,
    ]


def sink(**options: Any) -> WandbSink:
    return WandbSink(**options)
