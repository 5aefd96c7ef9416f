"""`Score`: what a trainer gets for one submission."""

from __future__ import annotations

from dataclasses import dataclass

from ..envs.incident import Incident
from ..envs.verdict import Verdict


@dataclass(frozen=True, kw_only=True)
class Score:
    """reward: what to train on, after the incident policy; None when masked (no valid reward: leave it out).

    reward_original, reward_hardened: what the suite without and with the added tests pays (None: not decided).
    error: why there is no verdict ("" otherwise). form: how the submission was read (`envs/submission.py`).
    seconds: wall time from being asked for to the answer.
    """

    task_id: str
    reward: float | None
    patch: str = ""
    form: str = ""
    verdict: Verdict | None = None
    incident: Incident | None = None
    error: str = ""
    seconds: float = 0.0

    @property
    def masked(self) -> bool:
        return self.reward is None

    @property
    def outcome(self) -> str:
        return str(self.verdict.outcome) if self.verdict else "infrastructure"

    @property
    def reward_original(self) -> float | None:
        return self.verdict.original_reward if self.verdict else None

    @property
    def reward_hardened(self) -> float | None:
        return self.verdict.reward if self.verdict else None

    @property
    def severity(self) -> str:
        """Severity of the incident, "" for none."""
        return str(self.incident.severity) if self.incident else ""

    @property
    def kind(self) -> str:
        return self.incident.kind if self.incident else ""
