"""Helpers that run inside the sandbox beside the tests: plain files, sent as text, Python 3.6 and later.

Nothing of the package is imported there. `source(name)` gives the text of one, `byte_code(name)` what this very
interpreter compiles it to: sandboxes of the same Python version find it and save compiling it in every run, others
(of another version) compile the text.
"""

from __future__ import annotations

import importlib.util
import marshal
import sys
from functools import cache
from importlib.resources import files


@cache
def source(name: str) -> bytes:
    """The text of `inside/<name>.py`, as sent into sandboxes."""
    return files(__name__).joinpath(f"{name}.py").read_bytes()


def helper_files(*names: str) -> dict[str, bytes]:
    """Paths in the scratch folder -> content: the texts and their byte code."""
    code = dict(byte_code(name) for name in names)
    return {f"lib/{name}.py": source(name) for name in names} | {
        f"lib/{path}": data for path, data in code.items()
    }


@cache
def byte_code(name: str) -> tuple[str, bytes]:
    """(path relative to the text's folder, content) of a module's cached byte code, in the unchecked form (PEP 552)."""
    text = source(name)
    head = importlib.util.MAGIC_NUMBER + (1).to_bytes(4, "little") + importlib.util.source_hash(text)
    code = compile(text, f"{name}.py", "exec", dont_inherit=True)
    return f"__pycache__/{name}.{sys.implementation.cache_tag}.pyc", head + marshal.dumps(code)
