"""The action and observation space of code tasks: bounded text of any Unicode (`gymnasium.spaces.Text` is alphanumeric)."""

from __future__ import annotations

from typing import Any

from gymnasium.spaces import Space

_SAMPLE_CHARS = "abcxyz019 \n\t+-@/=()[]{}'\"\\#é字𝄞\x0c"
_SAMPLE_MAX = 64


class TextSpace(Space[str]):
    """All strings of at most `max_length` characters (code points), whatever they contain.

    Vector environments batch it into a `Tuple` space (gymnasium's rule for custom spaces). With
    `AsyncVectorEnv` pass ``shared_memory=False``: shared memory can hold no text.
    `sample` draws short strings (at most 64 characters) with line breaks, diff marks and non-ASCII in them; they
    are almost never usable patches. Masks and probabilities are not supported.
    """

    def __init__(self, max_length: int = 200_000, *, seed: int | None = None) -> None:
        if max_length < 1:
            raise ValueError(f"max_length must be at least 1, not {max_length}")
        self.max_length = max_length
        super().__init__(shape=(), dtype=None, seed=seed)

    @property
    def is_np_flattenable(self) -> bool:
        return False

    def sample(self, mask: Any | None = None, probability: Any | None = None) -> str:
        if mask is not None or probability is not None:
            raise ValueError("TextSpace samples without mask or probability")
        size = int(self.np_random.integers(0, min(self.max_length, _SAMPLE_MAX) + 1))
        picks = self.np_random.integers(0, len(_SAMPLE_CHARS), size)
        return "".join(_SAMPLE_CHARS[int(i)] for i in picks)

    def contains(self, x: Any) -> bool:
        return isinstance(x, str) and len(x) <= self.max_length

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextSpace) and other.max_length == self.max_length

    def __hash__(self) -> int:
        return hash((TextSpace, self.max_length))

    def __repr__(self) -> str:
        return f"TextSpace({self.max_length})"


def clip(text: str, limit: int) -> str:
    """`text` with its middle cut out so that it has at most `limit` characters; says how much was cut."""
    if len(text) <= limit:
        return text
    note = f"\n[… {len(text) - limit} characters cut …]\n"
    if limit <= len(note):
        return text[:limit]
    keep = limit - len(note)
    head = keep * 2 // 3
    return text[:head] + note + text[len(text) - (keep - head) :]
