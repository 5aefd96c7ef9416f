"""Every option of an audit, with its default: the one table that the command line, Python and config.toml share."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..envs.record import Record


@dataclass(frozen=True, kw_only=True)
class AuditConfig(Record):
    """What an audit does. "" and 0 mean "not asked for" or "the tool chooses".

    source: what was loaded (kept for the record). seed: of everything random.
    sandbox: name of a file in `envs/sandboxes`; "" is docker where an engine answers, else local.
    defence: of every counted verdict, "strict" or "fast". calibration_runs: how often gold must
    resolve in the suite's own order (0: 5 times for suites under 2 s, 3 under 20 s, else 2).
    attackers: files of `verifiers/attackers` that need no model. repo_mutants: mutants executed per
    repository task (function tasks execute all of them). tamper: run the zoo's tamper audit. leaks: audit images.
    llm: MODEL, batch:MODEL, files:DIR or replay:FILE. prices: file of token prices instead of ours. k: exploits a round. rounds: attacker rounds.
    benign: correct alternatives sent the same way, per task. attacker_sees: tests, names or nothing.
    candidates: file of the user's own rollouts. alternatives: file of known-correct patches.
    pass_at_1: parquet, CSV or JSONL of results from which D is computed. max_usd: hard ceiling of model cost.
    jobs: tasks at once (0: one per core).
    """

    source: str = ""
    seed: int = 0
    sandbox: str = ""
    defence: str = "strict"
    calibration_runs: int = 0
    attackers: tuple[str, ...] = ("mutants", "recipes", "memorise")
    repo_mutants: int = 40
    tamper: bool = False
    leaks: bool = False
    llm: str = ""
    prices: str = ""
    k: int = 4
    rounds: int = 3
    benign: int = 2
    attacker_sees: str = "tests"
    candidates: str = ""
    alternatives: str = ""
    pass_at_1: str = ""
    max_usd: float = 0.0
    jobs: int = 0

    @classmethod
    def known(cls, values: dict[str, Any]) -> AuditConfig:
        """From a mapping; keys that are no options are left out (config.toml holds a few more)."""
        names = {f.name for f in fields(cls)}
        return cls.from_dict({k: v for k, v in values.items() if k in names})
