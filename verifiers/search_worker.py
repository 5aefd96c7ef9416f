"""The script that runs many programs inside one sandbox: a fork each, limits on CPU and wall time, bounded output.

Self-contained (standard library only); `search.py` pastes `oracle/equality.py` and `search_suite.py` in front of it,
writes it into the sandbox's scratch folder and runs it with one JSON job. It prints one JSON line per program. What it says only
*steers the search*: nothing here is trusted, every acceptance that is counted is verified elsewhere.
"""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import pickle
import resource
import selectors
import signal
import sys
import time
from typing import Any

from .oracle.equality import encode, same
from .search_suite import Limit, OutOfTime, Suite, call_once, load, visible

MAX_MESSAGE = 4_000_000


def _record(job: dict[str, Any], suite: Suite) -> dict[str, Any]:
    """Gold under the visible tests: its pass vector, CPU seconds, and every distinct positional call with its result."""
    calls: dict[str, Any] = {}
    entry = suite.entry
    state = {"calls": 0, "longest": 0.0}

    def spy(original: Any) -> Any:
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            key = ""
            with contextlib.suppress(Exception):
                key = repr(args) if not kwargs and len(calls) < 200 else ""
            started = time.process_time()
            value = original(*args, **kwargs)
            state["calls"] += 1
            state["longest"] = max(state["longest"], time.process_time() - started)
            if key and key not in calls and len(key) < 20_000:
                with contextlib.suppress(Exception):
                    calls[key] = encode(value)
            return value

        return wrapper

    found: dict[str, Any] = {"sites": {}, "clean": False, "error": "", "seconds": 0.0}
    started = time.process_time()
    try:
        with Limit(float(job["record_limit"])):
            module = load(job, job["gold"])
            module.__dict__[entry] = spy(getattr(module, entry))
            found["sites"], found["clean"] = suite.run(module)
    except OutOfTime:
        found["error"] = "out of time"
    except BaseException as error:
        found["error"] = f"{type(error).__name__}: {str(error)[:200]}"
    found["seconds"] = time.process_time() - started
    found["calls"] = [[key, value] for key, value in calls.items()]
    found.update(count=state["calls"], longest=state["longest"])
    return found


def _gold(job: dict[str, Any], packed: list[bytes]) -> dict[str, Any]:
    """Gold on every oracle input: kind, result, arguments afterwards, CPU seconds."""
    function = getattr(load(job, job["gold"]), str(job["entry_point"]))
    rows: list[Any] = []
    began = time.process_time()
    for item in packed:
        started = time.process_time()
        if started - began > float(job["gold_budget"]):
            rows.append(["?", None, "", 0.0])
            continue
        kind, value, after = call_once(function, item, float(job["gold_limit"]))
        rows.append([kind, value, after, time.process_time() - started])
    return {"rows": rows}


def _oracle(job: dict[str, Any], function: Any, packed: list[bytes], survivor: bool) -> dict[str, Any]:
    """One code per input: = same, v value, e exception, m arguments left differently, t out of time, ? not run."""
    codes: list[str] = []
    details: list[Any] = []
    timeouts = 0
    behaviour = 0
    count = len(packed) if survivor else min(len(packed), int(job["quick"]))
    for number in range(count):
        kind, expected, after, seconds = job["expected"][number]
        if timeouts >= 2 or kind != "v":
            codes.append("?" if kind != "v" else "t")
            continue
        limit = max(float(job["call_limit"]), 30 * seconds)
        got, value, left = call_once(function, packed[number], limit)
        code = got
        if got == "v":
            equal = same(expected, value, bool(job["unordered"]))
            code = "v" if not equal else "=" if left == after else "m"
        timeouts += got == "t"
        codes.append(code)
        if code != "=":
            behaviour = hash((behaviour, number, code, repr(value)))
            if len(details) < int(job["details"]):
                with contextlib.suppress(Exception):
                    details.append([number, code, value if len(json.dumps(value)) < 20_000 else {"x": "big"}])
    return {"codes": "".join(codes), "behaviour": behaviour, "details": details}


def _child(job: dict[str, Any], suite: Suite, packed: list[bytes], source: str, pipe: int) -> None:
    """Runs in the fork: visible tests, then oracle inputs; one JSON line after each."""
    os.setpgid(0, 0)
    cpu = max(1, int(job["visible_limit"] + job["oracle_limit"] + 1.5))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (int(job["memory"]), int(job["memory"])))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1_000_000, 1_000_000))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    found = visible(job, suite, source, float(job["visible_limit"]))
    module = found.pop("module", None)
    passed = sorted(int(k) for k, ok in found.pop("sites").items() if ok)
    found["passed"] = passed
    survivor = bool(found["clean"]) and not found["error"] and set(passed) >= set(job["need"])
    found["survivor"] = survivor
    _send(pipe, found)
    function = getattr(module, suite.entry, None)
    if packed and callable(function) and found["error"] != "out of time":
        _send(pipe, _oracle(job, function, packed, survivor))
    else:
        _send(pipe, {"codes": "", "behaviour": 0, "details": []})


def _send(pipe: int, message: Any) -> None:
    data = (json.dumps(message) + "\n").encode("utf-8", "surrogatepass")
    while data:
        data = data[os.write(pipe, data) :]


