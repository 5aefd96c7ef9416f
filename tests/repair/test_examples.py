"""The example proposals: each bad one is stopped by the gate that names it, the good ones are let through."""

from __future__ import annotations

from pathlib import Path

import pytest

from acidtest.envs.verify import Verifier
from acidtest.repair.gates import NAMES
from acidtest.repair.proposals import ProposalLine, read_proposals
from acidtest.repair.trying import PASSES, tasks_for, try_proposals

FILE = Path(__file__).resolve().parents[2] / "examples" / "bad_proposals.jsonl"
LINES = read_proposals(FILE)
QUICK = (
    "replaces the existing test file",
    "asserts a constant",
    "needs the network at import",
    "leaves a log file",
)
QUICK += (
    "patches the source: assigns the function",
    "uncollectable: a syntax error",
    "inverted assertion: not equal",
)


def test_the_file_covers_every_gate_and_both_kinds() -> None:
    expected = {line.expect for line in LINES}
    assert expected == {*NAMES, PASSES}
    assert sum(line.expect != PASSES for line in LINES) >= 40
    assert sum(line.expect == PASSES for line in LINES) >= 15
    assert len({line.label for line in LINES}) == len(LINES)


def check(lines: list[ProposalLine]) -> None:
    with Verifier(sandbox="local") as verifier:
        wrong = [
            f"{one.label}: {one.said}"
            for one in try_proposals(lines, tasks_for(lines), verifier)
            if not one.agrees
        ]
    assert not wrong


def test_some_of_them() -> None:
    check([line for line in LINES if line.label in QUICK])


@pytest.mark.campaign
def test_all_of_them() -> None:
    check(LINES)
