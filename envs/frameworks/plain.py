"""Framework `plain`: test files with top-level `test*` functions, run by a small runner of ours, nothing installed.

Command `python test_solution.py`; ids `test_solution.py::test_check`. A file's own `__main__` block is not run: it is
there for naive harnesses. Not covered: classes, fixtures, parametrisation (use `pytest`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..errors import TaskError
from ..ids import pytest_map
from ..protocols import ExecResult, IdMap, Invocation, Report
from ..task import Suite
from ._common import LIB, helpers, python_paths, quoted, report_of, seeded

COMMAND = re.compile(r"(?P<before>.*?\bpython[0-9.]*)(?P<files>(?:\s+[\w./-]+\.py)+)\s*", re.S)


class Plain:
    name = "plain"

    def invocation(self, command: str, *, seed: int | None = None) -> Invocation:
        match = COMMAND.fullmatch(command)
        if not match:
            raise TaskError(
                f"Framework plain cannot read the command {command!r}.",
                mend="Write it as: python test_file.py ...",
            )
        own = match["before"] == "python" and "\n" not in command.strip()
        return Invocation(
            command=f"{match['before']} {LIB}/acid_run.py{match['files']}",
            script=(f"{LIB}/acid_run.py", *match["files"].split()) if own else (),
            env=seeded(seed),
            files=helpers("acid_channel", "acid_plain", "acid_run"),
        )

    def parse(self, result: ExecResult) -> Report:
        return report_of(result)

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = {}
    ) -> IdMap:
        return pytest_map(wanted, executed)

    def test_paths(self, command: str) -> tuple[str, ...]:
        return python_paths(command)

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        return f"python {quoted(dict.fromkeys(i.split('::')[0] for i in ids))}"


def framework() -> Plain:
    return Plain()
