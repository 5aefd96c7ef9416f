"""The seams of floor 1, all in one place: sandbox, framework, data set.

To add one, create a file in the folder named beside it; the folder listing is the registry (`envs/registry.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol, runtime_checkable

from .run import Status
from .task import Suite, Task


@dataclass(frozen=True, kw_only=True)
class Limits:
    """Resource limits of one sandbox. Memory and disk in MiB, wall times in seconds."""

    memory_mib: int = 4096
    cpus: float = 1.0
    pids: int = 512
    tmpfs_mib: int = 512
    output_bytes: int = 1_000_000


@dataclass(frozen=True, kw_only=True)
class SandboxSpec:
    """What a sandbox is opened with. `files` are written into `workdir` first. The network is always off."""

    image: str | None
    workdir: str
    files: Mapping[str, str] = field(default_factory=dict)
    env: Mapping[str, str] = field(default_factory=dict)
    limits: Limits = field(default_factory=Limits)

    @classmethod
    def of(cls, task: Task, limits: Limits | None = None) -> SandboxSpec:
        return cls(image=task.image, workdir=task.workdir, files=task.files, limits=limits or Limits())


@dataclass(frozen=True, kw_only=True)
class Channel:
    """A message channel between a command and the resident agent that supervises it.

    The command inherits one end of a SOCK_SEQPACKET pair; its number is in the environment variable
    ACIDTEST_FD. Each packet is one message. A message that starts with b"?" is a question: the agent
    replies at once with `replies.get(question, default)` where question is the text after the mark.
    Every message (questions included) is kept, in order, up to `max_messages` and `max_bytes`.
    stop: test ids. The first message ["e",id,"failed" or "error",seconds] of one of them, written without spaces as our
    helpers do, ends the command: the agent kills it and keeps nothing that comes after. The command cannot see that there is such a rule.
    """

    default: str = "go"
    replies: Mapping[str, str] = field(default_factory=dict)
    max_messages: int = 200_000
    max_bytes: int = 64_000_000
    stop: tuple[str, ...] = ()
    armed: bool = True
    """False: the rule to stop is there and never fires, so that the agent's memory is as with it."""


@dataclass(frozen=True, kw_only=True)
class Exec:
    """Run a command. A `str` goes through `bash -c`, a tuple is an argv. `cwd` defaults to the workdir.

    At `timeout_s` the whole process tree is killed (descendants that left the session or group included).
    When the main process ends, whatever it left running is killed too.
    """

    command: str | tuple[str, ...]
    timeout_s: float = 60.0
    cwd: str | None = None
    env: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = b""
    output_bytes: int = 1_000_000
    channel: Channel | None = None
    check: bool = False
    """In a `script`: stop after this op when its exit code is not 0. For commands of ours that run nobody's code."""
    ready: tuple[str, ...] = ()
    """The same as a script and its arguments, for the sandbox's waiting interpreter: `python SCRIPT ARGUMENT...`."""


@dataclass(frozen=True, kw_only=True)
class Write:
    """Write files (path relative to workdir, or absolute), making folders, replacing what is there.

    Never follows a symbolic link that stands at the path or in a folder of it: the link is replaced.
    """

    files: Mapping[str, bytes]


@dataclass(frozen=True, kw_only=True)
class Read:
    """Read one file (regular files only), at most `limit` bytes. A missing file gives `found=False`."""

    path: str
    limit: int = 10_000_000


Op = Exec | Write | Read


@dataclass(frozen=True, kw_only=True)
class ExecResult:
    """exit_code None: killed by us. `output` is merged stdout and stderr, head and tail kept when bounded.

    stopped: `Channel.stop` ended it (then it did not time out).
    """

    exit_code: int | None
    output: bytes = b""
    truncated: bool = False
    timed_out: bool = False
    stopped: bool = False
    out_of_memory: bool = False
    seconds: float = 0.0
    messages: tuple[bytes, ...] = ()


