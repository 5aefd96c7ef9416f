"""Do the quick paths say what `strict` says? Every patch through every path, one row a patch, written as it is done.

    python -m acidtest.scripts.measure_agreement --rows agreement.jsonl [--domains humaneval_domains_dev.jsonl]
    python -m acidtest.scripts.measure_agreement --rows agreement.jsonl --docker-rows DATA -t pallets__flask-5014 …

Patches: of every toy task and every HumanEval task gold, the no-op, variants, mutants (half of them such that the search
accepts), recipes and memorising programs; independent correct solutions (`--domains`); the zoo's payloads of the tasks
in ZOO. Paths, each against a fresh strict verdict:

cached    the same question again, answered from the ledger's memory; kept: from its file, by another ledger (outcomes
          that are never kept, timeouts say, are asked afresh under these names)
fast      the named defence;  no twin: neither twin nor probe
search    what the forked search accepts (function tasks)
bare      the exit code of the suite's own command in a fresh sandbox: no defence at all
docker    the strict verdict in a container started for it (every tenth patch of a function task); docker warm: in a
          spare that was started ahead, against the former
docker-run  the exit code under `docker run --rm`, no agent (rows with an image, harmless patches)

Rows that exist are not asked again. The summary lists every disagreement with what the rows say about it.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from itertools import islice
from pathlib import Path
from threading import Lock
from typing import Any

from ..envs.defence import Defence
from ..envs.errors import AcidtestError
from ..envs.ledger import AGAIN, Ledger
from ..envs.load import load_tasks
from ..envs.patch import Patch
from ..envs.protocols import SandboxBackend
from ..envs.sandboxes import open_backend
from ..envs.task import Task
from ..envs.verdict import Verdict
from ..envs.verify import Verifier
from ..verifiers.attackers import memorise, mutants, recipes
from ..verifiers.mutation.variants import variants_of
from ..verifiers.search import FunctionSearch, SearchUnsupported
from ..verifiers.source import SourceTree
from ..verifiers.zoo.ground import survey
from ..verifiers.zoo.kinds import payloads
from .bare import bare_run, docker_run

Row = dict[str, Any]
NO_TWIN = Defence(name="", twin=0.0, probe=False)
SAME = ("cached", "kept", "docker warm")
"""Paths that must give the very same outcome; the others must pay the same, unless a layer that they lack refused it."""
REFERENCE = {"docker warm": "docker"}
"""Against which path one is held where that was asked: `strict` for all others."""
ZOO = (
    "toy/add_weak",
    "toy/tamperable",
    "toy/shop",
    "toy/two_paths",
    "toy/slug_unittest",
    "HumanEval/0",
    "HumanEval/4",
)
LEFT_OUT = ("toy/flaky", "toy/slow")
"""Their outcome is a matter of chance or of time."""


class Paths:
    """The verifiers of all paths. docker: whether containers are used beside or instead of local sandboxes."""

    def __init__(self, stack: ExitStack, sandbox: str, seed: int, *, docker: bool) -> None:
        self.folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="acidtest-agreement-")))
        self.file, self._seed = self.folder / "ledger.sqlite", seed
        backend = self._backend(stack, sandbox, {"spares": 0} if sandbox == "docker" else {})
        self.main = Verifier(sandbox=backend, seed=seed, ledger=stack.enter_context(Ledger(self.file)))
        self.quick = Verifier(sandbox=backend, seed=seed)
        self.warm = self.cold = None
        if docker:
            self.warm = Verifier(sandbox=self._backend(stack, "docker", {"spares": 2}), seed=seed)
            self.cold = Verifier(sandbox=self._backend(stack, "docker", {"spares": 0}), seed=seed)

    def _backend(self, stack: ExitStack, name: str, options: dict[str, Any]) -> SandboxBackend:
        backend = open_backend(name, **options)
        stack.callback(backend.close)
        return backend

    def ask(
        self, task: Task, patch: Patch, *, harmless: bool, containers: bool
    ) -> tuple[dict[str, str], Verdict]:
        """Outcome per path, and the fresh strict verdict."""
        strict = self.main.verify(task, patch)
        assert not strict.cached
        part = self.main.prepared(task, task.suite).original
        again = self.main.verify(task, patch)
        with Ledger(self.file) as other:
            kept = Verifier(sandbox=self.main.backend, seed=self._seed, ledger=other).verify(task, patch)
        assert again.cached == kept.cached == (strict.outcome not in AGAIN)
        found = {
            "strict": str(strict.outcome),
            "cached": str(again.outcome),
            "kept": str(kept.outcome),
            "fast": str(self.quick.verify(task, patch, defence="fast").outcome),
            "no twin": str(self.quick.verify(task, patch, defence=NO_TWIN).outcome),
            "bare": _word(bare_run(self.main.backend, task, patch, part)[1]),
        }
        if containers and self.warm is not None:
            if self.main.backend.name != "docker" and self.cold is not None:
                found["docker"] = str(self.cold.verify(task, patch).outcome)
            found["docker warm"] = str(self.warm.verify(task, patch).outcome)
        if task.image and harmless:
            found["docker-run"] = _word(docker_run(task, patch, part, self.folder)[1])
        return found, strict


def _word(paid: bool) -> str:
    return "resolved" if paid else "refused"


Item = tuple[str, Patch, bool]
"""(what it is, patch, harmless)"""


def of_function(
    task: Task, solutions: Sequence[str], mutants_each: int, seed: int, backend: Any
) -> Iterator[tuple[Item, str]]:
    """The patches of a function task with what the forked search says of each ("" where it cannot be asked)."""
    items: list[Item] = [("gold", Patch(task.gold_patch), True), ("no-op", Patch(), True)]
    items += [("variant", patch, True) for patch in variants_of(task, limit=2, seed=seed)]
    made = list(mutants.attack(task, seed=seed, limit=12 * mutants_each))
    items += [
        (f"independent {n}", Patch.writing({"solution.py": text}, task.files), True)
        for n, text in enumerate(solutions)
    ]
    items += [(c.kind, c.patch, True) for c in islice(recipes.attack(task), 2)]
    items += [(c.kind, c.patch, True) for c in memorise.attack(task, limit=1)]
    try:
        with FunctionSearch(task, backend, jobs=1) as search:
            says = _searched(search, [patch for _, patch, _ in items])
            probed = _searched(search, [c.patch for c in made])
    except SearchUnsupported:
        says, probed = [""] * len(items), [""] * len(made)
    yield from zip(items, says, strict=True)
    for wanted in ("resolved", "refused", ""):
        chosen = [(c, word) for c, word in zip(made, probed, strict=True) if word == wanted]
        for candidate, word in chosen[: (mutants_each + 1) // 2]:
            yield (f"mutant {candidate.kind}", candidate.patch, True), word


def _searched(search: FunctionSearch, patches: Sequence[Patch]) -> list[str]:
    texts = [search.view.source_of(patch) for patch in patches]
    probes = iter(search.probe([text for text in texts if text is not None]))
    return [_word(next(probes).accepted) if text is not None else "" for text in texts]


def of_repository(task: Task, verifier: Verifier, limit: int, seed: int) -> Iterator[tuple[Item, str]]:
    texts = SourceTree(task, verifier.backend).relevant()
    items: list[Item] = [("gold", Patch(task.gold_patch), True), ("no-op", Patch(), True)]
    items += [("variant", patch, True) for patch in variants_of(task, limit=2, seed=seed, texts=texts)]
    items += [(c.kind, c.patch, True) for c in islice(recipes.attack(task, texts=texts), 2)]
    items += [
        (f"mutant {c.kind}", c.patch, True) for c in mutants.attack(task, texts=texts, seed=seed, limit=limit)
    ]
    yield from ((item, "") for item in items)


def of_zoo(task: Task, backend: Any) -> Iterator[tuple[Item, str]]:
    made, _ = payloads(survey(task, backend))
    yield from (((f"zoo {payload.name}", payload.patch, False), "") for payload in made)


def explain(row: Row, path: str) -> str:
    """What the row itself says about a disagreement with strict; "" when nothing does."""
    strict, other = row["paths"]["strict"], row["paths"][path]
    if path in SAME or strict == "resolved" or other != "resolved":
        return ""
    evidence = "; ".join(row["evidence"])
    if strict in ("tampered", "undecided", "patch_rejected"):
        return f"{path} lacks the layer that saw it: {evidence}"
    if path in ("bare", "docker-run"):
        return f"an exit code is no account of the tests ({row['failed'] or evidence})"
    return ""


def disagreements(row: Row) -> Iterator[tuple[str, str]]:
    """(path, explanation) of every path that pays what strict does not, or the other way round; SAME paths by outcome."""
    for path, outcome in row["paths"].items():
        reference = row["paths"].get(REFERENCE.get(path, "strict"), row["paths"]["strict"])
        same = outcome == reference if path in SAME else (outcome == "resolved") == (reference == "resolved")
        if not same:
            yield path, explain(row, path)


def summary(rows: Sequence[Row]) -> Row:
    """Counts per path, and every disagreement."""
    asked: Counter[str] = Counter()
    differing: Counter[str] = Counter()
    unexplained: list[str] = []
    explained: list[str] = []
    for row in rows:
        asked.update(path for path in row.get("paths", {}) if path != "strict")
        for path, why in disagreements(row) if "paths" in row else ():
            differing[path] += 1
            line = f"{row['task_id']} {row['what']}: strict {row['paths']['strict']}, {path} {row['paths'][path]}"
            (explained if why else unexplained).append(f"{line}; {why}" if why else line)
    outcomes = Counter(row["paths"]["strict"] for row in rows if "paths" in row)
    return {
        "patches": len([row for row in rows if "paths" in row]),
        "tasks": len({row["task_id"] for row in rows}),
        "strict": dict(outcomes),
        "what": dict(Counter(row["what"].split()[0] for row in rows if "paths" in row)),
        "paths": {
            path: {"asked": count, "disagree": differing[path]} for path, count in sorted(asked.items())
        },
        "errors": [
            f"{row['task_id']} {row.get('what', '')}: {row['error']}" for row in rows if row.get("error")
        ],
        "unexplained": unexplained,
        "explained": explained,
    }


class Writer:
    """Rows on disk as they are made; knows which exist."""

    def __init__(self, path: Path) -> None:
        self.path, self._lock = path, Lock()
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        self.rows: list[Row] = [row for row in map(json.loads, lines) if not row.get("error")]
        self._known = {(row["task_id"], row["digest"]) for row in self.rows}

    def known(self, task: Task, patch: Patch) -> bool:
        """Whether it was asked already; from now on it counts as asked."""
        key = (task.task_id, patch.exact_digest)
        with self._lock:
            known = key in self._known
            self._known.add(key)
        return known

    def add(self, row: Row) -> None:
        with self._lock, self.path.open("a", encoding="utf-8") as file:
            self.rows.append(row)
            file.write(json.dumps(row) + "\n")


def measure(
    task: Task, made: Iterable[tuple[Item, str]], paths: Paths, writer: Writer, *, every: int
) -> None:
    """All new patches of one task. every: each so-manieth one goes through containers too (0: none)."""
    for number, ((what, patch, harmless), search) in enumerate(made):
        if writer.known(task, patch):
            continue
        row: Row = {"task_id": task.task_id, "what": what, "digest": patch.exact_digest}
        try:
            containers = bool(every) and number % every == 0
            asked, strict = paths.ask(task, patch, harmless=harmless, containers=containers)
        except AcidtestError as error:
            writer.add({**row, "error": f"{type(error).__name__}: {error}"})
            continue
        failed = [i for i, status in strict.statuses.items() if status != "passed"]
        shown = f"not passed: {', '.join(failed[:3])}" if failed else ""
        row |= {
            "paths": asked | ({"search": search} if search else {}),
            "evidence": list(strict.evidence[:2]),
            "failed": shown,
        }
        writer.add(row)


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=Path, required=True)
    parser.add_argument("--limit", type=int, help="HumanEval tasks (all)")
    parser.add_argument("--mutants", type=int, default=4, help="per task")
    parser.add_argument("--domains", type=Path, help="JSONL with independent_solution per HumanEval task")
    parser.add_argument("--docker-rows", help="data folder: ask only about its rows (-t), in containers")
    parser.add_argument("-t", "--task", action="append", default=[])
    parser.add_argument(
        "--every", type=int, default=10, help="each so-manieth patch also through containers; 0: none"
    )
    parser.add_argument("--timeout", type=float, default=6.0, help="seconds for the suite of a function task")
    parser.add_argument("-j", "--jobs", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(argv)
    writer = Writer(options.rows)
    with ExitStack() as stack, ThreadPoolExecutor(options.jobs) as pool:
        jobs = _of_rows if options.docker_rows else _of_functions
        list(pool.map(lambda job: job(), jobs(stack, options, writer)))
    found = summary(writer.rows)
    print(json.dumps(found, indent=1))
    return int(bool(found["unexplained"] or found["errors"]))


def _of_rows(stack: ExitStack, options: argparse.Namespace, writer: Writer) -> list[Callable[[], None]]:
    paths = Paths(stack, "docker", options.seed, docker=True)
    tasks = load_tasks(f"sdists:{options.docker_rows}", task_ids=options.task or None)

    def one(task: Task) -> None:
        made = of_repository(task, paths.main, options.mutants, options.seed)
        measure(task, made, paths, writer, every=1)

    return [lambda task=task: one(task) for task in tasks]  # type: ignore[misc]


def _of_functions(stack: ExitStack, options: argparse.Namespace, writer: Writer) -> list[Callable[[], None]]:
    paths = Paths(stack, "local", options.seed, docker=bool(options.every))
    toy = [task for task in load_tasks("toy") if task.task_id not in LEFT_OUT]
    tasks = [replace(task, timeout_s=min(task.timeout_s, options.timeout)) if task.is_function else task
             for task in [*toy, *load_tasks("humaneval", limit=options.limit)]]  # fmt: skip
    chosen = [task for task in tasks if not options.task or task.task_id in options.task]
    known = solutions(options.domains, {task.task_id: task for task in chosen}) if options.domains else {}

    def one(task: Task) -> None:
        backend = paths.main.backend
        if task.is_function:
            made = of_function(task, known.get(task.task_id, ()), options.mutants, options.seed, backend)
        else:
            made = of_repository(task, paths.main, options.mutants, options.seed)
        measure(task, made, paths, writer, every=options.every)
        if task.task_id in ZOO:
            measure(task, of_zoo(task, backend), paths, writer, every=options.every)

    return [lambda task=task: one(task) for task in chosen]  # type: ignore[misc]


def solutions(path: Path, tasks: dict[str, Task]) -> dict[str, list[str]]:
    """Independent correct programs of HumanEval tasks: whole files, by task id."""
    found: dict[str, list[str]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        task = tasks.get(row["task_id"])
        if task is not None:
            prompt = task.files["solution.py"].replace("    raise NotImplementedError\n", "")
            found.setdefault(task.task_id, []).append(
                prompt.rstrip("\n") + "\n" + row["independent_solution"]
            )
    return found


if __name__ == "__main__":
    raise SystemExit(main())
