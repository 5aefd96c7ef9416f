"""The class of a failed proposal is read from its log and its own source."""

from __future__ import annotations

import pytest

from acidtest.repair.defects import Defect, bounded, classify

SOURCE = "def test_a():\n    assert f(1) == 2\n\n\ndef test_b():\n    assert not g(1)\n"


@pytest.mark.parametrize(
    ("log", "defect"),
    [
        ("ImportError: cannot import name 'x' from 'solution'", Defect.IMPORT_ERROR),
        ("E   ModuleNotFoundError: No module named 'lib'", Defect.IMPORT_ERROR),
        ("E       fixture 'client' not found", Defect.UNCOLLECTABLE),
        ("TypeError: f() got an unexpected keyword argument 'deep'", Defect.KEYWORD_CLASH),
        ("TypeError: f() got multiple values for argument 'x'", Defect.KEYWORD_CLASH),
        ('  File "t.py", line 2\n    assert f(1) == 2\nAssertionError', Defect.WRONG_EXPECTED),
        ("    assert not g(1)\nAssertionError", Defect.INVERTED),
        ("E   Failed: DID NOT RAISE <class 'ValueError'>", Defect.INVERTED),
        ("FileNotFoundError: [Errno 2] No such file or directory: '/data'", Defect.ENVIRONMENT),
        ("ZeroDivisionError: division by zero", Defect.CRASH),
    ],
)
def test_classes(log: str, defect: Defect) -> None:
    assert classify(log, SOURCE) is defect


def test_a_run_that_hit_its_limit_is_a_timeout_whatever_it_printed() -> None:
    assert classify("ImportError", SOURCE, timed_out=True) is Defect.TIMEOUT


def test_source_that_does_not_parse_is_uncollectable() -> None:
    assert classify("", "def test_(:") is Defect.UNCOLLECTABLE


def test_a_long_log_keeps_both_ends() -> None:
    text = bounded("start" + "x" * 9000 + "end", limit=100)
    assert text.startswith("start")
    assert text.endswith("end")
    assert len(text) < 200
