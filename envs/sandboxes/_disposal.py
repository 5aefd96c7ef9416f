"""Removing containers in the background: bounded, retried, joined on close."""

from __future__ import annotations

import logging
import queue
import threading
from collections.abc import Callable

from ..errors import SandboxError

LOG = logging.getLogger("acidtest.sandbox")


class Disposal:
    """Worker threads that call `remove(container)`. A full queue makes `put` wait: removals are never dropped.

    What cannot be removed after three tries is left to the reaper of the next run and logged.
    """

    def __init__(self, remove: Callable[[str], None], *, workers: int = 2, bound: int = 256) -> None:
        self._remove = remove
        self._queue: queue.Queue[str | None] = queue.Queue(bound)
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._lock = threading.Lock()

    def put(self, container: str) -> None:
        with self._lock:
            if len(self._threads) < self._workers:
                thread = threading.Thread(target=self._work, name="acidtest-disposal", daemon=True)
                self._threads.append(thread)
                thread.start()
        self._queue.put(container)

    def close(self) -> None:
        """Returns when everything put so far is removed."""
        with self._lock:
            threads, self._threads = self._threads, []
        for _ in threads:
            self._queue.put(None)
        for thread in threads:
            thread.join()

    def _work(self) -> None:
        while (container := self._queue.get()) is not None:
            for attempt in range(3):
                try:
                    self._remove(container)
                    break
                except SandboxError as error:
                    if attempt == 2:
                        LOG.warning(
                            "container %s is left to the next run's reaper: %s", container[:12], error
                        )
