"""Framework `django`: Django's own `tests/runtests.py`, which is unittest underneath.

Same reporter as `unittest`; labels stand in the folder `tests/`. A docstring line that old logs printed in place of a
test maps to every test whose description begins with it. Not covered: `--parallel` above 1 (other processes).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from ..ids import method_map
from ..protocols import IdMap
from ..task import Suite
from ._common import Hooked, quoted, words
from .unittest import dotted, label_paths

VALUES = {"--verbosity", "-v", "--parallel", "--settings", "--tag", "--exclude-tag", "-k"}


class Django(Hooked):
    name = "django"
    hook = "acid_unittest"

    def map_ids(
        self, wanted: Sequence[str], executed: Sequence[str], aliases: Mapping[str, tuple[str, ...]] = {}
    ) -> IdMap:
        return method_map(wanted, executed, aliases)

    def test_paths(self, command: str) -> tuple[str, ...]:
        found = [path for label in labels_of(command) for path in label_paths(label, "tests/")]
        return tuple(dict.fromkeys(found)) or ("tests",)

    def select(self, command: str, ids: Sequence[str], suite: Suite) -> str:
        before = re.split(r"runtests\.py", command, maxsplit=1)[0] + "runtests.py"
        options = [w for w in words(command) if w.startswith("-") and "=" in w]
        chosen = quoted([*options, "--verbosity=2", "--parallel=1", *map(dotted, ids)])
        return f"{before} {chosen}"


def labels_of(command: str) -> list[str]:
    """The test labels behind `runtests.py`."""
    rest = words(command.split("runtests.py", 1)[-1])
    labels: list[str] = []
    skip = False
    for word in rest:
        if word in {"&&", ";", "||", "|"}:
            break
        if not skip and re.fullmatch(r"[A-Za-z_][\w.]*", word):
            labels.append(word)
        skip = word in VALUES
    return labels


def framework() -> Django:
    return Django()
