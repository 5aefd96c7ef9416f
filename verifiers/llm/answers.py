"""From what a model wrote to data: JSON, checked against the request's schema (the subset our prompts use)."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import Any

from .protocol import CallOutcome, Reply, Request, Usage

_KEY = re.compile(r"sk-[A-Za-z0-9_\-]{8,}")
_SECRETS = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_CUSTOM_HEADERS")


def reply_of(request: Request, text: str, *, stop_reason: str, model: str, usage: Usage) -> Reply:
    """Type the outcome of a message: refusal, cut-off, invalid JSON, or an answer that fits the schema."""
    outcome, data, detail = CallOutcome.ANSWERED, None, ""
    if stop_reason == "refusal":
        outcome, detail = CallOutcome.REFUSED, "the model refused"
    else:
        data, detail = parse(text, request.schema)
        if data is None:
            cut = stop_reason in ("max_tokens", "model_context_window_exceeded")
            outcome = CallOutcome.CUT_OFF if cut else CallOutcome.INVALID
    return Reply(
        outcome=outcome, text=scrub(text), data=data, stop_reason=stop_reason, detail=detail,
        model=model, usage=usage,
    )  # fmt: skip


def parse(text: str, schema: Mapping[str, Any]) -> tuple[dict[str, Any] | None, str]:
    """The JSON object in `text` (alone, or in one code fence), or None and the reason."""
    body = text.strip()
    fenced = re.fullmatch(r"```[a-z]*\n(.*)\n?```", body, re.DOTALL)
    try:
        data = json.loads(fenced.group(1) if fenced else body)
    except ValueError as error:
        return None, f"not JSON: {error}"
    wrong = misfit(data, schema)
    return (None, wrong) if wrong else (data, "")


def misfit(value: Any, schema: Mapping[str, Any], where: str = "answer") -> str:
    """Why `value` does not follow the schema, or "". Knows type, enum, required, properties, items."""
    kind = schema.get("type")
    types: dict[str, type | tuple[type, ...]] = {
        "object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float),
    }  # fmt: skip
    if kind in types and not isinstance(value, types[kind]):
        return f"{where} is not of type {kind}"
    if "enum" in schema and value not in schema["enum"]:
        return f"{where} is none of {schema['enum']}"
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                return f"{where} lacks {name!r}"
        for name, inner in schema.get("properties", {}).items():
            if name in value:
                wrong = misfit(value[name], inner, f"{where}.{name}")
                if wrong:
                    return wrong
    if isinstance(value, list) and "items" in schema:
        for index, item in enumerate(value):
            wrong = misfit(item, schema["items"], f"{where}[{index}]")
            if wrong:
                return wrong
    return ""


def scrub(text: str) -> str:
    """Take the environment's credentials, and anything shaped like a key, out of a text."""
    for name in _SECRETS:
        value = os.environ.get(name, "")
        if len(value) >= 8:
            text = text.replace(value, "[key removed]")
    return _KEY.sub("[key removed]", text)
