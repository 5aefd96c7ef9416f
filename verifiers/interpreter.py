"""Which Python a suite's command runs: tests of ours for a repository have to run under the same one.

The plain `python` of an image may be another, without the task's packages (R2E-Gym's trees bring `.venv/bin/python`).
Not covered: a command that starts its tests through a script of its own (tox, make); `python` is taken there.
"""

from __future__ import annotations

import re

_ACTIVATE = re.compile(r"^.*\bactivate\b[^&;\n]*(?:&&|;|\n)\s*", re.DOTALL)
_PYTHON = re.compile(r"(?:^|\s)((?:[\w.~+-]*/)*python[\d.]*)(?=\s)")


def python_of(command: str) -> str:
    """How a shell starts that Python: what activates the environment, then the interpreter that the command names."""
    match = _ACTIVATE.match(command)
    prefix = match[0] if match else ""
    named = _PYTHON.search(command[len(prefix) :])
    return f"{prefix}{named[1] if named else 'python'}"
