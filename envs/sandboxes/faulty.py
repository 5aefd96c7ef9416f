"""Another sandbox with faults injected on plan: `--sandbox faulty` runs any command under fire.

ACIDTEST_FAULT_PLAN names the plan file (`envs/fault_plan.py` says what is in it); without one nothing ever fails.
ACIDTEST_FAULT_INNER names the sandbox underneath instead of the plan's. To the file that ACIDTEST_FAULT_LOG names
each fault is appended as a JSON line when it fires; a process that finds counts there goes on with other draws, and
with what is left of the plan's ceilings.
"""

from __future__ import annotations

import os
from typing import Any

from ..fault_plan import STARTED, FaultLog, FaultPlan
from ..faults import FaultyBackend
from ..protocols import SandboxBackend


def backend(
    *, inner: SandboxBackend | None = None, plan: FaultPlan | None = None, **options: Any
) -> FaultyBackend:
    """inner and plan instead of the variables; other options go to the sandbox underneath."""
    from . import open_backend

    path = os.environ.get("ACIDTEST_FAULT_PLAN")
    chosen = plan or (FaultPlan.from_file(path) if path else FaultPlan())
    name = os.environ.get("ACIDTEST_FAULT_INNER") or chosen.inner or None
    log = FaultLog(os.environ.get("ACIDTEST_FAULT_LOG") or None)
    left = chosen.after(log.counts())
    opened = FaultyBackend(inner or open_backend(name, **{**chosen.options, **options}), left, log=log)
    log.add(STARTED)
    return opened
