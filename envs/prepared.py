"""A suite made ready to run, once for all submissions: trusted files, their rewritten form, and what the keys mean."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

from .beacons import rewrite
from .defence import Defence
from .diff_policy import touched
from .frameworks import framework_of
from .inside import helper_files
from .probe import rewrite_comparisons
from .protocols import Framework, Limits, SandboxBackend
from .resolve_suite import TrustedFiles, added_files, resolve
from .run_suite import Job
from .task import Suite, Task


@dataclass(frozen=True, kw_only=True)
class Part:
    """One command of a suite (the original tests, or those that repair added).

    plain, with_tails: path -> content to write after the submission. keys: beacon key -> (path, qualified name).
    problems: path -> why it has no tails; uncovered: `path::name` of test functions without one.
    """

    command: str
    framework: Framework
    trusted: TrustedFiles
    plain: Mapping[str, bytes]
    with_tails: Mapping[str, bytes]
    keys: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    problems: Mapping[str, str] = field(default_factory=dict)
    uncovered: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0

    def job(
        self, defence: Defence, *, seed: int | None = None, files: Mapping[str, bytes] | None = None
    ) -> Job:
        chosen = self.with_tails if defence.beacons else self.plain
        return Job(
            command=self.command,
            framework=self.framework,
            files=chosen if files is None else files,
            deleted=self.trusted.deleted,
            env=self.env,
            timeout_s=self.timeout_s,
            seed=seed,
            keys=tuple(self.keys),
        )

    def probe_job(self, defence: Defence) -> Job:
        """The same command on the test sources with probed comparisons (and no tails)."""
        return replace(self.job(defence, files=self.with_probe), helpers=helper_files("acid_probe"))

    @cached_property
    def with_probe(self) -> dict[str, bytes]:
        """path -> content with probed comparisons, for the files that carry tails."""
        files = dict(self.plain)
        for number, path in enumerate(sorted({path for path, _ in self.keys.values()})):
            files[path] = rewrite_comparisons(self.trusted.sources[path], f"p{number}")[0].encode()
        return files

    def static_keys(self, ids: Iterable[str]) -> dict[str, tuple[str, ...]]:
        """Executed id -> its body's keys, for ids of the form `path::Class::name[param]` that can be read off.

        A name that is defined more than once (in the branches of an `if`, say) has a key for each body.
        """
        by_name: dict[str, list[str]] = {}
        for key, (path, name) in self.keys.items():
            by_name.setdefault(f"{path}::{name.replace('.', '::')}", []).append(key)
        pairs = ((ident, by_name.get(ident.split("[", 1)[0])) for ident in ids)
        return {ident: tuple(keys) for ident, keys in pairs if keys}

    def untrusted(self, task: Task) -> frozenset[str]:
        """Files that gold writes and no trusted test file replaces: submissions may write them too."""
        return touched(task.gold_patch) - frozenset(self.trusted.files)

    def own_keys(self, ident: str, asked: Iterable[str]) -> tuple[str, ...]:
        """Of the keys asked while a test ran, those of its own body (by function name), else the last."""
        keys = [key for key in asked if key in self.keys]
        name = function_name(ident)
        return tuple(k for k in keys if self.keys[k][1].rsplit(".", 1)[-1] == name) or tuple(keys[-1:])


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """original: the data set's tests. added: those of repair, if any."""

    original: Part
    added: Part | None = None

    @property
    def paths(self) -> frozenset[str]:
        """All paths that trusted tests stand at."""
        return self.original.trusted.paths | (self.added.trusted.paths if self.added else frozenset())

    def added_job(self, defence: Defence, *, probe: bool = False) -> Job:
        """The added tests for a sandbox that has run nothing: the original test files stand around them, as helpers.

        Raises ValueError where nothing was added.
        """
        if self.added is None:
            raise ValueError("The suite has no added tests.")
        around = self.original.probe_job(defence) if probe else self.original.job(defence)
        own = self.added.probe_job(defence) if probe else self.added.job(defence)
        gone = tuple(path for path in around.deleted if path not in own.files)
        keys = (*around.keys, *own.keys)
        return replace(own, files={**around.files, **own.files}, deleted=gone, keys=keys)


def function_name(ident: str) -> str:
    """The function's name in an executed id of any framework."""
    if " (" in ident and ident.endswith(")"):
        return ident.split(" (", 1)[0]
    return ident.split("[", 1)[0].replace("::", ":").rsplit(":", 1)[-1]


def original_part(backend: SandboxBackend, task: Task, suite: Suite, limits: Limits | None = None) -> Part:
    """Resolve and rewrite the original tests. Raises TaskError, UnknownName, SandboxError."""
    framework = framework_of(suite.framework)
    trusted = resolve(backend, task, suite, framework, limits)
    return _part(task, suite.command, framework, trusted, suite.env, "k")


def added_part(task: Task, suite: Suite) -> Part | None:
    if suite.added is None:
        return None
    framework = framework_of(suite.added.framework)
    return _part(task, suite.added.command, framework, added_files(suite.added), suite.env, "a")


def _part(
    task: Task, command: str, framework: Framework, trusted: TrustedFiles, env: Mapping[str, str], prefix: str
) -> Part:
    keys: dict[str, tuple[str, str]] = {}
    problems: dict[str, str] = {}
    uncovered: list[str] = []
    with_tails = dict(trusted.files)
    open_to_gold = touched(task.gold_patch)
    for number, (path, text) in enumerate(sorted(trusted.sources.items())):
        if path.endswith("conftest.py") or (path in open_to_gold and path not in trusted.files):
            continue
        new = rewrite(text, f"{prefix}{number}")
        if new.problem:
            problems[path] = new.problem
        uncovered += [f"{path}::{name}" for name in new.uncovered]
        if new.keys:
            keys |= {key: (path, name) for key, name in new.keys.items()}
            with_tails[path] = new.text.encode()
    return Part(
        command=command,
        framework=framework,
        trusted=trusted,
        plain=trusted.files,
        with_tails=with_tails,
        keys=keys,
        problems=problems,
        uncovered=tuple(uncovered),
        env=env,
        timeout_s=task.timeout_s,
    )
