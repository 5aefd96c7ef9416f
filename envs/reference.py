"""What the gold patch showed under one suite: the yardstick of every other verdict. Part of the calibration.

Gold is run once on the rewritten suite (ids, beacons, times), once as sabotaged twin (which ids respond), and once
with the comparison probe (which alarms are the suite's own). Without a gold patch there is none, and said so.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .protocols import IdMap
from .record import Record
from .run import Status


@dataclass(frozen=True, kw_only=True)
class Reference(Record):
    """statuses: executed id -> status under gold. mapped: expected id -> executed ids. excluded: expected id -> why
    it is left out. keys: executed id -> beacon keys its tail asked, in gold's run. responsive: executed ids whose gold
    twin failed when told to. alarms: probe alarms that gold raises itself. replaced: what gold's run itself replaces of
    what asserts rest on; changed: trusted files that it changes. seconds: gold's run of the command.
    """

    statuses: Mapping[str, Status] = field(default_factory=dict)
    mapped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    excluded: Mapping[str, str] = field(default_factory=dict)
    keys: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    responsive: tuple[str, ...] = ()
    unresponsive: tuple[str, ...] = ()
    alarms: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    seconds: float = 0.0
    twin_seconds: float = 0.0
    resolved: bool = False
    finished: bool = False
    log: str = ""

    @property
    def ids(self) -> IdMap:
        return IdMap(mapped=self.mapped, unmapped=self.excluded)
