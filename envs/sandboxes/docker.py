"""Sandboxes in containers of a Docker engine: one fresh container each, nothing is ever pulled.

No network, all capabilities dropped, no-new-privileges, limits on processes, memory (no swap) and CPU, sized tmpfs
for /tmp and /scratch, no engine-side log. The agent is PID 1 (no docker-init): see `envs/agent`.
Spare containers are started ahead (`_spares.py`), so that opening one of an image in use costs a message.
Closing does not wait for anything: the agent ends itself when its socket closes, and the container is
killed and removed in the background; `DockerBackend.close` waits for those removals.

Not covered: the size of the writable layer (overlay2 has no quota: one file is limited to 8 GiB, all together
are not), and kernel bugs.
"""

from __future__ import annotations

import atexit
import logging
import os
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ..errors import ConfigError, EngineTimeout, SandboxDied, SandboxError
from ..protocols import Limits, SandboxSpec
from ._disposal import Disposal
from ._engine import SCRATCH, Engine
from ._session import AgentSandbox, Link, setup_op
from ._spares import Key, Spares
from ._wire import MultiplexedWire

LOG = logging.getLogger("acidtest.sandbox")
BASE_IMAGE = "acidtest-base:bookworm"
START_S = 60.0
DIGEST_TTL_S = 30.0


def backend(
    *,
    base_image: str | None = None,
    timeout_s: float = 60.0,
    max_running: int = 64,
    creates: int = 2,
    spares: int = 2,
    max_spares: int = 6,
    run: str = "",
) -> DockerBackend:
    """Options of the docker sandbox. Raises EngineUnavailable.

    base_image: for tasks without one (else ACIDTEST_BASE_IMAGE). timeout_s: deadline of every engine call.
    max_running: sandboxes at a time; creates: containers being started at a time. spares: started ahead per image
    in use (0: none), max_spares: over all images. run: goes into the label `acidtest.run`.
    """
    image = base_image or os.environ.get("ACIDTEST_BASE_IMAGE") or BASE_IMAGE
    engine = Engine(timeout_s=timeout_s, run=run)
    return DockerBackend(
        engine,
        base_image=image,
        max_running=max_running,
        creates=creates,
        spares=spares,
        max_spares=max_spares,
    )


@dataclass(frozen=True)
class Started:
    """A container whose agent said hello and has done nothing yet."""

    container: str
    image: str
    link: Link
    wire: MultiplexedWire


class DockerSandbox(AgentSandbox):
    """An `AgentSandbox` that knows its container's id."""

    def __init__(self, started: Started, *, limits: Limits, on_close: Callable[[], None]) -> None:
        super().__init__(started.link, isolation="docker", limits=limits, on_close=on_close)
        self.container = started.container


