"""Part of the search worker: many programs through tests and oracle inputs, in forks under limits of CPU and wall time.

Pasted into the worker's script by `search_boot.py`, behind `search_suite.py`. Most mutants are *plain* (`is_plain`):
they can reach nothing but their own module, so a fork runs a batch of them one after the other. Everything else has a
fork of its own, and so has whatever follows a program that ran out of time, grew, or died.
Not covered: a program that hides from `is_plain` can mislead the search about the rest of its batch; a search only steers.
"""

from __future__ import annotations

import gc
import os
import resource
import select
import sys
import time
from typing import Any

from .oracle.equality import same
from .search_suite import MODULES, Caller, Limit, Suite, visible

MAX_MESSAGE = 4_000_000
BATCH = 32
GROWTH_KIB = 65_536
"""A batch ends when its fork's peak memory grew by this much."""
ALONE = b"alone\n"
NOT_PLAIN = (
    "setattr delattr vars globals locals exec eval compile open input breakpoint getattr help update_wrapper wraps "
    "attrgetter methodcaller get_type_hints ForwardRef Formatter dispatch_table"
)
DUNDERS = frozenset(("__name__", "__site__", "__Exception__"))


def _dumper() -> Any:
    """`json.dumps` without what importing `json` costs, where this Python's own encoder can be reached."""
    try:
        own: Any = __import__("_json")
        encoder = own.make_encoder(
            None, repr, own.encode_basestring_ascii, None, ": ", ", ", False, False, True
        )

        def quick(value: Any) -> str:
            return "".join(encoder(value, 0))

        if (
            quick({"a": [1, None, "\u00e9\n", 0.5, True, {}]})
            == '{"a": [1, null, "\\u00e9\\n", 0.5, true, {}]}'
        ):
            return quick
    except Exception:
        return __import__("json").dumps
    return __import__("json").dumps


dumps = _dumper()


def send(pipe: int, message: Any) -> None:
    """One JSON line into the pipe."""
    write(pipe, (dumps(message) + "\n").encode("ascii"))


def write(pipe: int, data: bytes) -> None:
    while data:
        data = data[os.write(pipe, data) :]


def bound(limit: int, most: int) -> None:
    """Set a resource limit for good, where the system lets us."""
    try:
        resource.setrlimit(limit, (most, most))
    except (ValueError, OSError):
        return


class Plain:
    """Tells plain programs: no stored or deleted attributes, no double underscores, no import but of loaded MODULES."""

    def __init__(self, module: str) -> None:
        opcode: Any = __import__("opcode")
        self.stores = {opcode.opmap["STORE_ATTR"], opcode.opmap["DELETE_ATTR"]}
        self.imports, self.wide = opcode.opmap["IMPORT_NAME"], opcode.opmap["EXTENDED_ARG"]
        self.names = frozenset(NOT_PLAIN.split())
        self.modules = {name for name in MODULES.split() if name in sys.modules}
        self.private = {key for name in self.modules for key in dir(sys.modules[name]) if key[:1] == "_"}
        self.modules.add(module)

    def holds(self, code: Any) -> bool:
        """Whether the compiled program is plain."""
        for name in code.co_names:
            hidden = name[:2] == "__" or name in self.private
            if name in self.names or (hidden and name not in DUNDERS):
                return False
        ops = code.co_code[::2]
        if self.stores & set(ops):
            return False
        for at, op in enumerate(ops) if self.imports in ops else ():
            if op == self.imports and (
                (at and ops[at - 1] == self.wide)
                or code.co_names[code.co_code[2 * at + 1]] not in self.modules
            ):
                return False
        return all(self.holds(const) for const in code.co_consts if isinstance(const, type(code)))


