"""Part of the agent: an interpreter that waits, so that a run needs no start of Python.

It is forked in the setup, before the agent has heard anything about a task, and serves one run: the one op that names
a script for it, in the environment it was started in. Every other op starts its command as usual.
Not covered: commands of several words of shell, other interpreters, suites that set variables which Python reads.
"""

import os
import struct
import sys

from .frames import dumps, loads
from .tree import STATE, environment, prctl, set_signals, settle

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    import socket
    from typing import Any
else:
    import _signal as signal
    import _socket as socket

START = dict(os.environ)
READ_AT_START = ("PYTHON", "LC_", "LD_", "LANG", "TZ", "MALLOC_", "GLIBC_")
"""Beginnings of the variables that Python and what is below it read when they start."""
READY: "dict[str, Any]" = {}
"""pid, sock: of the waiting interpreter; empty where there is none."""


def same_start(env: "dict[str, str]") -> "bool":
    """Whether an interpreter started in `env` would start as this one did."""
    names = [name for name in set(env) | set(START) if name.startswith(READ_AT_START)]
    return all(env.get(name) == START.get(name) for name in names)


def is_ours(path: "str") -> "bool":
    """Whether `python` of a search path is this very interpreter, in the same folder or by a link of ours."""
    for folder in path.split(":"):
        found = os.path.join(folder, "python")
        if folder and os.access(found, os.X_OK):
            if folder == os.path.dirname(sys.executable):
                return os.path.realpath(found) == os.path.realpath(sys.executable)
            return (
                os.path.islink(found)
                and os.readlink(found) == sys.executable
                and sys.prefix == sys.base_prefix
            )
    return False


def start_ready() -> "None":
    """Fork the interpreter that waits, unless this one was started isolated or `python` is another one."""
    if sys.flags.isolated or sys.flags.no_site or not is_ours(STATE["env"]["PATH"]):
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            wait_for_run(theirs)
        except Exception:
            os._exit(126)
    theirs.close()
    READY.update(pid=pid, sock=ours)


def wait_for_run(sock: "socket.socket") -> "None":
    """In the fork: let go of all that is the agent's, wait, run. Ends in SystemExit, as a script would."""
    signal.set_wakeup_fd(-1)
    set_signals(signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # as Python's own start does
        signal.signal(number, signal.SIG_IGN)
    os.setsid()
    prctl(4, 1)  # PR_SET_DUMPABLE
    null = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(null, fd)
    os.closerange(3, sock.fileno())
    os.closerange(sock.fileno() + 1, 1024)
    data, ancillary, _, _ = sock.recvmsg(1 << 20, socket.CMSG_SPACE(12))
    sock.close()
    if not data:
        os._exit(0)
    op = loads(data.decode())
    fds = [fd for _, _, raw in ancillary for fd in struct.unpack("%di" % (len(raw) // 4), raw)]
    channel = fds[2] if len(fds) > 2 else -1
    settle(op, fds[1], fds[0], channel)
    os.close(fds[0])
    os.close(fds[1])
    os.environ.clear()
    os.environ.update(op["env"])
    if channel >= 0:
        os.environ["ACIDTEST_FD"] = str(channel)
    run_script(op["ready"])


def run_script(argv: "list[str]") -> "None":
    """What `python SCRIPT ARGUMENT...` does after its start."""
    sys.argv[:] = argv
    sys.path.insert(0, os.path.dirname(argv[0]))
    main = type(sys)("__main__")
    main.__dict__.update(__file__=argv[0], __builtins__=__builtins__)
    sys.modules["__main__"] = main
    try:
        with open(argv[0], "rb") as file:
            code = compile(file.read(), argv[0], "exec", dont_inherit=True)
        exec(code, main.__dict__)
    except Exception:
        sys.excepthook(*sys.exc_info())
        raise SystemExit(1) from None
    raise SystemExit(0)


def hand_over(op: "dict[str, Any]", out: "int", stdin: "int", channel: "int") -> "int":
    """Give an op to the waiting interpreter: its pid, or 0 where the op needs a start of its own."""
    env = environment(op)
    if not op.get("ready") or not READY or not same_start(env):
        return 0
    pid, sock = READY["pid"], READY["sock"]
    request = {"ready": op["ready"], "env": env, "cwd": op.get("cwd")}
    fds = [stdin, out] + ([channel] if channel >= 0 else [])
    packed = struct.pack("%di" % len(fds), *fds)
    try:
        sock.sendmsg([dumps(request).encode()], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, packed)])
    except OSError:
        return 0
    finally:
        forget_ready()
    return int(pid)


def forget_ready() -> "None":
    """It serves one run, and none after a command that might have touched it."""
    if READY:
        READY["sock"].close()
        READY.clear()
