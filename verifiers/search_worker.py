"""The script that runs many programs inside one sandbox: forks under limits on CPU and wall time, bounded output.

Self-contained (standard library only); `search_boot.py` pastes the other parts in front of it. It reads one job and prints
JSON lines. What it says only *steers the search*: nothing here is trusted, every acceptance that is counted is verified elsewhere.
"""

from __future__ import annotations

import gc
import marshal
import os
import resource
import sys
import time
from typing import Any

from .oracle.equality import encode
from .search_programs import bound, run_programs, send
from .search_suite import LOADED, Caller, Limit, OutOfTime, Suite, load


def _record(job: dict[str, Any], suite: Suite) -> dict[str, Any]:
    """Gold under the visible tests: its pass vector, CPU seconds, and every distinct positional call with its result."""
    calls: dict[str, Any] = {}
    entry = suite.entry
    state = {"calls": 0, "longest": 0.0}

    def spy(original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            key = _text(args) if not kwargs and len(calls) < 200 else ""
            started = time.process_time()
            value = original(*args, **kwargs)
            state["calls"] += 1
            state["longest"] = max(state["longest"], time.process_time() - started)
            if key and key not in calls and len(key) < 20_000:
                _keep(calls, key, value)
            return value

        return wrapper

    found: dict[str, Any] = {"sites": {}, "clean": False, "error": "", "seconds": 0.0}
    started = time.process_time()
    limit = float(job["record_limit"])
    try:
        with Limit(limit):
            module = load(job, job["gold"])
            module.__dict__[entry] = spy(getattr(module, entry))
            found["sites"], found["clean"] = suite.run(module, limit)
    except OutOfTime:
        found["error"] = "out of time"
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {str(error)[:200]}"
    found["seconds"] = time.process_time() - started
    found["calls"] = [[key, value] for key, value in calls.items()]
    found.update(count=state["calls"], longest=state["longest"], step=suite.longest)
    return found


def _text(args: Any) -> str:
    try:
        return repr(args)
    except Exception:
        return ""


def _keep(calls: dict[str, Any], key: str, value: Any) -> None:
    try:
        calls[key] = encode(value)
    except Exception:
        return


def _gold(job: dict[str, Any]) -> dict[str, Any]:
    """Gold on every oracle input: kind, result, arguments afterwards, CPU seconds."""
    caller = Caller(job)
    function = getattr(load(job, job["gold"]), str(job["entry_point"]))
    rows: list[Any] = []
    began = time.process_time()
    for item in job["packed"]:
        started = time.process_time()
        if started - began > float(job["gold_budget"]):
            rows.append(["?", None, "", 0.0])
            continue
        kind, value, after = caller.call(function, item, float(job["gold_limit"]))
        rows.append([kind, value, after, time.process_time() - started])
    return {"rows": rows}


def _confirm(
    job: dict[str, Any], caller: Caller, program: int, calls: list[bytes], limit: float
) -> list[Any]:
    """One program, fresh: load it, make the calls, give kind and result of the last one."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 2, int(limit) + 3))
    bound(resource.RLIMIT_AS, int(job["memory"]))
    got: tuple[str, Any, str] = ("e", "no call", "")
    try:
        with Limit(limit):
            function = getattr(load(job, job["programs"][program]), str(job["entry_point"]))
    except BaseException as error:
        return ["e", type(error).__name__]
    for packed in calls:
        got = caller.call(function, packed, limit)
    return list(got[:2])


def _load(name: str) -> None:
    try:
        __import__(name)
    except ImportError:
        return


def main(path: str) -> None:
    """Read the job, do it, print JSON lines."""
    with open(path, "rb") as file:
        job = marshal.load(file)
    sys.setrecursionlimit(1000)
    out = sys.stdout.buffer
    for name in job["imports"]:
        if name in LOADED.split():
            _load(name)
    gc.freeze()
    if job["mode"] == "record":
        out.write(_in_fork(lambda: _record(job, Suite(job))))
    elif job["mode"] == "confirm":
        caller = Caller(job)
        for number, (program, calls, limit) in enumerate(job["cases"]):
            found = _in_fork(lambda p=program, c=calls, s=limit: _confirm(job, caller, p, c, s))
            out.write(b"[%d, %s]\n" % (number, found.strip() or b'["t", null]'))
    elif job["mode"] == "gold":
        out.write(_in_fork(lambda: _gold(job)))
    else:
        run_programs(job, Suite(job), out)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    out.write(b'{"cpu": %.6f}\n' % sum(one.ru_utime + one.ru_stime for one in used))
    out.flush()


def _in_fork(work: Any) -> bytes:
    """The JSON line of `work()` computed in a fork whose own output goes nowhere; empty when it died."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            send(theirs, work())
        finally:
            os._exit(0)
    os.close(theirs)
    data = b""
    while chunk := os.read(ours, 1 << 16):
        data += chunk
    os.close(ours)
    os.waitpid(pid, 0)
    return data if data.count(b"\n") == 1 and data.endswith(b"\n") else b""
