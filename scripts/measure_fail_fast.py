"""What ending the added tests at the first failure saves, and whether it pays alike, on the hardened suites of a run.

    python -m acidtest.scripts.measure_fail_fast RUN --rounds 3 --rows fail_fast.jsonl

RUN: the folder of `acidtest audit` and `acidtest repair`. For every task of its lock: gold, variants of gold that behave
alike, and every proven program, each under the defence with and without `fail_fast`, interleaved (the order changes from
round to round), in fresh sandboxes without a cache. A row a verdict; exit code 1 where two rewards differ.
`--slow S` adds a test of S seconds at the end of every suite: what a long tail of tests costs.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..envs.defence import Defence, defence_of
from ..envs.patch import Patch
from ..envs.task import Task
from ..envs.verify import Verifier
from ..repair.lock import Lock, hardened, load_lock
from ..verifiers.audit import Audit
from ..verifiers.mutation.variants import variants_of
from ..verifiers.records import Standing

Row = dict[str, Any]
SLOW = """

def test_slow():
    import time
    time.sleep({seconds})
"""


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("run")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("--defence", default="strict")
    parser.add_argument("--slow", type=float, default=0.0)
    parser.add_argument("--limit", type=int, default=None)
    parser.add_argument("--rows", default="fail_fast.jsonl")
    options = parser.parse_args(arguments)
    rows = []
    with Path(options.rows).open("a", encoding="utf-8") as file:
        for row in measure(options):
            rows.append(row)
            file.write(json.dumps(row) + "\n")
            file.flush()
    for line in summary(rows):
        print(line)
    return 1 if disagreements(rows) else 0


def measure(options: argparse.Namespace) -> Iterator[Row]:
    audit, lock = Audit.read(options.run), load_lock(options.run)
    whole = defence_of(options.defence)
    arms = (whole, replace(whole, fail_fast=True))
    with Verifier(sandbox=options.sandbox) as verifier:
        for task, program, kind, patch in list(programs(audit, lock, options.slow))[: options.limit]:
            verifier.reference(task)
            for number in range(options.rounds):
                for defence in arms[:: 1 if number % 2 else -1]:
                    yield timed(verifier, task, patch, defence) | {"program": program, "kind": kind}


def programs(audit: Audit, lock: Lock, slow: float = 0.0) -> Iterator[tuple[Task, str, str, Patch]]:
    """(task as it is served, name of the program, kind, patch)."""
    tasks = {task.task_id: task for task in audit.tasks}
    for record in audit.records:
        if record.task_id not in lock:
            continue
        task = tasks[record.task_id]
        served = with_slow_test(hardened(task, lock), slow)
        yield served, "gold", "gold", Patch(task.gold_patch)
        for number, patch in enumerate(variants_of(task, limit=2)):
            yield served, f"variant {number}", "variant", patch
        for finding in record.findings:
            if finding.standing is Standing.PROVEN:
                yield served, finding.candidate.candidate_id, "proven wrong", finding.candidate.patch


def with_slow_test(task: Task, seconds: float) -> Task:
    """The task with one more added test, at the end of the last file, which only waits."""
    added = task.suite.added
    if not seconds or added is None:
        return task
    path = added.test_ids[-1].split("::", 1)[0]
    files = {**added.test_files, path: added.test_files[path] + SLOW.format(seconds=seconds)}
    more = replace(added, test_files=files, test_ids=(*added.test_ids, f"{path}::test_slow"))
    return task.with_suite(replace(task.suite, added=more))


def timed(verifier: Verifier, task: Task, patch: Patch, defence: Defence) -> Row:
    started = time.perf_counter()
    verdict = verifier.verify(task, patch, defence=defence)
    seconds = time.perf_counter() - started
    return {
        "task_id": task.task_id,
        "fail_fast": defence.fail_fast,
        "outcome": str(verdict.outcome),
        "original": str(verdict.original_outcome),
        "reward": verdict.reward,
        "failed": len(verdict.failed_added),
        "unrun": len(verdict.unrun_added),
        "seconds": seconds,
        "added_seconds": verdict.seconds.get("added", 0.0),
    }


def disagreements(rows: Sequence[Row]) -> list[str]:
    """Programs that did not get one and the same reward in all their verdicts."""
    rewards: dict[str, set[Any]] = defaultdict(set)
    for row in rows:
        rewards[f"{row['task_id']} {row['program']}"].add(row["reward"])
    return [name for name, found in rewards.items() if len(found) > 1]


def summary(rows: Sequence[Row]) -> list[str]:
    lines = []
    for kind in dict.fromkeys(row["kind"] for row in rows):
        mine = [row for row in rows if row["kind"] == kind]
        count = len({(row["task_id"], row["program"]) for row in mine})
        lines.append(f"{kind}: {count} programs of {len({row['task_id'] for row in mine})} tasks")
        for fail_fast in (False, True):
            arm = [row for row in mine if row["fail_fast"] is fail_fast]
            whole = statistics.median(row["seconds"] for row in arm)
            added = statistics.median(row["added_seconds"] for row in arm)
            unrun = sum(row["unrun"] for row in arm) / len(arm)
            lines.append(
                f"  {'fail-fast' if fail_fast else 'whole'}: {len(arm)} verdicts, median {whole * 1000:.0f} ms, "
                f"of it one run of the added tests {added * 1000:.0f} ms; {unrun:.1f} tests not run"
            )
    found = disagreements(rows)
    return [*lines, f"programs whose rewards differ: {len(found)}", *found]


if __name__ == "__main__":
    sys.exit(main())
