"""What the command line says of the model: the estimate before an audit, the figures and the money after it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from ..envs.task import Task
from .audit_config import AuditConfig
from .llm.calls import CallStore
from .llm.estimate import Estimate, estimate
from .llm.prices import FREE, price_of
from .llm_rates import rates, text
from .llm_record import LLMAuditResult
from .rundir import RunDir

RECORDS = "llm"
LEDGER = "ledger.sqlite"


def llm_estimate(tasks: Iterable[Task], config: AuditConfig) -> Estimate:
    """Calls and dollars of an audit with these options. Raises ConfigError for a model without a price."""
    form, colon, rest = config.llm.partition(":")
    price = FREE
    if not colon:
        price = price_of(config.llm, config.prices or None)
    elif form == "batch":
        price = price_of(rest, config.prices or None, batch=True)
    return estimate(tasks, price, k=config.k, rounds=config.rounds, benign=config.benign)


def llm_results(path: str | Path) -> list[LLMAuditResult]:
    """The newest result of every task of a run."""
    return list(RunDir.read(path).latest(RECORDS, LLMAuditResult).values())


def llm_text(path: str | Path) -> str:
    """All figures of a run's LLM audit, and what its calls came to. Nothing is run or asked."""
    lines = [text(rates(llm_results(path)))]
    if (Path(path) / LEDGER).is_file():
        with CallStore(Path(path) / LEDGER) as store:
            usage = store.usage()
            lines.append(
                f"calls: {len(store.rows())}; tokens: {usage.input:,} in, {usage.output:,} out, "
                f"{usage.cache_write:,} written to and {usage.cache_read:,} read from the cache; "
                f"${store.spent_usd():.4f}, and up to ${store.reserved_usd():.4f} for calls without an answer"
            )
    return "\n".join(lines)
