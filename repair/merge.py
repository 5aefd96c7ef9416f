"""Two accepted proposals become one set of added tests, run by one command."""

from __future__ import annotations

import shlex

from ..envs.errors import ConfigError
from ..envs.task import AddedTests


def merge(first: AddedTests, second: AddedTests) -> AddedTests:
    """Both together: the second's own words (files, labels, node ids) go behind the first's command.

    A file that both have is taken from the second (an augmenter that rewrites its file), and then only the ids of the
    second count for it. Raises ConfigError for two frameworks: the caller keeps the better one.
    """
    if first.framework != second.framework:
        raise ConfigError(
            f"Added tests run under {first.framework} and {second.framework}; one suite needs one."
        )
    replaced = set(first.test_files) & set(second.test_files)
    kept = {path: text for path, text in first.test_files.items() if path not in replaced}
    if not kept:
        return second
    ids = [i for i in first.test_ids if i.split("::", 1)[0] not in replaced]
    return AddedTests(
        command=joined_commands(first.command, second.command),
        framework=first.framework,
        test_files={**kept, **second.test_files},
        test_ids=tuple(dict.fromkeys([*ids, *second.test_ids])),
    )


def joined_commands(first: str, second: str) -> str:
    """The common words once, then what is left of both, in order."""
    left, right = first.split(), second.split()
    shared = 0
    while shared < min(len(left), len(right)) and left[shared] == right[shared]:
        shared += 1
    if shared == 0:
        raise ConfigError(
            f"Two commands with nothing in common: {shlex.quote(first)}, {shlex.quote(second)}."
        )
    extra = [word for word in right[shared:] if word not in left[shared:]]
    return " ".join([*left, *extra])
