"""The resident process inside every sandbox: one per sandbox, started as ``python3 -I -S -c BOOT`` (its source
arrives as the first bytes of standard input).

It speaks frames (4 bytes of length, big-endian, then JSON) on its standard input and output and does
exec, write and read for the host. Only the standard library, Python 3.6 or newer, Linux.

Where it can it is PID 1 of the sandbox's PID namespace (docker; bubblewrap): no signal from inside kills or
stops it, orphans come to it to be reaped, and ``kill(-1)`` ends everything else in one atomic step. In a plain
process it is a child subreaper and kills its descendants by scanning /proc.

Submissions run as its children under the same user, so it keeps its own channel out of reach: descriptors 0, 1
and 2 are moved to close-on-exec ones before anything runs, and it is not dumpable, which closes
/proc/<agent>/{fd,mem,environ} and ptrace to everyone without CAP_SYS_PTRACE. Its death ends the sandbox.

Not covered: in a plain process (no PID namespace) a submission can kill it; the host then reports the sandbox dead.
The other files of this folder are that source, sent as one text in the order of PARTS: no syntax newer than 3.6,
annotations in quotes, imports only from the standard library and from each other.
"""

from __future__ import annotations

import marshal
from functools import cache
from pathlib import Path

PARTS = ("tree", "frames", "ready", "run", "files", "main")

_BOOT = """\
import sys
if not sys.path[0]:
    del sys.path[0]
import os
left, parts = int(sys.argv[1]), []
while left:
    parts.append(os.read(0, left))
    left -= len(parts[-1])
    if not parts[-1]:
        sys.exit(0)
exec(%s)
try:
    exec(script, scope)
except Exception as error:
    error.__traceback__ = error.__traceback__.tb_next
    sys.excepthook(type(error), error, error.__traceback__)
    sys.exit(1)
"""
_TEXT = 'compile(b"".join(parts), "acidtest-agent", "exec")'
_CODE = '__import__("marshal").loads(b"".join(parts))'


@cache
def source() -> bytes:
    """The agent's program: its parts without the imports from each other."""
    lines = [
        line
        for part in PARTS
        for line in (Path(__file__).parent / f"{part}.py").read_bytes().splitlines(keepends=True)
        if not line.startswith(b"from .")
    ]
    return b"".join(lines)


@cache
def compiled() -> bytes:
    """The same for this very interpreter, without the time that compiling takes."""
    return marshal.dumps(compile(source(), "acidtest-agent", "exec"))


def argv(python: str, *, code: bool = False, isolated: bool = True) -> list[str]:
    """Its command line. `source()` follows on standard input (code: `compiled()`), which keeps `ps` readable.

    isolated: whatever the image's environment and packages hold cannot disturb it. Without, it is an interpreter as a
    test command would start it, and can fork one that waits (`ready`): only where environment and image are ours.
    """
    program = compiled() if code else source()
    return [
        python,
        *(["-I", "-S"] if isolated else []),
        "-c",
        _BOOT % (_CODE if code else _TEXT),
        str(len(program)),
    ]
