"""Anthropic Messages: one request, one message. Structured output, prompt caching of the shared context."""

from __future__ import annotations

from typing import Any

from ...envs.errors import LLMError
from .answers import reply_of, scrub
from .protocol import Reply, Request, Trouble, Usage


def params(request: Request, model: str, max_tokens: int) -> dict[str, Any]:
    """Body of a Messages call; the same for a batch entry. The context is one cached system block."""
    system: list[dict[str, Any]] = []
    if request.system:
        system.append({"type": "text", "text": request.system})
    if request.context:
        system.append({"type": "text", "text": request.context, "cache_control": {"type": "ephemeral"}})
    body: dict[str, Any] = {
        "model": model,
        "max_tokens": max_tokens,
        "messages": [{"role": "user", "content": request.prompt}],
        "output_config": {"format": {"type": "json_schema", "schema": dict(request.schema)}},
    }
    return {**body, "system": system} if system else body


def message_reply(request: Request, message: Any) -> Reply:
    """Type what a Messages response (an SDK object, or its JSON) says."""
    data: dict[str, Any] = message if isinstance(message, dict) else message.model_dump()
    text = "".join(
        str(block.get("text", "")) for block in data.get("content") or () if block.get("type") == "text"
    )
    usage = data.get("usage") or {}
    return reply_of(
        request,
        text,
        stop_reason=str(data.get("stop_reason") or ""),
        model=str(data.get("model") or ""),
        usage=Usage(
            input=int(usage.get("input_tokens") or 0),
            output=int(usage.get("output_tokens") or 0),
            cache_write=int(usage.get("cache_creation_input_tokens") or 0),
            cache_read=int(usage.get("cache_read_input_tokens") or 0),
        ),
    )


def client(base_url: str | None, timeout_s: float) -> Any:
    """An SDK client without retries of its own (ours are recorded). The key comes from the environment."""
    import anthropic

    try:
        return anthropic.Anthropic(base_url=base_url, max_retries=0, timeout=timeout_s)
    except anthropic.AnthropicError as error:
        raise LLMError(
            f"The Anthropic client cannot start: {scrub(str(error))}",
            mend="Set ANTHROPIC_API_KEY, or take --llm files:DIR.",
        ) from None


class Anthropic:
    """timeout_s: of one call, in seconds; a call that takes longer counts as lost and is sent again."""

    def __init__(self, model: str, *, base_url: str | None = None, timeout_s: float = 600.0) -> None:
        self.model = model
        self._client = client(base_url, timeout_s)

    def send(self, request: Request, *, max_tokens: int) -> Reply:
        with_trouble = trouble_of
        try:
            message = self._client.messages.create(**params(request, self.model, max_tokens))
        except Exception as error:
            raise with_trouble(error) from None
        return message_reply(request, message)

    def close(self) -> None:
        self._client.close()


def trouble_of(error: Exception) -> Exception:
    """What an SDK error means for this call: try again, record, or stop the run (keys, rights, no such model)."""
    import anthropic

    detail = scrub(f"{type(error).__name__}: {error}")[:500]
    if isinstance(error, anthropic.APIStatusError):
        status = error.status_code
        if status in (401, 402, 403, 404):
            return LLMError(
                f"The model service refuses: {detail}", mend="Check the key, the model and the account."
            )
        again = status in (408, 409, 429) or status >= 500
        return Trouble(detail, retryable=again, after_s=_retry_after(error) if again else None)
    if isinstance(error, (anthropic.APIConnectionError, anthropic.APIResponseValidationError)):
        refused = "refused" in str(error.__cause__ or "").lower()
        return Trouble(detail, retryable=True, maybe_paid=not refused)
    if isinstance(error, anthropic.AnthropicError | TypeError | ValueError):
        return LLMError(f"The model service cannot be used: {detail}", mend="Set ANTHROPIC_API_KEY.")
    return error


def _retry_after(error: Any) -> float | None:
    headers = error.response.headers
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        try:
            return float(headers[name]) / scale
        except (KeyError, ValueError):
            continue
    return None
