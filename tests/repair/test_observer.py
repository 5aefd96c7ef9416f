"""The observer sees what a test file does to files, network and the code under test, and nothing where it does nothing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from acidtest.repair.gates.trial import Observation
from acidtest.repair.observer import instrument, read_log

HEAD = '"""Doc."""\nfrom __future__ import annotations\nimport os, solution\n\n'


def watch(folder: Path, body: str) -> Observation:
    (folder / "solution.py").write_text("def add(a, b):\n    return a + b\n")
    (folder / "data.txt").write_text("1\n")
    source = instrument(HEAD + body, "n0")
    assert source is not None
    (folder / "test_x.py").write_text(source)
    done = subprocess.run(
        [sys.executable, "-B", "test_x.py"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert "Traceback" not in done.stderr or "expected" in body, done.stderr
    return read_log(done.stderr, "n0", tree=str(folder.resolve()))


def test_a_quiet_test_leaves_no_trace(tmp_path: Path) -> None:
    body = (
        "import tempfile\nwith tempfile.TemporaryDirectory() as d:\n    open(d + '/x', 'w').close()\n"
        "open('data.txt').read()\nassert solution.add(1, 2) == 3\n"
    )
    assert watch(tmp_path, body) == Observation()


@pytest.mark.parametrize(
    ("body", "path"),
    [
        ("open('new.txt', 'w').write('x')\n", "new.txt"),
        ("os.remove('data.txt')\n", "data.txt"),
        ("open('solution.py', 'a').write('# x\\n')\n", "solution.py"),
        ("os.mkdir('folder')\nos.rmdir('folder')\n", "folder"),
        ("import subprocess\nsubprocess.run(['touch', 'made'], check=True)\n", "made"),
        ("os.rename('data.txt', 'other.txt')\n", "other.txt"),
    ],
)
def test_changes_of_files_are_named(tmp_path: Path, body: str, path: str) -> None:
    assert path in watch(tmp_path, body).writes


@pytest.mark.parametrize(
    "body",
    [
        "import socket\ntry:\n    socket.create_connection(('example.invalid', 80), timeout=1)\nexcept OSError: pass\n",
        "import urllib.request\ntry:\n    urllib.request.urlopen('http://example.invalid')\nexcept OSError: pass\n",
        "import socket\ns = socket.socket()\ns.settimeout(0.2)\ntry:\n    s.connect(('192.0.2.1', 9))\nexcept OSError: pass\ns.close()\n",
    ],
)
def test_the_network_is_named(tmp_path: Path, body: str) -> None:
    assert watch(tmp_path, body).network


def test_a_server_on_this_machine_is_no_network(tmp_path: Path) -> None:
    body = "import socket\ns = socket.create_server(('127.0.0.1', 0))\nc = socket.create_connection(s.getsockname())\nc.close()\ns.close()\n"
    assert watch(tmp_path, body).network == ()


def test_a_replaced_function_is_named(tmp_path: Path) -> None:
    assert watch(tmp_path, "solution.add = lambda a, b: 3\n").patched == ("solution.add",)


def test_a_file_that_does_not_parse_cannot_be_watched() -> None:
    assert instrument("def test_(:\n", "n0") is None


def test_a_log_without_the_line_is_incomplete() -> None:
    assert not read_log("nothing", "n0").complete
    assert not read_log("acidtest-observed other {}", "n0").complete
