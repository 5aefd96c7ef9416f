"""What an LLM audit will ask and cost, before it starts: calls by purpose, dollars low and high."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from ...envs.record import Record
from ...envs.task import Task
from .prices import BYTES_PER_TOKEN, Price

OUTPUT = {"attack": (800, 2000), "benign": (600, 1500), "judge": (700, 2000), "witness": (400, 1200),
          "specified": (80, 250)}  # fmt: skip
"""Tokens of one answer, usual and long; attack and benign per change asked for. Typical of the Claude 4 family."""
FRAME = 900
"""Tokens of a prompt's own words."""


@dataclass(frozen=True, kw_only=True)
class Estimate(Record):
    """calls: purpose -> how many. usd: low (usual answers, cached context, a third paid) and high (long, all paid)."""

    tasks: int
    calls: Mapping[str, int] = field(default_factory=dict)
    usd: tuple[float, float] = (0.0, 0.0)

    def __str__(self) -> str:
        total = sum(self.calls.values())
        parts = ", ".join(f"{name} {n}" for name, n in self.calls.items())
        return (
            f"{self.tasks} task{'' if self.tasks == 1 else 's'}, up to {total} calls ({parts}): about ${self.usd[0]:.2f}, "
            f"at most ${self.usd[1]:.2f} with long answers"
        )


def estimate(
    tasks: Iterable[Task], price: Price, *, k: int, rounds: int, benign: int, samples: int = 3
) -> Estimate:
    """From the tasks' texts alone; nothing is run or asked. Source that lies in images counts as 12,000 bytes."""
    chosen = list(tasks)
    calls = dict.fromkeys(OUTPUT, 0)
    low = high = 0.0
    for task in chosen:
        bytes_ = len(task.prompt) + sum(map(len, task.files.values())) + (0 if task.files else 12_000)
        tests = sum(map(len, task.suite.test_files.values())) + len(task.suite.test_patch)
        tried = k * rounds
        plan = {
            "attack": rounds, "benign": int(benign > 0), "judge": samples * (1 + benign + tried),
            "witness": benign + tried, "specified": samples * (benign + tried),
        }  # fmt: skip
        for name, count in plan.items():
            calls[name] += count
            size = (bytes_ + (tests if name == "attack" else 0)) / BYTES_PER_TOKEN
            per = {"attack": k, "benign": benign}.get(name, 1)
            usual, long = (per * tokens for tokens in OUTPUT[name])
            share = 1 / 3 if name in ("witness", "specified") else 1.0
            low += (
                share * count * (size * price.cache_read + FRAME * price.input + usual * price.output) / 1e6
            )
            high += count * ((size + FRAME) * price.cache_write + long * price.output) / 1e6
    return Estimate(tasks=len(chosen), calls=calls, usd=(round(low, 4), round(high, 4)))
