"""The gates: what an added test must be, as a list of named checks. The first that fails stops the proposal.

Read `GATES` as the specification. What tests do to their surroundings is looked at before what they say, so that a
test that needs the network is stopped for that and not for the failure that follows from it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ...envs.record import digest_of
from ..records import Check, GateResult
from .behaviour import (
    blocks_a_target,
    collects,
    correct_programs_pass,
    gold_passes,
    not_flaky,
    survives_the_twin,
    within_time_budget,
)
from .source import asserts_something, no_implementation_detail, only_new_test_files
from .surroundings import leaves_the_source_alone, no_network, nothing_disturbed, writes_nothing
from .trial import Trial

Gate = Callable[[Trial], Check]

GATES: tuple[Gate, ...] = (
    only_new_test_files,
    asserts_something,
    no_network,
    writes_nothing,
    leaves_the_source_alone,
    collects,
    within_time_budget,
    not_flaky,
    gold_passes,
    no_implementation_detail,
    correct_programs_pass,
    nothing_disturbed,
    blocks_a_target,
    survives_the_twin,
)

NAMES: tuple[str, ...] = tuple(gate.__name__.replace("_", " ") for gate in GATES)


def run_gates(trial: Trial, gates: Sequence[Gate] = GATES) -> GateResult:
    """Put one proposal through the gates in order; infrastructure errors are raised, never a failed check."""
    checks: list[Check] = []
    for gate in gates:
        checks.append(gate(trial))
        if not checks[-1].passed:
            break
    done = bool(checks) and all(check.passed for check in checks)
    return GateResult(
        task_id=trial.task.task_id,
        proposal_digest=digest_of(trial.proposal.added),
        checks=tuple(checks),
        blocked=tuple(trial.blocked) if done else (),
    )
