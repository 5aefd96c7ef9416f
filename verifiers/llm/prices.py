"""Dollars per token, from a table that the user can override (`prices.json` is the default)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ...envs.errors import ConfigError
from ...envs.record import Record
from .protocol import Request, Usage

BYTES_PER_TOKEN = 2.5
"""For estimates only, and on the safe side: code and English run at 3 to 4 bytes a token."""


@dataclass(frozen=True, kw_only=True)
class Price(Record):
    """US dollars per million tokens of one model."""

    input: float
    output: float
    cache_write: float
    cache_read: float

    def cost(self, usage: Usage) -> float:
        """Dollars of one call."""
        return (
            usage.input * self.input
            + usage.output * self.output
            + usage.cache_write * self.cache_write
            + usage.cache_read * self.cache_read
        ) / 1e6

    def scaled(self, factor: float) -> Price:
        return Price(
            input=self.input * factor,
            output=self.output * factor,
            cache_write=self.cache_write * factor,
            cache_read=self.cache_read * factor,
        )

    def ceiling(self, request: Request, max_tokens: int) -> float:
        """The most one call can cost: every input token written to the cache, every output token used."""
        return (input_tokens(request) * self.cache_write + max_tokens * self.output) / 1e6


FREE = Price(input=0.0, output=0.0, cache_write=0.0, cache_read=0.0)


def input_tokens(request: Request) -> int:
    """Estimated input tokens, rounded up on the safe side (the schema counts too)."""
    text = request.system + request.context + request.prompt + json.dumps(dict(request.schema))
    return 64 + int(len(text.encode("utf-8", "replace")) / BYTES_PER_TOKEN)


def price_of(
    model: str, table: str | Path | Mapping[str, Any] | None = None, *, batch: bool = False
) -> Price:
    """The price of a model: the longest prefix in the table. Raises ConfigError when none matches."""
    data = _table(table)
    models: Mapping[str, Any] = data.get("models", {})
    known = [name for name in models if model.startswith(name)]
    if not known:
        raise ConfigError(
            f"No price is known for the model {model!r}.",
            mend=f"Give --prices FILE with an entry for it (known: {', '.join(sorted(models)) or 'none'}).",
        )
    price = Price.from_dict(dict(models[max(known, key=len)]))
    return price.scaled(float(data.get("batch", 0.5))) if batch else price


def _table(table: str | Path | Mapping[str, Any] | None) -> Mapping[str, Any]:
    if isinstance(table, Mapping):
        return table
    file = Path(__file__).with_name("prices.json") if table is None else Path(table)
    try:
        data = json.loads(file.read_text())
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"The price table {file} cannot be read: {error}.", mend="Take docs/llm.md as a model."
        ) from error
    if not isinstance(data, dict) or not isinstance(data.get("models"), dict):
        raise ConfigError(f"The price table {file} has no `models`.", mend="Take docs/llm.md as a model.")
    return data
