"""Another sandbox with faults injected on plan: `--sandbox faulty` runs any command under fire.

ACIDTEST_FAULT_PLAN names the plan file (`envs/faults.py` says what is in it); without one nothing ever fails.
ACIDTEST_FAULT_INNER names the sandbox underneath (default: what `open_backend` takes). On closing, the counts of
what fired are appended as one JSON line to the file that ACIDTEST_FAULT_LOG names.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from ..faults import FaultPlan, FaultyBackend
from ..protocols import SandboxBackend


def backend(
    *, inner: SandboxBackend | None = None, plan: FaultPlan | None = None, **options: Any
) -> FaultyBackend:
    """inner and plan instead of the variables; other options go to the sandbox underneath."""
    from . import open_backend

    path = os.environ.get("ACIDTEST_FAULT_PLAN")
    chosen = plan or (FaultPlan.from_file(path) if path else FaultPlan())
    name = os.environ.get("ACIDTEST_FAULT_INNER")
    return _Logged(inner or open_backend(name, **options), chosen)


class _Logged(FaultyBackend):
    def close(self) -> None:
        super().close()
        path = os.environ.get("ACIDTEST_FAULT_LOG")
        if path and any(self.fired.values()):
            with Path(path).open("a") as file:
                file.write(json.dumps(self.fired) + "\n")
