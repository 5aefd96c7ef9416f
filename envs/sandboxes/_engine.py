"""Calls to a Docker engine (or Podman's compatible socket): deadlines, and errors in our words."""

from __future__ import annotations

import contextlib
import os
import socket
import uuid
from collections.abc import Iterator
from typing import Any

from ..agent import argv
from ..errors import DiskFull, EngineTimeout, EngineUnavailable, ImageMissing, SandboxDied, SandboxError
from ..protocols import Limits
from ._owner import is_dead, owner
from ._session import PINNED_ENV
from ._wire import MultiplexedWire

OWNER_LABEL = "acidtest.owner"
RUN_LABEL = "acidtest.run"
BACKEND_LABEL = "acidtest.backend"
SCRATCH = "/scratch"
FILE_SIZE = 8 << 30
"""Largest single file a sandbox may write (overlay2 has no quota of its own)."""


class Engine:
    """One engine, by the docker SDK's low-level client. Thread-safe; every call has the deadline `timeout_s`.

    Raises EngineUnavailable when no engine answers at DOCKER_HOST (or the SDK's default socket).
    """

    def __init__(self, *, timeout_s: float = 60.0, run: str = "") -> None:
        self.run, self.token = run, uuid.uuid4().hex
        self._api: Any = _connect(timeout_s)
        self.local = not self._api.base_url.startswith("https") and "tcp" not in os.environ.get(
            "DOCKER_HOST", ""
        )

    def image_id(self, image: str) -> str:
        """Content id (sha256:…). Raises ImageMissing; nothing is ever pulled."""
        with _mapped(f"image {image}", image=image):
            return str(self._api.inspect_image(image)["Id"])

    def create(self, image: str, limits: Limits, *, network: str = "none", ours: bool = False) -> str:
        """Id of a created container whose only process will be the agent (PID 1).

        network: "none" for everything untrusted; "host" only while images are built. ours: an image that holds
        nothing of a task: the agent is an ordinary interpreter there, which can have another one wait.
        """
        tmpfs = f"size={limits.tmpfs_mib}m,mode=1777,exec,nosuid,nodev"
        import docker.types

        host = self._api.create_host_config(
            network_mode=network,
            cap_drop=["ALL"],
            security_opt=["no-new-privileges"],
            pids_limit=limits.pids,
            mem_limit=limits.memory_mib << 20,
            memswap_limit=limits.memory_mib << 20,
            nano_cpus=int(limits.cpus * 1e9),
            tmpfs={"/tmp": tmpfs, SCRATCH: tmpfs},
            shm_size=min(limits.tmpfs_mib, 256) << 20,
            ulimits=[docker.types.Ulimit(name="fsize", soft=FILE_SIZE, hard=FILE_SIZE)],
            log_config=docker.types.LogConfig(type="none"),
            oom_score_adj=0,
        )
        with _mapped(f"a container of {image}", image=image):
            made = self._api.create_container(
                image,
                entrypoint=[],
                command=argv("python3", isolated=not ours),
                environment=dict(PINNED_ENV) if ours else None,
                stdin_open=True,
                hostname="sandbox",
                working_dir="/",
                network_disabled=network == "none",
                labels={OWNER_LABEL: owner(), RUN_LABEL: self.run, BACKEND_LABEL: self.token},
                healthcheck={"test": ["NONE"]},
                stop_signal="SIGKILL",  # PID 1 ignores SIGTERM, so a stopping engine would wait 10 s for each of us
                host_config={**host, "StdinOnce": True},
            )
        return str(made["Id"])

    def attach_and_start(self, container: str, image: str) -> MultiplexedWire:
        """Start the container with its stdin and stdout on a socket of ours."""
        with _mapped(f"a container of {image}", image=image):
            params = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            stream = self._api.attach_socket(container, params=params)
            wire = MultiplexedWire(_duplicate(stream))
            try:
                self._api.start(container)
            except BaseException:
                wire.close()
                raise
        return wire

    def state(self, container: str) -> dict[str, Any]:
        """The engine's State of a container; {} when it is gone."""
        import docker.errors

        with _mapped(f"container {container[:12]}"):
            try:
                state: dict[str, Any] = self._api.inspect_container(container)["State"]
            except docker.errors.NotFound:
                return {}
        return state

    def remove(self, container: str) -> None:
        """Kill and remove, its anonymous volumes too. A container that is gone already is fine."""
        import docker.errors

        with _mapped(f"container {container[:12]}"):
            try:
                self._api.remove_container(container, force=True, v=True)
            except docker.errors.NotFound:
                return
            except docker.errors.APIError as error:
                if error.status_code != 409:
                    raise

    def kill(self, container: str) -> None:
        """Kill what runs in it. One that is gone or has ended is fine."""
        import docker.errors

        with _mapped(f"container {container[:12]}"):
            try:
                self._api.kill(container)
            except docker.errors.APIError as error:
                if error.status_code not in (404, 409):
                    raise

    def limit_memory(self, container: str, mib: int) -> None:
        """Another memory limit for a running container (fault injection)."""
        with _mapped(f"container {container[:12]}"):
            self._api.update_container(container, mem_limit=mib << 20, memswap_limit=mib << 20)

    def ours(self) -> dict[str, str]:
        """Every container of any acidtest process, id -> owner label (images of ours carry an empty one)."""
        with _mapped("the list of containers"):
            found = self._api.containers(all=True, filters={"label": OWNER_LABEL})
        labels = {item["Id"]: item["Labels"].get(OWNER_LABEL, "") for item in found}
        return {container: label for container, label in labels.items() if label}

    def remove_mine(self) -> int:
        """Remove whatever containers this engine object made and that are still there; how many there were."""
        with _mapped("the list of containers"):
            found = self._api.containers(all=True, filters={"label": f"{BACKEND_LABEL}={self.token}"})
        for item in found:
            self.remove(item["Id"])
        return len(found)

    def reap(self) -> int:
        """Remove the containers of dead owners on this machine; how many there were. Never touches others."""
        dead = [container for container, label in self.ours().items() if is_dead(label, local=self.local)]
        for container in dead:
            self.remove(container)
        return len(dead)

    def commit(self, container: str, name: str, changes: list[str]) -> str:
        """Make an image of a container; its id. The owner label is emptied: images belong to nobody."""
        repository, _, tag = name.rpartition(":")
        with _mapped(f"image {name}", image=name):
            changes = [*changes, f'LABEL {OWNER_LABEL}="" {RUN_LABEL}="" {BACKEND_LABEL}=""']
            made = self._api.commit(container, repository=repository, tag=tag, changes=changes)
        return str(made["Id"])

    def tag(self, image: str, name: str) -> None:
        repository, _, tag = name.rpartition(":")
        with _mapped(f"image {image}", image=image):
            self._api.tag(image, repository, tag, force=True)

    def image(self, name: str) -> dict[str, Any] | None:
        """The engine's description of an image, None when it is not there."""
        try:
            with _mapped(f"image {name}", image=name):
                found: dict[str, Any] = self._api.inspect_image(name)
        except ImageMissing:
            return None
        return found

    def history(self, name: str) -> list[tuple[str, int, int]]:
        """Steps that made an image, oldest first: (command, time, bytes)."""
        with _mapped(f"image {name}", image=name):
            found = self._api.history(name)
        return [(str(step["CreatedBy"]), int(step["Created"]), int(step["Size"])) for step in reversed(found)]

    def info(self) -> dict[str, Any]:
        with _mapped("engine"):
            return {**self._api.info(), "Version": self._api.version()}

    def close(self) -> None:
        self._api.close()


