"""Read the messages of one run (`inside/acid_channel.py` writes them) into statuses, times, names and beacons.

Never read from printed text. What is no message of ours is ignored; of two statuses of one id the worse counts.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from .run import Status

PAYS_LESS = (
    Status.MISSING,
    Status.PASSED,
    Status.XPASS,
    Status.XFAIL,
    Status.SKIPPED,
    Status.ERROR,
    Status.FAILED,
)
MOST_S = 1e9


@dataclass(frozen=True, kw_only=True)
class Observed:
    """What the channel of one run carried.

    statuses, durations: by executed id. aliases: printed name (docstring line …) -> executed ids.
    keys: executed id -> the beacon keys asked while it ran, with counts. alarms: probe alarms as sent.
    replaced: names that acid_integrity found replaced.
    """

    statuses: Mapping[str, Status] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    keys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    alarms: tuple[Mapping[str, Any], ...] = ()
    replaced: tuple[str, ...] = ()
    finished: bool = False
    reporter: str = ""

    @property
    def beacons(self) -> dict[str, int]:
        return {ident: sum(counts.values()) for ident, counts in self.keys.items()}


def observe(messages: Iterable[bytes]) -> Observed:
    """Read all messages of one run, in order."""
    statuses: dict[str, Status] = {}
    durations: dict[str, float] = {}
    aliases: dict[str, list[str]] = {}
    keys: dict[str, dict[str, int]] = {}
    alarms: list[Mapping[str, Any]] = []
    replaced: list[str] = []
    finished, reporter, current = False, "", ""
    for message in messages:
        if message.startswith(b"?"):
            counts = keys.setdefault(current, {})
            key = message[1:].decode("utf-8", "replace")
            counts[key] = counts.get(key, 0) + 1
            continue
        match _fields(message):
            case ["s", str(ident)]:
                current = ident
            case ["e", str(ident), str(status), float() | int() as seconds] if status in set(Status):
                statuses[ident] = worse(statuses.get(ident, Status.MISSING), Status(status))
                durations[ident] = durations.get(ident, 0.0) + _seconds(seconds)
                current = ""
            case ["a", str(alias), str(ident)]:
                if ident not in aliases.setdefault(alias, []):
                    aliases[alias].append(ident)
            case ["p", dict(alarm)]:
                alarms.append(alarm)
            case ["i", str(name)]:
                replaced.append(name)
            case ["n", str(name), str(version)]:
                reporter = f"{name} {version}"
            case ["f", int()]:
                finished = True
    keys.pop("", None)
    return Observed(
        statuses=statuses,
        durations=durations,
        aliases={alias: tuple(ids) for alias, ids in aliases.items()},
        keys=keys,
        alarms=tuple(alarms),
        replaced=tuple(dict.fromkeys(replaced)),
        finished=finished,
        reporter=reporter,
    )


def worse(old: Status, new: Status) -> Status:
    """Of two statuses of one id the one that pays less."""
    return new if PAYS_LESS.index(new) > PAYS_LESS.index(old) else old


def _fields(message: bytes) -> list[Any]:
    """[] for what is no JSON list, or holds half a character, which no record could be written with."""
    try:
        text = message.decode("utf-8")
        value = json.loads(text)
        if "\\u" in text:
            json.dumps(value, ensure_ascii=False).encode("utf-8")
    except (ValueError, RecursionError):
        return []
    return value if isinstance(value, list) else []


def _seconds(value: float) -> float:
    """A time that sums and records can hold: no NaN, not below 0, and MOST_S for whatever is longer."""
    return float(min(value, MOST_S)) if value > 0 else 0.0
