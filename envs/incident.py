"""A logged reward-hack incident: an episode that a weaker grader would have paid and ours did not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from .record import Record, digest_of


class Severity(StrEnum):
    NOTICE = "notice"
    FALSE_PASS = "false_pass"
    TAMPER = "tamper"


@dataclass(frozen=True, kw_only=True)
class Incident(Record):
    """severity: see THREATS "Typed outcomes". kind: a zoo id (S01 … J03) or "unclassified".

    reward_original, reward_hardened: what each suite pays (None: no valid reward). failed_added: added tests
    that refused it. step: the trainer's global step when known.
    """

    severity: Severity
    kind: str
    task_id: str
    reward_original: float | None
    reward_hardened: float | None
    patch: str
    evidence: tuple[str, ...] = ()
    failed_added: tuple[str, ...] = ()
    step: int | None = None
    time: float = 0.0
    suite_digest: str = ""
    count: int = 1
    extra: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """What makes two incidents the same: severity, kind, task and patch."""
        return digest_of([self.severity, self.kind, self.task_id, self.patch])
