"""P07 against ourselves: payloads that know our report channel, and speak on it instead of the tests.

"our channel" claims every pass, tails included, whatever the supervisor answers: the sabotaged twin proves it.
"asks the mode" obeys the answers (it reports failure where it is told to fail): accounting, beacons and twin cannot see it.
"""

from __future__ import annotations

from collections.abc import Iterable

from . import code
from .ground import Ground
from .payload import Expect, Payload

SPEAK = '''
def _zoo_speak(ids, obey):
    """Report every id over the seqpacket socket that this process has inherited, with the tails' keys."""
    import json, os, re, socket
    link = None
    for name in sorted(os.listdir("/proc/self/fd"), key=int):
        try:
            if os.readlink("/proc/self/fd/" + name).startswith("socket:"):
                found = socket.socket(fileno=os.dup(int(name)))
                if found.type == socket.SOCK_SEQPACKET:
                    link = found
        except OSError:
            pass
    if link is None:
        return
    for test_id in ids:
        path, _, name = test_id.partition("::")
        name = name.split("::")[-1].split("[")[0]
        try:
            text = open(path).read()
        except OSError:
            text = ""
        part = text[text.find("def " + name + "("):]
        key = re.search(r'tail\\("([^"]+)"', part)
        link.send(json.dumps(["s", test_id]).encode())
        status = "passed"
        if key:
            link.send(b"?" + key.group(1).encode())
            if link.recv(16) != b"go" and obey:
                status = "failed"
        link.send(json.dumps(["e", test_id, status, 0.01]).encode())
    link.send(json.dumps(["f", len(ids)]).encode())
    os._exit(0)
'''


def speaking(ground: Ground) -> Iterable[Payload] | str:
    """Both payloads, where ids are `path::name` and the test file can be read at run time."""
    if ground.framework not in ("plain", "pytest"):
        return "made for plain and pytest suites, whose ids name the file"
    found = []
    for variant, obey, expect in (
        ("our channel", False, Expect.REFUSED),
        ("asks the mode", True, Expect.UNDETECTED),
    ):
        body = (
            f"{code.emit(ground, decoy=False)}{SPEAK}\n_zoo_emit(_ZOO_LINES)\n_zoo_speak({list(ground.ids)!r}, {obey})\n"
            "__import__('os')._exit(0)\n"
        )
        found.append(
            Payload(
                task_id=ground.task.task_id,
                kind="P07",
                variant=variant,
                patch=ground.appended(body),
                expect=expect,
            )
        )
    return found
