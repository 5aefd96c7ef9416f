"""Every container handed over is removed, whoever closes first."""

from __future__ import annotations

import threading
import time

import pytest

from acidtest.envs.errors import EngineTimeout
from acidtest.envs.sandboxes._disposal import Disposal


def test_everything_put_is_removed_before_close_returns() -> None:
    gone: list[str] = []
    disposal = Disposal(lambda container: (time.sleep(0.002), gone.append(container))[1], bound=4)
    threads = [
        threading.Thread(target=lambda k=k: [disposal.put(f"{k}.{i}") for i in range(25)]) for k in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    disposal.close()
    assert len(gone) == len(set(gone)) == 100


def test_put_during_and_after_close_still_removes() -> None:
    """A thread that closes its sandbox while the backend is closed must not strand a worker."""
    gone: list[str] = []
    disposal = Disposal(lambda container: (time.sleep(0.01), gone.append(container))[1])
    disposal.put("a")
    late = threading.Thread(target=lambda: [disposal.put(str(i)) for i in range(20)])
    late.start()
    start = time.monotonic()
    disposal.close()
    late.join()
    disposal.put("b")
    disposal.close()
    assert time.monotonic() - start < 5
    assert set(gone) == {"a", "b", *map(str, range(20))}


def test_what_cannot_be_removed_is_tried_three_times_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    tries = []

    def fail(container: str) -> None:
        tries.append(container)
        raise EngineTimeout("hung")

    disposal = Disposal(fail)
    disposal.put("0123456789abcdef")
    disposal.close()
    assert len(tries) == 3
    assert "0123456789ab is left to the next run's reaper" in caplog.text
