"""Measure the mechanical audit of a function-level data set: mutants, findings, speed, witnesses, domain.

    python -m acidtest.scripts.measure_functions humaneval --domains humaneval_domains_dev.jsonl --out figures.json

Search and proofs only (no full verdicts). `--domains` compares with recorded input contracts and independent
solutions: accusations that rest on an input outside the contract, recall of known weak tasks, disagreement of the
independent solution with a witness. `--rerun` runs every standalone witness script in a fresh process.
"""

from __future__ import annotations

import argparse
import ast
import copy
import json
import os
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from ..envs import pyast
from ..envs.load import load_tasks
from ..envs.sandboxes import open_backend
from ..envs.task import Task
from ..verifiers.attackers import memorise, mutants, recipes
from ..verifiers.oracle import Oracle
from ..verifiers.oracle.equality import encode, same
from ..verifiers.records import Candidate, Family, Standing
from ..verifiers.search import FunctionSearch, SearchUnsupported

Row = dict[str, Any]


def measure(task: Task, *, sandbox: str, speed: bool = False) -> Row:
    """Figures of one task, all plain JSON. speed: also time the programs through the visible tests alone."""
    started = time.monotonic()
    row: Row = {"task_id": task.task_id, "error": "", "findings": []}
    backend = open_backend(sandbox)
    try:
        with FunctionSearch(task, backend, jobs=1) as search:
            oracle = Oracle(search)
            oracle.prepare()
            made = [c for module in (mutants, recipes, memorise) for c in module.attack(task)]
            candidates = oracle.affordable(made)
            row["left out"] = len(made) - len(candidates)
            _count(row, candidates)
            before, clock = search.cpu_seconds, time.monotonic()
            programs = [search.view.source_of(c.patch) or "" for c in candidates]
            if speed:
                row["visible_only"] = _visible_only(search, programs)
            row["extra_cpu"] = search.cpu_seconds - before
            row["extra_wall"] = time.monotonic() - clock
            found = oracle.examine(candidates)
            row["doubts"] = [f"{d.call}: {d.kind}" for d in oracle.doubts]
            row["inputs"] = len(oracle.chosen)
            row["unordered"] = search.unordered
            row["accepted"] = sum(
                one.probe.accepted for one in found if one.candidate.family is Family.MUTANT
            )
            row["standings"] = Counter(str(one.standing) for one in found if one.standing)
            for one in found:
                if one.standing is Standing.PROVEN and not one.duplicate_of:
                    row["findings"].append(_finding(one.candidate, one.witnesses))
            row["cpu"] = search.cpu_seconds - row["extra_cpu"]
    except SearchUnsupported as error:
        row["error"] = error.message
    finally:
        backend.close()
    row["wall"] = time.monotonic() - started - row.get("extra_wall", 0.0)
    return row


def _count(row: Row, candidates: Sequence[Candidate]) -> None:
    row["candidates"] = Counter(str(c.family) for c in candidates)


def _visible_only(search: FunctionSearch, programs: Sequence[str]) -> Row:
    """Programs through the visible tests alone, each in a process of its own: count, CPU and wall seconds."""
    cpu, clock = search.cpu_seconds, time.monotonic()
    search.probe(programs, tests=search.view.tests)
    return {"programs": len(programs), "cpu": search.cpu_seconds - cpu, "wall": time.monotonic() - clock}


def _finding(candidate: Candidate, witnesses: Sequence[Any]) -> Row:
    return {
        "family": str(candidate.family),
        "kind": candidate.kind,
        "description": candidate.description,
        "witnesses": [
            {
                "kind": str(w.kind),
                "call": w.call,
                "expected": w.expected,
                "rating": w.rating,
                "script": w.script,
            }
            for w in witnesses
        ],
    }


def rerun(scripts: Sequence[str]) -> int:
    """How many witness scripts hold when each runs alone in a fresh interpreter."""

    def holds(script: str) -> bool:
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=False, timeout=300)
        return done.returncode == 0

    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        return sum(pool.map(holds, scripts))


def compare(rows: Sequence[Row], domains: Mapping[str, Row], tasks: Mapping[str, Task]) -> Row:
    """The findings (memorising kinds apart) against recorded contracts and independent solutions."""
    totals: Counter[str] = Counter()
    weak, recalled, disagree, outside = set(), set(), [], []
    for row in rows:
        domain = domains.get(row["task_id"])
        if domain is None:
            continue
        findings = [f for f in row["findings"] if f["family"] != Family.MEMORISING]
        if domain["prototype_wrong_accepted"] > 0:
            weak.add(row["task_id"])
            recalled |= {row["task_id"]} if findings else set()
        contract, solution = _programs(tasks[row["task_id"]], domain)
        for finding in findings:
            calls = [w for w in finding["witnesses"] if w["kind"] != "test"]
            inside = [_inside(contract, _arguments(w["call"])) for w in calls]
            totals["accusations"] += 1
            totals["witnesses"] += len(finding["witnesses"])
            totals["all witnesses outside the contract"] += bool(calls) and not any(inside)
            totals["some witness outside the contract"] += not all(inside)
            outside += [w["call"] for w, ok in zip(calls, inside, strict=True) if not ok]
            disagree += [w["call"] for w in calls if not _agrees(solution, w, row["unordered"])]
    return {
        **totals,
        "weak tasks": len(weak),
        "weak tasks found": len(recalled),
        "weak tasks missed": sorted(weak - recalled),
        "witnesses the independent solution fails": sorted(set(disagree)),
        "witnesses outside the contract": sorted(set(outside)),
    }


