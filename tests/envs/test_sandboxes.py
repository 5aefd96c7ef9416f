"""Every file of `envs/sandboxes` keeps the contract of `envs/protocols.py`; the real ones hold untrusted code."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from typing import Any

import pytest

from acidtest.envs.errors import ConfigError, SandboxDied, SandboxError, UnknownName
from acidtest.envs.protocols import (
    Channel,
    Exec,
    ExecResult,
    Limits,
    Read,
    ReadResult,
    Sandbox,
    SandboxBackend,
    SandboxSpec,
    Write,
)
from acidtest.envs.registry import names
from acidtest.envs.sandboxes import open_backend
from acidtest.envs.sandboxes.local import bubblewrap_works

SPEC = SandboxSpec(image=None, workdir="/testbed", files={"a/b.txt": "hello\n"}, env={"GREETING": "hi"})
PLAIN = "local plain"
REAL = ["docker", "local", PLAIN]
ALL = [*names("acidtest.envs.sandboxes"), PLAIN]


def opened(name: str, request: pytest.FixtureRequest) -> SandboxBackend:
    if name == "docker":
        request.getfixturevalue("base_image")
    if name == PLAIN:
        return open_backend("local", bubblewrap=False)
    return open_backend(name)


def marked(found: list[str]) -> list[Any]:
    return [pytest.param(name, marks=pytest.mark.docker if name == "docker" else ()) for name in found]


@pytest.fixture(params=marked(ALL))
def backend(request: pytest.FixtureRequest) -> Iterator[SandboxBackend]:
    found = opened(request.param, request)
    yield found
    found.close()


@pytest.fixture(params=marked(REAL), scope="module")
def real(request: pytest.FixtureRequest) -> Iterator[SandboxBackend]:
    found = opened(request.param, request)
    yield found
    found.close()


@pytest.fixture
def box(real: SandboxBackend) -> Iterator[Sandbox]:
    with real.open(SPEC) as sandbox:
        yield sandbox


def run(box: Sandbox, command: str, **options: Any) -> ExecResult:
    result = box.script([Exec(command=command, **options)])[0]
    assert isinstance(result, ExecResult)
    return result


def test_contract(backend: SandboxBackend) -> None:
    assert backend.image_digest(None) == ""
    with backend.open(SPEC) as box:
        assert isinstance(box, Sandbox)
        assert box.isolation
        assert box.scratch.startswith("/")
        assert box.workdir.startswith("/")
        assert not box.scratch.startswith(box.workdir + "/")
        assert box.exec("cat a/b.txt") == ExecResult(
            exit_code=0, output=b"hello\n", seconds=pytest.approx(0, abs=30)
        )
        assert box.exec(("echo", "x  y")).output == b"x  y\n"
        box.write({"new/deep.bin": b"\x00\xff", f"{box.scratch}/out": b"s"})
        assert box.read("new/deep.bin") == b"\x00\xff"
        assert box.read(f"{box.scratch}/out") == b"s"
        with pytest.raises(FileNotFoundError):
            box.read("absent")
        stop = box.script([Exec(command="false", check=True), Exec(command="true")])
        assert len(stop) == 1
        read = box.script([Write(files={"f": b"12345"}), Read(path="f", limit=3), Read(path="absent")])
        assert read == (None, ReadResult(found=True, data=b"123", truncated=True), ReadResult(found=False))
    box.close()
    with pytest.raises(SandboxDied):
        box.exec("true")


def test_unknown_name_lists_what_exists() -> None:
    with pytest.raises(UnknownName, match="docker, fake, faulty, local"):
        open_backend("nowhere")


def test_local_refuses_images_unless_forced() -> None:
    spec = SandboxSpec(image="some/image", workdir="/testbed")
    with pytest.raises(ConfigError, match="some/image"):
        open_backend("local").open(spec)
    with open_backend("local", force=True).open(spec) as box:
        assert box.exec("true").exit_code == 0


def test_local_says_aloud_what_it_is() -> None:
    with open_backend("local", bubblewrap=False).open(SPEC) as box:
        assert box.isolation == "none (plain process)"
    if bubblewrap_works():
        with open_backend("local").open(SPEC) as box:
            assert box.isolation == "bubblewrap"


def test_environment_is_pinned(box: Sandbox) -> None:
    script = "import os, json; print(json.dumps(dict(os.environ)))"
    env = json.loads(box.exec(("python", "-c", script)).output)
    assert {name: env[name] for name in ("TZ", "PYTHONHASHSEED", "LC_ALL", "GREETING")} == {
        "TZ": "UTC",
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "GREETING": "hi",
    }
    assert env["PYTHONDONTWRITEBYTECODE"] == "1"
    assert not [name for name in env if "KEY" in name or "TOKEN" in name]


def test_exit_codes(box: Sandbox) -> None:
    assert box.exec("exit 7").exit_code == 7
    assert box.exec(("python", "-c", "import os; os.kill(os.getpid(), 15)")).exit_code == -15
    assert box.exec(("/no/such/program",)).exit_code == 127
    assert run(box, "cat", stdin=b"x" * 3_000_000, output_bytes=10_000_000).output == b"x" * 3_000_000


def test_localhost_has_a_name(box: Sandbox) -> None:
    """Test suites serve on localhost; the engine leaves /etc/hosts empty where there is no network."""
    code = (
        "import socket; s = socket.create_server(('localhost', 0)); socket.create_connection(s.getsockname())"
    )
    assert run(box, f'python3 -c "{code}"').exit_code == 0


def test_deadline_kills_the_whole_tree(box: Sandbox) -> None:
    """Also processes that left the session and the group."""
    start = time.monotonic()
    tree = "(setsid sh -c 'sleep 987 & exec sleep 986' &); sleep 985 | cat"
    result = run(box, tree, timeout_s=0.5)
    assert result.timed_out
    assert result.exit_code is None
    assert time.monotonic() - start < 10
    assert box.exec(
        "ps aux | grep -c 'sleep 98[567]' || cat /proc/*/cmdline | grep -ac 'sleep.98[567]'"
    ).output.split()[-1:] == [b"0"]


def test_what_the_command_leaves_running_is_killed(box: Sandbox) -> None:
    box.exec("(setsid sh -c 'while :; do sleep 0.05; date +%N > a/late; done' &) ; sleep 0.3")
    before = box.read("a/late")
    time.sleep(0.4)
    assert box.read("a/late") == before


def test_output_is_bounded_head_and_tail_kept(box: Sandbox) -> None:
    result = run(box, "echo first; yes | head -c 60000000; echo last", output_bytes=1000)
    assert result.truncated
    assert result.output.startswith(b"first\n")
    assert result.output.endswith(b"last\n")
    assert len(result.output) < 1200
    whole = run(box, "printf 12345678", output_bytes=8)
    assert (whole.output, whole.truncated) == (b"12345678", False)


TALK = """
import os, socket
s = socket.socket(fileno=int(os.environ["ACIDTEST_FD"]))
s.send(b"plain"); s.send(b"?one"); print(s.recv(9).decode()); s.send(b"?two"); print(s.recv(9).decode())
"""


def test_channel_answers_and_keeps_messages(box: Sandbox) -> None:
    channel = Channel(default="go", replies={"one": "raise"})
    result = box.script([Exec(command=("python", "-c", TALK), channel=channel)])[0]
    assert isinstance(result, ExecResult)
    assert result.output == b"raise\ngo\n"
    assert result.messages == (b"plain", b"?one", b"?two")


FLOOD = """
import os, socket
s = socket.socket(fileno=int(os.environ["ACIDTEST_FD"]))
for i in range(5000): s.send(b"x" * 100)
s.send(b"?still"); print(s.recv(9).decode())
"""


def test_channel_flood_is_bounded_and_still_answered(box: Sandbox) -> None:
    channel = Channel(max_messages=10, max_bytes=450)
    result = box.script([Exec(command=("python", "-c", FLOOD), channel=channel)])[0]
    assert isinstance(result, ExecResult)
    assert result.output == b"go\n"
    assert result.messages == (b"x" * 100,) * 5


def test_write_never_follows_links(box: Sandbox) -> None:
    box.exec("mkdir real; echo keep > real/kept; ln -s real linked; ln -s real/kept file")
    box.write({"linked/kept": b"new", "file": b"new"})
    assert box.read("real/kept") == b"keep\n"
    assert box.read("linked/kept") == b"new"
    assert box.exec("test -L linked -o -L file").exit_code == 1


def test_write_keeps_the_executable_bit_and_breaks_hard_links(box: Sandbox) -> None:
    box.exec("echo x > tool; chmod 755 tool; ln tool other; mkdir -p dir/inner")
    box.write({"tool": b"#!/bin/sh\necho new\n", "dir": b"now a file"})
    assert box.exec("./tool").output == b"new\n"
    assert box.read("other") == b"x\n"
    assert box.read("dir") == b"now a file"


def test_write_gets_through_folders_that_were_shut(box: Sandbox) -> None:
    box.exec(
        "mkdir -p shut/in; echo old > shut/in/f; chmod 000 shut/in shut; mkdir -p full/in; chmod 000 full/in"
    )
    box.write({"shut/in/f": b"new", "full": b"a file"})
    assert box.read("shut/in/f") == b"new"
    assert box.read("full") == b"a file"


def test_a_path_that_cannot_be_is_an_error_not_the_end(box: Sandbox) -> None:
    for path in ("a\0b", "/", "x" * 300):
        with pytest.raises(SandboxError):
            box.write({path: b""})
    assert box.exec("echo on").output == b"on\n"


def test_a_storm_of_orphans_does_not_stop_the_clock(box: Sandbox) -> None:
    storm = "for i in $(seq 1500); do (sh -c 'exit 0' &) ; done; sleep 60"
    start = time.monotonic()
    assert run(box, storm, timeout_s=1).timed_out
    assert time.monotonic() - start < 20


def test_read_takes_regular_files_only(box: Sandbox) -> None:
    box.exec("mkfifo pipe; ln -s a/b.txt link")
    found = box.script([Read(path="pipe"), Read(path="link"), Read(path="a"), Read(path="/dev/zero")])
    assert found == (ReadResult(found=False),) * 4


PRY = """
import os, sys
agent = AGENT
def tried(what):
    try:
        what()
    except (PermissionError, ProcessLookupError, FileNotFoundError, OSError):
        return
    sys.exit(1)
