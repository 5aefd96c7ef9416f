"""The suite's own command without any of our verdict: what it costs, and what its exit code alone would pay."""

from __future__ import annotations

import shlex
import subprocess
import tempfile
import time
from pathlib import Path

from ..envs.diff_policy import apply_op
from ..envs.patch import Patch
from ..envs.prepared import Part
from ..envs.protocols import Exec, ExecResult, Op, SandboxBackend, SandboxSpec, Write
from ..envs.run_suite import pinned
from ..envs.task import Task


def bare_run(backend: SandboxBackend, task: Task, patch: Patch, part: Part) -> tuple[float, bool]:
    """(wall seconds of the command alone, exit code is 0) in a sandbox of the backend. Raises SandboxError.

    A patch that does not apply is not paid, and takes no time.
    """
    with backend.open(SandboxSpec.of(task)) as sandbox:
        diff = f"{sandbox.scratch}/bare.diff"
        ops: list[Op] = []
        if patch.text.strip():
            text = patch.text.encode("utf-8", "surrogateescape")
            ops = [Write(files={diff: text}), apply_op(diff, sandbox.workdir)]
        done = sandbox.script([*ops, Write(files=part.plain)])
        if len(done) <= len(ops):
            return 0.0, False
        run = Exec(command=task.suite.command, env=pinned(task.suite.env), timeout_s=task.timeout_s)
        start = time.perf_counter()
        (ran,) = sandbox.script([run])
        seconds = time.perf_counter() - start
    assert isinstance(ran, ExecResult)
    return seconds, ran.exit_code == 0


def docker_run(task: Task, patch: Patch, part: Part, folder: Path) -> tuple[float, bool]:
    """(wall seconds of `docker run --rm`, exit code is 0): patch, tests and command in one shell of a fresh container.

    No agent, no report channel. folder: where its inputs may lie. Raises subprocess.TimeoutExpired after the task's
    limit and two minutes.
    """
    place = Path(tempfile.mkdtemp(dir=folder))
    (place / "submission.diff").write_text(patch.text, encoding="utf-8", errors="surrogateescape")
    copies = []
    for number, (path, data) in enumerate(part.plain.items()):
        (place / f"test{number}").write_bytes(data)
        target = shlex.quote(f"{task.workdir}/{path}")
        copies.append(f"mkdir -p $(dirname {target}) && cp /in/test{number} {target}")
    exports = [f"export {name}={shlex.quote(value)}" for name, value in pinned(task.suite.env).items()]
    apply = ["git apply /in/submission.diff || exit 99"] if patch.text.strip() else []
    lines = [f"cd {shlex.quote(task.workdir)}", *apply, *copies, *exports, task.suite.command]
    (place / "run.sh").write_text("\n".join(lines) + "\n")
    argv = ["docker", "run", "--rm", "--network", "none", "-v", f"{place}:/in:ro"]
    start = time.perf_counter()
    limit = task.timeout_s + 120
    done = subprocess.run(
        [*argv, str(task.image), "bash", "/in/run.sh"], capture_output=True, check=False, timeout=limit
    )
    return time.perf_counter() - start, done.returncode == 0
