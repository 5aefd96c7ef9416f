"""The id `acidtest-verifiers` for Prime Intellect's `verifiers`, whose loader resolves top-level modules only."""

from acidtest.training_hooks.prime_verifiers import AcidTaskset, OneReplyHarness

__all__ = ["AcidTaskset", "OneReplyHarness"]