def _programs(task: Task, domain: Row) -> tuple[Any, Any]:
    """(contract, independent solution) as functions of the task's signature. Trusted data of the measurement."""
    stub = next(iter(task.files.values())).replace("    raise NotImplementedError\n", "")
    entry = str(task.metadata["entry_point"])
    made = []
    for body in (f"\n{domain['contract']}\n    return 'inside'\n", domain["independent_solution"]):
        scope: dict[str, Any] = {}
        exec(stub + body, scope)
        made.append(scope[entry])
    return made[0], made[1]


def _arguments(call: str) -> tuple[Any, ...]:
    node = pyast.expression(call).body
    assert isinstance(node, ast.Call)
    return tuple(pyast.literal(argument) for argument in node.args)


def _inside(contract: Any, args: tuple[Any, ...]) -> bool:
    try:
        return bool(contract(*copy.deepcopy(args)) == "inside")
    except Exception:
        return False


def _agrees(solution: Any, witness: Row, unordered: bool) -> bool:
    try:
        value = encode(solution(*copy.deepcopy(_arguments(witness["call"]))))
    except Exception:
        return False
    return same(encode(pyast.literal(witness["expected"])), value, unordered)


def summary(rows: Sequence[Row], wall: float) -> Row:
    """Totals over all tasks."""
    proven = [r for r in rows if any(f["family"] != Family.MEMORISING for f in r["findings"])]
    memorised = [r for r in rows if any(f["family"] == Family.MEMORISING for f in r["findings"])]
    families: Counter[str] = Counter()
    standings: Counter[str] = Counter()
    for row in rows:
        families.update(row.get("candidates", {}))
        standings.update(row.get("standings", {}))
    visible = [r["visible_only"] for r in rows if "visible_only" in r]
    programs, cpu = sum(v["programs"] for v in visible), sum(v["cpu"] for v in visible)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return {
        "tasks": len(rows),
        "not searched": [f"{r['task_id']}: {r['error']}" for r in rows if r["error"]],
        "candidates": dict(families),
        "left out (slow tests)": sum(row.get("left out", 0) for row in rows),
        "accepted mutants": sum(r.get("accepted", 0) for r in rows),
        "standings": dict(standings),
        "tasks with a proven finding": len(proven),
        "tasks with a proven memorising program": len(memorised),
        "gold doubts": sum(bool(r.get("doubts")) for r in rows),
        "search cpu seconds": round(sum(r.get("cpu", 0.0) for r in rows), 1),
        "own cpu seconds": round(used.ru_utime + used.ru_stime, 1),
        "wall seconds": round(wall, 1),
        "visible tests: programs": programs,
        "visible tests: cpu seconds": round(cpu, 1),
        "visible tests: programs per second of 2 cores": round(2 * programs / cpu, 1) if cpu else None,
    }


def _all(tasks: Sequence[Task], options: argparse.Namespace) -> list[Row]:
    """Rows of all tasks in their order; finished ones are read from `--rows`."""
    done: dict[str, Row] = {}
    if options.rows and options.rows.exists():
        for line in options.rows.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            done[row["task_id"]] = row
    work = partial(measure, sandbox=options.sandbox, speed=options.speed)
    with ProcessPoolExecutor(options.jobs) as pool:
        for row in pool.map(work, [task for task in tasks if task.task_id not in done]):
            done[row["task_id"]] = row
            if options.rows:
                with options.rows.open("a", encoding="utf-8") as file:
                    file.write(json.dumps(row) + "\n")
    return [done[task.task_id] for task in tasks]


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("source", help="humaneval, mbpp, or a path")
    parser.add_argument("--domains", type=Path, help="JSONL of contracts and independent solutions")
    parser.add_argument("--out", type=Path, help="write all figures as JSON")
    parser.add_argument(
        "--rerun", action="store_true", help="run every standalone witness in a fresh process"
    )
    parser.add_argument("--sandbox", default="local")
    parser.add_argument("-j", "--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--limit", type=int)
    parser.add_argument("--speed", action="store_true", help="time the visible tests alone, too")
    parser.add_argument(
        "--rows", type=Path, help="JSONL of finished tasks: written as they end, and gone on from"
    )
    options = parser.parse_args(argv)
    tasks = load_tasks(options.source, limit=options.limit)
    clock = time.monotonic()
    rows = _all(tasks, options)
    figures: Row = {"summary": summary(rows, time.monotonic() - clock)}
    if options.domains:
        lines = options.domains.read_text(encoding="utf-8").splitlines()
        domains = {row["task_id"]: row for row in map(json.loads, lines)}
        figures["domains"] = compare(rows, domains, {task.task_id: task for task in tasks})
    if options.rerun:
        scripts = [w["script"] for r in rows for f in r["findings"] for w in f["witnesses"]]
        figures["witness scripts"] = {"run": len(scripts), "hold": rerun(scripts)}
    print(json.dumps(figures, indent=1))
    if options.out:
        options.out.write_text(json.dumps({**figures, "rows": rows}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
