"""Runs inside a task's sandbox: records calls of chosen functions while the suite runs, and replays them later.

Self-contained (standard library, Python >= 3.6); `recorded.py` pastes `equality.py` in front of it. Recording:
the text ``wrap(globals(), [...])`` at the end of a module puts spies around its functions and methods. Replaying:
``python recorder.py replay CALLS`` prints one JSON line per call: kind, encoded result, arguments afterwards.
"""

import base64
import functools
import importlib
import json
import os
import pickle
import random
import re
import signal
import sys
import types
from typing import Any

from .equality import encode

MAX_CALLS = 40
MAX_BYTES = 20_000
MAX_TRIES = 2000


def wrap(scope: "dict[str, Any]", names: "list[str]", target: str) -> None:
    """Put a spy around each dotted name (function or Class.method) of a module's globals."""
    for name in names:
        owner: Any = None
        holder, _, last = name.rpartition(".")
        try:
            if holder:
                owner = scope[holder]
                original = owner.__dict__[last]
            else:
                original = scope[last]
        except (KeyError, AttributeError):
            continue
        spied = _spied(original, str(scope["__name__"]), name, target)
        if spied is None:
            continue
        if owner is None:
            scope[last] = spied
        else:
            setattr(owner, last, spied)


def _spied(original: Any, module: str, name: str, target: str) -> Any:
    if isinstance(original, (staticmethod, classmethod)):
        return None
    if not isinstance(original, types.FunctionType) or original.__code__.co_flags & 0x2A0:
        return None
    seen: set[bytes] = set()
    state = {"tries": 0, "busy": False}

    @functools.wraps(original)
    def spy(*args: Any, **kwargs: Any) -> Any:
        if not state["busy"] and len(seen) < MAX_CALLS and state["tries"] < MAX_TRIES:
            state["tries"] += 1
            state["busy"] = True
            try:
                packed = pickle.dumps((args, kwargs))
                if len(packed) <= MAX_BYTES and packed not in seen:
                    seen.add(packed)
                    row = [module, name, base64.b64encode(packed).decode(), repr((args, kwargs))[:300]]
                    with open(target, "a") as file:
                        file.write(json.dumps(row) + "\n")
            except Exception:
                pass
            finally:
                state["busy"] = False
        return original(*args, **kwargs)

    return spy


def _on_timer(signum: int, frame: Any) -> None:
    raise TimeoutError("out of time")


def _call(row: "list[Any]") -> "list[Any]":
    module, name, packed = row[0], row[1], row[2]
    random.seed(0)
    try:
        args, kwargs = pickle.loads(base64.b64decode(packed))
        function: Any = importlib.import_module(module)
        for part in name.split("."):
            function = getattr(function, part)
    except Exception as error:
        return ["?", type(error).__name__, ""]
    try:
        signal.setitimer(signal.ITIMER_REAL, 5)
        value = encode(function(*args, **kwargs))
        return ["v", value, _left(args, kwargs)]
    except Exception as error:
        return ["e", type(error).__name__, ""]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def _left(args: Any, kwargs: Any) -> str:
    """The arguments after the call as text, with the public plain attributes of the first one (often self)."""
    text = re.sub(r" at 0x[0-9a-f]+", "", repr((args, kwargs)))[:2000]
    kept = getattr(args[0], "__dict__", None) if args else None
    if not isinstance(kept, dict):
        return text
    plain = (str, int, float, bool, bytes, type(None))
    shown = {str(k): v for k, v in kept.items() if isinstance(v, plain) and not str(k).startswith("_")}
    return text + " " + repr(sorted(shown.items()))[:2000]


def replay(path: str, folders: "list[str]") -> None:
    """Make every recorded call in a process of its own kind of order: one fork per call.

    folders: of the suite's tests, below the working folder: arguments may be functions that stand there.
    """
    here = os.getcwd()
    sys.path[:0] = [
        path for path in (here, here + "/src", here + "/lib", here + "/tests") if os.path.isdir(path)
    ]
    sys.path += [os.path.join(here, folder) for folder in folders]
    prepare()
    signal.signal(signal.SIGALRM, _on_timer)
    with open(path) as file:
        rows = [json.loads(line) for line in file if line.strip()]
    for name in {row[0] for row in rows}:
        try:
            importlib.import_module(name)
        except Exception:
            continue
    sys.stdout.flush()
    for number, row in enumerate(rows):
        out, into = os.pipe()
        pid = os.fork()
        if pid == 0:
            try:
                null = os.open(os.devnull, os.O_RDWR)
                os.dup2(null, 1)
                os.dup2(null, 2)
                os.write(into, json.dumps(_call(row)).encode()[:60_000])
            finally:
                os._exit(0)
        os.close(into)
        data = b""
        while True:
            chunk = os.read(out, 65536)
            if not chunk:
                break
            data += chunk
        os.close(out)
        os.waitpid(pid, 0)
        try:
            answer = json.loads(data.decode())
        except ValueError:
            answer = ["?", "died", ""]
        print(json.dumps([number, answer]), flush=True)


def prepare() -> None:
    """Django refuses most calls before its settings exist: give it the plainest ones."""
    try:
        django = importlib.import_module("django")
        settings = importlib.import_module("django.conf").settings
        settings.configure(
            USE_TZ=False, INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"]
        )
        django.setup()
    except Exception:
        return


if __name__ == "__main__" and sys.argv[1:2] == ["replay"]:
    replay(sys.argv[2], sys.argv[3:])
