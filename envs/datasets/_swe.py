"""Facts about the repositories of SWE-bench: how each one's tests are run, and which files a test patch names.

The commands are the official harness's (facts, own code); two differ on purpose. Sphinx is run by the pytest
call that its `tox.ini` makes, because tox drops the environment that carries our reporter. Locale variables
take C.UTF-8, which every image has, where the official scripts generate en_US.UTF-8.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping

NOT_TESTS = (
    ".json",
    ".png",
    ".csv",
    ".txt",
    ".md",
    ".jpg",
    ".jpeg",
    ".pkl",
    ".yml",
    ".yaml",
    ".toml",
    ".rst",
)
_HEADER = re.compile(r'^diff --git (?:"?)a/(.+?)(?:"?) (?:"?)b/(.+?)(?:"?)$', re.M)

PYTEST = "pytest -rA"
COMMANDS: Mapping[str, str] = {
    "astropy/astropy": "pytest -rA -vv -o console_output_style=classic --tb=no",
    "django/django": "./tests/runtests.py --verbosity 2 --settings=test_sqlite --parallel 1",
    "mwaskom/seaborn": "pytest --no-header -rA",
    "sphinx-doc/sphinx": "python -X dev -m pytest -rA --durations 25",
    "sympy/sympy": "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' bin/test -C --verbose",
}
VERSION_COMMANDS: Mapping[tuple[str, str], str] = {
    ("django/django", "1.9"): "./tests/runtests.py --verbosity 2"
}
FRAMEWORKS: Mapping[str, str] = {"django/django": "django", "sympy/sympy": "sympy"}
ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "django/django": {"LANG": "C.UTF-8", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf8"},
}
ACTIVATE = ". /opt/miniconda3/bin/activate testbed"
"""What makes the interpreter of an official image the one on PATH."""


def files_of(patch: str) -> list[str]:
    """Paths that a unified diff leaves in the tree (new side; deleted files are left out), in order."""
    found: list[str] = []
    headers = list(_HEADER.finditer(patch))
    for number, match in enumerate(headers):
        end = headers[number + 1].start() if number + 1 < len(headers) else len(patch)
        if "\n+++ /dev/null" not in patch[match.end() : end]:
            found.append(match.group(2))
    return list(dict.fromkeys(found))


def directives(repo: str, test_patch: str) -> list[str]:
    """What the test command is given: the test patch's files, or Django's module labels for them."""
    paths = [path for path in files_of(test_patch) if not path.endswith(NOT_TESTS)]
    if repo != "django/django":
        return paths
    labels = [path.removesuffix(".py").removeprefix("tests/").replace("/", ".") for path in paths]
    return list(dict.fromkeys(labels))


def test_command(repo: str, version: str, test_patch: str) -> str:
    """The command that runs the tests which the test patch touches (bash, in the tree)."""
    base = VERSION_COMMANDS.get((repo, version)) or COMMANDS.get(repo, PYTEST)
    return " ".join([base, *(shlex.quote(d) for d in directives(repo, test_patch))])


def framework_of(repo: str) -> str:
    """Name of the file in `envs/frameworks`."""
    return FRAMEWORKS.get(repo, "pytest")


def image_of(instance_id: str) -> str:
    """The official image of an instance on Docker Hub."""
    return f"swebench/sweb.eval.x86_64.{instance_id}:latest".lower().replace("__", "_1776_")