def _oracle(
    job: dict[str, Any], caller: Caller, function: Any, survivor: bool, plain: bool
) -> dict[str, Any]:
    """One code per input: = same, v value, e exception, m arguments left differently, t out of time, ? not run."""
    codes: list[str] = []
    details: list[Any] = []
    timeouts = 0
    behaviour = 0
    packed = job["packed"]
    unordered = bool(job["unordered"])
    count = len(packed) if survivor else min(len(packed), int(job["quick"]))
    for number in range(count):
        kind, expected, after, seconds = job["expected"][number]
        if timeouts >= 2 or kind != "v":
            codes.append("?" if kind != "v" else "t")
            continue
        limit = max(float(job["call_limit"]), 30 * seconds)
        got, value, left = caller.call(function, packed[number], limit, plain=plain)
        code = got
        if got == "v":
            equal = expected == value or same(expected, value, unordered)
            code = "v" if not equal else "=" if left == after else "m"
        timeouts += got == "t"
        codes.append(code)
        if code != "=":
            behaviour = hash((behaviour, number, code, repr(value)))
            if len(details) < int(job["details"]):
                try:
                    details.append([number, code, value if len(dumps(value)) < 20_000 else {"x": "big"}])
                except Exception:
                    continue
    return {"codes": "".join(codes), "behaviour": behaviour, "details": details}


def _one(job: dict[str, Any], suite: Suite, caller: Caller, source: Any, pipe: int, plain: bool) -> bool:
    """Visible tests, then oracle inputs; one JSON line after each. Whether it kept to its limits."""
    caller.fresh()
    cpu = max(1, int(time.process_time() + job["visible_limit"] + job["oracle_limit"] + 1.5))
    hard = resource.getrlimit(resource.RLIMIT_CPU)[1] if plain else cpu + 1
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, hard))
    found = visible(job, suite, source, float(job["visible_limit"]))
    module = found.pop("module", None)
    passed = sorted(int(k) for k, ok in found.pop("sites").items() if ok)
    found["passed"] = passed
    survivor = bool(found["clean"]) and not found["error"] and set(passed) >= set(job["need"])
    found["survivor"] = survivor
    send(pipe, found)
    function = getattr(module, suite.entry, None)
    ran: dict[str, Any] = {"codes": "", "behaviour": 0, "details": []}
    if job["packed"] and callable(function) and found["error"] != "out of time":
        ran = _oracle(job, caller, function, survivor, plain)
    ran["cpu"] = time.process_time()
    send(pipe, ran)
    return found["error"] != "out of time" and "t" not in ran["codes"]


def _batch(
    job: dict[str, Any], suite: Suite, caller: Caller, plain: Plain | None, numbers: list[int], pipe: int
) -> None:
    """Runs in the fork: the programs in order, as far as the fork stays as good as a fresh one."""
    os.setpgid(0, 0)
    bound(resource.RLIMIT_AS, int(job["memory"]))
    bound(resource.RLIMIT_FSIZE, 1_000_000)
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    first = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for at, number in enumerate(numbers):
        source: Any = job["programs"][number]
        alone = True
        if plain is not None:
            try:
                with Limit(float(job["visible_limit"])):
                    source = compile(source, "solution.py", "exec")
                    alone = not plain.holds(source)
            except BaseException:
                source = job["programs"][number]
        if alone and at:
            break
        if alone:
            write(pipe, ALONE)
        kept = _one(job, suite, caller, source, pipe, not alone)
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - first
        if alone or not kept or grown > GROWTH_KIB:
            break


