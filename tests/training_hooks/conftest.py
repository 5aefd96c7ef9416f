"""`helper("name")`: import a helper file of this folder (tests are no package)."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="session")
def helper() -> Callable[[str], ModuleType]:
    def load(name: str) -> ModuleType:
        known = sys.modules.get(f"acidtest_tests_{name}")
        if known is not None:
            return known
        path = Path(__file__).with_name(f"{name}.py")
        spec = importlib.util.spec_from_file_location(f"acidtest_tests_{name}", path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module

    return load


@pytest.fixture
def fresh_wandb() -> Iterator[None]:
    """wandb keeps the settings of a process's first run (WANDB_DIR among them): forget them before and after."""
    import wandb

    wandb.teardown()
    yield
    wandb.teardown()
