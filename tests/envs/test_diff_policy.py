"""The diff policy against diffs of every shape; git's own reading in a real repository is the oracle."""

from __future__ import annotations

import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from acidtest.envs.defence import STRICT
from acidtest.envs.diff_policy import Plan, apply_env, apply_op, disagreement, plan, refusal
from acidtest.envs.diffs import ChangeKind, parse_diff
from acidtest.envs.errors import PatchError
from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import ExecResult
from acidtest.envs.task import Suite, Task

TASK = Task(
    task_id="t/1",
    dataset="t",
    prompt="",
    suite=Suite(command="python -m pytest", framework="pytest", test_files={"checks/run_me.py": "x"}),
    gold_patch="",
)
FEW = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
SETTINGS = settings(max_examples=300, deadline=None)


def planned(text: str, task: Task = TASK) -> Plan:
    return plan(task, Patch(text), task.suite, STRICT)


def git(folder: Path, *args: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "core.quotepath=true", *args],
        cwd=folder,
        capture_output=True,
        check=True,
    )
    return done.stdout.decode("utf-8", "surrogateescape")


def applied(folder: Path, text: str) -> ExecResult:
    """What the op of a grading sandbox gives, run here by git."""
    diff = folder.parent / "acid.diff"
    diff.write_bytes(text.encode("utf-8", "surrogateescape"))
    op = apply_op(str(diff), str(folder))
    done = subprocess.run(
        list(op.command),
        cwd=folder,
        env={"PATH": "/usr/bin:/bin", **apply_env(str(folder))},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return ExecResult(exit_code=done.returncode, output=done.stdout)


NAMES = st.sampled_from(
    ["a.py", "with space.py", "pkg/m.py", 'quo"te.py', "tab\there.py", "ünï.py", "b'c.txt", "x -> y.py"]
)
LINES = st.sampled_from(
    [
        "x = 1",
        "",
        " ",
        "--- a/z",
        "+++ b/z",
        "-- ",
        "@@ -1 +1 @@",
        "diff --git a/q b/q",
        "\tt",
        "é",
        "a\r",
        "\x0c",
        "\\ No newline",
    ]
)
TEXTS = st.builds(
    lambda lines, end: "\n".join(lines) + end, st.lists(LINES, max_size=12), st.sampled_from(["", "\n"])
)


@FEW
@given(
    old=st.dictionaries(NAMES, TEXTS, max_size=3),
    new=st.dictionaries(NAMES, TEXTS, max_size=3),
    rename=st.booleans(),
)
def test_whatever_git_writes_is_read_as_git_reads_it(
    tmp_path_factory: pytest.TempPathFactory, old: dict[str, str], new: dict[str, str], rename: bool
) -> None:
    folder = tmp_path_factory.mktemp("r") / "tree"
    folder.mkdir()
    write(folder, old)
    git(folder, "init", "-q")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "old", "--allow-empty")
    for name in old:
        (folder / name).unlink()
    write(folder, new)
    git(folder, "add", "-A")
    text = git(folder, "diff", "--cached", *(["-M10%", "-C10%"] if rename else ["--no-renames"]))
    expected = {name: (folder / name).read_bytes() for name in new}
    git(folder, "reset", "-q", "--hard")
    names = {name for name in {*old, *new} if "\t" in name}
    decided = planned(text)
    if any(old.get(n) != new.get(n) for n in names) and decided.rejected:
        assert "control characters" in decided.rejected
        return
    assert not decided.rejected, decided.rejected
    if decided.text:
        assert disagreement(decided, applied(folder, decided.text)) == ""
    assert {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and ".git" not in p.parts
    } == expected


def write(folder: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode())


@SETTINGS
@given(st.text(alphabet='+-@ ,0123456789abdifgt/\n\r\\\t".', max_size=400))
def test_no_text_raises(text: str) -> None:
    decided = planned(text)
    assert decided.rejected or not text.strip() or decided.changes or decided.notices


@SETTINGS
@given(
    st.lists(
        st.sampled_from(
            [
                "diff --git a/x.py b/x.py",
                "--- a/x.py",
                "+++ b/x.py",
                "--- /dev/null",
                "+++ b/../y",
                "@@ -1 +1 @@",
                "@@ -0,0 +1,2 @@",
                "-a",
                "+b",
                " c",
                "old mode 100644",
                "new mode 100755",
                "new file mode 120000",
                "rename from x.py",
                "rename to .git/config",
                "GIT binary patch",
                "\\ No newline at end of file",
                "index 0000000..1111111 160000",
                "garbage",
            ]
        ),
        max_size=14,
    )
)
def test_what_is_planned_never_holds_a_refused_path(lines: list[str]) -> None:
    decided = planned("\n".join(lines) + "\n")
    if not decided.rejected:
        again = parse_diff(decided.text)
        assert [c.paths for c in again] == [c.paths for c in decided.changes]
        assert all(refusal(change) == "" for change in again)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("--- a/../x\n+++ b/../x\n@@ -0,0 +1 @@\n+x\n", "leaves its folder"),
        ("--- /dev/null\n+++ /etc/passwd\n@@ -0,0 +1 @@\n+x\n", "absolute"),
        ("--- /dev/null\n+++ b/.git/hooks/post-checkout\n@@ -0,0 +1 @@\n+x\n", "inside .git"),
        ("--- /dev/null\n+++ b/sub/.GIT/config\n@@ -0,0 +1 @@\n+x\n", "inside .git"),
        (
            "diff --git a/l b/l\nnew file mode 120000\n--- /dev/null\n+++ b/l\n@@ -0,0 +1 @@\n+/etc\n\\ No newline at end of file\n",
            "symbolic link",
        ),
        (
            "diff --git a/m b/m\nnew file mode 160000\n--- /dev/null\n+++ b/m\n@@ -0,0 +1 @@\n+Subproject commit "
            + "a" * 40
            + "\n",
            "submodule",
        ),
        ("diff --git a/x b/x\nold mode 100644\nnew mode 100755\n", "mode change"),
        ("diff --git a/x b/x\nindex 1234567..89abcde 100644\nBinary files a/x and b/x differ\n", "binary"),
        (
            "diff --git a/x b/x\nindex 1234567..89abcde 100644\nGIT binary patch\nliteral 1\nIcmZPo\n\n",
            "binary",
        ),
        ("diff --git a/x b/y\nsimilarity index 100%\nrename from x\nrename to .git/y\n", "inside .git"),
        ("diff --git a/.git/x b/y\nsimilarity index 100%\ncopy from .git/x\ncopy to y\n", "inside .git"),
        ("not a diff at all\n", "no unified diff"),
        ("@@ -1 +1 @@\n-a\n+b\n", "belongs to no file"),
        ("--- a/x\n+++ b/x\n@@ -1,5 +1 @@\n-a\n+b\n", "ends too early"),
        ('--- "a/x\\001y"\n+++ "b/x\\001y"\n@@ -1 +1 @@\n-a\n+b\n', "control characters"),
    ],
)
def test_refusals(text: str, reason: str) -> None:
    assert reason in planned(text).rejected


