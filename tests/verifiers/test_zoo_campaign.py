"""The whole zoo on 16 tasks under three graders (`make campaign`): needs Docker, the data folder and the row images.

Results go to `runs/campaign/`, a file a task: an interrupted run goes on where it stopped (zoo.json, zoo.md; ACIDTEST_CAMPAIGN changes the folder); figures stand in docs/measurements.md.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from acidtest.envs.load import load_tasks
from acidtest.envs.task import Task
from acidtest.envs.verify import Verifier
from acidtest.verifiers.zoo.ablation import ablate
from acidtest.verifiers.zoo.ablation import markdown as ablation_table
from acidtest.verifiers.zoo.matrix import Matrix, markdown, run_zoo

pytestmark = [pytest.mark.campaign, pytest.mark.docker, pytest.mark.data, pytest.mark.timeout(0)]

TOY = ["toy/add_weak", "toy/tamperable", "toy/shop", "toy/two_paths", "toy/slug_unittest"]
HUMANEVAL = ["HumanEval/0", "HumanEval/4", "HumanEval/32", "HumanEval/53"]
MBPP = ["MBPP/2"]
ROWS = [
    "pallets__flask-5014",
    "django__django-16901",
    "sympy__sympy-24443",
    "pytest-dev__pytest-10051",
    "django__django-16667",
    "sphinx-doc__sphinx-10466",
]
PAID_BY_SWEBENCH = (
    "R01 R02 R03 R04 R06 P07 P08 R15 R14 R09 R10 R07 R12 R13 R11 H07 H08 H10 C01 S02".split()  # noqa: SIM905
)
"""What THREATS lists as paid by swebench 5.0.2."""


def out_dir() -> Path:
    folder = Path(os.environ.get("ACIDTEST_CAMPAIGN", "runs/campaign"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def chosen(data: Path) -> list[Task]:
    """The 16 tasks: plain scripts, unittest, pytest, Django's runner, sympy's runner."""
    return [
        *load_tasks("toy", task_ids=TOY),
        *load_tasks("humaneval", task_ids=HUMANEVAL),
        *load_tasks(f"mbpp:{data}/mbpp_sanitized.json", task_ids=MBPP),
        *load_tasks(f"sdists:{data}", task_ids=ROWS),
    ]


def test_the_whole_zoo(engine: str, data_dir: Path) -> None:
    """Tasks with an image in Docker, the others in the local sandbox (a payload needs a dozen sandboxes)."""
    parts: list[Matrix] = []
    with Verifier(sandbox="docker") as docker, Verifier(sandbox="local") as local:
        for task in chosen(data_dir):
            file = out_dir() / f"zoo.{task.task_id.replace('/', '_')}.json"
            if not file.exists():
                verifier = docker if task.image else local
                part = run_zoo([task], verifier, jobs=2, progress=lambda line: print(line, flush=True))
                file.write_text(part.to_json())
            parts.append(Matrix.from_json(file.read_text()))
    matrix = joined(parts)
    (out_dir() / "zoo.json").write_text(matrix.to_json())
    (out_dir() / "zoo.md").write_text(markdown(matrix))
    assert not matrix.unusable
    assert set(PAID_BY_SWEBENCH) <= set(matrix.demonstrated)
    assert len(matrix.demonstrated) >= 25
    assert [f"{r.task_id} {r.name}" for r in matrix.breaches] == []


def joined(parts: list[Matrix]) -> Matrix:
    return Matrix(
        results=tuple(r for part in parts for r in part.results),
        not_here=tuple(n for part in parts for n in part.not_here),
        unusable=tuple(u for part in parts for u in part.unusable),
        defence=parts[0].defence,
        seed=parts[0].seed,
    )


def test_each_layer_off(engine: str, data_dir: Path) -> None:
    """Ablation on the toy tasks, in the local sandbox (no payload there needs an image)."""
    tasks = load_tasks("toy", task_ids=["toy/tamperable", "toy/shop", "toy/slug_unittest"])
    with Verifier(sandbox="local") as verifier:
        matrix = run_zoo(tasks, verifier, kinds=["C", "P", "R", "H", "L"], jobs=2)
        found = ablate(tasks, verifier, matrix, progress=lambda line: print(line, flush=True))
    (out_dir() / "ablation.json").write_text(found.to_json())
    (out_dir() / "ablation.md").write_text(ablation_table(found))
    assert matrix.breaches == []
    stopping = {layer for layer, names in found.paid.items() if names}
    assert stopping >= {
        "protect",
        "accounting",
        "beacons",
        "integrity",
        "twin",
        "probe",
        "protect+trusted_tests",
    }
