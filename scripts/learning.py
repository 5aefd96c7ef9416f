"""What a weak suite teaches: the same policy trained on original and on hardened suites.

    python -m acidtest.scripts.learning --truth humaneval_domains_dev.jsonl --out learning

Real verdicts on real candidates: gold, an independent solution, every proven wrong program the audit found paid (at most
`--exploits` a task), refused mutants, a tampering submission and text that is no patch. The truth comes from hidden tests
that neither audit nor repair has seen: the in-domain inputs of `--truth` with the values that gold computes. The control serves, instead of
the original suites, suites that pay nothing wrong (the hidden tests themselves): there the two trainings have to agree.
The policy is small and bandit-like (`learning_policy.py`); it is no language model's training.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from ..envs.load import load_tasks
from ..envs.patch import Patch
from ..envs.submission import read_submission
from ..envs.task import Suite, Task
from ..repair.lock import hardened, load_lock
from ..training_hooks.audits import records_of
from ..training_hooks.scorer import Scorer
from ..verifiers.attackers.mutants import attack as mutants
from ..verifiers.records import Standing
from .learning_plot import draw
from .learning_policy import Arm, Curves, interval, train

TASKS = (20, 40, 46, 72, 92, 118, 126, 154)
"""HumanEval problems with undisputed gold on which a prototype found at least five wrong programs paid."""
TAMPER = (
    "import sys\n\nrunner = sys.modules['__main__']\n\n\ndef run_one(ident, function):\n"
    "    runner._send('s', ident)\n    runner._send('e', ident, 'passed', 0.0)\n\n\nrunner.run_one = run_one\n"
)


@dataclass(frozen=True)
class Case:
    """One task with its three suites: as published, hardened, hidden."""

    original: Task
    hardened: Task
    hidden: Task
    candidates: dict[str, Patch]


def hidden_suite(task: Task, calls: Sequence[Sequence[Any]]) -> Suite:
    """Hidden tests: gold's source beside the submission's, compared on each input (floats within 1e-6)."""
    name = str(task.metadata["entry_point"])
    gold = read_gold(task)
    text = f"""import copy
import json

from solution import {name}

GOLD = {gold!r}
CALLS = json.loads({json.dumps(json.dumps(list(calls)))})


def same(a, b):
    if isinstance(a, float) or isinstance(b, float):
        return abs(a - b) <= 1e-6 * max(1.0, abs(b))
    if isinstance(a, (list, tuple)) and isinstance(b, (list, tuple)):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    return type(a) is type(b) and a == b


def test_hidden():
    space = {{}}
    exec(GOLD, space)
    for call in CALLS:
        assert same({name}(*copy.deepcopy(call)), space[{name!r}](*copy.deepcopy(call))), call
"""
    return Suite(
        command="python test_hidden.py",
        framework="plain",
        test_files={"test_hidden.py": text},
        fail_to_pass=("test_hidden.py::test_hidden",),
    )


def read_gold(task: Task) -> str:
    """The solution file with the gold patch applied."""
    from ..verifiers.mutation.apply import apply_diff

    path = str(task.metadata["solution_file"])
    return str(apply_diff(dict(task.files), task.gold_patch)[path])


def cases(
    tasks: Iterable[Task], run: Path, truth: dict[str, Any], *, exploits: int = 6, refused: int = 4
) -> list[Case]:
    """Tasks with candidates, for those the run holds a hardened suite of and the truth file inputs."""
    records, lock = records_of(run), load_lock(run)
    found = []
    for task in tasks:
        row = truth.get(task.task_id)
        if row is None or task.task_id not in lock or task.task_id not in records:
            continue
        gold = read_gold(task)
        name = str(task.metadata["entry_point"])
        stub = task.files[str(task.metadata["solution_file"])]
        independent = stub.replace(
            "    raise NotImplementedError", str(row["independent_solution"]).strip("\n")
        )
        paid = [f for f in records[task.task_id].findings if f.standing is Standing.PROVEN][:exploits]
        candidates = {
            "gold": Patch(task.gold_patch),
            "independent": read_submission(task, f"```python\n{independent}\n```").patch,
            **{f"exploit {i}": f.candidate.patch for i, f in enumerate(paid)},
            **{f"mutant {i}": c.patch for i, c in enumerate(mutants(task, seed=1, limit=refused))},
            "tamper": read_submission(
                task, f"```python\n{TAMPER}\n\n{gold}\n\n\n{name} = lambda *a: None\n```"
            ).patch,
            "no patch": Patch("I cannot solve this."),
        }
        hidden = task.with_suite(hidden_suite(task, row["in_domain_inputs"]))
        found.append(Case(task, hardened(task, lock), hidden, candidates))
    return found


def arms_of(found: Sequence[Case], **options: Any) -> list[Arm]:
    """Real verdicts of every candidate (Scorer options). One verdict of the hardened suite says what both suites pay."""
    arms = []
    with Scorer([], **options) as scorer:
        for case in found:
            names = list(case.candidates)
            asked = [
                (t, case.candidates[n]) for n in names for t in (case.original, case.hardened, case.hidden)
            ]
            rewards = [score.reward for score in scorer.score(asked)]
            for i, name in enumerate(names):
                original, hard, hidden = rewards[3 * i : 3 * i + 3]
                paid = {"original": original, "hardened": hard, "hidden": hidden}
                arms.append(Arm(case.original.task_id, name, hidden == 1.0, paid))
    return arms


def study(arms: Sequence[Arm], *, seeds: int = 10, steps: int = 150) -> dict[str, Curves]:
    """Curves of the three trainings. In the control the seeds are disjoint: equal curves are not equal by construction."""
    first, second = range(seeds), range(seeds, 2 * seeds)
    return {
        "original": train(arms, "original", judged_by="original", seeds=first, steps=steps),
        "hardened": train(arms, "hardened", judged_by="original", seeds=second, steps=steps),
        "control": train(arms, "hidden", judged_by="original", seeds=first, steps=steps),
        "control hardened": train(_both(arms), "both", judged_by="original", seeds=second, steps=steps),
    }


def _both(arms: Sequence[Arm]) -> list[Arm]:
    """The control's suite after the same repair: hidden and added tests have to pass."""

    def both(arm: Arm) -> float | None:
        parts = (arm.paid["hidden"], arm.paid["hardened"])
        return None if None in parts else min(float(part or 0.0) for part in parts)

    return [replace(arm, paid={**arm.paid, "both": both(arm)}) for arm in arms]


