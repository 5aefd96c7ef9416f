"""Data set `swe-bench` (Verified, Lite, full): rows of either schema, from the hub or a local parquet/JSONL file.

Old rows: repo, instance_id, base_commit, patch, test_patch, problem_statement, version, FAIL_TO_PASS,
PASS_TO_PASS. Rows since harness 5 also: image, eval_script, log_parser, eval_type. FAIL_TO_PASS and PASS_TO_PASS
are lists or JSON strings of lists. Metadata: repo, version, difficulty, created_at, hints_text,
environment_setup_commit, log_parser, eval_type, reinstall (the gold patch touches the build, so a row's own
install lines are kept).

Not covered: multimodal assets, and rows whose tests are not Python (their `eval_script` is kept as the command,
framework "pytest" is assumed).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import TaskError
from ..task import Suite, Task
from . import _swe
from ._eval_script import split as split_script
from ._rows import Row, id_list, need, rows_of

NAMES = ("swe-bench-verified", "swe-bench-lite", "swe-bench")
HUB = {
    "swe-bench-verified": "SWE-bench/SWE-bench_Verified",
    "swe-bench-lite": "SWE-bench/SWE-bench_Lite",
    "swe-bench": "SWE-bench/SWE-bench",
}
COLUMNS = frozenset(
    [
        "repo",
        "instance_id",
        "base_commit",
        "patch",
        "test_patch",
        "problem_statement",
        "FAIL_TO_PASS",
        "PASS_TO_PASS",
    ]
)
KEPT = ("difficulty", "created_at", "hints_text", "environment_setup_commit", "log_parser", "eval_type")
_BUILD = ("setup.py", "setup.cfg", "pyproject.toml", "MANIFEST.in", ".pyx", ".pxd", ".c", ".cpp", ".h")


def claims(path: Path, columns: frozenset[str]) -> int:
    """60 for a file with SWE-bench's columns; derived data sets that know their own rows claim more."""
    return 60 if columns >= COLUMNS else 0


def load(source: str = "swe-bench-verified", split: str | None = None) -> Iterator[Task]:
    """Yield the tasks of a hub name (NAMES) or of a local file.

    Raises TaskError for a malformed row (names row, field, mend) and ConfigError where the hub does not answer.
    """
    dataset = source if source in HUB else "swe-bench"
    for where, row in rows_of(source, HUB, split or "test"):
        yield task_of(row, where, dataset=dataset)


def task_of(row: Row, where: str, *, dataset: str = "swe-bench") -> Task:
    """One row as a task. `where` names the row in errors."""
    instance = need(row, "instance_id", where)
    where = f"{where} ({instance})"
    repo, version = need(row, "repo", where), str(row.get("version") or "")
    test_patch, gold = need(row, "test_patch", where), need(row, "patch", where)
    for field, text in (("test_patch", test_patch), ("patch", gold)):
        if not _swe.files_of(text) and "+++ /dev/null" not in text:
            raise TaskError(
                f"{where}: field {field!r} is no git diff.", mend="It must start with 'diff --git'."
            )
    fail_to_pass = id_list(row, "FAIL_TO_PASS", where)
    if not fail_to_pass:
        raise TaskError(
            f"{where}: field 'FAIL_TO_PASS' is empty.", mend="Drop the row: nothing can be gained on it."
        )
    command, extra = _command(row, where, repo, version, test_patch, gold)
    return Task(
        task_id=instance,
        dataset=dataset,
        prompt=need(row, "problem_statement", where),
        image=row.get("image") or row.get("image_name") or _swe.image_of(instance),
        workdir="/testbed",
        suite=Suite(
            command=command,
            framework=_swe.framework_of(repo),
            test_patch=test_patch,
            fail_to_pass=fail_to_pass,
            pass_to_pass=id_list(row, "PASS_TO_PASS", where),
            env=dict(_swe.ENVIRONMENT.get(repo, {})),
        ),
        gold_patch=gold,
        timeout_s=1800.0,
        base_commit=need(row, "base_commit", where),
        metadata={"repo": repo, "version": version, **{k: row[k] for k in KEPT if row.get(k)}, **extra},
    )


def _command(
    row: Row, where: str, repo: str, version: str, test_patch: str, gold: str
) -> tuple[str, dict[str, Any]]:
    """The test command and what to note of it in the metadata."""
    script = row.get("eval_script")
    if not script:
        return f"{_swe.ACTIVATE} && {_swe.test_command(repo, version, test_patch)}", {}
    if isinstance(script, list):
        script = "\n".join(script)
    try:
        parts = split_script(script)
    except ValueError as error:
        raise TaskError(
            f"{where}: field 'eval_script': {error}.",
            mend="Mend the row, or drop the field to use the repository's command.",
        ) from error
    reinstall = bool(parts.install) and any(path.endswith(_BUILD) for path in _swe.files_of(gold))
    return parts.command(keep_install=reinstall), {"reinstall": reinstall}
