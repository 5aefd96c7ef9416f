"""Containers started ahead of need: used once each, bounded in number, memory and strain on the engine."""

from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import OrderedDict, deque
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..errors import SandboxError
from ..protocols import Limits

LOG = logging.getLogger("acidtest.sandbox")
MEMORY_FLOOR_MIB = 1024
SLOW_S = 3.0
REST_S = 15.0


@dataclass(frozen=True)
class Key:
    """What a started container is good for: this image with this content, and these limits."""

    image: str
    digest: str
    limits: Limits


@dataclass
class _Shelf:
    ready: deque[Any] = field(default_factory=deque)
    uses: int = 0
    making: int = 0


class Spares:
    """Keeps up to `per_key` spares for keys in use and `total` over all; the key unused for longest loses first.

    make: starts one (may raise SandboxError); alive: whether it can still be used; discard: disposes of one.
    One background thread makes them: nothing while less than 1 GiB of memory is free, and it rests for 15 s
    after a failure or when the engine took longer than 3 s.
    """

    def __init__(
        self,
        make: Callable[[Key], Any],
        alive: Callable[[Any], bool],
        discard: Callable[[Any], None],
        *,
        per_key: int,
        total: int,
    ) -> None:
        self._make, self._alive, self._discard = make, alive, discard
        self.per_key, self.total = per_key, total
        self._shelves: OrderedDict[Key, _Shelf] = OrderedDict()
        self._change = threading.Condition()
        self._thread: threading.Thread | None = None
        self._closed = False
        self.hits = self.misses = 0

    def take(self, key: Key) -> Any | None:
        """A spare that is alive, or None; either way one more is made ahead."""
        if self.per_key <= 0:
            return None
        dead, found = [], None
        with self._change:
            shelf = self._shelves.setdefault(key, _Shelf())
            self._shelves.move_to_end(key)
            shelf.uses += 1
            while shelf.ready and found is None:
                spare = shelf.ready.popleft()
                if self._alive(spare):
                    found = spare
                else:
                    dead.append(spare)
            self.hits, self.misses = self.hits + (found is not None), self.misses + (found is None)
            if self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="acidtest-spares", daemon=True)
                self._thread.start()
            self._change.notify()
        for spare in dead:
            self._discard(spare)
        return found

    def ready(self, key: Key) -> int:
        with self._change:
            shelf = self._shelves.get(key)
            return len(shelf.ready) if shelf else 0

    def close(self) -> None:
        """Disposes of every spare; waits for the one being made."""
        with self._change:
            self._closed = True
            self._change.notify()
        if self._thread is not None:
            self._thread.join()
        with self._change:
            left = [spare for shelf in self._shelves.values() for spare in shelf.ready]
            self._shelves.clear()
        for spare in left:
            self._discard(spare)

    def _work(self) -> None:
        while True:
            with self._change:
                while not self._closed and (key := self._wanting()) is None:
                    self._change.wait()
                if self._closed or key is None:
                    return
                evicted = self._evict(key)
            for spare in evicted:
                self._discard(spare)
            self._add(key)

    def _wanting(self) -> Key | None:
        """The key used last that has too few: one after its first use, `per_key` after more."""
        for key in reversed(self._shelves):
            shelf = self._shelves[key]
            if len(shelf.ready) < min(self.per_key, shelf.uses):
                return key
        return None

    def _evict(self, wanting: Key) -> list[Any]:
        """Spares of the longest unused keys, until there is room for one more; drops empty shelves on the way."""
        out: list[Any] = []
        for key in list(self._shelves):
            if sum(len(shelf.ready) for shelf in self._shelves.values()) < self.total:
                break
            if key == wanting:
                continue
            shelf = self._shelves[key]
            out.extend(shelf.ready)
            del self._shelves[key]
        return out

    def _add(self, key: Key) -> None:
        start = time.monotonic()
        if (
            sum(len(shelf.ready) for shelf in self._shelves.values()) >= self.total
            or _free_mib() < MEMORY_FLOOR_MIB
        ):
            self._rest(1.0)
            return
        try:
            spare = self._make(key)
        except SandboxError as error:
            LOG.info("no spare container of %s: %s", key.image, error)
            with self._change:
                self._shelves.pop(key, None)
            self._rest(REST_S)
            return
        with self._change:
            shelf = self._shelves.get(key)
            if shelf is not None and not self._closed:
                shelf.ready.append(spare)
                spare = None
        if spare is not None:
            self._discard(spare)
        if time.monotonic() - start > SLOW_S:
            self._rest(REST_S)

    def _rest(self, seconds: float) -> None:
        end = time.monotonic() + seconds
        with self._change:
            while not self._closed and (left := end - time.monotonic()) > 0:
                self._change.wait(left)


def _free_mib() -> int:
    with contextlib.suppress(OSError):
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) >> 10
    return MEMORY_FLOOR_MIB
