"""Behaviour-preserving variants of gold, as the gates use them (made in `verifiers/mutation/variants.py`)."""

from __future__ import annotations

from ..verifiers.mutation.variants import variants_of

__all__ = ["variants_of"]
