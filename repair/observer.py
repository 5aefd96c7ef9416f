"""Watch what added tests do to their surroundings: an audit hook and a snapshot, put in front of the test file.

The instrumented file runs like any other added test; when its process ends it prints one line with a nonce, which
`read_log` finds. Seen: files opened for writing, created, moved or removed from Python anywhere, any change below
the working folder (subprocesses included), names looked up and addresses dialled, functions of the code under test
replaced by the test's own. Not seen: what a subprocess does outside the working folder, and a test that sets out to
hide from the observer (proposals are unreliable, not hostile; grading is defended elsewhere).
"""

from __future__ import annotations

import ast
import json

from ..envs import pyast
from .gates.trial import Observation

MARK = "acidtest-observed"

SOURCE = r"""
def _acid_watch(mark):
    import atexit, json, os, stat, sys, tempfile
    root = os.path.realpath(os.getcwd())
    here = os.path.realpath(__file__)
    spare = [os.path.realpath(p) for p in {tempfile.gettempdir(), os.environ.get("TMPDIR") or "/tmp", "/tmp", "/var/tmp"}]
    spare += ["/dev", "/proc", "/sys"]
    writes, network, busy = [], [], []
    noise = ("__pycache__", ".pytest_cache", ".hypothesis", ".coverage", ".pyc", "pytest-cache-files-")

    def note(found, what):
        if what not in found and len(found) < 40:
            found.append(what)

    def outside(path, place):
        if not isinstance(path, (str, bytes)) and not hasattr(path, "__fspath__"):
            return ""
        start = "/proc/self/fd/%d" % place if isinstance(place, int) and place >= 0 else os.getcwd()
        full = os.path.realpath(os.path.join(start, os.fsdecode(path)))
        if full == root or any(part in full for part in noise):
            return ""
        if not full.startswith(root + os.sep):
            if any(full == top or full.startswith(top + os.sep) for top in spare):
                return ""
        return full

    def look(event, args):
        if event == "open":
            mode, flags = args[1], args[2] or 0
            asks = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool(
                flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND))
            names = args[:1] if asks else ()
        elif event in ("os.rename", "os.link", "os.symlink"):
            names = args[:2]
        elif event in ("os.remove", "os.rmdir", "os.mkdir", "os.truncate", "os.chmod", "os.chown", "os.utime"):
            names = args[:1]
        elif event in ("socket.connect", "socket.sendto"):
            address = args[1] if len(args) > 1 else None
            if isinstance(address, tuple) and address and not str(address[0]).startswith(("127.", "localhost", "::1")):
                note(network, "%s:%s" % address[:2])
            return
        elif event in ("socket.getaddrinfo", "socket.gethostbyname", "socket.gethostbyaddr"):
            host = args[0].decode("ascii", "replace") if isinstance(args[0], bytes) else args[0]
            if host and str(host) not in ("localhost", "127.0.0.1", "::1", "0.0.0.0", ""):
                note(network, str(host))
            return
        else:
            return
        places = {"os.rename": args[2:4], "os.mkdir": args[2:3], "open": (), "os.truncate": ()}.get(event, args[-1:])
        for number, name in enumerate(names):
            full = outside(name, places[number] if number < len(places) else -1)
            if full:
                note(writes, full)

    def hook(event, args):
        if not busy and (event == "open" or event[:3] in ("os.", "soc")):
            busy.append(1)
            try:
                look(event, args)
            except Exception:
                pass
            finally:
                busy.pop()

    def tree():
        seen = {}
        for folder, folders, files in os.walk(root):
            folders[:] = [f for f in folders if f not in (".git", "__pycache__", ".pytest_cache", ".hypothesis", "node_modules")]
            for name in folders + files:
                path = os.path.join(folder, name)
                if not any(part in path for part in noise):
                    try:
                        got = os.lstat(path)
                    except OSError:
                        continue
                    seen[path] = (stat.S_IFMT(got.st_mode), 0 if stat.S_ISDIR(got.st_mode) else (got.st_size, got.st_mtime))
        return seen

    def patched():
        found = []
        for label, module in sorted(sys.modules.items()):
            file = getattr(module, "__file__", None)
            if not file or os.path.realpath(file) == here or not os.path.realpath(file).startswith(root + os.sep):
                continue
            for name, value in sorted(vars(module).items(), key=str):
                code = getattr(value, "__code__", None)
                mock = type(value).__module__.startswith("unittest.mock")
                if mock or (code is not None and os.path.realpath(code.co_filename) == here):
                    found.append("%s.%s" % (label, name))
        return found[:40]

    def report():
        busy.append(1)
        after = tree()
        for path in sorted(set(before) | set(after)):
            if before.get(path) != after.get(path):
                note(writes, path)
        text = json.dumps({"writes": writes, "network": network, "patched": patched()})
        os.write(2, ("\n%s %s\n" % (mark, text)).encode("ascii"))

    before = tree()
    if hasattr(sys, "addaudithook"):
        sys.addaudithook(hook)
    atexit.register(report)


_acid_watch(MARK)
del _acid_watch
"""


def instrument(text: str, nonce: str) -> str | None:
    """The test file with the observer in front of its first statement; None when it does not parse.

    Line numbers move, which nothing reads. Docstring and `from __future__` imports stay first.
    """
    try:
        first = first_line(text)
    except (SyntaxError, ValueError):
        return None
    lines = text.splitlines(keepends=True)
    head = "".join(lines[:first])
    watch = SOURCE.replace("MARK", json.dumps(f"{MARK} {nonce}"))
    return f"{head}{'' if not head or head.endswith(chr(10)) else chr(10)}{watch}{''.join(lines[first:])}"


def first_line(text: str) -> int:
    """How many lines stand before the first statement that is no docstring and no `from __future__` import.

    Raises SyntaxError for text that does not parse.
    """
    first = 0
    for node in pyast.parse(text).body:
        docstring = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        future = isinstance(node, ast.ImportFrom) and node.module == "__future__"
        if not docstring and not future:
            break
        first = node.end_lineno or node.lineno
    return first


def read_log(log: str, nonce: str, *, tree: str = "") -> Observation:
    """What the observer printed into the run's log. `tree`: the working folder, cut from paths for reading."""
    reports = []
    for line in log.splitlines():
        if line.startswith(f"{MARK} {nonce} "):
            try:
                reports.append(json.loads(line.split(" ", 2)[2]))
            except ValueError:
                continue  # a line that the log's bound cut; without another one the observation is incomplete
    if not reports:
        return Observation(complete=False)
    prefix = tree.rstrip("/") + "/"

    def joined(key: str) -> tuple[str, ...]:
        return tuple(
            dict.fromkeys(str(item).removeprefix(prefix) for report in reports for item in report[key])
        )

    return Observation(writes=joined("writes"), network=joined("network"), patched=joined("patched"))
