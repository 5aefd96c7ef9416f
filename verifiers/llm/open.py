"""`open_llm(spec)`: `MODEL | batch:MODEL | files:DIR | replay:FILE`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...envs.errors import ConfigError
from .anthropic import Anthropic
from .batch import BatchLLM
from .calls import CallStore
from .direct import DirectLLM
from .files import FilesLLM
from .prices import price_of
from .protocol import LLM
from .replay import ReplayLLM

FORMS = "MODEL, batch:MODEL, files:DIR or replay:FILE"


def open_llm(
    spec: str,
    *,
    store: CallStore,
    max_usd: float | None = None,
    prices: str | Path | Mapping[str, Any] | None = None,
    base_url: str | None = None,
    timeout_s: float = 600.0,
    **options: Any,
) -> LLM:
    """An `LLM` over `store`. max_usd: hard ceiling of the run in dollars. base_url: a gateway or local server.

    options: of the class that answers (`DirectLLM`: retries, parallel, backoff_s; `BatchLLM`: wait_s, poll_s).
    Raises ConfigError for an unusable spec or a model without a price, LLMError without credentials.
    """
    form, colon, rest = spec.partition(":")
    if not spec or (colon and not rest) or (colon and form not in ("batch", "files", "replay")):
        raise ConfigError(f"--llm {spec!r} is none of {FORMS}.", mend="For example --llm claude-sonnet-5-5.")
    if colon and form == "files":
        return FilesLLM(rest, store, **options)
    if colon and form == "replay":
        return ReplayLLM(rest, store)
    if colon:
        price = price_of(rest, prices, batch=True)
        return BatchLLM(
            rest, store, price, max_usd=max_usd, base_url=base_url, timeout_s=timeout_s, **options
        )
    price = price_of(spec, prices)
    provider = Anthropic(spec, base_url=base_url, timeout_s=timeout_s)
    return DirectLLM(provider, store, price, max_usd=max_usd, **options)
