"""R2E-Gym's own reward rule, reproduced exactly: what the *original* reward of an R2E-Gym task would be.

The rule, as published (facts; own code): of a pytest log only what stands between the first and the second
"short test summary info" is read, line by line. A line that holds PASSED, else FAILED, else ERROR *anywhere*
gives a status; its key is what follows the first ``::``, further ``::`` turned into ``.``, so the file is dropped
and equal names of two files are one key. FAILED and ERROR keys end at the first " - "; PASSED keys too, but
only after colours are taken out. SKIPPED, XFAIL and XPASS lines give nothing. Both sides are cut the same way.
The reward is 1.0 when the counts are equal and every non-empty key has the expected status, expected FAILED and
ERROR included; else 0.0. A run that was cut off has no summary, hence no statuses.

What follows from it is not defended here (a message that says "PASSED" turns a failure into a pass; a key may be
empty): it is reproduced so that it can be shown beside our strict verdict.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping

from .errors import TaskError
from .run import Status, SuiteRun

MARKER = "short test summary info"
STATUSES = ("PASSED", "FAILED", "ERROR")
_ANSI = re.compile(r"\x1b\[[0-9;]*m|\r")
_COLOUR = re.compile(r"\x1b\[\d+m")


def parse_log(log: str) -> dict[str, str]:
    """Key -> PASSED, FAILED or ERROR, as the published parser reads a log (colours and CR taken out first)."""
    sections = _ANSI.sub("", log).split(MARKER)
    found: dict[str, str] = {}
    for line in sections[1].strip().split("\n") if len(sections) > 1 else ():
        status = next((word for word in STATUSES if word in line), None)
        if status is not None:
            name = key_of(line)
            found[name if status == "PASSED" else _cut(name)] = status
    return found


def key_of(test_id: str) -> str:
    """``r2e_tests/test_1.py::TestA::test_b`` -> ``TestA.test_b``; "" for text without ``::``."""
    return ".".join(test_id.split("::")[1:])


def normalised(statuses: Mapping[str, str]) -> dict[str, str]:
    """Keys without colours, cut at the first " - ", in sorted order (of two equal keys the later one stays)."""
    plain = {_COLOUR.sub("", key): status for key, status in statuses.items()}
    return {_cut(key): plain[key] for key in sorted(plain)}


def reward(parsed: Mapping[str, str], expected: Mapping[str, str]) -> float:
    """1.0 or 0.0 for a parsed status map against the row's `expected_output_json` (decoded)."""
    left, right = normalised(parsed), normalised(expected)
    if len(left) != len(right):
        return 0.0
    return float(all(right.get(key) == status for key, status in left.items() if key))


def read_expected(text: str, where: str = "expected_output_json") -> dict[str, str]:
    """Decode `expected_output_json`; raises TaskError when it is no map of names to statuses."""
    try:
        value = json.loads(text)
    except ValueError as error:
        raise TaskError(f"{where}: not JSON ({error}).", mend="It maps test names to statuses.") from error
    if not isinstance(value, dict) or not all(isinstance(v, str) for v in value.values()):
        raise TaskError(f"{where}: not a map of test names to statuses.", mend="Mend or drop the row.")
    return value


def original_reward(run: SuiteRun, expected: Mapping[str, str]) -> float | None:
    """What R2E-Gym would have paid for this run; None when the log does not tell.

    The log decides, as in the original. Where it was shortened by us and lost its summary, the structured
    statuses stand in for it.
    """
    if run.timed_out or run.out_of_memory:
        return reward({}, expected)
    if MARKER in run.log:
        return reward(parse_log(run.log), expected)
    if not run.log_truncated:
        return reward({}, expected)
    return reward(parsed_statuses(run.statuses), expected) if run.statuses else None


def parsed_statuses(statuses: Mapping[str, Status]) -> dict[str, str]:
    """The map that the log of such a run would give: pytest prints passes first, then errors, then failures."""
    order = {Status.PASSED: "PASSED", Status.ERROR: "ERROR", Status.FAILED: "FAILED"}
    found: dict[str, str] = {}
    for status, word in order.items():
        found.update({key_of(i): word for i, s in statuses.items() if s is status})
    return found


def _cut(key: str) -> str:
    return key.split(" - ")[0]
