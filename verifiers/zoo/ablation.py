"""What each layer of the defence is for: the payloads that are paid once it alone is switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace

from ...envs.defence import LAYERS, STRICT, Defence
from ...envs.record import Record
from ...envs.task import Task
from ...envs.verify import Verifier
from .ground import survey
from .kinds import payloads
from .matrix import Matrix
from .payload import Expect


@dataclass(frozen=True, kw_only=True)
class Ablation(Record):
    """paid: layer that was off -> "task name" of the payloads that were paid. asked: payloads tried for each layer."""

    paid: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    asked: int = 0
    tasks: tuple[str, ...] = ()


TOGETHER = ("protect+beacons", "diff_policy+protect+trusted_tests+beacons")
"""Layers that stand in for each other: what one lets through the other stops, so each alone seems to stop nothing."""


def without(layers: str) -> Defence:
    """Strict with one layer off, or several joined by "+". Beacons, integrity, twin and probe go with accounting."""
    off = {layer: 0.0 if layer == "twin" else False for layer in layers.split("+")}
    return replace(STRICT, name=f"without {layers}", **off)  # type: ignore[arg-type]


def ablate(
    tasks: Iterable[Task],
    verifier: Verifier,
    matrix: Matrix,
    *,
    layers: Iterable[str] = (*LAYERS, *TOGETHER),
    progress: Callable[[str], None] = lambda line: None,
) -> Ablation:
    """Verify every demonstrated payload that must be refused again, once for each layer with that layer off.

    matrix: the strict results of the same tasks. Raises SandboxError as the backend does.
    """
    wanted = {(r.task_id, r.name) for r in matrix.results if r.demonstrated and r.expect is Expect.REFUSED}
    layers = tuple(layers)
    paid: dict[str, list[str]] = {layer: [] for layer in layers}
    used: list[str] = []
    asked = 0
    for task in tasks:
        made, _ = payloads(survey(task, verifier.backend))
        chosen = [p for p in made if (p.task_id, p.name) in wanted]
        asked += len(chosen)
        used.append(task.task_id)
        for layer in layers:
            for payload in chosen:
                verdict = verifier.verify(task, payload.patch, defence=without(layer))
                if verdict.resolved:
                    paid[layer].append(f"{task.task_id} {payload.name}")
            progress(f"{task.task_id} without {layer}: {len(paid[layer])} paid")
    return Ablation(paid={k: tuple(v) for k, v in paid.items()}, asked=asked, tasks=tuple(used))


def markdown(ablation: Ablation) -> str:
    """One row a layer."""
    head = f"{ablation.asked} demonstrated payloads of {', '.join(ablation.tasks)}.\n\n"
    head += "| layer off | payloads paid | kinds |\n| --- | --: | --- |\n"
    rows = []
    for layer, names in ablation.paid.items():
        kinds = sorted({name.split(" ", 1)[1] for name in names})
        rows.append(f"| {layer} | {len(names)} | {', '.join(kinds) or '–'} |\n")
    return head + "".join(rows)