for fd in (0, 1, 2, 100, 101):
    tried(lambda: os.open(f"/proc/{agent}/fd/{fd}", os.O_RDWR))
tried(lambda: open(f"/proc/{agent}/mem", "r+b"))
tried(lambda: open(f"/proc/{agent}/environ").read())
print("held", sorted(int(fd) for fd in os.listdir("/proc/self/fd")))
"""


def test_submissions_cannot_reach_the_agents_channel(box: Sandbox) -> None:
    """Holds in all of them, except that root on the host with all capabilities may do anything in a plain process."""
    if box.isolation.startswith("none"):
        pytest.skip("a plain process has the user's own rights")
    result = box.exec(("python", "-c", PRY.replace("AGENT", "1")))
    assert result.exit_code == 0, result.output
    assert result.output == b"held [0, 1, 2, 3]\n"


FORGED = """import os, sys
folder = os.path.dirname(os.__file__)
text = "import os\\nos.write(2, b'code of the command before')\\n"
for name in os.listdir(folder):
    if name.endswith(".py") and name != "os.py":
        try:
            with open(os.path.join(folder, name), "a+") as file:
                file.seek(0)
                old = file.read()
                if "__future__" not in old:
                    file.truncate(0)
                    file.write(text + old)
        except OSError:
            pass
