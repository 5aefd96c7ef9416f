"""Data set `r2e-gym`: rows of R2E-Gym (Subset, Lite, Full), from the hub or a local parquet/JSONL file.

Read fields: repo_name, docker_image, commit_hash (the fix; the tree stands at its parent), problem_statement
(``[ISSUE]…[/ISSUE]``), parsed_commit_content (file_diffs with old and new text: the gold patch, tests left out),
execution_result_content (test_file_names, test_file_codes, old_commit_res_stdout), expected_output_json.

Two rewards. The *strict* one (ours): every test that is expected PASSED must be executed and pass; tests that are
expected FAILED or ERROR ask for nothing. The *original* one (`envs/r2e_rule.py`) wants those to fail as well, and
reads a log; `metadata["expected"]` is what it compares with.

Ids: the published keys have no file, so each is looked up in the test files' source (class and function); a key
found in two files stands for both; one found in none (a generated or imported test) is in
`metadata["unresolved"]` and not asked for. Metadata: repo, commit_hash, rule ("r2e"), expected, expected_failing
(ids), unresolved, hidden_paths, modified_files, relevant_files.

Not covered: rows without test files or file contents (TaskError names the field); the runner that some tornado
rows bring is replaced by pytest, which runs the same unittest classes.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from .. import r2e_rule
from ..edits import parse_quietly
from ..errors import TaskError
from ..patch import file_diff
from ..task import Suite, Task
from ._rows import Row, json_object, need, rows_of

NAMES = ("r2e-gym", "r2e-gym-subset", "r2e-gym-lite", "r2e-gym-full")
HUB = {
    "r2e-gym": "R2E-Gym/R2E-Gym-Subset",
    "r2e-gym-subset": "R2E-Gym/R2E-Gym-Subset",
    "r2e-gym-lite": "R2E-Gym/R2E-Gym-Lite",
    "r2e-gym-full": "R2E-Gym/R2E-Gym-V1",
}
COLUMNS = frozenset(["repo_name", "docker_image", "commit_hash", "problem_statement"])
TESTS = "r2e_tests"
COMMAND = (
    "PYTHONWARNINGS='ignore::UserWarning,ignore::SyntaxWarning' .venv/bin/python -W ignore -m pytest -rA "
    + TESTS
)
PROTECTED = (f"{TESTS}/**", "run_tests.sh", "expected_test_output.json", ".venv/**")
HIDDEN = (
    "/r2e_tests",
    "/root/r2e_tests",
    "/root/run_tests.sh",
    "/testbed/r2e_tests",
    "/testbed/run_tests.sh",
    "/testbed/expected_test_output.json",
)
"""What published images hold that an agent must not see; an episode removes it."""
TIMEOUT_S = 300.0
_ISSUE = re.compile(r"\[ISSUE\](.*)\[/ISSUE\]", re.S)


def claims(path: Path, columns: frozenset[str]) -> int:
    """90 for a file with R2E-Gym's columns."""
    return 90 if columns >= COLUMNS else 0


def load(source: str = "r2e-gym", split: str | None = None) -> Iterator[Task]:
    """Yield the tasks of a hub name (NAMES) or of a local file. Raises TaskError naming row, field and mend."""
    for where, row in rows_of(source, HUB, split or "train"):
        yield task_of(row, where)


def task_of(row: Row, where: str) -> Task:
    """One row as a task. Its id is ``<repo>-<first 12 hex digits of the fix>``."""
    repo, commit = need(row, "repo_name", where), need(row, "commit_hash", where)
    where = f"{where} ({repo} {commit[:12]})"
    expected = r2e_rule.read_expected(need(row, "expected_output_json", where), where)
    execution = json_object(row, "execution_result_content", where)
    files = _test_files(execution, where)
    ids = resolve_ids(expected, files)
    passing = [key for key, status in expected.items() if status == "PASSED"]
    before = r2e_rule.normalised(r2e_rule.parse_log(execution.get("old_commit_res_stdout") or ""))
    fixed = [key for key in passing if before.get(key.split(" - ")[0]) != "PASSED"]
    if not any(ids[key] for key in fixed):
        raise TaskError(
            f"{where}: field 'expected_output_json' has no test that passes only after the fix.",
            mend="Drop the row: nothing can be gained on it.",
        )
    failing = [i for key, status in expected.items() if status != "PASSED" for i in ids[key]]
    return Task(
        task_id=f"{repo}-{commit[:12]}",
        dataset="r2e-gym",
        prompt=issue_of(need(row, "problem_statement", where)),
        image=need(row, "docker_image", where),
        workdir="/testbed",
        suite=Suite(
            command=COMMAND,
            framework="pytest",
            test_files={f"{TESTS}/{name}": text for name, text in files.items()},
            fail_to_pass=_flat(ids, fixed),
            pass_to_pass=_flat(ids, [key for key in passing if key not in set(fixed)]),
        ),
        gold_patch=_gold(json_object(row, "parsed_commit_content", where), where),
        protected_paths=PROTECTED,
        timeout_s=TIMEOUT_S,
        base_commit=f"{commit}^",
        metadata={
            "repo": repo,
            "commit_hash": commit,
            "rule": "r2e",
            "hidden_paths": list(HIDDEN),
            "expected": expected,
            "expected_failing": failing,
            "unresolved": [key for key in expected if not ids[key]],
            **{name: row[name] for name in ("modified_files", "relevant_files") if row.get(name)},
        },
    )


