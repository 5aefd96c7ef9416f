"""Part of the agent: setup, the loop, and what makes the process hard to reach."""

import fcntl
import os
import resource
import sys

from .files import do_read, do_write
from .frames import receive, send
from .ready import Ready, start_ready
from .run import do_exec
from .tree import STATE, prctl, set_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from typing import Any


def do_setup(op: "dict[str, Any]") -> "dict[str, Any]":
    """Fix workdir, scratch, environment and rlimits. Happens once, before anything untrusted runs."""
    for name in ("workdir", "scratch"):
        os.makedirs(op[name], exist_ok=True)
        STATE[name] = os.path.realpath(op[name])
    STATE["rlimits"] = op["rlimits"]
    env = dict(os.environ) if op["inherit"] else {}
    env.update(op["env"])
    path = env.setdefault("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
    if not any(os.access(os.path.join(folder, "python"), os.X_OK) for folder in path.split(":") if folder):
        link = os.path.join(STATE["scratch"], "bin")
        os.makedirs(link, exist_ok=True)
        os.symlink(sys.executable, os.path.join(link, "python"))
        env["PATH"] = path + ":" + link
    STATE["env"] = env
    if op.get("ready"):
        start_ready()
    return {name: STATE[name] for name in ("workdir", "scratch")}


def serve() -> "None":
    handlers = {"exec": do_exec, "write": do_write, "read": do_read, "setup": do_setup}
    while True:
        results = []
        for op in receive()["ops"]:
            try:
                result = handlers[op["op"]](op)
            except Exception as error:
                number, name = (
                    getattr(error, "errno", None) or 0,
                    getattr(error, "filename", None) or op["op"],
                )
                result = {"error": [number, str(name), "%s: %s" % (type(error).__name__, error)]}
            results.append(result)
            if "error" in result or (op.get("check") and result["exit_code"] != 0):
                break
        send({"results": results})


HOSTS = "127.0.0.1\tlocalhost\n::1\tlocalhost ip6-localhost ip6-loopback\n127.0.0.1\tsandbox\n"


def name_localhost() -> "None":
    """An engine without a network leaves /etc/hosts empty; tests that serve on localhost need the name."""
    try:
        if os.path.getsize("/etc/hosts") == 0:
            with open("/etc/hosts", "w") as hosts:
                hosts.write(HOSTS)
    except OSError:
        return  # no such file, or not ours to write: the name stays unknown, as the sandbox was made


def main() -> "None":
    protected = prctl(4, 0)  # PR_SET_DUMPABLE: closes /proc/<pid>/fd and ptrace
    prctl(36, 1)  # PR_SET_CHILD_SUBREAPER
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    STATE["in"] = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 100)
    STATE["out"] = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 100)
    null = os.open("/dev/null", os.O_RDWR)
    STATE["wake"], STATE["poke"] = os.pipe()
    os.set_blocking(STATE["wake"], False)
    os.set_blocking(STATE["poke"], False)
    set_signals(signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda number, frame: None)
    signal.set_wakeup_fd(STATE["poke"])
    os.umask(0o022)
    name_localhost()
    send({"hello": {"pid": os.getpid(), "python": list(sys.version_info[:3]), "protected": protected}})
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    serve()


script: "Any" = None
if __name__ == "__main__":
    try:
        main()
    except Ready as ready:  # only in the interpreter that waited: BOOT runs it
        script, scope = ready.args
