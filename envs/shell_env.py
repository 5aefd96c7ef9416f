"""`ShellEnv`: an agent works in a container of its own, then submits; the diff is graded in a fresh one.

Leaks are shut before the first command (`envs/leaks.py`): every `.git` is replaced by a repository with one commit, the paths in
``metadata["hidden_paths"]`` and other readable copies of tests and solution are deleted, another installed release is removed,
variables that name tests are blanked, there is no network.
Nothing the agent leaves behind (processes, files outside the tree, hooks, configuration) reaches the grading container:
only the text of changed source files does (`envs/extract.py`), and `verify` restores what is protected.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import ExitStack
from pathlib import PurePosixPath
from typing import Any

from .errors import ConfigError, SandboxError
from .extract import extract, list_tree, read_file
from .leaks import leaking_environment, shut_script
from .protocols import Exec, ExecResult, Limits, Sandbox, SandboxBackend, SandboxSpec
from .spaces import clip
from .task import Task
from .task_env import StepResult, TaskEnv, unjudged

SUBMIT = "submit"


class ShellEnv(TaskEnv):
    """A code task as an episode of shell commands.

    Observation: the prompt, then after each command its exit code and its output (merged, at most `obs_chars`, head and tail
    kept). Action: a bash command, run in the task's workdir in a new shell (files persist, variables and the current folder do
    not; what it leaves running is killed), or the word ``submit``. `submit` takes the source diff out of the container, destroys the
    container, and grades the diff in a fresh one; `info` is then that of `CodeEnv`, with `dropped` (path -> why it is not
    in the submission). Before that `info` has task_id, exit_code, timed_out, step.

    sandbox: name of a backend or a backend (None: docker where an engine answers). max_steps, max_seconds (wall,
    from reset): the episode is truncated there and pays 0.0, or with ``grade_at_limit=True`` what the work so far pays.
    command_timeout_s: per command. A container that dies or an engine that is lost truncates the episode with
    ``reward_valid`` False. A plain process is no isolation: such a sandbox is refused unless ``allow_unisolated=True``.
    Other options: `TaskEnv`. Timing-dependent commands make an episode nondeterministic; nothing else does.
    """

    def __init__(
        self,
        tasks: Iterable[Task] | str = "toy",
        *,
        sandbox: str | SandboxBackend | None = None,
        limits: Limits | None = None,
        max_steps: int = 50,
        max_seconds: float = 1800.0,
        command_timeout_s: float = 60.0,
        obs_chars: int = 10_000,
        grade_at_limit: bool = False,
        allow_unisolated: bool = False,
        clock: Callable[[], float] = time.monotonic,
        **options: Any,
    ) -> None:
        if options.get("verifier") is None:
            options["sandbox"] = sandbox
        super().__init__(tasks, **options)
        if max_steps < 1 or max_seconds <= 0:
            raise ConfigError("max_steps and max_seconds must be positive.")
        self._where, self._limits = sandbox, limits
        self.max_steps, self.max_seconds, self.command_timeout_s = max_steps, max_seconds, command_timeout_s
        self.obs_chars, self.grade_at_limit, self.allow_unisolated = (
            obs_chars,
            grade_at_limit,
            allow_unisolated,
        )
        self._clock = clock
        self._backend: SandboxBackend | None = (
            None if sandbox is None or isinstance(sandbox, str) else sandbox
        )
        self._own_backend = self._backend is None
        self._stack = ExitStack()
        self._sandbox: Sandbox | None = None
        self._before: dict[str, str] = {}
        self._blank: dict[str, str] = {}
        self._steps, self._until = 0, 0.0

    @property
    def backend(self) -> SandboxBackend:
        if self._backend is None:
            from .sandboxes import open_backend

            self._backend = open_backend(self._where if isinstance(self._where, str) else None)
        return self._backend

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[str, dict[str, Any]]:
        """Raises SandboxError when no container can be opened: there is no episode to mask yet."""
        self._drop()
        observation, info = self.begin(seed, options)
        task = self.running()
        self._open = False
        try:
            self._start(task)
        except BaseException:
            self._drop()
            raise
        self._open = True
        self._steps, self._until = 0, self._clock() + self.max_seconds
        return observation, info

    def _start(self, task: Task) -> None:
        sandbox = self._stack.enter_context(self.backend.open(SandboxSpec.of(task, self._limits)))
        if sandbox.isolation.startswith("none") and not self.allow_unisolated:
            raise ConfigError(
                f"A shell episode in a sandbox with isolation {sandbox.isolation!r} would hand out this machine.",
                mend="Use docker, install bubblewrap, or say allow_unisolated=True.",
            )
        (shut,) = sandbox.script([Exec(command=shut_script(task), timeout_s=300.0)])
        if not isinstance(shut, ExecResult) or shut.exit_code is None or shut.exit_code < 0:
            raise SandboxError(f"{task.task_id}: its leaks could not be shut in time.", mend="Try it again.")
        self._blank = leaking_environment(sandbox, task)
        before = list_tree(sandbox)
        if before is None:
            raise SandboxError(
                f"{task.task_id}: its tree could not be listed.",
                mend="Use an image with a python3 that works.",
            )
        self._before = before
        self._sandbox = sandbox

    def step(self, action: str) -> StepResult:
        task = self.running()
        self._steps += 1
        try:
            if str(action).strip() == SUBMIT:
                return self._submit(task, truncated=False)
            return self._command(task, str(action)[: self.max_chars])
        except SandboxError as error:
            self._drop()
            lost = self.task_info(task) | unjudged(f"{type(error).__name__}: {error}") | {"step": self._steps}
            return self.finish("infrastructure"), 0.0, False, True, lost

    def _command(self, task: Task, command: str) -> StepResult:
        assert self._sandbox is not None
        left = self._until - self._clock()
        limit = max(0.1, min(self.command_timeout_s, left))
        op = Exec(
            command=command.replace("\0", ""),
            timeout_s=limit,
            output_bytes=8 * self.obs_chars,
            env=self._blank,
        )
        (result,) = self._sandbox.script([op])
        assert isinstance(result, ExecResult)
        info = self.task_info(task) | {
            "exit_code": result.exit_code,
            "timed_out": result.timed_out,
            "step": self._steps,
        }
        if self._steps >= self.max_steps or self._clock() >= self._until:
            if self.grade_at_limit:
                return self._submit(task, truncated=True)
            self._drop()
            unpaid = unjudged("") | {"outcome": "truncated", "reward_valid": True}
            return self.finish("truncated, nothing was submitted"), 0.0, False, True, info | unpaid
        return self.show(self._text(result)), 0.0, False, False, info

    def _text(self, result: ExecResult) -> str:
        output = clip(result.output.decode("utf-8", "replace"), self.obs_chars)
        code = "killed" if result.exit_code is None else f"exit code {result.exit_code}"
        if result.timed_out:
            code = f"killed: still running after its time limit ({code})"
        return f"[{code}]\n{output}"

    def _submit(self, task: Task, *, truncated: bool) -> StepResult:
        assert self._sandbox is not None
        found = extract(self._sandbox, self._before, lambda paths: self._pristine(task, paths))
        self._drop()
        extra = {"submission_form": "tree", "dropped": dict(found.dropped), "step": self._steps}
        reward, info = self.judge(task, found.patch, extra)
        return self.finish(info["outcome"]), reward, not truncated, truncated, info

    def _pristine(self, task: Task, paths: list[str]) -> Mapping[str, bytes]:
        """Old texts from a container that never ran a command of the agent's."""
        if task.image is None:
            return {p: task.files[p].encode("utf-8", "surrogatepass") for p in paths if p in task.files}
        if not paths:
            return {}
        with self.backend.open(SandboxSpec.of(task, self._limits)) as fresh:
            found = {path: read_file(fresh, path, 10_000_000) for path in paths}
        return {path: data for path, data in found.items() if data is not None}

    def _drop(self) -> None:
        """Destroy the agent's container, whatever runs in it."""
        self._open = False
        self._sandbox = None
        self._stack.close()

    def close(self) -> None:
        self._drop()
        super().close()
        if self._own_backend and self._backend is not None:
            self._backend.close()
            self._backend = None


def _inside(path: str) -> bool:
    """Whether deleting the path can only touch the workdir: without isolation an absolute one would be this machine's."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts
