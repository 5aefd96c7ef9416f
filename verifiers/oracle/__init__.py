"""The oracle of function tasks: their domain, inputs in it, executed differences from gold, and proofs."""

from .prove import Examined, GoldDoubt, Oracle, prove

__all__ = ["Examined", "GoldDoubt", "Oracle", "prove"]
