"""Every option of a repair, with its default: the one table that the command line and Python share."""

from __future__ import annotations

from dataclasses import dataclass

from ..envs.record import Record, digest_of


@dataclass(frozen=True, kw_only=True)
class RepairOptions(Record):
    """What a repair does. A task that is not wholly repaired is taken again when these change.

    iterations: rounds of proposals per task. augmenters: files of `repair/augmenters` or dotted paths, in order.
    variants: behaviour-preserving variants of gold that every proposal must let through. max_asserts: in one
    differential file. gold_runs, block_runs: executions of gold, and of each target, per proposal. reaudit: audit the
    hardened task again with `seed`. allow_unspecified: keep model proposals that cite no sentence.
    llm: MODEL, batch:MODEL, files:DIR or replay:FILE ("" for none).
    """

    iterations: int = 5
    augmenters: tuple[str, ...] = ("differential",)
    variants: int = 4
    max_asserts: int = 10
    gold_runs: int = 3
    block_runs: int = 2
    reaudit: bool = True
    allow_unspecified: bool = False
    seed: int = 1
    llm: str = ""

    @property
    def digest(self) -> str:
        return digest_of(self)
