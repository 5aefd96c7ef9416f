"""What is asked (`Task`) and what judges it (`Suite`): plain frozen data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from .record import Record, digest_of


@dataclass(frozen=True, kw_only=True)
class AddedTests(Record):
    """Tests that repair added to a suite. They run after the original tests claim a pass, in a fresh sandbox.

    command: shell command, run in the task's workdir, that runs exactly these tests.
    framework: name of a file in `envs/frameworks`.
    test_files: path relative to workdir -> text.
    test_ids: ids that must all be executed and pass (fail-fast order: best killers first).
    """

    command: str
    framework: str
    test_files: Mapping[str, str]
    test_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class Suite(Record):
    """A test suite whose verdict is the reward.

    command: shell command (bash, in the task's workdir) that runs the suite, as the dataset gives it.
    framework: name of a file in `envs/frameworks`; it adds the structured reporter and maps ids.
    test_files: path relative to workdir -> trusted text, written after the submission was applied.
    test_patch: unified diff that makes trusted test files out of the pristine tree (SWE-bench rows);
        a verdict resolves it on the pristine tree, never on the submission's.
    fail_to_pass, pass_to_pass: ids as the dataset prints them ("legacy" ids included). Every one must be
        executed and pass, except `exclude_ids`.
    env: environment of the test command.
    added: tests from repair; None for an original suite.
    """

    command: str
    framework: str
    test_files: Mapping[str, str] = field(default_factory=dict)
    test_patch: str = ""
    fail_to_pass: tuple[str, ...] = ()
    pass_to_pass: tuple[str, ...] = ()
    exclude_ids: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    added: AddedTests | None = None

    @property
    def digest(self) -> str:
        """16 hex digits over everything above; changes when any test, id or command changes."""
        return digest_of(self)

    @property
    def original(self) -> Suite:
        """This suite without the tests that repair added."""
        return self if self.added is None else replace(self, added=None)

    @property
    def expected_ids(self) -> tuple[str, ...]:
        """All ids of the original part that must pass, fail_to_pass first, exclusions taken out."""
        excluded = set(self.exclude_ids)
        return tuple(i for i in (*self.fail_to_pass, *self.pass_to_pass) if i not in excluded)


@dataclass(frozen=True, kw_only=True)
class Task(Record):
    """One code task: a tree, a text and a suite.

    image: Docker image that holds the tree at `workdir`; None for tasks whose whole tree is `files`.
    files: path -> text, written into `workdir` before anything else (function-level and toy tasks).
    gold_patch: unified diff that solves the task.
    protected_paths: globs (relative to workdir) a submission may not change, beyond the built-in ones.
    timeout_s: wall-clock limit of one run of the suite, in seconds.
    metadata: whatever else the row carried (JSON values only). Known keys are documented by each adapter;
        `entry_point` (name of the function under test) and `solution_file` mark function-level tasks.
    """

    task_id: str
    dataset: str
    prompt: str
    suite: Suite
    gold_patch: str
    image: str | None = None
    workdir: str = "/testbed"
    files: Mapping[str, str] = field(default_factory=dict)
    protected_paths: tuple[str, ...] = ()
    timeout_s: float = 300.0
    base_commit: str = ""
    metadata: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_function(self) -> bool:
        """True when the task is one function in one file (`metadata["entry_point"]`)."""
        return bool(self.metadata.get("entry_point"))

    @property
    def digest(self) -> str:
        """Digest of the whole task, suite included."""
        return digest_of(self)

    def with_suite(self, suite: Suite) -> Task:
        return replace(self, suite=suite)
