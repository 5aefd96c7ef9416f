"""Framework `pytest`: any command that ends up in pytest; a plugin given by PYTEST_ADDOPTS reports over the channel.

Works with pytest 3.6 and later on Python 3.6 and later. The command is left as it stands (only PYTHONPATH gains a
folder). Not covered: xdist workers (`-n`), which have no channel, and doctest items, which have no body to examine.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ids import pytest_map
from ..protocols import ExecResult, IdMap, Invocation, Report
from ..task import Suite
from ._common import helpers, on_path, python_paths, quoted, report_of, seeded, words


class Pytest:
    name = "pytest"

    def invocation(self, command: str, *, seed: int | None = None) -> Invocation:
        env = seeded(seed, {"PYTEST_ADDOPTS": "-p acid_pytest --tb=native"})
        return Invocation(command=on_path(command), env=env, files=helpers("acid_channel", "acid_pytest"))

    def parse(self, result: ExecResult) -> Report:
        return report_of(result)

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = {}
    ) -> IdMap:
        return pytest_map(wanted, executed)

    def test_paths(self, command: str) -> tuple[str, ...]:
        return python_paths(command)

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        """The command's options with the ids in place of its files."""
        parts = words(command)
        keep = [part for part in parts if part not in set(python_paths(command))]
        return f"{quoted(keep)} {quoted(ids)}" if "pytest" in command else command


def framework() -> Pytest:
    return Pytest()
