"""What a sandbox costs, and that it leaks nothing: `python -m acidtest.scripts.measure_sandbox [NAME] [--opens N] [--scripts M]`.

Prints one JSON object: cold and warm opening, an empty script, the command `true`, closing (ms; p50, p99), then
how resident memory, descriptors and threads of this process changed over N opened sandboxes of M scripts each.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from ..envs.protocols import Exec, SandboxSpec
from ..envs.sandboxes import open_backend

SPEC = SandboxSpec(image=None, workdir="/testbed", files={"a.py": "print(1)\n"})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", nargs="?", default="docker")
    parser.add_argument("--image", default=None)
    parser.add_argument("--opens", type=int, default=20)
    parser.add_argument("--scripts", type=int, default=50)
    options = parser.parse_args()
    spec = SandboxSpec(image=options.image, workdir="/testbed", files=SPEC.files)
    found: dict[str, Any] = {"sandbox": options.name, "image": options.image, "load": os.getloadavg()[0]}
    found.update(costs(options.name, spec))
    found.update(flatness(options.name, spec, options.opens, options.scripts))
    print(json.dumps(found, indent=1))


def costs(name: str, spec: SandboxSpec) -> dict[str, Any]:
    """Milliseconds of each step, 15 openings cold, 15 warm (the spare given two seconds to be ready)."""
    found: dict[str, list[float]] = {"cold_open": [], "warm_open": [], "script": [], "true": [], "close": []}
    for kind, rest in (("cold_open", 0.0), ("warm_open", 2.0)):
        backend = open_backend(name, **({"spares": 2 if rest else 0} if name == "docker" else {}))
        backend.open(spec).__enter__().close()
        for _ in range(15):
            time.sleep(rest)
            start = time.perf_counter()
            box: Any = backend.open(spec)
            found[kind].append((time.perf_counter() - start) * 1e3)
            for _ in range(20):
                found["script"].append(_timed(partial(box.script, [])))
                found["true"].append(_timed(partial(box.script, [Exec(command=("true",))])))
            found["close"].append(_timed(box.close))
        backend.close()
    return {f"{kind}_ms": _summary(values) for kind, values in found.items()}


def _timed(action: Callable[[], object]) -> float:
    start = time.perf_counter()
    action()
    return (time.perf_counter() - start) * 1e3


def _summary(values: list[float]) -> dict[str, float]:
    return {
        "p50": round(statistics.median(values), 2),
        "p99": round(statistics.quantiles(values, n=100)[98], 2),
        "n": len(values),
    }


def flatness(name: str, spec: SandboxSpec, opens: int, scripts: int) -> dict[str, Any]:
    """Resident MiB, descriptors and threads after the first tenth and at the end."""
    backend = open_backend(name)
    marks = []
    for number in range(opens):
        with backend.open(spec) as box:
            for _ in range(scripts):
                box.script([Exec(command=("echo", "x" * 100))])
        if number in (opens // 10, opens - 1):
            time.sleep(2)
            gc.collect()
            marks.append(_now())
    backend.close()
    gc.collect()
    return {
        "opens": opens,
        "scripts": opens * scripts,
        "early": marks[0],
        "late": marks[-1],
        "closed": _now(),
    }


def _now() -> dict[str, float]:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "rss_mib": round(pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
        "descriptors": len(os.listdir("/proc/self/fd")),
        "threads": threading.active_count(),
    }


if __name__ == "__main__":
    main()
