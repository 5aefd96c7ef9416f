"""Part of the search worker: the visible tests compiled into sites, one program under them, and one call of it.

Pasted into the worker's script by `search_boot.py`, behind `oracle/equality.py`: standard library only, and of that
only what starts fast (no `ast`, `signal`, `json`, `re`: they cost more than all the rest of a start).
"""

from __future__ import annotations

import _ast
import marshal
import os
import sys
import time
from typing import Any

from .oracle.equality import TooBig, encode

_signal: Any = __import__("_signal")
ModuleType = type(sys)
FunctionType = type(lambda: None)
MODULES = (
    "bisect cmath collections copy datetime fractions functools hashlib heapq itertools math random re statistics string "
    "typing"
)
"""Modules without state that a plain program could change."""
LOADED = (
    "abc array ast base64 calendar collections.abc contextlib dataclasses decimal enum inspect io json numbers operator os "
    "pickle queue secrets struct sys textwrap time traceback types unicodedata uuid warnings zlib " + MODULES
)
"""Modules imported once, before the forks, where the job's texts import them: no program pays for that."""


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
        _signal.signal(_signal.SIGPROF, _on_timer)
        _signal.signal(_signal.SIGALRM, _on_timer)
        _signal.setitimer(_signal.ITIMER_PROF, self.seconds)
        _signal.setitimer(_signal.ITIMER_REAL, 20 * self.seconds + 1)

    def __exit__(self, *exc: Any) -> None:
        _signal.setitimer(_signal.ITIMER_PROF, 0)
        _signal.setitimer(_signal.ITIMER_REAL, 0)


def _with_sites(node: Any, number: int) -> int:
    """Every assert below becomes a site: it reports whether it passed, and the test goes on. The next free number."""
    for field in node._fields:
        value: Any = getattr(node, field, None)
        for at, item in enumerate(value) if isinstance(value, list) else ():
            if isinstance(item, _ast.Assert):
                value[at] = _site(item, number)
                number += 1
            elif isinstance(item, _ast.AST):
                number = _with_sites(item, number)
        if isinstance(value, _ast.AST):
            number = _with_sites(value, number)
    return number


def _site(node: Any, number: int) -> Any:
    place = {name: getattr(node, name) for name in ("lineno", "col_offset", "end_lineno", "end_col_offset")}

    def name(text: str) -> Any:
        return _ast.Name(text, _ast.Load(), **place)

    def call(passed: bool) -> Any:
        arguments: list[Any] = [_ast.Constant(number, **place), _ast.Constant(passed, **place)]
        return _ast.Expr(_ast.Call(name("__site__"), arguments, [], **place), **place)

    handler = _ast.ExceptHandler(name("__Exception__"), None, [call(False)], **place)
    return _ast.Try([node], [handler], [call(True)], [], **place)


class Suite:
    """The visible tests, compiled once. longest: CPU seconds of the longest way from one site to the next so far."""

    def __init__(self, job: dict[str, Any]) -> None:
        self.module = str(job["module"])
        self.entry = str(job["entry_point"])
        self.codes: list[tuple[str, Any]] = []
        self.sites = 0
        for path, text in sorted(job["tests"].items()):
            tree: Any = compile(text, path, "exec", 0x400)
            self.sites = _with_sites(tree, self.sites)
            self.codes.append((path, compile(tree, path, "exec")))
        self.fail_fast = bool(job.get("fail_fast"))
        self.step = float(job.get("step_limit", 0))
        self.longest = 0.0

    def run(self, solution: Any, limit: float) -> tuple[dict[int, bool], bool]:
        """(site -> passed, everything ran to its end without an error outside the sites). limit: CPU seconds in all."""
        seen: dict[int, bool] = {}
        last = time.process_time()
        end = last + limit

        def reached() -> None:
            nonlocal last
            now = time.process_time()
            self.longest = max(self.longest, now - last)
            last = now
            if self.step:
                _signal.setitimer(_signal.ITIMER_PROF, max(1e-4, min(self.step, end - now)))

        def site(number: int, passed: bool) -> None:
            seen[number] = passed and seen.get(number, True)
            if self.fail_fast and not passed:
                raise Stopped
            reached()

        clean = True
        sys.modules[self.module] = solution
        reached()
        for path, code in self.codes:
            name = os.path.basename(path).rsplit(".", 1)[0]
            module = ModuleType(name)
            module.__dict__.update(__site__=site, __Exception__=Exception, __file__=path)
            sys.modules[name] = module
            try:
                exec(code, module.__dict__)
                for key, value in list(module.__dict__.items()):
                    own = isinstance(value, FunctionType) and value.__globals__ is module.__dict__
                    if key.startswith("test") and own and value.__code__.co_argcount == 0:
                        value()
            except OutOfTime:
                raise
            except Stopped:
                return seen, False
            except BaseException:
                clean = False
        reached()
        return seen, clean


def load(job: dict[str, Any], source: Any) -> Any:
    """The program as a module. source: its text or compiled code."""
    module = ModuleType(str(job["module"]))
    module.__dict__["__file__"] = "solution.py"
    exec(source if not isinstance(source, str) else compile(source, "solution.py", "exec"), module.__dict__)
    return module


def visible(job: dict[str, Any], suite: Suite, source: Any, limit: float) -> dict[str, Any]:
    """Pass vector of one program, and the loaded module for what follows."""
    started = time.process_time()
    result: dict[str, Any] = {"sites": {}, "clean": False, "error": ""}
    try:
        with Limit(limit):
            module = load(job, source)
            result["module"] = module
            result["sites"], result["clean"] = suite.run(module, limit)
    except OutOfTime:
        result["error"] = "out of time"
    except BaseException as error:
        result["error"] = type(error).__name__
    result["seconds"] = time.process_time() - started
    return result


class Caller:
    """Calls of a task's programs. plain: the program can neither sleep nor change the timer's handlers."""

    def __init__(self, job: dict[str, Any]) -> None:
        texts = [job["gold"], *job["tests"].values(), *job.get("programs", ())]
        self.random: Any = __import__("random") if any("random" in text for text in texts) else None
        self.state = self.random.getstate() if self.random else None

    def fresh(self) -> None:
        """The random numbers of a fresh fork, for the next program in the same one."""
        if self.random:
            self.random.setstate(self.state)

    def call(
        self, function: Any, packed: bytes, limit: float, *, plain: bool = False
    ) -> tuple[str, Any, str]:
        """(kind, encoded result or exception name, arguments afterwards); kind: v, e (exception), t (out of time)."""
        args = marshal.loads(packed)
        if self.random:
            self.random.seed(0)
        try:
            if plain:
                try:
                    _signal.setitimer(_signal.ITIMER_PROF, limit)
                    value = encode(function(*args))
                finally:
                    _signal.setitimer(_signal.ITIMER_PROF, 0)
            else:
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