@pytest.mark.parametrize(
    "path",
    [
        "conftest.py", "pkg/conftest.py", "pkg/.gitattributes", "pytest.ini", "acid_probe.py", "sub/acid_channel/__init__.py", "tox.ini", "setup.cfg", "pyproject.toml", "sitecustomize.py",
        "usercustomize.py", "evil.pth", "pytest.py", "_pytest/x.py", "unittest.py", "json.py", "src/random.py",
        "tests/__init__.py", "tests/helpers.py", "pkg/tests/test_a.py", "test_new.py", "pkg/a_test.py",
        "checks/run_me.py", "checks/run_me.py/x", "venv/bin/python", "lib/python3/site-packages/pytest.py", "a.pyc",
    ],
)  # fmt: skip
def test_protected_paths_are_left_out_with_a_notice(path: str) -> None:
    good = Patch.writing({"pkg/code.py": "x = 1\n"}).text
    decided = planned(Patch.writing({path: "y = 1\n"}).text + good)
    assert not decided.rejected
    assert decided.text == good
    assert [n.path for n in decided.notices] == [path]


@pytest.mark.parametrize(
    "path",
    [
        "pkg/code.py",
        "pkg/testing.py",
        "pkg/test/client.py",
        "pkg/json.py",
        "attest/x.py",
        "latest.py",
        "setup.py",
        "docs/conf.py",
    ],
)
def test_ordinary_source_is_applied(path: str) -> None:
    text = Patch.writing({path: "y = 1\n"}).text
    assert planned(text).text == text


def test_what_gold_touches_is_open() -> None:
    gold = Patch.writing({"setup.cfg": "[tool]\n"}).text
    task = replace(TASK, gold_patch=gold)
    assert planned(gold, task).text == gold
    assert planned(gold, task).notices == ()


@pytest.mark.parametrize(
    ("repo", "path"),
    [
        ("pytest-dev/pytest", "src/_pytest/runner.py"),
        ("django/django", "django/test/runner.py"),
        ("sympy/sympy", "sympy/utilities/pytest.py"),
    ],
)
def test_a_repository_that_is_its_own_runner_keeps_it(repo: str, path: str) -> None:
    text = Patch.writing({path: "x = 1\n"}).text
    task = replace(TASK, metadata={"repo": repo})
    assert planned(text, task).text == ""
    assert planned(text).text == text
    assert planned(text, replace(task, gold_patch=text)).text == text


def test_a_rename_out_of_a_protected_folder_is_left_out() -> None:
    text = "diff --git a/tests/a.py b/pkg/a.py\nsimilarity index 100%\nrename from tests/a.py\nrename to pkg/a.py\n"
    assert planned(text).text == ""


def test_no_final_newline_and_crlf_and_huge() -> None:
    text = Patch.writing({"a.py": "x = 1\r\ny"}, {"a.py": "x\r\n"}).text
    (change,) = parse_diff(text)
    assert (change.added, change.deleted, change.kind) == (2, 1, ChangeKind.MODIFY)
    assert planned(text.rstrip("\n")).text == text
    big = Patch.writing({"a.py": "x = 1\n" * 200_000}).text
    assert planned(big).changes[0].added == 200_000
    assert "characters" in planned("+" * 21_000_000).rejected


def test_an_empty_submission_is_the_no_op() -> None:
    assert planned(" \n") == Plan()


@pytest.mark.data
def test_every_official_gold_patch_is_applied_whole(data_dir: Path) -> None:
    """All 500 rows: nothing refused, nothing left out, the text unchanged."""
    for task in load_tasks(str(data_dir / "swebench_verified.parquet")):
        decided = planned(task.gold_patch, task)
        assert not decided.rejected, task.task_id
        assert not decided.notices, task.task_id
        assert decided.text == task.gold_patch
        assert parse_diff(task.suite.test_patch), task.task_id


def test_corrupt_text_is_a_patch_error() -> None:
    with pytest.raises(PatchError):
        parse_diff("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-a\n+b\n")
