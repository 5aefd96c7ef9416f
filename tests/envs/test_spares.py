"""Spare containers: made ahead, used once, bounded, and never in the way."""

from __future__ import annotations

import threading
import time

import pytest

from acidtest.envs.errors import EngineUnavailable
from acidtest.envs.protocols import Limits, SandboxSpec
from acidtest.envs.sandboxes import docker
from acidtest.envs.sandboxes._owner import owner
from acidtest.envs.sandboxes._spares import Key, Spares


class Yard:
    """Makes numbered spares; `dead` ones are no longer alive."""

    def __init__(self) -> None:
        self.made: list[Key] = []
        self.gone: list[int] = []
        self.dead: set[int] = set()
        self.fail = False
        self.lock = threading.Lock()

    def make(self, key: Key) -> int:
        if self.fail:
            raise EngineUnavailable("no engine")
        with self.lock:
            self.made.append(key)
            return len(self.made)

    def spares(self, **options: int) -> Spares:
        return Spares(self.make, lambda spare: spare not in self.dead, self.gone.append, **options)


def key(image: str) -> Key:
    return Key(image, "sha256:1", Limits())


def wait_for(what: object, timeout_s: float = 5.0) -> None:
    assert callable(what)
    end = time.monotonic() + timeout_s
    while not what():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.005)


@pytest.fixture
def yard() -> Yard:
    return Yard()


def test_each_spare_is_used_once_and_replaced(yard: Yard) -> None:
    spares = yard.spares(per_key=2, total=4)
    assert spares.take(key("a")) is None
    taken = []
    for _ in range(5):
        wait_for(lambda: spares.ready(key("a")))
        taken.append(spares.take(key("a")))
    assert len(set(taken)) == 5
    wait_for(lambda: spares.ready(key("a")) == 2)
    spares.close()
    assert sorted([*taken, *yard.gone]) == list(range(1, len(yard.made) + 1))


def test_total_is_a_bound_and_the_longest_unused_image_gives_way(yard: Yard) -> None:
    spares = yard.spares(per_key=2, total=2)
    for image in ("a", "b", "c"):
        spares.take(key(image))
        wait_for(lambda image=image: spares.ready(key(image)) == 1)
        assert sum(spares.ready(key(name)) for name in "abc") <= 2
    assert spares.ready(key("a")) == 0
    spares.close()
    assert len(yard.gone) == len(yard.made)


def test_a_dead_spare_is_discarded(yard: Yard) -> None:
    spares = yard.spares(per_key=1, total=1)
    spares.take(key("a"))
    wait_for(lambda: spares.ready(key("a")))
    yard.dead.add(1)
    assert spares.take(key("a")) is None
    assert yard.gone == [1]
    spares.close()


def test_failure_to_make_one_is_quiet_and_rests(yard: Yard) -> None:
    yard.fail = True
    spares = yard.spares(per_key=1, total=1)
    assert spares.take(key("a")) is None
    time.sleep(0.1)
    assert spares.take(key("a")) is None
    start = time.monotonic()
    spares.close()
    assert time.monotonic() - start < 1
    assert yard.made == []


@pytest.mark.docker
def test_a_spare_hides_the_start_of_the_container(base_image: str) -> None:
    """Warm opening is a message; the content of the image decides whether a spare fits."""
    backend = docker.backend(spares=1)
    spec = SandboxSpec(image=None, workdir="/testbed", files={"a": "1"})
    try:
        backend.open(spec).close()
        wait_for(
            lambda: backend.spares._shelves and all(s.ready for s in backend.spares._shelves.values()), 30
        )
        (shelf,) = backend.spares._shelves.values()
        ready = shelf.ready[0].container
        with backend.open(spec) as box:
            assert box.container == ready
            assert box.read("a") == b"1"
        assert backend.spares.hits == 1
    finally:
        backend.close()
    engine = docker.Engine()
    try:
        assert owner() not in engine.ours().values()
    finally:
        engine.close()
