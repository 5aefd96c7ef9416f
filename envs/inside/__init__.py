"""Helpers that run inside the sandbox beside the tests: plain files, sent as text, Python 3.6 and later.

Nothing of the package is imported there. `source(name)` gives the text of one.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files


@cache
def source(name: str) -> bytes:
    """The text of `inside/<name>.py`, as sent into sandboxes."""
    return files(__name__).joinpath(f"{name}.py").read_bytes()
