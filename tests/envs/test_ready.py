"""The interpreter that waits (`envs/agent/ready.py`): the same run as a start of Python, and nothing of the agent's in it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from acidtest.envs.protocols import Channel, Exec, ExecResult, Limits, SandboxBackend, SandboxSpec, Write
from acidtest.envs.sandboxes import open_backend

FACTS = """import atexit, json, os, resource, signal, site, sys, threading, time
signals = {n: str(signal.getsignal(n)) for n in range(1, 32) if n not in (9, 19)}
place = sys.stdin.seek(0)
facts = {
    "main": [__name__, __file__, sys.argv, sys.orig_argv, sys.path, sys.modules["__main__"].__dict__ is globals()],
    "names": sorted(k for k in globals() if k.startswith("__")) + [type(__loader__).__name__, __cached__, __spec__],
    "site": [site.getusersitepackages(), site.ENABLE_USER_SITE],
    "stdin": [place, sys.stdin is sys.__stdin__, sys.stdin.name, sys.stdin.mode, sys.stdin.encoding, sys.stdin.newlines],
    "flags": str(sys.flags),
    "signals": signals,
    "env": {k: v for k, v in os.environ.items() if k != "ACIDTEST_FD"},
    "cwd": os.getcwd(),
    "streams": [sys.stdout.encoding, sys.stdout.errors, sys.stdin.errors, sys.stdin.read()],
    "limits": [resource.getrlimit(name) for name in (resource.RLIMIT_AS, resource.RLIMIT_NPROC, resource.RLIMIT_CORE)],
    "hash": hash("the hash seed"),
    "prefix": [sys.prefix, sys.base_prefix],
    "oom": open("/proc/self/oom_score_adj").read(),
    "session": os.getsid(0) == os.getpid(),
}
print(json.dumps(facts))
atexit.register(print, "at exit")
threading.Thread(target=lambda: (time.sleep(0.05), print("thread"))).start()
sys.exit(3)
"""


@pytest.fixture(params=["local", pytest.param("docker", marks=pytest.mark.docker)])
def backend(request: pytest.FixtureRequest) -> Iterator[SandboxBackend]:
    if request.param == "docker":
        request.getfixturevalue("engine")
    opened = open_backend(request.param)
    yield opened
    opened.close()


def run(backend: SandboxBackend, text: str, *before: Exec, ready: bool = True, **more: object) -> ExecResult:
    """The script as the suite's command, after other commands, in a fresh sandbox."""
    spec = SandboxSpec(image=None, workdir="/testbed", files={}, limits=Limits())
    with backend.open(spec) as sandbox:
        path = f"{sandbox.scratch}/a.py"
        op = Exec(
            command=f"python {path} x",
            ready=(path, "x") if ready else (),
            channel=Channel(replies={"k": "raise"}),
            **more,  # type: ignore[arg-type]
        )
        result = sandbox.script([Write(files={path: text.encode()}), *before, op])[-1]
    assert isinstance(result, ExecResult)
    return result


def is_ready(backend: SandboxBackend, *before: Exec, **more: object) -> bool:
    """Whether the waiting interpreter served the run: it did not come to be by a start of its own."""
    seen = run(backend, "print(open('/proc/self/cmdline').read().split(chr(0)))", *before, **more)
    assert seen.exit_code == 0
    return b"a.py" not in seen.output


def test_a_script_sees_what_it_sees_after_a_start_of_python(backend: SandboxBackend) -> None:
    waited, started = run(backend, FACTS), run(backend, FACTS, ready=False)
    assert waited.exit_code == started.exit_code == 3
    one, two = (json.loads(result.output.splitlines()[0]) for result in (waited, started))
    assert one == two
    assert waited.output.splitlines()[1:] == started.output.splitlines()[1:] == [b"thread", b"at exit"]


def test_an_error_ends_it_as_it_ends_a_script(backend: SandboxBackend) -> None:
    for text in ("raise ValueError('no')", "def f(:\n", "raise SystemExit('no')", "import os; os.abort()"):
        waited, started = run(backend, text), run(backend, text, ready=False)
        assert waited.exit_code == started.exit_code, text
        assert waited.output.splitlines()[-1:] == started.output.splitlines()[-1:], text


