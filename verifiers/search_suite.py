"""Part of the search worker: the visible tests compiled into sites, one program under them, and one call of it.

Pasted into the worker's script by `search.py`, behind `oracle/equality.py`: standard library only.
"""

from __future__ import annotations

import ast
import os
import pickle
import random
import signal
import sys
import time
import types
from typing import Any

from .oracle.equality import TooBig, encode


class OutOfTime(BaseException):
    """Raised by the CPU timer inside a program's call."""


class Stopped(BaseException):
    """Raised after the first failed assert of a slow suite."""


def _on_timer(signum: int, frame: Any) -> None:
    raise OutOfTime


class Limit:
    """A CPU-time limit (and a much longer wall limit for sleepers) around a block."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __enter__(self) -> None:
        signal.signal(signal.SIGPROF, _on_timer)
        signal.signal(signal.SIGALRM, _on_timer)
        signal.setitimer(signal.ITIMER_PROF, self.seconds)
        signal.setitimer(signal.ITIMER_REAL, 20 * self.seconds + 1)

    def __exit__(self, *exc: Any) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)


class _Sites(ast.NodeTransformer):
    """Every assert becomes a site of its own: it reports whether it passed, and the test goes on."""

    def __init__(self, start: int) -> None:
        self.next = start

    def visit_Assert(self, node: ast.Assert) -> Any:
        number = self.next
        self.next += 1

        def call(passed: bool) -> ast.stmt:
            arguments: list[ast.expr] = [ast.Constant(number), ast.Constant(passed)]
            return ast.Expr(ast.Call(ast.Name("__site__", ast.Load()), arguments, []))

        handler = ast.ExceptHandler(ast.Name("__Exception__", ast.Load()), None, [call(False)])
        new = ast.Try([node], [handler], [call(True)], [])
        return ast.fix_missing_locations(ast.copy_location(new, node))


class Suite:
    """The visible tests, compiled once."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.module = str(job["module"])
        self.entry = str(job["entry_point"])
        self.codes: list[Any] = []
        start = 0
        for path, text in sorted(job["tests"].items()):
            sites = _Sites(start)
            tree = sites.visit(ast.parse(text))
            start = sites.next
            self.codes.append((path, compile(tree, path, "exec")))
        self.sites = start
        self.fail_fast = bool(job.get("fail_fast"))

    def run(self, solution: types.ModuleType) -> tuple[dict[int, bool], bool]:
        """(site -> passed, everything ran to its end without an error outside the sites)."""
        seen: dict[int, bool] = {}

        def site(number: int, passed: bool) -> None:
            seen[number] = passed and seen.get(number, True)
            if self.fail_fast and not passed:
                raise Stopped

        clean = True
        sys.modules[self.module] = solution
        for path, code in self.codes:
            name = os.path.basename(path).rsplit(".", 1)[0]
            module = types.ModuleType(name)
            module.__dict__.update(__site__=site, __Exception__=Exception, __file__=path)
            sys.modules[name] = module
            try:
                exec(code, module.__dict__)
                for key, value in list(module.__dict__.items()):
                    own = isinstance(value, types.FunctionType) and value.__globals__ is module.__dict__
                    if key.startswith("test") and own and value.__code__.co_argcount == 0:
                        value()
            except OutOfTime:
                raise
            except Stopped:
                return seen, False
            except BaseException:
                clean = False
        return seen, clean


def load(job: dict[str, Any], source: str) -> types.ModuleType:
    module = types.ModuleType(str(job["module"]))
    module.__dict__["__file__"] = "solution.py"
    exec(compile(source, "solution.py", "exec"), module.__dict__)
    return module


def visible(job: dict[str, Any], suite: Suite, source: str, limit: float) -> dict[str, Any]:
    """Pass vector of one program, and the loaded module for what follows."""
    started = time.process_time()
    result: dict[str, Any] = {"sites": {}, "clean": False, "error": ""}
    try:
        with Limit(limit):
            module = load(job, source)
            result["module"] = module
            result["sites"], result["clean"] = suite.run(module)
    except OutOfTime:
        result["error"] = "out of time"
    except BaseException as error:
        result["error"] = type(error).__name__
    result["seconds"] = time.process_time() - started
    return result


def call_once(function: Any, packed: bytes, limit: float) -> tuple[str, Any, str]:
    """(kind, encoded result or exception name, arguments afterwards); kind is v, e (exception) or t (out of time)."""
    args = pickle.loads(packed)
    random.seed(0)
    try:
        with Limit(limit):
            value = encode(function(*args))
    except OutOfTime:
        return "t", None, ""
    except TooBig as error:
        return "e", f"TooBig: {error}", ""
    except BaseException as error:
        return "e", type(error).__name__, ""
    try:
        after = repr(args)
    except Exception as error:
        after = type(error).__name__
    return "v", value, after if len(after) < 5000 else str(hash(after))
