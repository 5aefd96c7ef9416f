"""Framework `sympy`: sympy's own runner (`bin/test`, or a Python call of `sympy.test`).

Published ids are bare function names; the executed id is `path:function`, and a name stands for all of them. The
runner sorts functions by line, so shuffling has no effect. Not covered: runs split over subprocesses.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ids import name_map
from ..protocols import IdMap
from ..task import Suite
from ._common import Hooked, python_paths


class Sympy(Hooked):
    name = "sympy"
    hook = "acid_sympy"

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = {}
    ) -> IdMap:
        return name_map(wanted, executed)

    def test_paths(self, command: str) -> tuple[str, ...]:
        return tuple(path for path in python_paths(command) if path.endswith(".py")) or ("sympy",)

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        return command


def framework() -> Sympy:
    return Sympy()