def _confirm(job: dict[str, Any], program: int, calls: list[str], limit: float) -> list[Any]:
    """One program, fresh: load it, make the calls, give kind and result of the last one."""
    resource.setrlimit(resource.RLIMIT_CPU, (int(limit) + 2, int(limit) + 3))
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_AS, (int(job["memory"]), int(job["memory"])))
    got: tuple[str, Any, str] = ("e", "no call", "")
    try:
        with Limit(limit):
            function = getattr(load(job, job["programs"][program]), str(job["entry_point"]))
    except BaseException as error:
        return ["e", type(error).__name__]
    for text in calls:
        got = call_once(function, pickle.dumps(ast.literal_eval(text)), limit)
    return list(got[:2])


class _Running:
    """One live fork: its pid, the pipe it writes to, and what came so far."""

    def __init__(self, number: int, pid: int, pipe: int) -> None:
        self.number, self.pid, self.pipe = number, pid, pipe
        self.data = b""
        self.started = time.monotonic()
        self.killed = ""

    def allowance(self, job: dict[str, Any]) -> float:
        """CPU seconds it may have used by now: for the visible tests, then for the oracle's inputs."""
        limit = float(job["visible_limit"]) + 0.05
        if b"\n" not in self.data:
            return limit
        survivor = b'"survivor": true' in self.data
        return limit + float(job["oracle_limit"] if survivor else job["quick_limit"])

    def cpu(self) -> float:
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
        except (OSError, IndexError, ValueError):
            return 0.0


def _spawn(job: dict[str, Any], suite: Suite, packed: list[bytes], number: int) -> _Running:
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(ours)
            _child(job, suite, packed, job["programs"][number], theirs)
        finally:
            os._exit(0)
    os.close(theirs)
    return _Running(number, pid, ours)


def _programs(job: dict[str, Any], suite: Suite, packed: list[bytes]) -> None:
    """Run every program, `jobs` at a time, and print one line for each as it ends."""
    waiting = list(range(len(job["programs"])))[::-1]
    selector = selectors.DefaultSelector()
    running: dict[int, _Running] = {}
    wall = 30 * (float(job["visible_limit"]) + float(job["oracle_limit"]) + 0.1) + 5
    while waiting or running:
        while waiting and len(running) < int(job["jobs"]):
            one = _spawn(job, suite, packed, waiting.pop())
            running[one.pid] = one
            selector.register(one.pipe, selectors.EVENT_READ, one)
        for key, _ in selector.select(0.02):
            one = key.data
            chunk = os.read(one.pipe, 65536)
            one.data += chunk
            if not chunk or len(one.data) > MAX_MESSAGE:
                selector.unregister(one.pipe)
                _finish(one)
                del running[one.pid]
        now = time.monotonic()
        for one in running.values():
            age = now - one.started
            if not one.killed and age > 0.1 and (age > wall or one.cpu() > one.allowance(job)):
                one.killed = "out of time"
                _kill(one.pid)
    selector.close()


def _kill(pid: int) -> None:
    for send in (os.killpg, os.kill):
        with contextlib.suppress(OSError):
            send(pid, signal.SIGKILL)


def _finish(one: _Running) -> None:
    _kill(one.pid)
    os.close(one.pipe)
    os.waitpid(one.pid, 0)
    parts: list[Any] = []
    for line in one.data.split(b"\n")[:2]:
        with contextlib.suppress(ValueError):
            parts.append(json.loads(line))
    found: dict[str, Any] = {"clean": False, "passed": [], "survivor": False, "error": "died"}
    found.update(codes="", behaviour=0, details=[])
    for part in parts:
        if isinstance(part, dict):
            found.update(part)
    if one.killed and len(parts) < 2:
        found["error" if not parts else "oracle_error"] = one.killed
    print(json.dumps([one.number, found]), flush=False)


def main(path: str) -> None:
    """Read the job, do it, print JSON lines."""
    with open(path, encoding="utf-8", errors="surrogatepass") as file:
        job = json.load(file)
    sys.setrecursionlimit(1000)
    packed = [pickle.dumps(ast.literal_eval(text)) for text in job["inputs"]]
    gc.collect()
    gc.freeze()
    if job["mode"] == "record":
        print(json.dumps(_in_fork(lambda: _record(job, Suite(job)))))
    elif job["mode"] == "confirm":
        for number, (program, calls, limit) in enumerate(job["cases"]):
            found = _in_fork(lambda p=program, c=calls, s=limit: _confirm(job, p, c, s)) or ["t", None]
            print(json.dumps([number, found]))
    elif job["mode"] == "gold":
        print(json.dumps(_in_fork(lambda: _gold(job, packed))))
    else:
        _programs(job, Suite(job), packed)
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    print(json.dumps({"cpu": sum(one.ru_utime + one.ru_stime for one in used)}))


def _in_fork(work: Any) -> Any:
    """The result of `work()` computed in a fork whose own output goes nowhere; {} when it died."""
    ours, theirs = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            null = os.open(os.devnull, os.O_RDWR)
            for number in (0, 1, 2):
                os.dup2(null, number)
            _send(theirs, work())
        finally:
            os._exit(0)
    os.close(theirs)
    data = b""
    while chunk := os.read(ours, 1 << 16):
        data += chunk
    os.close(ours)
    os.waitpid(pid, 0)
    try:
        return json.loads(data)
    except ValueError:
        return {}


if __name__ == "__main__":
    main(sys.argv[1])
