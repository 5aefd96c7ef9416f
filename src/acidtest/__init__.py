"""acidtest: find code-RL tasks whose suites pay for wrong patches, repair them, train on what is left.

The public names, nothing else; each is imported when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from .envs.version import __version__

_WHERE = {
    "Task": "envs.task",
    "Suite": "envs.task",
    "Patch": "envs.patch",
    "Verdict": "envs.verdict",
    "Verifier": "envs.verify",
    "verify": "envs.verify",
    "Outcome": "envs.verdict",
    "Incident": "envs.incident",
    "AcidtestError": "envs.errors",
    "CodeEnv": "envs.code_env",
    "ShellEnv": "envs.shell_env",
    "Scorer": "training_hooks.scorer",
    "audit": "verifiers.audit",
    "load_tasks": "training_hooks.curate",
    "make": "training_hooks.curate",
    "to_dataset": "training_hooks.datasets",
}

__all__ = [
    "AcidtestError",
    "CodeEnv",
    "Incident",
    "Outcome",
    "Patch",
    "Scorer",
    "ShellEnv",
    "Suite",
    "Task",
    "Verdict",
    "Verifier",
    "__version__",
    "audit",
    "load_tasks",
    "make",
    "to_dataset",
    "verify",
]

if TYPE_CHECKING:
    from .envs.code_env import CodeEnv
    from .envs.errors import AcidtestError
    from .envs.incident import Incident
    from .envs.patch import Patch
    from .envs.shell_env import ShellEnv
    from .envs.task import Suite, Task
    from .envs.verdict import Outcome, Verdict
    from .envs.verify import Verifier, verify
    from .training_hooks.curate import load_tasks, make
    from .training_hooks.datasets import to_dataset
    from .training_hooks.scorer import Scorer
    from .verifiers.audit import audit


def __getattr__(name: str) -> Any:
    if name in _WHERE:
        return getattr(importlib.import_module(f".{_WHERE[name]}", __name__), name)
    if name in {"envs", "verifiers", "repair", "training_hooks", "scripts"}:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__


def _register() -> None:
    from .envs.registration import register

    register()


_register()
