"""The fault injector strikes on plan, counts what fired, and the sandboxes' errors stay typed."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path

import pytest

from acidtest.envs.errors import ConfigError, SandboxDied, SandboxError
from acidtest.envs.fault_plan import AT_OPEN, INSIDE, STARTED, Fault, FaultLog, FaultPlan
from acidtest.envs.faults import FaultyBackend
from acidtest.envs.protocols import ExecResult, SandboxSpec
from acidtest.envs.sandboxes import docker, fake

SPEC = SandboxSpec(image=None, workdir="/testbed")


def storm(backend: FaultyBackend, rounds: int, command: str = "true") -> Counter[str]:
    """Open, run, close; which error classes came out."""
    seen: Counter[str] = Counter()
    for _ in range(rounds):
        try:
            with backend.open(SPEC) as box:
                assert box.exec(command, timeout_s=20).exit_code == 0
                seen["fine"] += 1
        except SandboxError as error:
            seen[type(error).__name__] += 1
    return seen


def test_same_seed_same_faults() -> None:
    plan = FaultPlan(seed=3, share={Fault.KILLED: 0.1, Fault.DISK_FULL: 0.1})
    first, second = (FaultyBackend(fake.backend(), plan) for _ in range(2))
    assert storm(first, 200) == storm(second, 200)
    assert first.fired == second.fired
    assert sum(first.fired.values()) > 20


def test_every_kind_fires_up_to_its_ceiling() -> None:
    now = time.time()
    backend = FaultyBackend(fake.backend(), FaultPlan.even(0.05, seed=1, at_most=3))
    seen = storm(backend, 600)
    assert backend.fired == {str(kind): 3 for kind in INSIDE}
    assert seen["fine"] == 600 - 3 * (len(INSIDE) - 2), "slow ones and other times of day do not fail"
    assert abs(time.time() - now) > 3600
    backend.close()
    assert 0 <= time.time() - now < 60, "closing puts the clock right"


def test_a_struck_sandbox_stays_dead() -> None:
    backend = FaultyBackend(
        fake.backend(), FaultPlan(share={Fault.OOM_KILLED: 1}, at_most={Fault.OOM_KILLED: 1})
    )
    box = backend.open(SPEC)
    for _ in range(2):
        with pytest.raises(SandboxDied):
            box.exec("true")


def test_plan_file(tmp_path: Path) -> None:
    path = tmp_path / "plan.toml"
    path.write_text("seed = 5\n[share]\nkilled = 0.5\n[at_most]\nkilled = 2\n")
    assert FaultPlan.from_file(path) == FaultPlan(
        seed=5, share={Fault.KILLED: 0.5}, at_most={Fault.KILLED: 2}
    )
    path.write_text("[share]\nmeteor = 0.5\n")
    with pytest.raises(ConfigError, match="meteor"):
        FaultPlan.from_file(path)
    path.write_text("[share]\nkill_9 = 0.5\n")
    with pytest.raises(ConfigError, match="kill_9 has no place in that table"):
        FaultPlan.from_file(path)
    assert Fault.SLOW in AT_OPEN


def test_the_example_plan_names_every_kind_at_least_ten_times() -> None:
    plan = FaultPlan.from_file(Path(__file__).resolve().parents[2] / "examples" / "faults.toml")
    counts = {**plan.at_most, **plan.times}
    assert set(counts) == set(Fault)
    assert min(counts.values()) >= 10
    assert sum(counts.values()) >= 200


def test_the_next_process_goes_on_with_what_is_left(tmp_path: Path) -> None:
    """Counts outlive the process that made them; its draws are not repeated."""
    plan = FaultPlan(seed=1, share={Fault.KILLED: 0.3}, at_most={Fault.KILLED: 5})
    log = FaultLog(tmp_path / "fired")
    total, seeds = 0, set()
    for _ in range(4):
        backend = FaultyBackend(fake.backend(), plan.after(log.counts()), log=log)
        log.add(STARTED)
        seeds.add(backend.plan.seed)
        storm(backend, 8)
        total += backend.fired["killed"]
    assert log.counts() == {"killed": 5, STARTED: 4}
    assert total == 5
    assert len(seeds) == 4


@pytest.mark.docker
def test_real_containers_are_really_harmed(base_image: str) -> None:
    share = {Fault.KILLED: 0.25, Fault.REMOVED: 0.25, Fault.AGENT_KILLED: 0.25, Fault.OOM_KILLED: 0.25}
    backend = FaultyBackend(
        docker.backend(spares=2), FaultPlan(seed=2, share=share, at_most=dict.fromkeys(share, 1))
    )
    try:
        seen, rounds = Counter[str](), 0
        while sum(backend.fired.values()) < 4 and rounds < 60:
            seen, rounds = seen + storm(backend, 1, command="sleep 1"), rounds + 1
        assert seen["SandboxDied"] == sum(backend.fired.values()) == 4
        assert seen["fine"] == rounds - 4
        with backend.inner.open(SPEC) as box:
            assert isinstance(box.exec("true"), ExecResult)
    finally:
        backend.close()
