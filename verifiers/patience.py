"""How long an audit puts up with trouble that may pass: a sandbox that died, an engine that is being restarted."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ..envs.errors import EngineUnavailable, SandboxError

T = TypeVar("T")
FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 8.0


class Patience:
    """Does something again after a retryable SandboxError, up to `tries` times in all.

    An engine that does not answer costs no try but time: it is waited for, `outage_s` seconds at a stretch.
    ending: once it is set nothing is tried again. Not retryable (no image, no disk space): raised at once.
    """

    def __init__(self, ending: threading.Event, *, tries: int = 3, outage_s: float = 120.0) -> None:
        self._ending, self._left, self._outage_s = ending, tries - 1, outage_s
        self._since = self._last = -outage_s
        self._pause = FIRST_PAUSE_S

    def insist(self, action: Callable[[], T]) -> T:
        """The action's result. Raises the last SandboxError when patience runs out, anything else at once."""
        while True:
            try:
                return action()
            except SandboxError as error:
                if not error.retryable or not self._again(error) or self._ending.wait(self._pause):
                    raise

    def _again(self, error: SandboxError) -> bool:
        if not isinstance(error, EngineUnavailable):
            self._left -= 1
            return self._left >= 0
        now = time.monotonic()
        if now - self._last > 3 * LONGEST_PAUSE_S:  # it was back in between
            self._since, self._pause = now, FIRST_PAUSE_S
        else:
            self._pause = min(2 * self._pause, LONGEST_PAUSE_S)
        self._last = now
        return now - self._since < self._outage_s
