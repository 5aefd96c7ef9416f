"""Floor 4: curation, the Scorer, and one file for each trainer and logger; `acidtest.training_hooks.NAME` imports NAME."""

from __future__ import annotations

import importlib
import pkgutil
from typing import Any


def __getattr__(name: str) -> Any:
    if not name.startswith("_") and name in {module.name for module in pkgutil.iter_modules(__path__)}:
        return importlib.import_module(f".{name}", __name__)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
