"""Removing containers in the background: bounded, retried, joined on close."""

from __future__ import annotations

import logging
import threading
from collections import deque
from collections.abc import Callable

from ..errors import SandboxError

LOG = logging.getLogger("acidtest.sandbox")
JOIN_S = 180.0


class Disposal:
    """Worker threads that call `remove(container)`. At `bound` waiting ones `put` waits: none is ever dropped.

    What cannot be removed after three tries is left to the reaper of the next run and logged. After `close`,
    and where no thread can be started any more (the interpreter is ending), `put` removes by itself.
    """

    def __init__(self, remove: Callable[[str], None], *, workers: int = 2, bound: int = 256) -> None:
        self._remove_one, self._workers, self._bound = remove, workers, bound
        self._waiting: deque[str] = deque()
        self._threads: list[threading.Thread] = []
        self._change = threading.Condition()
        self._closed = False

    def put(self, container: str) -> None:
        with self._change:
            self._change.wait_for(lambda: len(self._waiting) < self._bound or self._closed)
            if not self._closed and self._staffed():
                self._waiting.append(container)
                self._change.notify_all()
                return
        self._remove(container)

    def close(self) -> None:
        """Returns when everything put so far is removed (or after three minutes: then it is the reaper's)."""
        with self._change:
            self._closed = True
            self._change.notify_all()
        for thread in self._threads:
            thread.join(JOIN_S)

    def _staffed(self) -> bool:
        """Start another worker while there are too few; whether there is any."""
        if len(self._threads) < self._workers:
            thread = threading.Thread(target=self._work, name="acidtest-disposal", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                return bool(self._threads)
            self._threads.append(thread)
        return True

    def _work(self) -> None:
        while True:
            with self._change:
                self._change.wait_for(lambda: self._waiting or self._closed)
                if not self._waiting:
                    return
                container = self._waiting.popleft()
                self._change.notify_all()
            self._remove(container)

    def _remove(self, container: str) -> None:
        for attempt in range(3):
            try:
                self._remove_one(container)
                return
            except SandboxError as error:
                if attempt == 2:
                    LOG.warning("container %s is left to the next run's reaper: %s", container[:12], error)
