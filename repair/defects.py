"""Why an added test failed on gold: the class of its defect, from the run's log and the test's own source.

The classes are those that a repair loop can act on (the paper's five first). The class steers the retry and is
counted in the report; it decides nothing. Reading a log is heuristic: a log that fits nothing is "assertion".
"""

from __future__ import annotations

import re
from enum import StrEnum

from ..envs import pyast


class Defect(StrEnum):
    IMPORT_ERROR = "import error"
    INVERTED = "inverted assertion"
    WRONG_EXPECTED = "wrong expected value"
    UNCOLLECTABLE = "uncollectable"
    KEYWORD_CLASH = "keyword clash"
    FLAKY = "flaky"
    TIMEOUT = "timeout"
    ENVIRONMENT = "environment"
    ASSERTION = "assertion"
    CRASH = "crash"


_PATTERNS: tuple[tuple[Defect, str], ...] = (
    (Defect.IMPORT_ERROR, r"\b(ImportError|ModuleNotFoundError)\b"),
    (
        Defect.UNCOLLECTABLE,
        (
            r"\b(SyntaxError|IndentationError|TabError)\b|fixture '[^']+' not found|found no collectors|no tests ran"
            r"|error during collection|errors during collection|Ran 0 tests|not found: "
        ),
    ),
    (
        Defect.KEYWORD_CLASH,
        (
            r"TypeError: .*(unexpected keyword argument|multiple values for (keyword )?argument|got an unexpected"
            r"|missing \d+ required|takes (from )?\d+ .*positional|keyword-only|invalid keyword)"
        ),
    ),
    (
        Defect.ENVIRONMENT,
        (
            r"\b(ConnectionError|ConnectionRefusedError|URLError|gaierror|PermissionError|FileNotFoundError"
            r"|NewConnectionError|ReadOnly|Read-only file system|No space left|command not found"
            r"|OperationalError|ImproperlyConfigured)\b"
        ),
    ),
)


def classify(log: str, source: str = "", *, timed_out: bool = False, collected: bool = True) -> Defect:
    """The defect class of a test (file) that gold failed. `source`: the test file's text, for the assertion's shape."""
    if timed_out:
        return Defect.TIMEOUT
    if source and not _parses(source):
        return Defect.UNCOLLECTABLE
    for defect, pattern in _PATTERNS:
        if re.search(pattern, log):
            return defect
    if not collected:
        return Defect.UNCOLLECTABLE
    if re.search(r"DID NOT RAISE|not raised( by)?|expected\s*\n?.*AssertionError: \w+Error expected", log):
        return Defect.INVERTED
    if "AssertionError" in log or re.search(r"^E\s+assert", log, re.MULTILINE):
        return assertion_class(failing_line(log, source) or log)
    return Defect.CRASH if re.search(r"\b\w+(Error|Exception)\b", log) else Defect.ASSERTION


def assertion_class(line: str) -> Defect:
    """What an assertion that fails on gold most likely got wrong, from its shape alone."""
    text = line.strip().lstrip(">").strip()
    if re.search(
        r"\bassert\s+not\b|assert(Not|False|True|Raises|IsNone|IsNotNone)|\bassert .*( !=|\bnot in\b|\bis not\b)",
        text,
    ):
        return Defect.INVERTED
    if re.search(
        r"assert.*==|assert(Equal|ListEqual|DictEqual|AlmostEqual|CountEqual|SequenceEqual)|assert same\(|isclose|approx",
        text,
    ):
        return Defect.WRONG_EXPECTED
    if re.match(r"assert\s+[\w.]+\(", text):
        return Defect.INVERTED
    return Defect.ASSERTION


def failing_line(log: str, source: str) -> str:
    """The source line of the last traceback frame in the log that lies in the test's source, "" if none."""
    lines = source.splitlines()
    wanted = {line.strip() for line in lines if "assert" in line or "fail(" in line}
    for line in reversed(log.splitlines()):
        text = line.strip().lstrip(">").strip()
        if text in wanted:
            return text
    return ""


def _parses(source: str) -> bool:
    try:
        pyast.parse(source)
    except (SyntaxError, ValueError):
        return False
    return True


def bounded(log: str, *, limit: int = 1500) -> str:
    """Head and tail of a log, for a retry prompt or a record."""
    text = log.strip()
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n… {len(text) - limit} characters left out …\n{text[-half:]}"
