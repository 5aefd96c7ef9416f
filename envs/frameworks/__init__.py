"""Test frameworks: one file each; the folder listing is the registry."""

from __future__ import annotations

from ..protocols import Framework
from ..registry import find


def framework_of(name: str) -> Framework:
    """The framework of that name, or of a dotted path. Raises UnknownName."""
    found: Framework = find(__name__, name).framework()
    return found
