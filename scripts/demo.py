"""`acidtest demo`: the whole path on bundled and HumanEval tasks: audit, one finding, repair, an episode, a report.

Needs no key and no engine: without Docker the local sandbox is used and says what isolation it gives.
"""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..envs.errors import AcidtestError
from ..envs.load import load_tasks
from ..envs.task import Task
from ..verifiers.audit import Audit, audit
from ..verifiers.audit_record import AuditRecord
from ..verifiers.records import Family, Finding
from .console import console, progress

DEMO_TOY = ("toy/add_sound", "toy/add_weak", "toy/tamperable", "toy/too_narrow", "toy/broken_gold", "toy/noop_passes",
            "toy/flaky", "toy/slug_unittest")  # fmt: skip
HUMANEVAL = 20
REPAIRED = 5


@dataclass
class Demo:
    """One run of the demo. folder: where everything is kept (emptied first). sandbox: "" chooses."""

    folder: Path
    sandbox: str = "local"
    humaneval: int = HUMANEVAL
    repaired: int = REPAIRED

    def run(self) -> int:
        """Exit code: 0 when every step showed what it should, 1 when one did not."""
        if self.folder.exists():
            shutil.rmtree(self.folder)
        say = console().print
        tasks = load_tasks("toy", task_ids=DEMO_TOY) + load_tasks("humaneval", limit=self.humaneval)
        say(f"[bold]1. Audit[/bold] of {len(tasks)} tasks: wrong programs are executed against every suite.")
        with progress("audit", len(tasks)) as advance:
            result = audit(
                tasks,
                out=self.folder,
                source="demo",
                sandbox=self.sandbox,
                calibration_runs=2,
                progress=advance,
            )
        self._show_audit(result)
        picked = pick(result.records)
        if picked is None:
            say("No proven finding: the demo cannot go on.")
            return 1
        record, finding = picked
        say("\n[bold]2. One finding in full[/bold]")
        self._show_finding(result, record, finding)
        say(
            "\n[bold]3. Repair[/bold]: witnesses become tests; a test is kept only if gold passes it and the exploit fails it."
        )
        self._repair(result)
        say("\n[bold]4. An episode[/bold] with the hardened suite swapped in.")
        good = self._episode(record, finding, tasks)
        say("\n[bold]5. Report[/bold]")
        self._report()
        return 0 if good else 1

    def _show_audit(self, result: Audit) -> None:
        from ..verifiers.summary import summarise
        from .tables import audit_table, summary_lines

        console().print(audit_table(result.records))
        for line in summary_lines(summarise(result.records)):
            console().print(line)

    def _show_finding(self, result: Audit, record: AuditRecord, finding: Finding) -> None:
        from .cmd_explain import show_finding

        console().print(f"Task {record.task_id}")
        show_finding(finding, result, record)

    def _repair(self, result: Audit) -> None:
        from ..repair.repair import repair
        from .tables import number, table

        chosen = [r.task_id for r in result.hackable][: self.repaired]
        console().print(
            f"The first {len(chosen)} of {len(result.hackable)} hackable tasks; `acidtest repair {self.folder}` takes all."
        )
        report = repair(result, sandbox=self.sandbox, task_ids=chosen)
        made = table(
            "EQS before and after repair",
            "task",
            "status",
            "#EQS",
            "#EQS after",
            "decision",
            "after",
            "#tests",
        )
        before = {r.task_id: r for r in result.records}
        for done in report.records:
            old = before[done.task_id].score
            made.add_row(
                done.task_id,
                str(done.status),
                number(old.eqs if old else None, 3),
                number(done.after.get("eqs"), 3),
                str(old.decision if old else ""),
                str(done.after.get("decision", "")),
                str(
                    len(done.hardened.suite.added.test_ids)
                    if done.hardened and done.hardened.suite.added
                    else 0
                ),
            )
        console().print(made)
        for line in report.lines():
            console().print(line, markup=False)

    def _episode(self, record: AuditRecord, finding: Finding, tasks: Sequence[Task]) -> bool:
        from ..training_hooks.curate import load_tasks as curated
        from ..training_hooks.curate import make
        from ..training_hooks.jsonl_sink import JsonlSink

        name = record.dataset
        served = curated(name, audit=self.folder, hardened=self.folder, task_ids=[record.task_id])
        task = next(t for t in tasks if t.task_id == record.task_id)
        log = JsonlSink(self.folder / "incidents.jsonl")
        env = make(served, sandbox=self.sandbox)
        good = True
        try:
            for name, patch, expected in (
                ("the exploit", finding.candidate.patch.text, 0.0),
                ("the gold patch", task.gold_patch, 1.0),
            ):
                env.reset(seed=0)
                _, reward, _, _, info = env.step(patch)
                good &= reward == expected and info["reward_original"] == 1.0
                console().print(
                    f"  {name}: the original suite pays {info['reward_original']}, the hardened suite pays {reward}"
                )
                good &= self._incident(log, info.get("incident"), expected)
        finally:
            env.close()
        return good

    def _incident(self, log: Any, incident: Any, expected: float) -> bool:
        if incident is None:
            return expected == 1.0
        log.incident(incident)
        console().print(
            f"  incident: {incident.severity}, kind {incident.kind}, refused by {', '.join(incident.failed_added)}",
            markup=False,
        )
        return expected == 0.0

    def _report(self) -> None:
        from .report.collect import collect
        from .report.page import write

        page = self.folder / "report.html"
        size = write(collect(self.folder), page)
        console().print(f"  {page} ({size / 1e6:.1f} MB, one file, opens from disk)", markup=False)


def pick(records: Sequence[AuditRecord]) -> tuple[AuditRecord, Finding] | None:
    """The finding to show: a proven non-memorising one, of the `add` task when it has one."""
    options = [
        (record, finding)
        for record in records
        for finding in record.proven
        if finding.candidate.family in (Family.MUTANT, Family.EXPLOIT)
    ]
    options.sort(
        key=lambda o: (
            o[0].task_id != "toy/add_weak",
            o[0].task_id,
            -o[1].witnesses[0].rating if o[1].witnesses else 0,
        )
    )
    return options[0] if options else None


def demo(folder: Path, sandbox: str, humaneval: int) -> int:
    try:
        return Demo(folder, sandbox, humaneval).run()
    except AcidtestError as error:
        console().print(f"The demo stopped: {error}", markup=False)
        return error.exit_code
