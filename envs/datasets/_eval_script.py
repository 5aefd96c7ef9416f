"""Splitting the `eval_script` of newer SWE-bench rows: its setup is honoured, its verdict is not.

Kept: activation, `cd`, exports, `sed`s and other preparation before the start marker, and the test command
itself. Dropped: shell options and tracing, git commands that print or reset (a verdict places trusted tests
by itself), the heredoc with the test patch, markers and the exit-code line, reinstalls of the project
(the image holds the installed base; `keep_install=True` keeps them, for gold patches that touch the build).
"""

from __future__ import annotations

import re
from dataclasses import dataclass

START = re.compile(r">>>>> Start Test Output")
END = re.compile(r">>>>> End Test Output")
_HEREDOC = re.compile(r"<<-?\s*(['\"]?)(\w+)\1")
_DROP = (
    re.compile(r"^set [-+][a-z]"),
    re.compile(r"^git (config|status|show|diff|checkout|apply|log|-c|reset|stash)\b"),
    re.compile(r"^(chmod|echo|cat /)"),
    re.compile(r"^rc=|^[A-Z_]*EXIT[A-Z_]*="),
)
_INSTALL = re.compile(
    r"(pip3?|uv pip)\s+install\s[^&|;]*(-e\s|\s\.(\[|\s|$)|--editable)|setup\.py\s+(install|develop|build)"
)


@dataclass(frozen=True)
class EvalScript:
    """setup: lines to run before the tests; test: the test command; install: reinstall lines that were found."""

    setup: tuple[str, ...]
    test: str
    install: tuple[str, ...]

    def command(self, *, keep_install: bool = False) -> str:
        """One bash command: setup, then the tests; the last command's status is the tests'."""
        lines = [*self.setup, *(self.install if keep_install else ()), self.test]
        return "\n".join(lines)


def split(script: str) -> EvalScript:
    """Take an eval script apart. Raises ValueError where it has no marked test command."""
    setup: list[str] = []
    install: list[str] = []
    tests: list[str] = []
    inside = False
    for line in _logical_lines(script):
        if START.search(line):
            inside = True
        elif END.search(line):
            break
        elif any(drop.search(line) for drop in _DROP):
            continue
        elif inside:
            tests.append(line)
        else:
            (install if _INSTALL.search(line) else setup).append(line)
    if not tests:
        raise ValueError("no test command between '>>>>> Start Test Output' and '>>>>> End Test Output'")
    return EvalScript(tuple(dict.fromkeys(setup)), "\n".join(tests), tuple(dict.fromkeys(install)))


def _logical_lines(script: str) -> list[str]:
    """Lines without heredoc bodies and blank lines; continued lines are joined."""
    lines: list[str] = []
    waiting_for = ""
    for raw in script.replace("\r\n", "\n").replace("\\\n", " ").split("\n"):
        line = raw.strip()
        if waiting_for:
            if line == waiting_for:
                waiting_for = ""
            continue
        heredoc = _HEREDOC.search(line)
        if heredoc:
            waiting_for = heredoc.group(2)
        if line and not line.startswith("#"):
            lines.append(line)
    return lines
