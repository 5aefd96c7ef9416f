"""Framework `unittest`: `python -m unittest …` or any script that ends in a unittest run.

A start-up file (sitecustomize in the helper folder) hooks unittest's result class; the executed id is
`method (module.Class)`, and `module.Class.method` maps to it. Not covered: runs in a subprocess of the command
(no channel there), result classes that never call their base class.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..ids import method_map
from ..protocols import IdMap
from ..task import Suite
from ._common import Hooked, python_paths, quoted, words


class Unittest(Hooked):
    name = "unittest"
    hook = "acid_unittest"

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = {}
    ) -> IdMap:
        return method_map(wanted, executed, aliases)

    def test_paths(self, command: str) -> tuple[str, ...]:
        """Files named, and the files and folders that dotted labels stand for."""
        labels = [w for w in words(command)[1:] if w.replace(".", "_").isidentifier() and w != "unittest"]
        found = [path for label in labels for path in label_paths(label)]
        named = [path for path in python_paths(command) if path != "."]
        return tuple(dict.fromkeys([*named, *found])) or (".",)

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        return f"python -m unittest -v {quoted(map(dotted, ids))}"


def label_paths(label: str, root: str = "") -> list[str]:
    """`a.b.C.test` -> files and folders it may stand in: a.py, a/b.py, a/b/C.py …, a/b/C/test."""
    parts = label.split(".")
    files = [root + "/".join(parts[:n]) + ".py" for n in range(1, len(parts) + 1)]
    return [*files, root + "/".join(parts)]


def dotted(ident: str) -> str:
    """`test_x (app.Cls)` -> `app.Cls.test_x`."""
    name, mark, rest = ident.partition(" (")
    return f"{rest[:-1]}.{name}" if mark and rest.endswith(")") else ident


def framework() -> Unittest:
    return Unittest()
