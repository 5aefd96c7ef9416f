"""Measure the mechanical audit on repository tasks: mutants of gold's lines tried → survived → proven, and the time.

    python -m acidtest.scripts.measure_repositories DATA_FOLDER --alternatives alternatives_dev.jsonl --rows rows.jsonl

One row a task as it ends; finished tasks in `--rows` are not run again. Candidates go through the `fast` defence
first and through `strict` when that pays them: only those are counted as survivors. Every proven finding is replayed
against half of the known-correct alternatives, which its proof was not allowed to see.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Lock
from typing import Any

from ..envs.errors import AcidtestError
from ..envs.load import load_tasks
from ..envs.patch import Patch
from ..envs.task import Task
from ..envs.verify import Verifier
from ..verifiers.alternatives import Alternatives
from ..verifiers.attackers import mutants, recipes
from ..verifiers.oracle.recorded import RecordedOracle
from ..verifiers.records import Candidate, Claim, Family, Standing
from ..verifiers.source import SourceTree

Row = dict[str, Any]


def measure(task: Task, verifier: Verifier, known: Sequence[Patch], *, limit: int, seed: int) -> Row:
    """Figures of one task, all plain JSON."""
    clock = time.monotonic()
    texts = SourceTree(task, verifier.backend).relevant()
    candidates = [
        *recipes.attack(task, texts=texts),
        *mutants.attack(task, texts=texts, seed=seed, limit=limit),
    ]
    survivors: list[Candidate] = []
    outcomes: list[str] = []
    for candidate in candidates:
        verdict = verifier.verify(task, candidate.patch, defence="fast")
        if verdict.resolved:
            verdict = verifier.verify(task, candidate.patch, defence="strict")
        outcomes.append(str(verdict.outcome))
        survivors += [candidate] if verdict.resolved else []
    executed = time.monotonic() - clock
    seen, held_out = known[::2], known[1::2]
    oracle = RecordedOracle(task, verifier.backend, alternatives=seen)
    calls = oracle.prepare()
    controls = [_control(task, patch) for patch in known]
    found = oracle.prove([*survivors, *controls])
    ours = found[: len(survivors)]
    return {
        "task_id": task.task_id,
        "mutants": sum(c.family is Family.MUTANT for c in candidates),
        "recipes": sum(c.family is Family.EXPLOIT for c in candidates),
        "outcomes": {name: outcomes.count(name) for name in sorted(set(outcomes))},
        "survived": len(survivors),
        "proven": sum(standing is Standing.PROVEN for _, _, standing, _ in ours),
        "recorded calls": calls,
        "alternatives": [len(seen), len(held_out)],
        "alternatives called wrong": sum(s is Standing.PROVEN for _, _, s, _ in found[len(survivors) :]),
        "findings": [[c.kind, c.description, str(s), list(r), [w.call for w in ws]] for c, ws, s, r in ours],
        "execute seconds": round(executed, 1),
        "prove seconds": round(time.monotonic() - clock - executed, 1),
    }


def _control(task: Task, patch: Patch) -> Candidate:
    return Candidate(
        task_id=task.task_id,
        patch=patch,
        kind="alternative",
        family=Family.BENIGN,
        origin="file",
        claim=Claim.BENIGN,
    )


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source")
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--alternatives", type=Path)
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("-j", "--jobs", type=int, default=1)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--task", action="append", default=[])
    options = parser.parse_args(argv)
    known = Alternatives.read(options.alternatives) if options.alternatives else Alternatives()
    done = set()
    if options.rows.exists():
        done = {json.loads(line)["task_id"] for line in options.rows.read_text(encoding="utf-8").splitlines()}
    tasks = load_tasks(options.source, task_ids=options.task or None)
    lock = Lock()
    with Verifier(sandbox="docker", seed=options.seed) as verifier, ThreadPoolExecutor(options.jobs) as pool:

        def one(task: Task) -> None:
            try:
                row = measure(
                    task, verifier, known.of(task.task_id), limit=options.mutants, seed=options.seed
                )
            except AcidtestError as error:
                row = {"task_id": task.task_id, "error": f"{type(error).__name__}: {error}"}
            with lock, options.rows.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            print(json.dumps(row), flush=True)

        list(pool.map(one, [task for task in tasks if task.task_id not in done]))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