def issue_of(statement: str) -> str:
    """The text between [ISSUE] and [/ISSUE]; the whole text where there is no such mark."""
    found = _ISSUE.search(statement)
    return (found.group(1) if found else statement).strip() + "\n"


def resolve_ids(expected: Mapping[str, str], files: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
    """Published key -> executed ids (``r2e_tests/test_1.py::Class::test[param]``), () when no file has it."""
    names = {name: defined_tests(text) for name, text in files.items() if name.endswith(".py")}
    return {key: _resolve(key.split(" - ")[0], names) for key in expected}


def _resolve(key: str, names: Mapping[str, frozenset[str]]) -> tuple[str, ...]:
    base, bracket, parameters = key.partition("[")
    parts = base.split(".")
    owners = [name for name, known in names.items() if base in known]
    if not owners and len(parts) > 1:  # inherited from a class of another file
        owners = [name for name, known in names.items() if ".".join(parts[:-1]) in known]
    return tuple(f"{TESTS}/{name}::{'::'.join(parts)}{bracket}{parameters}" for name in owners)


def defined_tests(source: str) -> frozenset[str]:
    """Dotted names of functions, classes and methods of a test file (bases in the same file included)."""
    try:
        tree = parse_quietly(source)
    except SyntaxError:
        return frozenset()
    classes = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.ClassDef)}
    found: set[str] = set()

    def visit(body: list[ast.stmt], prefix: str, seen: frozenset[str]) -> None:
        for node in body:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                found.add(prefix + node.name)
            elif isinstance(node, ast.ClassDef):
                found.add(prefix + node.name)
                inherit(node, f"{prefix}{node.name}.", seen | {node.name})
            elif isinstance(node, ast.If | ast.Try | ast.With):
                visit(node.body, prefix, seen)

    def inherit(node: ast.ClassDef, prefix: str, seen: frozenset[str]) -> None:
        visit(node.body, prefix, seen)
        for base in node.bases:
            if isinstance(base, ast.Name) and base.id in classes and base.id not in seen:
                inherit(classes[base.id], prefix, seen | {base.id})

    visit(tree.body, "", frozenset())
    return frozenset(found)


def is_test_path(path: str) -> bool:
    """Whether a path of the fix commit is a test (left out of the gold patch)."""
    parts = PurePosixPath(path).parts
    name = parts[-1] if parts else ""
    return (
        name.startswith("test_")
        or name.endswith("_test.py")
        or name == "conftest.py"
        or any(part in ("tests", "test", "testing", TESTS) for part in parts[:-1])
    )


def _gold(commit: Mapping[str, Any], where: str) -> str:
    """The fix without its tests, as a git diff."""
    parts = []
    for entry in need(commit, "file_diffs", f"{where}: parsed_commit_content", list):
        path = str(((entry.get("header") or {}).get("file") or {}).get("path") or "")
        if not path or is_test_path(path):
            continue
        old, new = (
            _side(entry, "old_file_content", "minus_file"),
            _side(entry, "new_file_content", "plus_file"),
        )
        if old is None and new is None:
            raise TaskError(
                f"{where}: parsed_commit_content has no text for {path!r}.",
                mend="Binary fixes can't be used.",
            )
        parts.append(file_diff(path, old, new))
    gold = "".join(parts)
    if not gold:
        raise TaskError(
            f"{where}: parsed_commit_content changes nothing but tests.",
            mend="Drop the row: it has no gold patch.",
        )
    return gold


def _side(entry: Mapping[str, Any], content: str, file: str) -> str | None:
    """Text of one side of a file diff; None where the file does not exist there."""
    absent = ((entry.get(file) or {}).get("path") or "") == "/dev/null"
    text = entry.get(content)
    return None if absent or not isinstance(text, str) or (text == "" and file not in entry) else text


def _test_files(execution: Mapping[str, Any], where: str) -> dict[str, str]:
    names = need(execution, "test_file_names", f"{where}: execution_result_content", list)
    codes = need(execution, "test_file_codes", f"{where}: execution_result_content", list)
    if not names or len(names) != len(codes):
        raise TaskError(
            f"{where}: execution_result_content has {len(names)} test names and {len(codes)} texts.",
            mend="Each test file needs its text.",
        )
    return {PurePosixPath(str(name)).name: str(code) for name, code in zip(names, codes, strict=True)}


def _flat(ids: Mapping[str, tuple[str, ...]], keys: list[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(i for key in keys for i in ids[key]))