@dataclass(frozen=True, kw_only=True)
class ReadResult:
    found: bool
    data: bytes = b""
    truncated: bool = False


OpResult = ExecResult | ReadResult | None


@runtime_checkable
class Sandbox(Protocol):
    """One fresh place to run untrusted code. A context manager; closing kills everything in it at once.

    workdir, scratch: absolute paths *inside*; scratch lies outside the tree. isolation: what to say of it,
    e.g. "docker", "bubblewrap", "none (plain process)".
    Infrastructure trouble raises a `SandboxError`; what the command did is data.
    """

    workdir: str
    scratch: str
    isolation: str

    def script(self, ops: Sequence[Op]) -> tuple[OpResult, ...]:
        """Run the ops in order with one message to the sandbox; stops early after a failed `check`."""
        ...

    def exec(self, command: str | tuple[str, ...], *, timeout_s: float = 60.0) -> ExecResult: ...
    def write(self, files: Mapping[str, bytes]) -> None: ...
    def read(self, path: str, *, limit: int = 10_000_000) -> bytes: ...
    def close(self) -> None: ...
    def __enter__(self) -> Sandbox: ...
    def __exit__(self, *exc: object) -> None: ...


class SandboxBackend(Protocol):
    """Opens sandboxes. Module `envs/sandboxes/<name>.py` defines `backend(**options) -> SandboxBackend`."""

    name: str

    def open(self, spec: SandboxSpec) -> AbstractContextManager[Sandbox]: ...
    def image_digest(self, image: str | None) -> str:
        """Content id of the image ("" for None); raises ImageMissing or EngineUnavailable."""
        ...

    def close(self) -> None: ...


@dataclass(frozen=True, kw_only=True)
class Invocation:
    """How a framework wants its suite run: the command, extra environment, and trusted helper files.

    `files` are written into the sandbox's scratch folder; `{scratch}` in command, script and env is replaced by it.
    script: where the command is `python SCRIPT ARGUMENT...` and nothing else, its words after `python`.
    """

    command: str
    script: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, bytes] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class IdMap:
    """Ids as the dataset prints them -> executed ids (one-to-many: all must pass). `unmapped` are excluded and shown."""

    mapped: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    unmapped: Mapping[str, str] = field(default_factory=dict)
    """id -> reason"""


@dataclass(frozen=True, kw_only=True)
class Report:
    """A framework's structured report of one run."""

    statuses: Mapping[str, Status] = field(default_factory=dict)
    durations: Mapping[str, float] = field(default_factory=dict)
    finished: bool = False
    aliases: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Another printed name (a docstring line, say) -> executed ids."""
    keys: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    """Executed id -> beacon key -> how often its tail asked."""
    alarms: tuple[Mapping[str, Any], ...] = ()
    """Alarms of the comparison probe, as sent."""
    replaced: tuple[str, ...] = ()
    """What asserts rest on and was another object at a test's tail (inside/acid_integrity.py)."""


class Framework(Protocol):
    """Module `envs/frameworks/<name>.py` defines `framework() -> Framework`."""

    name: str

    def invocation(self, command: str, *, seed: int | None = None) -> Invocation:
        """The command with our reporter attached. `seed` shuffles the tests' order where possible."""
        ...

    def parse(self, result: ExecResult) -> Report:
        """Statuses from the report channel (`result.messages`); from text only where there is nothing else."""
        ...

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = ...
    ) -> IdMap:
        """Ids as the data set prints them -> executed ids. `aliases`: other printed names of the run."""
        ...

    def test_paths(self, command: str) -> tuple[str, ...]:
        """Files and folders (relative to the workdir) in which the command's tests stand; "." where unknown."""
        ...

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        """A command that runs only these executed ids (best effort; may run more)."""
        ...


class DatasetLoader(Protocol):
    """Module `envs/datasets/<name>.py` defines `load(source, split) -> Iterator[Task]`."""

    def __call__(self, source: str, split: str | None = None) -> Iterator[Task]: ...
