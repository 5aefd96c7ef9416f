"""The search worker as one script: its parts pasted together, and how a sandbox's own Python starts it quickly."""

from __future__ import annotations

import marshal
import re
import sys
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
PARTS = ("oracle/equality.py", "search_suite.py", "search_programs.py", "search_worker.py")

_BOOT = """\
import marshal, sys
folder = sys.argv[1]
kept = "%s/worker-%s-%x" % (folder, sys.implementation.cache_tag, sys.hexversion)
try:
    with open(kept, "rb") as file:
        code = marshal.load(file)
except OSError:
    with open(folder + "/worker.py", "rb") as file:
        code = compile(file.read(), "worker.py", "exec")
    with open(kept, "wb") as file:
        marshal.dump(code, file)
scope = {"__name__": "worker"}
exec(code, scope)
scope["main"](folder + "/job")
"""
COMMAND = ("python3", "-S", "-B", "-W", "ignore", "-c", _BOOT)
"""Followed by the folder that holds `files()` and the job."""


@cache
def worker_source() -> str:
    """The worker with the files it imports pasted in front of it: one standard-library script."""
    parts = []
    for part in PARTS:
        text = (
            (HERE / part).read_text(encoding="utf-8").replace("from __future__ import annotations\n", "", 1)
        )
        parts.append(re.sub(r"^from (\.[\w.]+|typing) import [^\n(]*\n", "", text, flags=re.M))
    source = "from __future__ import annotations\n" + "\n".join(parts)
    if re.search(r"^from \.", source, re.M):
        raise AssertionError(
            "the search worker imports a file of ours that is not pasted into it in one line"
        )
    return source


@cache
def files() -> dict[str, bytes]:
    """The script, and its code for this very interpreter (any other one compiles it once, at its first start)."""
    source = worker_source()
    name = f"worker-{sys.implementation.cache_tag}-{sys.hexversion:x}"
    code = marshal.dumps(compile(source, "worker.py", "exec"))
    return {"worker.py": source.encode(), name: code}


def job_bytes(job: dict[str, object]) -> bytes:
    """The job as the worker reads it: plain data in the oldest form of `marshal` that every Python 3 reads."""
    return marshal.dumps(job, 2)


def imports_of(*texts: str) -> list[str]:
    """Names after `from` and `import` at the start of a line; the worker loads those that it knows as harmless."""
    found = re.findall(r"^[ \t]*(?:from[ \t]+([\w.]+)|import[ \t]+([^\n;#]+))", "\n".join(texts), re.M)
    names = [name.split()[0] for one, several in found for name in [one, *several.split(",")] if name.strip()]
    return list(dict.fromkeys(names))