class DockerBackend:
    """Opens containers. Thread-safe; not to be used in a forked child."""

    name = "docker"

    def __init__(
        self, engine: Engine, *, base_image: str, max_running: int, creates: int, spares: int, max_spares: int
    ) -> None:
        self.engine, self.base_image = engine, base_image
        self._running = threading.BoundedSemaphore(max_running)
        self._creates = threading.BoundedSemaphore(creates)
        self._disposal = Disposal(engine.remove)
        self.spares = Spares(
            lambda key: self._start(key.image, key.limits, "none"),
            lambda started: started.wire.alive(),
            self._discard,
            per_key=spares,
            total=max_spares,
        )
        self._digests: dict[str, tuple[float, str]] = {}
        self._pid = os.getpid()
        self._closed = False
        atexit.register(self.close)

    def open(self, spec: SandboxSpec, *, network: str = "none") -> DockerSandbox:
        """A fresh sandbox. network: "host" only for building images.

        Raises ImageMissing, EngineUnavailable, EngineTimeout, DiskFull, SandboxDied, SandboxError.
        """
        if self._closed or self._pid != os.getpid():
            raise ConfigError(
                "This docker backend is closed or belongs to another process.", mend="Open one per process."
            )
        if not self._running.acquire(timeout=600):
            raise EngineTimeout(
                "No sandbox came free in 600 s.", mend="Close sandboxes, or raise max_running."
            )
        try:
            image = spec.image or self.base_image
            spare = None
            if network == "none":
                spare = self.spares.take(Key(image, self._digest(image), spec.limits))
            if spare is not None:
                try:
                    return self._adopt(spare, spec)
                except SandboxDied:  # it died between the look and the first message
                    spare = None
            return self._adopt(self._start(image, spec.limits, network), spec)
        except BaseException:
            self._running.release()
            raise

    def _start(self, image: str, limits: Limits, network: str) -> Started:
        with self._creates:
            container = self.engine.create(image, limits, network=network, ours=image == self.base_image)
            try:
                wire = self.engine.attach_and_start(container, image)
                link = Link(
                    wire, f"container {container[:12]} of {image}", self._why_dead(container, image, wire)
                )
                try:
                    self._greet(link, image)
                except BaseException:
                    link.close()
                    raise
            except BaseException:
                self._disposal.put(container)
                raise
        return Started(container, image, link, wire)

    def _greet(self, link: Link, image: str) -> None:
        try:
            link.hello(time.monotonic() + START_S)
        except SandboxError:
            raise
        except TimeoutError as error:
            raise EngineTimeout(
                f"The agent in a container of {image} did not start in {START_S:.0f} s.",
                mend="Is the machine overloaded? See `acidtest doctor`.",
            ) from error
        except (OSError, EOFError) as error:
            raise link.why_dead() from error

    def _adopt(self, started: Started, spec: SandboxSpec) -> DockerSandbox:
        """Set a started container up for a spec. On failure it is disposed of."""
        sandbox = DockerSandbox(
            started, limits=spec.limits, on_close=lambda: self._dispose(started.container)
        )
        env = {"GIT_CEILING_DIRECTORIES": os.path.dirname(spec.workdir), **spec.env}
        ours = started.image == self.base_image
        op = setup_op(workdir=spec.workdir, scratch=SCRATCH, env=env, inherit=True, rlimits=(), ready=ours)
        try:
            sandbox.setup(op, spec.files)
        except BaseException:
            self._discard(started)
            raise
        return sandbox

    def _discard(self, started: Started) -> None:
        started.link.close()
        self._disposal.put(started.container)

    def _dispose(self, container: str) -> None:
        self._running.release()
        self._disposal.put(container)

    def _why_dead(self, container: str, image: str, wire: MultiplexedWire) -> Callable[[], SandboxError]:
        def explain() -> SandboxError:
            state = self.engine.state(container)
            said = bytes(wire.stderr).decode("utf-8", "replace").strip().splitlines()
            if not state:
                how = "was removed from outside"
            elif state.get("OOMKilled"):
                how = "ran out of memory and its agent was killed"
            elif state.get("Running"):
                how = "lost its connection"
            else:
                how = f"ended with exit code {state.get('ExitCode')}" + (f" ({said[-1]})" if said else "")
            return SandboxDied(
                f"Container {container[:12]} of {image} {how}.", mend="It is retried in a fresh one."
            )

        return explain

    def image_digest(self, image: str | None) -> str:
        """Content id, remembered for 30 s; "" for None."""
        return "" if image is None else self._digest(image)

    def _digest(self, image: str) -> str:
        then, digest = self._digests.get(image, (0.0, ""))
        if not digest or time.monotonic() - then > DIGEST_TTL_S:
            digest = self.engine.image_id(image)
            self._digests[image] = (time.monotonic(), digest)
        return digest

    def reap(self) -> int:
        """Remove what dead processes of this machine left at the engine; how many containers."""
        return self.engine.reap()

    def close(self) -> None:
        """Disposes of the spares and waits until every closed sandbox's container is removed. Idempotent."""
        if self._closed or self._pid != os.getpid():
            return
        self._closed = True
        atexit.unregister(self.close)
        self.spares.close()
        self._disposal.close()
        try:  # what an engine in trouble made without telling us, or would not remove at the time
            self.engine.remove_mine()
        except SandboxError as error:
            LOG.warning("containers may be left to the next run's reaper: %s", error)
        finally:
            self.engine.close()
