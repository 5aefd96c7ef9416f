"""Sandboxes in containers of a Docker engine: one fresh container each, nothing is ever pulled.

No network, all capabilities dropped, no-new-privileges, limits on processes, memory (no swap) and CPU, sized tmpfs
for /tmp and /scratch, no engine-side log. The agent is PID 1 (no docker-init): see `envs/agent`.
Closing does not wait for anything: the agent ends itself when its socket closes, and the container is
killed and removed in the background; `DockerBackend.close` waits for those removals.

Not covered: the size of the writable layer (overlay2 has no quota: one file is limited to 8 GiB, all together
are not), and kernel bugs.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable

from ..errors import EngineTimeout, SandboxDied, SandboxError
from ..protocols import Limits, SandboxSpec
from ._disposal import Disposal
from ._engine import SCRATCH, Engine
from ._session import AgentSandbox, Link, setup_op
from ._wire import MultiplexedWire

BASE_IMAGE = "acidtest-base:bookworm"
START_S = 60.0
DIGEST_TTL_S = 30.0


def backend(
    *, base_image: str | None = None, timeout_s: float = 60.0, max_running: int = 64, run: str = ""
) -> DockerBackend:
    """base_image: for tasks without one (ACIDTEST_BASE_IMAGE). timeout_s: deadline of every engine call.

    max_running: containers at a time, over all threads. Raises EngineUnavailable.
    """
    image = base_image or os.environ.get("ACIDTEST_BASE_IMAGE") or BASE_IMAGE
    return DockerBackend(Engine(timeout_s=timeout_s, run=run), base_image=image, max_running=max_running)


class DockerSandbox(AgentSandbox):
    """An `AgentSandbox` that knows its container's id."""

    def __init__(self, link: Link, *, container: str, limits: Limits, on_close: Callable[[], None]) -> None:
        super().__init__(link, isolation="docker", limits=limits, on_close=on_close)
        self.container = container


class DockerBackend:
    """Opens containers. Thread-safe."""

    name = "docker"

    def __init__(self, engine: Engine, *, base_image: str, max_running: int) -> None:
        self.engine, self.base_image = engine, base_image
        self._running = threading.BoundedSemaphore(max_running)
        self._disposal = Disposal(engine.remove)
        self._digests: dict[str, tuple[float, str]] = {}

    def open(self, spec: SandboxSpec, *, network: str = "none") -> DockerSandbox:
        """A fresh sandbox. network: "host" only for building images. Raises ImageMissing, EngineUnavailable, EngineTimeout, DiskFull, SandboxError."""
        if not self._running.acquire(timeout=600):
            raise EngineTimeout(
                "No sandbox came free in 600 s.", mend="Close sandboxes, or raise max_running."
            )
        try:
            return self._open(spec, network)
        except BaseException:
            self._running.release()
            raise

    def _open(self, spec: SandboxSpec, network: str) -> DockerSandbox:
        image = spec.image or self.base_image
        container = self.engine.create(image, spec.limits, network=network)
        try:
            wire = self.engine.attach_and_start(container, image)
            link = Link(
                wire, f"container {container[:12]} of {image}", self._why_dead(container, image, wire)
            )
            sandbox = DockerSandbox(
                link, container=container, limits=spec.limits, on_close=lambda: self._dispose(container)
            )
            try:
                self._greet(link, container, image, wire)
                env = {"GIT_CEILING_DIRECTORIES": os.path.dirname(spec.workdir), **spec.env}
                op = setup_op(workdir=spec.workdir, scratch=SCRATCH, env=env, inherit=True, rlimits=())
                sandbox.setup(op, spec.files)
            except BaseException:
                link.close()
                raise
        except BaseException:
            self._disposal.put(container)
            raise
        return sandbox

    def _greet(self, link: Link, container: str, image: str, wire: MultiplexedWire) -> None:
        try:
            link.hello(time.monotonic() + START_S)
        except TimeoutError as error:
            raise EngineTimeout(
                f"The agent in a container of {image} did not start.", mend="See `acidtest doctor`."
            ) from error
        except (OSError, EOFError) as error:
            if isinstance(error, SandboxError):
                raise
            raise self._why_dead(container, image, wire)() from error

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
        if image is None:
            return ""
        then, digest = self._digests.get(image, (0.0, ""))
        if not digest or time.monotonic() - then > DIGEST_TTL_S:
            digest = self.engine.image_id(image)
            self._digests[image] = (time.monotonic(), digest)
        return digest

    def reap(self) -> int:
        """Remove what dead processes of this machine left at the engine; how many containers."""
        return self.engine.reap()

    def close(self) -> None:
        """Waits until every closed sandbox's container is removed."""
        self._disposal.close()
        self.engine.close()