"""


@pytest.mark.docker
def test_what_a_command_makes_of_the_standard_library_runs_in_no_process_of_the_agents(
    base_image: str,
) -> None:
    """Between its fork and the next command a process still holds the agent's descriptors. Bad messages import nothing.

    In a container only: elsewhere the library is read-only, or this machine's own.
    """
    backend = open_backend("docker")
    with backend.open(SPEC) as box:
        box.script([Exec(command=("python3", "-c", FORGED))])
        assert b"before" in run(box, "python3 -S -c 'import this'").output, "it was rewritten"
        assert run(box, "echo honest").output == b"honest\n"
        missing = box.script([Exec(command=("no-such-command",))])[0]
        assert isinstance(missing, ExecResult)
        assert missing.exit_code == 127
        assert b"before" not in missing.output
        junk = "printf '[\"e\", bad' >&$ACIDTEST_FD; printf '[\\xff' >&$ACIDTEST_FD; echo said"
        assert run(box, junk, channel=Channel(stop=("x",))).output == b"said\n"
    backend.close()


def test_submissions_cannot_kill_or_stop_the_agent(box: Sandbox) -> None:
    if box.isolation.startswith("none"):
        pytest.skip("a plain process can be killed; see the next test")
    result = box.exec("for n in 1 2 3 9 11 13 15 19 20 23; do kill -$n 1; done; kill -9 -1; echo tried")
    assert result.output.endswith(b"tried\n")
    assert box.exec("echo alive").output == b"alive\n"


def test_death_of_the_agent_is_noticed() -> None:
    with open_backend("local", bubblewrap=False).open(SPEC) as box, pytest.raises(SandboxDied, match="died"):
        box.exec("kill -9 $PPID; sleep 5")


def test_no_network(box: Sandbox) -> None:
    if box.isolation.startswith("none"):
        pytest.skip("a plain process shares the network")
    assert box.exec("cat /proc/net/dev | grep -vc lo:").output == b"2\n"


def test_tmpfs_is_sized(real: SandboxBackend) -> None:
    spec = SandboxSpec(image=None, workdir="/testbed", limits=Limits(tmpfs_mib=8))
    with real.open(spec) as box:
        if box.isolation.startswith("none"):
            pytest.skip("a plain process only limits the size of one file")
        result = box.exec("head -c 20000000 /dev/zero > /tmp/big")
        assert result.exit_code != 0
        assert b"o space left" in result.output


def test_hundred_scripts_cost_no_descriptors(real: SandboxBackend) -> None:
    import os

    with real.open(SPEC) as box:
        box.exec("true")
        before = len(os.listdir("/proc/self/fd"))
        start = time.monotonic()
        for _ in range(100):
            box.script([])
        assert (time.monotonic() - start) / 100 < 0.05
        assert len(os.listdir("/proc/self/fd")) <= before + 4, "spares may be on their way"


def test_the_agent_is_python_36() -> None:
    import ast

    from acidtest.envs import agent

    tree = ast.parse(agent.source(), feature_version=(3, 6))
    modules = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    assert modules <= {
        "binascii",
        "ctypes",
        "errno",
        "fcntl",
        "json",
        "os",
        "resource",
        "select",
        "signal",
        "_signal",
    } | {
        "socket",
        "_socket",
        "stat",
        "struct",
        "sys",
        "time",
    }
