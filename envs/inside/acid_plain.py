"""In the sandbox: runs test files with top-level `test*` functions, in the order written, standard library only.

usage: acid_run.py [--ids id,id] FILE...   An id is FILE::function. A file that cannot be imported reports its
functions as errors by name, found without running it.
"""

import _ast
import _frozen_importlib
import _frozen_importlib_external
import os
import sys
import time

import acid_channel

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_send = acid_channel.send
_clock = time.perf_counter
_hook = sys.__excepthook__
_pid = os.getpid
_STARTED = _pid()
AST = 0x400  # ast.PyCF_ONLY_AST, without what `import ast` costs every run


def names_of(path: str) -> "Any":
    with open(path, "rb") as handle:
        tree = compile(handle.read(), path, "exec", AST, dont_inherit=True)  # type: Any
    return [n.name for n in tree.body if isinstance(n, _ast.FunctionDef) and n.name.startswith("test")]


def load(path: str) -> "Any":
    name = os.path.splitext(os.path.basename(path))[0]
    spec = _frozen_importlib_external.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ImportError(path)
    module = _frozen_importlib.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _trace() -> None:
    """Prints the exception being handled, as the interpreter itself does."""
    kind, error, trace = sys.exc_info()
    if kind is not None and error is not None:
        _hook(kind, error, trace)


def skip_types() -> "Any":
    unittest = sys.modules.get("unittest")
    return (unittest.SkipTest,) if unittest else ()


def run_one(ident: str, function: "Any") -> None:
    _send("s", ident)
    start = _clock()
    status = "passed"
    try:
        function()
    except (Exception, SystemExit) as error:
        if _pid() != _STARTED:  # a child that the code forked: it ends as it would under any other caller
            raise
        status = "failed" if isinstance(error, AssertionError) else "error"
        if status == "error" and isinstance(error, skip_types()):
            status = "skipped"
        else:
            _trace()
    _send("e", ident, status, round(_clock() - start, 6))


def main(arguments: "Any") -> int:
    wanted = None
    if arguments and arguments[0] == "--ids":
        wanted = set(arguments[1].split(","))
        arguments = arguments[2:]
    _send("n", "plain", sys.version.split()[0])
    sys.path.append(os.path.dirname(os.path.abspath(__file__)))
    jobs = []
    broken = False
    for path in arguments:
        sys.path[0] = os.path.dirname(os.path.abspath(path))
        try:
            found = names_of(path)
            module = load(path)
            jobs += [(path + "::" + name, getattr(module, name)) for name in found]
        except (Exception, SystemExit):
            if _pid() != _STARTED:
                raise
            broken = True
            _trace()
    if wanted is not None:
        jobs = [job for job in jobs if job[0] in wanted]
    for ident, function in acid_channel.reordered(jobs):
        run_one(ident, function)
    _send("f", len(jobs))
    return 1 if broken else 0