class _Running:
    """One live fork: its programs, its pid, the pipe it writes to, and what came so far of the program it is at."""

    def __init__(self, numbers: list[int], pid: int, pipe: int) -> None:
        self.numbers, self.pid, self.pipe = numbers, pid, pipe
        self.data = b""
        self.later: list[int] = []
        self.at = 0
        self.base = 0.0
        self.started = time.monotonic()
        self.killed = ""

    def take(self, chunk: bytes) -> list[bytes]:
        """The output lines of the programs that this chunk completes."""
        self.data += chunk
        done = []
        if self.at == 0 and not self.later and self.data.startswith(ALONE):
            self.data = self.data[len(ALONE) :]
            self.numbers, self.later = self.numbers[:1], self.numbers[1:]
        while self.at < len(self.numbers) and self.data.count(b"\n") >= 2:
            one, two, self.data = self.data.split(b"\n", 2)
            done.append(b"[%d, %s, %s]\n" % (self.numbers[self.at], one, two))
            self.at += 1
            self.started = time.monotonic()
            self.base = _number_after(two, b'"cpu": ')
        return done

    def allowance(self, job: dict[str, Any]) -> float:
        """CPU seconds its program may have used by now: for the visible tests, then for the oracle's inputs."""
        limit = float(job["visible_limit"]) + 0.05
        if b"\n" not in self.data:
            return limit
        survivor = b'"survivor": true' in self.data
        return limit + float(job["oracle_limit"] if survivor else job["quick_limit"])

    def cpu(self) -> float:
        """CPU seconds that the fork used for the program it is at."""
        try:
            with open(f"/proc/{self.pid}/stat") as file:
                fields = file.read().rsplit(")", 1)[1].split()
            return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") - self.base
        except (OSError, IndexError, ValueError):
            return 0.0

    def rest(self) -> tuple[list[int], bytes]:
        """After its end: programs to run elsewhere, and the line of one that ended here without its two lines."""
        left = [*self.numbers[self.at :], *self.later]
        if (
            self.at
        ):  # it ended its batch itself, or it died of what came before, perhaps: once more, first in a fork
            return left, b""
        lines = self.data.split(b"\n")
        killed = dumps({("oracle_error" if len(lines) > 1 else "error"): self.killed or "died"}).encode()
        parts = [b"%d" % left[0], *lines[: len(lines) > 1], killed]
        return left[1:], b"[" + b", ".join(parts) + b"]\n"


def _number_after(line: bytes, key: bytes) -> float:
    try:
        return float(line.rpartition(key)[2].rstrip(b"}"))
    except ValueError:
        return 0.0


def run_programs(job: dict[str, Any], suite: Suite, out: Any) -> None:
    """Run every program, `jobs` forks at a time, and write one line for each as it ends."""
    caller = Caller(job)
    plain: Plain | None = Plain(suite.module)
    if not all(plain.holds(code) for _, code in suite.codes):  # type: ignore[union-attr]
        plain = None
    gc.collect()
    gc.freeze()
    waiting = list(range(len(job["programs"])))[::-1]
    jobs = int(job["jobs"])
    poll = select.poll()
    running: dict[int, _Running] = {}
    wall = 30 * (float(job["visible_limit"]) + float(job["oracle_limit"]) + 0.1) + 5
    while waiting or running:
        while waiting and len(running) < jobs:
            size = 1 if plain is None else max(1, min(BATCH, -(-len(waiting) // jobs)))
            numbers = waiting[: -size - 1 : -1]
            del waiting[-size:]
            ours, theirs = os.pipe()
            pid = os.fork()
            if pid == 0:
                try:
                    os.close(ours)
                    _batch(job, suite, caller, plain, numbers, theirs)
                finally:
                    os._exit(0)
            os.close(theirs)
            running[ours] = _Running(numbers, pid, ours)
            poll.register(ours, select.POLLIN)
        for pipe, _ in poll.poll(20):
            one = running[pipe]
            chunk = os.read(pipe, 65536)
            for line in one.take(chunk):
                out.write(line)
            if not chunk or one.at == len(one.numbers) or len(one.data) > MAX_MESSAGE:
                poll.unregister(pipe)
                del running[pipe]
                waiting += _finish(one, out)[::-1]
        now = time.monotonic()
        for one in running.values():
            age = now - one.started
            if not one.killed and age > 0.1 and (age > wall or one.cpu() > one.allowance(job)):
                one.killed = "out of time"
                _kill(one.pid)


def _kill(pid: int) -> None:
    for send_to in (os.killpg, os.kill):
        try:
            send_to(pid, 9)
        except OSError:
            continue


def _finish(one: _Running, out: Any) -> list[int]:
    _kill(one.pid)
    os.close(one.pipe)
    os.waitpid(one.pid, 0)
    left, line = one.rest()
    out.write(line)
    return left
