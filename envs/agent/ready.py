"""Part of the agent: an interpreter that waits, so that a run needs no start of Python.

It is forked in the setup, before the agent has heard anything about a task, and serves one run: the one op that names
a script for it, in the environment it was started in. Every other op starts its command as usual.
The script sees what `bash -c "python SCRIPT"` would show it, but for one frame below its own, /proc/self/cmdline and
the modules that the agent imports.
Not covered: commands of several words of shell, other interpreters, suites that set variables which Python reads.
"""

import os
import struct
import sys
from _frozen_importlib_external import SourceFileLoader

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
READ_AT_START = ("PYTHON", "LC_", "LD_", "LANG", "TZ", "MALLOC_", "GLIBC_", "HOME", "BASH")
"""Beginnings of the variables that Python, what is below it, and the shell that would start it read at their start."""
READY: "dict[str, Any]" = {}
"""pid, sock: of the waiting interpreter; empty where there is none."""


class Ready(BaseException):
    """In the fork: script (code) and scope of its `__main__`. It unwinds the agent's frames: the script needs its own."""


def same_start(env: "dict[str, str]") -> "bool":
    """Whether an interpreter started in `env` would start as this one did, and be the `python` of its search path."""
    names = [name for name in set(env) | set(START) if name.startswith(READ_AT_START)]
    return env.get("PATH") == STATE["env"]["PATH"] and all(env.get(name) == START.get(name) for name in names)


def our_python(path: "str") -> "str":
    """The `python` of a search path where it is this very interpreter, in the same folder or by a link of ours, else ""."""
    for folder in path.split(":"):
        found = os.path.join(folder, "python")
        if folder and os.access(found, os.X_OK):
            if folder == os.path.dirname(sys.executable):
                same = os.path.realpath(found) == os.path.realpath(sys.executable)
            else:
                same = os.path.islink(found) and os.readlink(found) == sys.executable
                same = same and sys.prefix == sys.base_prefix
            return found if same else ""
    return ""


def start_ready() -> "None":
    """Fork the interpreter that waits, unless this one was started isolated or `python` is another one."""
    python = our_python(STATE["env"]["PATH"])
    if sys.flags.isolated or sys.flags.no_site or not python:
        return
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.fork()
    if pid == 0:
        try:
            ours.close()
            wait_for_run(theirs, python)
        except Exception:
            os._exit(126)
    theirs.close()
    READY.update(pid=pid, sock=ours)


def wait_for_run(sock: "socket.socket", python: "str") -> "None":
    """In the fork: let go of all that is the agent's, wait, and raise Ready."""
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
    os.environ.update({"PWD": os.getcwd(), "SHLVL": op["env"].get("SHLVL", "0"), "_": python})  # as bash does
    if channel >= 0:
        os.environ["ACIDTEST_FD"] = str(channel)
    renew_stdin()
    raise_script(op["ready"])


def renew_stdin() -> "None":
    """What Python's start makes of descriptor 0: the agent's object remembers that its own could not seek."""
    buffer = open(0, "rb", closefd=False)  # noqa: SIM115
    buffer.raw.name = "<stdin>"  # type: ignore[attr-defined]
    wrapper: Any = type(sys.stdin)
    text = wrapper(buffer, sys.stdin.encoding, sys.stdin.errors, newline="\n")
    text.mode = "r"
    sys.stdin = sys.__stdin__ = text  # type: ignore[misc]


def raise_script(argv: "list[str]") -> "None":
    """What `python SCRIPT ARGUMENT...` does after its start, up to running the script (see BOOT)."""
    sys.argv[:] = argv
    if hasattr(sys, "orig_argv"):
        sys.orig_argv[:] = ["python"] + argv
    sys.path.insert(0, os.path.dirname(argv[0]))
    main = type(sys)("__main__")
    main.__dict__.update(
        __annotations__={},
        __builtins__=__builtins__,
        __cached__=None,
        __file__=argv[0],
        __loader__=SourceFileLoader("__main__", argv[0]),
    )
    sys.modules["__main__"] = main
    try:
        with open(argv[0], "rb") as file:
            code = compile(file.read(), argv[0], "exec", dont_inherit=True)
    except Exception:
        sys.excepthook(*sys.exc_info())
        raise SystemExit(1) from None
    raise Ready(code, main.__dict__)


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
