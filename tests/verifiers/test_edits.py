"""Answers become clean diffs: three forms, the mistakes that models make, and refusals instead of guesses."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from acidtest.verifiers.edits import EditError, patch_of

OLD = """import os


class A:
    def first(self):
        return 1

    def second(self):
        value = 2  \n        return value


class B:
    def first(self):
        return 1
"""
FILES = {"pkg/a.py": OLD, "empty.py": ""}


def new_text(answer: dict[str, Any], tmp_path: Path) -> str:
    """Apply with git, so that the diff is known to be clean."""
    patch = patch_of(answer, FILES.get)
    for path, text in FILES.items():
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).write_text(text)
    subprocess.run(
        ["git", "apply", "-"], input=patch.text.encode(), cwd=tmp_path, check=True,
        env={"GIT_CEILING_DIRECTORIES": str(tmp_path.parent), "PATH": "/usr/bin:/bin"},
    )  # fmt: skip
    return (tmp_path / "pkg/a.py").read_text()


def edit(search: str, replace: str, path: str = "pkg/a.py") -> dict[str, Any]:
    return {"edits": [{"path": path, "search": search, "replace": replace}]}


SECOND = OLD.replace("value = 2  ", "value = 3")


@pytest.mark.parametrize(
    ("answer", "new"),
    [
        (edit("        value = 2  ", "        value = 3"), SECOND),
        (edit("        value = 2", "        value = 3"), OLD.replace("value = 2", "value = 3")),
        (edit("value = 2\nreturn value", "value = 3\nreturn value"), SECOND),
        (edit("    value = 2\n    return value\n", "    value = 3\n    return value\n"), SECOND),
        ({"files": [{"path": "pkg/a.py", "content": "x = 1"}]}, "x = 1\n"),
        (
            {"diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -900,9 +1,1 @@\n     def second(self):\n-        value = 2\n+        value = 3\n         return value\n"},
            SECOND,
        ),
        (
            {"diff": "diff --git a/pkg/a.py b/pkg/a.py\nindex 1..2 100644\n--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -14,2 +14,2 @@ class B:\n     def first(self):\n-        return 1\n+        return 9\n"},
            OLD[: OLD.rindex("return 1")] + "return 9\n",
        ),
        (
            {"diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -5,2 +5,2 @@\n     def first(self):\n-        return 1\n+        return 9\n"},
            OLD.replace("return 1", "return 9", 1),
        ),
        (
            {"diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ @@\n-import os\n+import sys\n@@ @@\n-        value = 2\n+        value = 3\n"},
            SECOND.replace("import os", "import sys"),
        ),
    ],
    ids=["exact", "unique-part", "flat", "dedented", "file", "wrong-numbers", "nearest-last", "nearest-first", "bare-hunks"],
)  # fmt: skip
def test_what_models_write_applies(answer: dict[str, Any], new: str, tmp_path: Path) -> None:
    assert new_text(answer, tmp_path) == new


def test_forms_may_stand_together_and_files_may_be_new_or_go(tmp_path: Path) -> None:
    answer = {
        "files": [{"path": "pkg/b.py", "content": "b = 1\n"}],
        **edit("import os", "import sys"),
        "diff": "--- a/empty.py\n+++ /dev/null\n",
    }
    patch = patch_of(answer, FILES.get)
    assert "new file mode" in patch.text
    assert "deleted file mode" in patch.text
    assert new_text(edit("import os", "import sys"), tmp_path).startswith("import sys")


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (edit("        return 1", "        return 2"), "stands 2 times"),
        (edit("not there at all", "x"), "does not stand in the file"),
        (edit("", "x"), "nothing to search for"),
        (edit("x = 1", "y", "pkg/none.py"), "there is no file"),
        (edit("x", "y", "../etc/passwd"), "no path inside"),
        (edit("x", "y", "/etc/passwd"), "no path inside"),
        (edit("import os", "import os"), "changes nothing"),
        ({"diff": "I would change line 3."}, "no unified diff"),
        (
            {"diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1 +1 @@\n-import numpy\n+import sys\n"},
            "does not stand",
        ),
        ({"diff": "--- a/pkg/a.py\n+++ b/pkg/a.py\n@@ -1,0 +1 @@\n+import sys\n"}, "no line to stand at"),
        ({}, "changes no file"),
    ],
)
def test_what_cannot_be_placed_is_refused(answer: dict[str, Any], why: str) -> None:
    with pytest.raises(EditError, match=why):
        patch_of(answer, FILES.get)
