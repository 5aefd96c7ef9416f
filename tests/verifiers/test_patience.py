"""Passing trouble is tried again, an engine that went away is waited for, nothing is tried again when the run ends."""

from __future__ import annotations

import threading

import pytest

from acidtest.envs.errors import ConfigError, DiskFull, EngineUnavailable, SandboxDied
from acidtest.verifiers import patience
from acidtest.verifiers.patience import Patience


class Troubled:
    """Raises these errors in turn, then gives 7."""

    def __init__(self, *errors: Exception) -> None:
        self.errors, self.calls = list(errors), 0

    def __call__(self) -> int:
        self.calls += 1
        if self.errors:
            raise self.errors.pop(0)
        return 7


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patience, "FIRST_PAUSE_S", 0.001)


def test_three_tries_for_a_sandbox_that_dies() -> None:
    assert Patience(threading.Event()).insist(Troubled(SandboxDied("a"), SandboxDied("b"))) == 7
    often = Troubled(*[SandboxDied(str(n)) for n in range(9)])
    with pytest.raises(SandboxDied, match="2"):
        Patience(threading.Event()).insist(often)
    assert often.calls == 3


def test_an_engine_is_waited_for_without_using_up_tries() -> None:
    action = Troubled(*[EngineUnavailable("gone") for _ in range(6)], SandboxDied("x"), SandboxDied("y"))
    assert Patience(threading.Event()).insist(action) == 7


def test_an_engine_that_stays_away_ends_it() -> None:
    away = Troubled(*[EngineUnavailable("gone") for _ in range(99)])
    with pytest.raises(EngineUnavailable):
        Patience(threading.Event(), outage_s=0.05).insist(away)
    assert 1 < away.calls < 99


@pytest.mark.parametrize("error", [DiskFull("full"), ConfigError("no")])
def test_what_cannot_pass_is_raised_at_once(error: Exception) -> None:
    action = Troubled(error)
    with pytest.raises(type(error)):
        Patience(threading.Event()).insist(action)
    assert action.calls == 1


def test_nothing_is_tried_again_once_the_run_ends() -> None:
    ending = threading.Event()
    ending.set()
    action = Troubled(SandboxDied("a"))
    with pytest.raises(SandboxDied):
        Patience(ending).insist(action)
    assert action.calls == 1
