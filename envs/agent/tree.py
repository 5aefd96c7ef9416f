"""Part of the agent: starting processes, reaping them, and killing whole trees."""

import errno
import os
import resource
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any, NoReturn
else:
    import _signal as signal  # what `signal` wraps: its enums cost every sandbox milliseconds

STATE: "dict[str, Any]" = {
    "workdir": "/",
    "scratch": "/tmp",
    "env": {},
    "rlimits": [],
    "in": 0,
    "out": 1,
    "wake": 0,
}
"""in, out: the host's frames. wake, poke: the ends of a pipe that becomes readable when a child ends. The rest comes with setup."""


def prctl(option: "int", value: "int") -> "bool":
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(option, value, 0, 0, 0) == 0)
    except (ImportError, OSError, AttributeError):
        return False


def reap() -> "dict[int, int]":
    """Collect every child that ended: pid -> wait status."""
    try:
        while os.read(STATE["wake"], 4096):
            pass
    except OSError:
        pass
    ended: dict[int, int] = {}
    while len(ended) < 1000:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return ended
        if pid == 0:
            return ended
        ended[pid] = status
    try:
        os.write(STATE["poke"], b"x")  # there may be more: come back after the deadline was looked at
    except OSError:
        pass
    return ended


def descendants() -> "list[int]":
    parent = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            try:
                with open("/proc/%s/stat" % name, "rb") as file:
                    fields = file.read().rpartition(b")")[2].split()
            except OSError:
                continue
            if fields[0] != b"Z":
                parent[int(name)] = int(fields[1])
    found: set[int] = set()
    new = {os.getpid()}
    while new:
        new = {pid for pid, ppid in parent.items() if ppid in new} - found
        found |= new
    return sorted(found)


def kill_tree(spared: "int" = 0) -> "dict[int, int]":
    """Kill everything but the agent (and one child) and collect it: pid -> wait status. Returns when nothing is left."""
    ended: dict[int, int] = {}
    while True:
        if os.getpid() == 1 and not spared:
            try:
                os.kill(-1, signal.SIGKILL)
            except ProcessLookupError:
                return ended
            ended.update(reap_all())
            continue
        pids = [pid for pid in descendants() if pid != spared]
        for pid in pids:
            try:
                os.kill(pid, signal.SIGKILL)
            except OSError:
                pass
        ended.update(reap())
        if not pids:
            return ended
        time.sleep(0.001)


def reap_all() -> "dict[int, int]":
    ended: dict[int, int] = {}
    while True:
        try:
            pid, status = os.waitpid(-1, 0)
            ended[pid] = status
        except ChildProcessError:
            return ended


def set_signals(action: "signal.Handlers") -> "None":
    for number in range(1, signal.NSIG):
        try:
            signal.signal(number, action)
        except (OSError, ValueError):
            continue


def settle(op: "dict[str, Any]", out: "int", stdin: "int", channel: "int") -> "None":
    """Make this fresh child what a command expects: streams, limits, folder; nothing of the agent's."""
    os.dup2(stdin, 0)
    os.dup2(out, 1)
    os.dup2(out, 2)
    if channel >= 0:
        os.set_inheritable(channel, True)
    prctl(38, 1)  # PR_SET_NO_NEW_PRIVS
    for name, value in STATE["rlimits"]:
        limit = getattr(resource, name)
        hard = resource.getrlimit(limit)[1]
        value = value if hard == resource.RLIM_INFINITY else min(value, hard)
        resource.setrlimit(limit, (value, value))
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write("500")
    except OSError:
        pass
    os.chdir(op.get("cwd") or STATE["workdir"])


def environment(op: "dict[str, Any]") -> "dict[str, str]":
    env = dict(STATE["env"])
    env.update(op.get("env") or {})
    return env


def execute(argv: "list[str]", env: "dict[str, str]") -> "NoReturn":
    """`os.execvpe` without the import it does: by then a module may be what an earlier command made of it, and this
    process still holds the agent's descriptors."""
    folders = [""] if "/" in argv[0] else (env.get("PATH") or os.defpath).split(":")
    absent: Exception | None = None
    refused: Exception | None = None
    for folder in folders:
        try:
            os.execve(os.path.join(folder, argv[0]), argv, env)
        except (FileNotFoundError, NotADirectoryError) as error:
            absent = error
        except OSError as error:
            refused = refused or error
    raise refused or absent or FileNotFoundError(errno.ENOENT, "no such command", argv[0])


def spawn(op: "dict[str, Any]", out: "int", stdin: "int", channel: "int") -> "int":
    env = environment(op)
    if channel >= 0:
        env["ACIDTEST_FD"] = str(channel)
    argv = op["argv"]
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        set_signals(signal.SIG_DFL)
        settle(op, out, stdin, channel)
        execute(argv, env)
    except BaseException as error:
        missing = isinstance(error, OSError) and error.errno == errno.ENOENT
        os.write(2, ("acidtest: cannot run %r: %s\n" % (argv[0], error)).encode("utf-8", "replace"))
        os._exit(127 if missing else 126)
