"""Proposals as a file: JSON Lines, one proposed test suite a line. docs/repair.md shows the format with an example.

Fields of a line: `task_id` (string) and `files` (object: path -> text; or `added`, the record itself). Optional:
`source` (the data set the task is in), `ids` (default: the top-level test functions of the files), `command` and
`framework` (default: as the task's own suite runs), `targets` (candidate ids), `wrong` (object: name -> program text or
unified diff that the tests should block), `correct` (the same, to be let through), `rationale`, `citations`, `votes`,
`iteration`, `label`, and `expect`: "passes", or the name of the gate that must stop it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..envs.errors import TaskError
from ..envs.patch import Patch
from ..envs.record import Record
from ..envs.task import AddedTests, Task
from ..verifiers.records import Candidate, Claim, Family
from .records import Proposal


@dataclass(frozen=True, kw_only=True)
class ProposalLine(Record):
    """One line of a proposals file, as written."""

    task_id: str
    source: str = ""
    files: Mapping[str, str] = field(default_factory=dict)
    ids: tuple[str, ...] = ()
    command: str = ""
    framework: str = ""
    added: AddedTests | None = None
    targets: tuple[str, ...] = ()
    wrong: Mapping[str, str] = field(default_factory=dict)
    correct: Mapping[str, str] = field(default_factory=dict)
    rationale: str = ""
    citations: tuple[str, ...] = ()
    expect: str = ""
    label: str = ""
    iteration: int = 1
    votes: tuple[str, ...] = ()

    def proposal(self, task: Task) -> Proposal:
        """The proposal for its task; raises TaskError when the line does not say which tests to run."""
        return Proposal(
            task_id=self.task_id,
            added=self.added or self._added(task),
            targets=self.targets,
            rationale=self.rationale,
            citations=self.citations,
            origin=f"file:{self.label}" if self.label else "file",
            iteration=self.iteration,
            metadata={"votes": list(self.votes)} if self.votes else {},
        )

    def _added(self, task: Task) -> AddedTests:
        framework = self.framework or ("pytest" if task.suite.framework == "pytest" else "plain")
        paths = " ".join(self.files)
        default = f"python -m pytest -q {paths}" if framework == "pytest" else f"python {paths}"
        ids = self.ids or tuple(
            test_id for path, text in self.files.items() for test_id in named_tests(path, text)
        )
        return AddedTests(
            command=self.command or default, framework=framework, test_files=self.files, test_ids=ids
        )

    def wrong_candidates(self, task: Task) -> tuple[Candidate, ...]:
        """The line's own programs to block, as candidates."""
        return tuple(
            Candidate(
                task_id=task.task_id,
                patch=as_patch(task, text),
                kind=name,
                family=Family.ROLLOUT,
                origin="proposals file",
                claim=Claim.WRONG,
            )
            for name, text in self.wrong.items()
        )

    def correct_patches(self, task: Task) -> dict[str, Patch]:
        return {name: as_patch(task, text) for name, text in self.correct.items()}


def named_tests(path: str, text: str) -> Iterator[str]:
    """Ids of top-level test functions, read from the text (a file that does not parse still names them)."""
    for name in re.findall(r"^(?:async )?def (test\w*)\(", text, re.MULTILINE):
        yield f"{path}::{name}"


def as_patch(task: Task, text: str) -> Patch:
    """A unified diff as it stands, or a whole solution file turned into one."""
    if re.match(r"(diff --git |--- )", text):
        return Patch(text)
    path = str(task.metadata.get("solution_file", "solution.py"))
    return Patch.writing({path: text}, dict(task.files))


def read_proposals(path: str | Path) -> list[ProposalLine]:
    """All lines of a proposals file; raises TaskError that names the line."""
    lines: list[ProposalLine] = []
    for number, text in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1):
        if not text.strip():
            continue
        try:
            line = ProposalLine.from_json(text)
        except TaskError as error:
            raise TaskError(
                f"{path}:{number}: {error.message}", mend="See docs/repair.md for the format."
            ) from error
        if not line.files and line.added is None:
            raise TaskError(f"{path}:{number}: neither `files` nor `added`.", mend="See docs/repair.md.")
        lines.append(line)
    return lines


def write_proposals(path: str | Path, lines: list[ProposalLine]) -> None:
    """Write the file anew, one line each."""
    body = "".join(json.dumps(_sparse(line.to_dict()), ensure_ascii=False) + "\n" for line in lines)
    Path(path).write_text(body, encoding="utf-8")


def _sparse(value: dict[str, Any]) -> dict[str, Any]:
    return {key: item for key, item in value.items() if item not in (None, "", [], {}, ())}
