"""Export hardened suites as an overlay: rows that others put on top of the data set's own rows, without acidtest.

Every overlay row carries the digests, the added files, their ids and command. By the form of the task it also carries
what that form's own harness reads:
- SWE-bench form: `FAIL_TO_PASS` with the added ids, `test_patch` with the added files, `added_command`. The stock
  harness runs the test files that `test_patch` names, so the added ones run with them.
- R2E-Gym form: `r2e_tests` (file name -> text), `execution_result_content` with the added files where the row has it,
  and `expected_output_json` with the added names as PASSED.
- function form: `test_append` for rows with `test`/`check` (HumanEval) and `test_list_append` (MBPP).
`apply_overlay(row, overlay)` does that for one row. Not covered: what another harness's verdict is worth (THREATS.md).
"""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from ..envs import pyast
from ..envs.errors import ConfigError
from ..envs.patch import Patch
from ..envs.task import AddedTests, Suite
from .lock import Lock
from .records import HardenedSuite

FORMATS = ("jsonl", "parquet")


def overlay_rows(lock: Lock) -> Iterator[dict[str, Any]]:
    """One plain JSON row for each hardened task, in the order of task ids."""
    for task_id in sorted(lock.entries):
        entry = lock.entries[task_id]
        if entry.suite.added is not None:
            yield overlay_row(entry, entry.suite.added)


def overlay_row(entry: HardenedSuite, added: AddedTests) -> dict[str, Any]:
    suite = entry.suite.original
    row: dict[str, Any] = {
        "task_id": entry.task_id,
        "instance_id": entry.task_id,
        "original_digest": entry.original_digest,
        "hardened_digest": entry.hardened_digest,
        "image_digest": entry.image_digest,
        "acidtest_version": entry.version,
        "added_command": added.command,
        "added_framework": added.framework,
        "added_files": dict(added.test_files),
        "added_ids": list(added.test_ids),
        "FAIL_TO_PASS": [*suite.fail_to_pass, *added.test_ids],
        "PASS_TO_PASS": list(suite.pass_to_pass),
        "test_patch": _joined_patch(suite, added),
        "r2e_tests": {path.rsplit("/", 1)[-1]: text for path, text in added.test_files.items()},
        "r2e_expected": {
            test_id.split("::", 1)[-1].replace("::", "."): "PASSED" for test_id in added.test_ids
        },
    }
    row["test_append"], row["test_list_append"] = _function_forms(added)
    return row


def _joined_patch(suite: Suite, added: AddedTests) -> str:
    own = suite.test_patch
    return own + ("" if not own or own.endswith("\n") else "\n") + Patch.writing(added.test_files).text


def _function_forms(added: AddedTests) -> tuple[str, list[str]]:
    """The added tests as text behind a `check` function, and as single asserts ("" and [] for other forms)."""
    kept: list[str] = []
    calls: list[str] = []
    asserts: list[str] = []
    for text in added.test_files.values():
        try:
            tree = pyast.parse(text)
        except SyntaxError:
            return "", []
        for node in tree.body:
            if isinstance(node, ast.If | ast.Expr):
                continue
            if (
                isinstance(node, ast.ImportFrom)
                and not node.level
                and node.module not in {"math", "__future__"}
            ):
                continue
            if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
                if node.args.args or node.decorator_list:
                    return "", []
                calls.append(node.name)
                asserts += [ast.unparse(part) for part in node.body if isinstance(part, ast.Assert)]
            kept.append(ast.get_source_segment(text, node) or "")
    if not calls:
        return "", []
    body = "".join(f"    {name}()\n" for name in calls)
    wrapped = "\n\n\n".join(kept) + "\n\n\n_check_of_the_row = check\n\n\n"
    return f"{wrapped}def check(candidate):\n    _check_of_the_row(candidate)\n{body}", asserts


def apply_overlay(row: Mapping[str, Any], overlay: Mapping[str, Any]) -> dict[str, Any]:
    """The data set's row with the added tests in the fields that its own form has.

    Raises ConfigError when the row has none of the known forms.
    """
    out = dict(row)
    if "FAIL_TO_PASS" in row and "test_patch" in row:
        ids, text = overlay["FAIL_TO_PASS"], isinstance(row["FAIL_TO_PASS"], str)
        out["FAIL_TO_PASS"] = json.dumps(ids) if text else list(ids)
        out["test_patch"] = overlay["test_patch"]
    elif "expected_output_json" in row:
        expected = row["expected_output_json"]
        held = json.loads(expected) if isinstance(expected, str) else dict(expected)
        held.update(overlay["r2e_expected"])
        out["expected_output_json"] = json.dumps(held) if isinstance(expected, str) else held
        out["r2e_tests"] = {**row.get("r2e_tests", {}), **overlay["r2e_tests"]}
        if "execution_result_content" in row:
            content = row["execution_result_content"]
            ran = json.loads(content) if isinstance(content, str) else dict(content)
            files = (
                dict(zip(ran["test_file_names"], ran["test_file_codes"], strict=True)) | overlay["r2e_tests"]
            )
            ran |= {"test_file_names": list(files), "test_file_codes": list(files.values())}
            out["execution_result_content"] = json.dumps(ran) if isinstance(content, str) else ran
    elif "test" in row and "entry_point" in row:
        out["test"] = f"{row['test'].rstrip()}\n\n\n{overlay['test_append']}"
    elif "test_list" in row:
        out["test_list"] = [*row["test_list"], *overlay["test_list_append"]]
    else:
        raise ConfigError(
            "The row has no form an overlay can be put on.", mend="SWE-bench, R2E-Gym, HumanEval or MBPP."
        )
    return out


def export_overlay(lock: Lock, path: str | Path, *, form: str | None = None) -> int:
    """Write all overlay rows to a .jsonl or .parquet file; returns how many. Nested fields are JSON text in parquet."""
    target = Path(path)
    kind = form or target.suffix.lstrip(".")
    if kind not in FORMATS:
        raise ConfigError(f"No overlay format {kind!r}.", mend=f"There are: {', '.join(FORMATS)}.")
    rows = list(overlay_rows(lock))
    part = target.with_name(f".{target.name}.part")
    target.parent.mkdir(parents=True, exist_ok=True)
    if kind == "jsonl":
        part.write_text("".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows), encoding="utf-8")
    else:
        _write_parquet(rows, part)
    part.replace(target)
    return len(rows)


def _write_parquet(rows: Iterable[Mapping[str, Any]], path: Path) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    flat = [{k: v if isinstance(v, str) else json.dumps(v) for k, v in row.items()} for row in rows]
    pq.write_table(pa.Table.from_pylist(flat), path)
