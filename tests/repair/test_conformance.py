"""Every file in `repair/augmenters` keeps the seam: `propose(task, findings, rejected, **options)`."""

from __future__ import annotations

import inspect

import pytest

from acidtest.envs import registry
from acidtest.envs.load import load_tasks

AUGMENTERS = "acidtest.repair.augmenters"


@pytest.mark.parametrize("name", registry.names(AUGMENTERS))
def test_augmenter(name: str) -> None:
    module = registry.find(AUGMENTERS, name)
    assert module.__doc__, "says what it proposes, and for which tasks"
    parameters = list(inspect.signature(module.propose).parameters.values())
    assert [p.name for p in parameters[:3]] == ["task", "findings", "rejected"]
    assert parameters[-1].kind is inspect.Parameter.VAR_KEYWORD, "unknown options are left to others"
    (repository,) = load_tasks("toy", task_ids=["toy/shop"])
    assert list(module.propose(repository, (), (), someone_elses_option=1)) == []