def _connect(timeout_s: float) -> Any:
    """A client that speaks the engine's own version of the API. Raises EngineUnavailable, EngineTimeout."""
    import docker

    from ._transport import mend

    options = {**_from_env(), "timeout": timeout_s}
    try:
        first = mend(docker.APIClient(**options, version="1.41"))
    except docker.errors.DockerException as error:
        raise _unavailable(error) from error
    try:
        with _mapped("its version"):
            version = first.version(api_version=False)["ApiVersion"]
    finally:
        first.close()
    return mend(docker.APIClient(**options, version=version))


def _from_env() -> dict[str, Any]:
    """DOCKER_HOST, DOCKER_TLS_VERIFY, DOCKER_CERT_PATH as the SDK reads them."""
    from docker.utils import kwargs_from_env

    return dict(kwargs_from_env())


def _duplicate(stream: Any) -> socket.socket:
    """The plain socket under the SDK's attach stream, as one of ours; everything the SDK held is closed."""
    response = getattr(stream, "_response", None)
    inner = getattr(stream, "_sock", stream)
    if type(inner) is not socket.socket:
        return inner  # type: ignore[no-any-return]  # TLS or ssh: cannot be duplicated
    copy = inner.dup()
    if response is None:
        stream.close()
    else:
        response.close()
    return copy


@contextlib.contextmanager
def _mapped(what: str, *, image: str = "") -> Iterator[None]:
    """Engine trouble of any library in our error classes, in one line."""
    import docker.errors
    import requests.exceptions
    import urllib3.exceptions

    try:
        yield
    except docker.errors.ImageNotFound as error:
        raise image_missing(image or what) from error
    except docker.errors.APIError as error:
        raise _of_api(error, what, image) from error
    except (requests.exceptions.Timeout, urllib3.exceptions.TimeoutError, TimeoutError) as error:
        raise _timeout(what) from error
    except (requests.exceptions.RequestException, urllib3.exceptions.HTTPError, OSError) as error:
        if isinstance(error, SandboxError):
            raise
        raise _unavailable(error) from error


def _timeout(what: str) -> EngineTimeout:
    return EngineTimeout(
        f"The engine did not answer in time for {what}.",
        mend="Is it hung or overloaded? See `acidtest doctor`.",
    )


def image_missing(image: str) -> ImageMissing:
    return ImageMissing(
        f"The image {image} is not on this machine, and images are never pulled.",
        mend="Build it with `acidtest images build`, or load it with `docker load` or `docker pull`.",
    )


def _of_api(error: Any, what: str, image: str) -> SandboxError:
    text = " ".join(str(error.explanation or error).split())
    if "no space left on device" in text.lower():
        return DiskFull(f"No space left for {what}: {text}.", mend="Free space in the engine's data folder.")
    if "no such image" in text.lower():
        return image_missing(image)
    if "executable file not found" in text or "no such file or directory" in text.lower():
        failed = SandboxError(
            f"{what}: no python3 in it ({text}).", mend="Sandboxes need a python3 on the image's PATH."
        )
        failed.retryable = False
        return failed
    if error.status_code == 404:
        return SandboxDied(
            f"{what} is gone ({text}).", mend="Somebody removed it; it is retried in a fresh one."
        )
    return SandboxError(f"The engine refused {what}: {text}.", mend="See `acidtest doctor`.")


def _unavailable(error: BaseException) -> EngineUnavailable:
    where = os.environ.get("DOCKER_HOST", "the default socket")
    reason = " ".join(str(error).split())[:200]
    return EngineUnavailable(
        f"No Docker engine answers at {where} ({type(error).__name__}: {reason}).",
        mend="Start it or set DOCKER_HOST; `acidtest doctor` shows what is wrong.",
    )
