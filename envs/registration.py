"""Register the environments with Gymnasium: ``acidtest/Code-v0`` and ``acidtest/Shell-v0``.

Entry points are strings, so that registering imports neither environment.
"""

from __future__ import annotations

IDS = {
    "acidtest/Code-v0": "acidtest.envs.code_env:CodeEnv",
    "acidtest/Shell-v0": "acidtest.envs.shell_env:ShellEnv",
}


def register() -> None:
    """Idempotent; runs when `acidtest` is imported."""
    import gymnasium

    for name, entry_point in IDS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=entry_point)
