"""One patch through all layers, in fresh sandboxes, and what gold shows on the way (`Reference`). No cache, no retry."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from . import grade as grading
from .defence import Defence
from .diff_policy import Plan, plan
from .frameworks import framework_of
from .patch import Patch
from .protocols import Framework, Limits, Sandbox, SandboxBackend, SandboxSpec
from .record import digest_of
from .reference import Reference
from .resolve_suite import TrustedFiles, added_files, resolve
from .run import Status, SuiteRun
from .run_suite import Job, Observation, run_job
from .task import Suite, Task
from .verdict import Outcome, Verdict


@dataclass(frozen=True, kw_only=True)
class Prepared:
    """What is the same for every submission under one suite: framework and trusted files."""

    framework: Framework
    trusted: TrustedFiles
    added: TrustedFiles | None = None
    added_framework: Framework | None = None


class Judge:
    """Stateless but for its backend."""

    def __init__(self, backend: SandboxBackend, *, limits: Limits | None = None, seed: int = 0) -> None:
        self.backend = backend
        self.limits = limits
        self.seed = seed

    def prepare(self, task: Task, suite: Suite) -> Prepared:
        framework = framework_of(suite.framework)
        trusted = resolve(self.backend, task, suite, framework, self.limits)
        if suite.added is None:
            return Prepared(framework=framework, trusted=trusted)
        return Prepared(
            framework=framework,
            trusted=trusted,
            added=added_files(suite.added),
            added_framework=framework_of(suite.added.framework),
        )