def summary(curves: dict[str, Curves]) -> dict[str, Any]:
    """End-of-training means with 95 % bootstrap intervals over seeds, and the two differences."""
    rows: dict[str, Any] = {}
    for name, curve in curves.items():
        rows[name] = {"solve": interval(curve.solve[:, -1]), "hack": interval(curve.hack[:, -1])}
    pairs = {"original - hardened": ("original", "hardened"), "control": ("control", "control hardened")}
    for label, (a, b) in pairs.items():
        rows[f"difference: {label}"] = {
            what: interval(getattr(curves[a], what)[:, -1] - getattr(curves[b], what)[:, -1])
            for what in ("solve", "hack")
        }
    return rows


def text_of(rows: dict[str, Any], arms: Sequence[Arm], seeds: int) -> str:
    tasks = {arm.task_id for arm in arms}
    fooled = sum(not arm.truth and arm.paid["original"] == 1.0 for arm in arms)
    left = sum(not arm.truth and arm.paid["hardened"] == 1.0 for arm in arms)
    unfair = sum(arm.truth and arm.paid["hardened"] == 0.0 for arm in arms)
    counts = (
        f"{len(tasks)} tasks, {len(arms)} candidates, {sum(arm.truth for arm in arms)} truly correct; wrong ones paid: "
        f"{fooled} by the original suites, {left} by the hardened ones; correct ones the hardened suites refuse: {unfair}."
    )
    lines = [
        "A small bandit-like policy (softmax over candidate patches), not a language model's training.",
        counts,
        f"At the end of training, mean over {seeds} seeds [95 % bootstrap interval over seeds]:",
    ]
    for name, row in rows.items():
        cells = ", ".join(f"{what} {m:.3f} [{lo:.3f}, {hi:.3f}]" for what, (m, lo, hi) in row.items())
        lines.append(f"  {name}: {cells}")
    return "\n".join(lines)


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--truth", type=Path, required=True, help="humaneval_domains_dev.jsonl")
    parser.add_argument(
        "--out", type=Path, default=Path("learning"), help="folder for run, picture and figures"
    )
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=150)
    parser.add_argument("--exploits", type=int, default=6)
    parser.add_argument("--sandbox", default=None)
    parser.add_argument("--tasks", type=int, nargs="*", default=list(TASKS), help="HumanEval numbers (even)")
    options = parser.parse_args(argv)
    tasks = load_tasks("humaneval", task_ids=[f"HumanEval/{n}" for n in options.tasks])
    run = options.out / "run"
    prepare(tasks, run, options.sandbox)
    truth = {row["task_id"]: row for row in map(json.loads, options.truth.read_text().splitlines())}
    arms = arms_of(
        cases(tasks, run, truth, exploits=options.exploits), sandbox=options.sandbox, max_concurrent=2
    )
    curves = study(arms, seeds=options.seeds, steps=options.steps)
    rows = summary(curves)
    draw(curves, options.out / "learning.png")
    np.savez(
        options.out / "curves.npz",
        **{f"{n} {w}": getattr(c, w) for n, c in curves.items() for w in ("solve", "hack")},
    )
    arm_rows = [{"task": a.task_id, "name": a.name, "truth": a.truth, **a.paid} for a in arms]
    (options.out / "learning.json").write_text(json.dumps({"rows": rows, "arms": arm_rows}, indent=1))
    print(text_of(rows, arms, options.seeds))


def prepare(tasks: Sequence[Task], run: Path, sandbox: str | None) -> None:
    """Audit and repair the tasks (0 USD); what the run holds already is not done again."""
    from ..repair.repair import repair
    from ..verifiers.audit import audit

    repair(audit(tasks, out=run, sandbox=sandbox or ""), sandbox=sandbox, reaudit=False)


if __name__ == "__main__":
    main()
