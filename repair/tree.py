"""What repair reads of a repository: the text of the suite's own test files, as they stand in the image."""

from __future__ import annotations

from ..envs.protocols import Op, Read, ReadResult, SandboxBackend, SandboxSpec
from ..envs.task import Task
from .gates.source import patch_paths


def existing_tests(task: Task, backend: SandboxBackend) -> str:
    """Pristine text of the test files that the suite's test patch changes, joined; "" for tasks without an image."""
    paths = sorted(patch_paths(task.suite.test_patch))
    return "" if task.image is None or not paths else "\n".join(read_files(task, backend, paths).values())


def read_files(task: Task, backend: SandboxBackend, paths: list[str]) -> dict[str, str]:
    """Those of the paths that are there, as text. One sandbox. Raises SandboxError."""
    ops: list[Op] = [Read(path=path, limit=2_000_000) for path in paths]
    with backend.open(SandboxSpec.of(task)) as sandbox:
        results = sandbox.script(ops)
    found = {}
    for path, result in zip(paths, results, strict=True):
        if isinstance(result, ReadResult) and result.found:
            found[path] = result.data.decode("utf-8", "replace")
    return found
