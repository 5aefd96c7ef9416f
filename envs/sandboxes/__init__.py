"""Sandboxes: one file each; the folder listing is the registry."""

from __future__ import annotations

import os
from typing import Any

from ..errors import EngineUnavailable
from ..protocols import SandboxBackend
from ..registry import find


def open_backend(name: str | None = None, **options: Any) -> SandboxBackend:
    """The backend of that name with its options; what dead processes left behind is removed first.

    None: the variable ACIDTEST_SANDBOX, else docker where an engine answers, else local.
    Raises UnknownName, ConfigError (options), EngineUnavailable (named docker, no engine).
    """
    chosen = name or os.environ.get("ACIDTEST_SANDBOX")
    if chosen is None:
        try:
            return open_backend("docker", **options)
        except EngineUnavailable:
            return open_backend("local")
    opened: SandboxBackend = find(__name__, chosen).backend(**options)
    reap = getattr(opened, "reap", None)
    if reap is not None:
        reap()
    return opened