def test_it_has_the_depth_of_a_script(backend: SandboxBackend) -> None:
    """Correct code that recurses as deep as a script can is not refused for the frames of the agent."""
    text = "def down(n):\n    try:\n        return down(n + 1)\n    except RecursionError:\n        return n\nprint(down(0))"
    waited, started = run(backend, text), run(backend, text, ready=False)
    assert 0 <= int(started.output) - int(waited.output) <= 2
    failing = "import sys\ndef no():\n    raise ValueError('no')\nno()"
    waited, started = run(backend, failing), run(backend, failing, ready=False)
    assert waited.output == started.output, "nor do its frames stand in a traceback"


def test_only_its_own_streams_are_open(backend: SandboxBackend) -> None:
    text = "import os\nprint(sorted(int(n) for n in os.listdir('/proc/self/fd')), os.environ['ACIDTEST_FD'])"
    shown = run(backend, text).output.decode()
    fds, channel = shown.strip().rsplit(" ", 1)
    assert len(json.loads(fds)) == 5, "three streams, the channel, and the folder being listed"
    assert int(channel) in json.loads(fds)


def test_it_was_there_before_the_agent_heard_of_the_run(backend: SandboxBackend) -> None:
    """What the supervisor will answer (which tests are told to fail) is nowhere in its memory."""
    text = """import gc, sys
needle = "ra" + "ise"
frames, seen = sys._getframe(), []
while frames:
    seen.append(frames.f_locals)
    frames = frames.f_back
found = [o for o in [*gc.get_objects(), *seen] if isinstance(o, dict) and any(
    isinstance(v, str) and v == needle and k == "k" for k, v in list(o.items()))]
print(len(found), len(seen))
"""
    shown = run(backend, text)
    assert shown.exit_code == 0
    assert shown.output.split()[0] == b"0"
    assert int(shown.output.split()[1]) > 1, "it does stand on the agent's frames, and they hold nothing"


def test_who_gets_it(backend: SandboxBackend) -> None:
    trusted = Exec(command=("git", "--version"), check=True)
    assert is_ready(backend)
    assert is_ready(backend, trusted)
    assert not is_ready(backend, Exec(command="true")), "not after a command that may be anybody's"
    assert not is_ready(backend, env={"PYTHONHASHSEED": "7"}), "nor where Python would start otherwise"
    assert not is_ready(backend, env={"LC_ALL": "C"})
    assert not is_ready(backend, env={"HOME": "/tmp"})
    assert not is_ready(backend, env={"BASH_ENV": "/tmp/x"})
    path = ":".join(["/nowhere", str(Path(sys.executable).parent), "/usr/bin", "/bin"])
    assert not is_ready(backend, env={"PATH": path}), "nor where `python` may be another one"
    assert is_ready(backend, env={"MY_OWN": "7"})


def test_it_serves_once(backend: SandboxBackend) -> None:
    text = b"print(open('/proc/self/cmdline').read().count(chr(0)))"
    spec = SandboxSpec(image=None, workdir="/testbed", files={}, limits=Limits())
    with backend.open(spec) as sandbox:
        path = f"{sandbox.scratch}/a.py"
        op = Exec(command=f"python {path}", ready=(path,))
        results = sandbox.script([Write(files={path: text}), op, op])[1:]
    counts = [int(result.output) for result in results if isinstance(result, ExecResult)]
    assert len(counts) == 2
    assert counts[0] > counts[1] == 2


def test_a_limit_ends_it(backend: SandboxBackend) -> None:
    stuck = run(backend, "import time\ntime.sleep(60)", timeout_s=0.5)
    assert (stuck.timed_out, stuck.exit_code) == (True, None)
    left = "import os, time\nif os.fork() == 0:\n    os.setsid()\n    time.sleep(60)\nprint('parent', flush=True)"
    assert run(backend, left).seconds < 10
