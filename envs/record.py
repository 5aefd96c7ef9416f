"""JSON round trips and digests for the frozen dataclasses that are our nouns (msgspec does the work)."""

from __future__ import annotations

import hashlib
from dataclasses import is_dataclass
from typing import Any, Self

import msgspec

from .errors import TaskError


def digest_of(value: Any) -> str:
    """First 16 hex digits of the SHA-256 of the value's canonical JSON (sorted keys)."""
    return hashlib.sha256(msgspec.json.encode(value, order="sorted")).hexdigest()[:16]


class Record:
    """Mixin for frozen dataclasses: `to_json`, `from_json`, `to_dict`, `from_dict`, `content_digest`.

    Decoding checks types and raises `TaskError` that names the field. Unknown fields are ignored, so
    that newer records can be read by older code.
    """

    def __post_init__(self) -> None:
        """Write omitted defaults into the instance: a decoder leaves them to the class, an encoder then drops them.

        Without this a row that omits a default field and its equal that spells it out would differ in digest.
        """
        held = vars(self)
        if is_dataclass(self) and len(held) < len(self.__dataclass_fields__):
            for name in self.__dataclass_fields__:
                if name not in held:
                    object.__setattr__(self, name, getattr(self, name))

    def to_json(self) -> str:
        return msgspec.json.encode(self).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Self:
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.ValidationError as error:
            raise TaskError(f"{cls.__name__}: {error}") from error
        except msgspec.DecodeError as error:
            raise TaskError(f"{cls.__name__}: not JSON: {error}") from error

    def to_dict(self) -> dict[str, Any]:
        value: dict[str, Any] = msgspec.to_builtins(self)
        return value

    @classmethod
    def from_dict(cls, value: dict[str, Any]) -> Self:
        try:
            return msgspec.convert(value, type=cls)
        except msgspec.ValidationError as error:
            raise TaskError(f"{cls.__name__}: {error}") from error

    def content_digest(self) -> str:
        """Digest of all fields; equal records have equal digests."""
        return digest_of(self)
