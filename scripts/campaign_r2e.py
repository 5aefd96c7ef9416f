"""R2E-style tasks from audit to served suite: `python -m acidtest.scripts.campaign_r2e SPECS OUT --answers COMMAND`.

Builds the images of SPECS, audits them with K = 1 and model answers from files, repairs the hackable ones twice (by the
tests in the answers, and by the witnesses alone), and executes gold, the no-op and every proven program against what is served
then, under both reward rules. COMMAND is called with the folder of questions whenever answers are missing, and has to write
some (`examples/r2e_answers.py`). Resumes: OUT/rows.jsonl, OUT/run, OUT/llm, OUT/differential, OUT/served.jsonl.

The original rule reads a row, so it is asked on the row with the overlay of the repair put on it.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..envs import r2e_rule
from ..envs.datasets import r2e_gym
from ..envs.ledger import Ledger
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import Task
from ..envs.verdict import Verdict
from ..envs.verify import Verifier
from ..repair.lock import Lock, hardened
from ..repair.overlay import apply_overlay, overlay_rows
from ..repair.repair import repair
from ..repair.report import RepairReport, rate
from ..verifiers.audit import Audit, audit
from ..verifiers.records import Standing
from .images_r2e import build, read_spec

ROUNDS = 12
"""Turns of questions and answers before the answers count as missing for good."""


@dataclass(frozen=True, kw_only=True)
class Served(Record):
    """One program under one hardened task. program: gold, no-op or a candidate's id and description.

    strict_before, original_before: rewards of the suite as it came; strict, original: of the hardened one.
    """

    augmenter: str
    task_id: str
    program: str
    strict_before: float | None
    original_before: float | None
    strict: float | None
    original: float | None

    @property
    def as_it_should_be(self) -> bool:
        want = 1.0 if self.program == "gold" else 0.0
        return self.strict == want and self.original == want


def main(arguments: Sequence[str] | None = None) -> list[Served]:
    options = _parser().parse_args(arguments)
    out = Path(options.out)
    out.mkdir(parents=True, exist_ok=True)
    rows = _rows(Path(options.specs), out / "rows.jsonl")
    answers = out / "answers"
    audited = _audited(out, answers, options.answers, options.jobs)
    served: list[Served] = []
    for name in options.augmenter or ("llm", "differential"):
        report = _repaired(out / name, audited, name, answers, options.answers, options.jobs)
        for line in report.lines():
            print(f"{name}: {line}")
        for record in report.records:
            print(f"{name}: {record.task_id} {record.status} {record.reason}")
        served += _serve(name, rows, audited, report.lock, out)
    (out / "served.jsonl").write_text("".join(one.to_json() + "\n" for one in served), encoding="utf-8")
    for line in summary(served):
        print(line)
    return served


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("specs", help="a spec, or a folder of them")
    parser.add_argument("out")
    parser.add_argument("--answers", required=True, help="command that answers DIR/requests.jsonl")
    parser.add_argument("--augmenter", action="append", choices=("llm", "differential"), help="default: both")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    return parser


def _rows(specs: Path, path: Path) -> dict[str, dict[str, object]]:
    """The rows by task id, built once."""
    if not path.exists():
        found = sorted(specs.glob("*.toml")) if specs.is_dir() else [specs]
        made = [build(read_spec(spec)) for spec in found]
        path.write_text("".join(json.dumps(row) + "\n" for row in made), encoding="utf-8")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return {r2e_gym.task_of(row, "row").task_id: row for row in rows}


def _until_answered(work: Callable[[], tuple[object, bool]], answers: Path, command: str) -> object:
    """Call `work` until it says that nothing is missing, answering between the calls. Raises RuntimeError."""
    for _ in range(ROUNDS):
        result, waiting = work()
        if not waiting:
            return result
        subprocess.run([*shlex.split(command), str(answers)], check=True)
    raise RuntimeError(f"Questions in {answers} are still open after {ROUNDS} turns.")


def _audited(out: Path, answers: Path, command: str, jobs: int) -> Audit:
    from ..envs.load import load_tasks

    def work() -> tuple[Audit, bool]:
        result = audit(
            list(load_tasks(out / "rows.jsonl")),
            out=out / "run",
            source=str(out / "rows.jsonl"),
            llm=f"files:{answers}",
            k=1,
            rounds=1,
            benign=0,
            repo_mutants=4,
            attackers=("mutants",),
            seed=1,
            jobs=jobs,
        )
        return result, bool(result.pending)

    result = _until_answered(work, answers, command)
    assert isinstance(result, Audit)
    for record in result.records:
        kinds = [f"{f.candidate.kind} {f.standing}" for f in record.findings]
        print(
            f"audit: {record.task_id} {', '.join(record.flags) or 'no flag'}; {'; '.join(kinds)} {record.error}"
        )
    print(f"audit: hackable (proven): {rate(len(result.hackable), len(result.records))}")
    return result


def _repaired(
    folder: Path, audited: Audit, augmenter: str, answers: Path, command: str, jobs: int
) -> RepairReport:
    assert audited.path is not None
    if not folder.exists():
        shutil.copytree(audited.path, folder)
    llm = f"files:{answers}" if augmenter == "llm" else ""

    def work() -> tuple[RepairReport, bool]:
        report = repair(folder, augmenters=[augmenter], llm=llm, jobs=jobs)
        return report, "answer" in report.stopped.lower()

    report = _until_answered(work, answers, command)
    assert isinstance(report, RepairReport)
    return report


def _serve(
    name: str, rows: dict[str, dict[str, object]], audited: Audit, lock: Lock, out: Path
) -> Iterator[Served]:
    overlays = {str(row["task_id"]): row for row in overlay_rows(lock)}
    tasks = {task.task_id: task for task in audited.tasks}
    records = {record.task_id: record for record in audited.records}
    with Ledger(out / "served.sqlite") as ledger, Verifier(sandbox="docker", ledger=ledger) as verifier:
        for task_id, overlay in overlays.items():
            plain = tasks[task_id]
            strict = hardened(plain, lock, backend=verifier.backend)
            published = r2e_gym.task_of(apply_overlay(rows[task_id], overlay), task_id)
            proven = [f.candidate for f in records[task_id].findings if f.standing is Standing.PROVEN]
            programs = {"gold": Patch(plain.gold_patch), "no-op": Patch()}
            programs |= {f"{c.candidate_id} {c.kind} {c.description}": c.patch for c in proven}
            for program, patch in programs.items():
                before = verifier.verify(plain, patch)
                yield Served(
                    augmenter=name,
                    task_id=task_id,
                    program=program,
                    strict_before=before.reward,
                    original_before=_original(plain, before),
                    strict=verifier.verify(strict, patch).reward,
                    original=_original(published, verifier.verify(published, patch)),
                )


def _original(task: Task, verdict: Verdict) -> float | None:
    """The published rule on what the task's own suite ran."""
    run = verdict.run
    return None if run is None else r2e_rule.original_reward(run, task.metadata["expected"])


def summary(served: Sequence[Served]) -> list[str]:
    """A line a program, then how many are as they should be, by augmenter."""
    lines = [
        f"{one.augmenter}: {one.task_id} {one.program}: strict {one.strict_before} -> {one.strict}, "
        f"original {one.original_before} -> {one.original}"
        for one in served
    ]
    for name in dict.fromkeys(one.augmenter for one in served):
        own = [one for one in served if one.augmenter == name]
        for kind in ("gold", "no-op", "exploits"):
            some = [
                one
                for one in own
                if (one.program if one.program in {"gold", "no-op"} else "exploits") == kind
            ]
            good = sum(one.as_it_should_be for one in some)
            lines.append(
                f"{name}: {kind} as it should be under both rules after the swap: {rate(good, len(some))}"
            )
    return lines


if __name__ == "__main__":
    main()
