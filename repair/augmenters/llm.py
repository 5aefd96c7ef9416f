"""Augmenter `llm`: a model writes tests in the suite's own framework and style, each with the sentence it follows from.

The model sees issue, source, reference solution, existing tests and the wrong programs as diffs; after a rejection it
also sees what was tried, which gate stopped it, the class of the defect and a bounded log, and is asked for something
different. A proposal without a citation that really stands in the task's text is dropped ("unspecified behaviour")
unless that was asked for.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from ...envs.protocols import SandboxBackend
from ...envs.task import AddedTests, Task
from ...verifiers.llm.fence import fenced, new_fence
from ...verifiers.llm.prompts import load
from ...verifiers.llm.protocol import LLM, Reply, Request
from ...verifiers.records import Finding
from ...verifiers.source import Material, SourceTree
from ..defects import bounded
from ..records import Proposal, Try

PROMPTS = Path(__file__).parents[1] / "prompts"
SHOWN_EXPLOITS, SHOWN_REJECTED = 4, 4

_TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "files": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"path": _TEXT, "content": _TEXT},
                "required": ["path", "content"],
                "additionalProperties": False,
            },
        },
        "ids": {"type": "array", "items": _TEXT},
        "command": _TEXT,
        "citations": {"type": "array", "items": _TEXT},
        "rationale": _TEXT,
    },
    "required": ["files", "ids", "command", "citations", "rationale"],
    "additionalProperties": False,
}


def propose(
    task: Task,
    findings: Sequence[Finding],
    rejected: Sequence[Try] = (),
    *,
    llm: LLM | None = None,
    backend: SandboxBackend | None = None,
    allow_unspecified: bool = False,
    tree: SourceTree | None = None,
    **options: Any,
) -> Iterable[Proposal]:
    """One proposal a call; nothing without a model. Raises AnswersPending, BudgetExceeded, LLMError."""
    if llm is None or not findings:
        return
    material = Material.of(tree or SourceTree(task, backend), "tests")
    own = [one for one in rejected if one.proposal.origin.startswith("llm")]
    reply = llm.complete(request(task, material, findings, own))
    proposal = read_reply(task, material, reply, findings, allow_unspecified=allow_unspecified)
    if proposal is not None:
        yield proposal


def request(task: Task, material: Material, findings: Sequence[Finding], rejected: Sequence[Try]) -> Request:
    """The question; `sample` counts what was tried, so that a retry is a call of its own."""
    diffs = [finding.candidate.patch.text for finding in findings[:SHOWN_EXPLOITS]]
    told = "\n\n".join(told_of(one) for one in rejected[-SHOWN_REJECTED:])
    fence = new_fence(*diffs, told, material.text, material.source, material.tests)
    prompt = load("augment", PROMPTS)
    shown = [fenced(_described(f, diff), fence, "WRONG") for f, diff in zip(findings, diffs, strict=False)]
    values = {
        "task_id": task.task_id,
        "text": material.specification,
        "source": material.source,
        "gold": material.gold,
        "framework": task.suite.framework,
        "command": task.suite.command,
        "tests": material.tests,
        "ids": "\n".join(task.suite.expected_ids[:20]),
        "fence": fence,
        "exploits": "\n\n".join(shown),
        "rejected": _diversity(fenced(told, fence, "REJECTED")) if told else "",
    }
    return Request(
        purpose="augment",
        system=prompt.fill("system", values),
        context=prompt.fill("context", values),
        prompt=prompt.fill("prompt", values),
        schema=SCHEMA,
        prompt_version=prompt.version,
        fence=fence,
        sample=len(rejected),
        max_tokens=8000,
        task_id=task.task_id,
    )


def told_of(one: Try) -> str:
    """What a rejected proposal is remembered by: its tests, the gate, the class of the defect, a bounded log."""
    check = one.result.failed_check
    tests = "\n".join(one.proposal.added.test_files.values())
    why = "accepted, but targets are still open" if check is None else f"stopped by the gate: {check.name}"
    defect = f"\nclass of the defect: {check.defect}" if check and check.defect else ""
    log = f"\n{bounded(check.evidence, limit=1200)}" if check and check.evidence else ""
    return f"{bounded(tests, limit=2500)}\n{why}{defect}{log}"


def _diversity(told: str) -> str:
    return (
        "Tests that were tried already and refused; do not repeat them. Choose another behaviour, another entry point or "
        f"another way to observe it, and avoid the defect that stopped them:\n\n{told}"
    )


def _described(finding: Finding, diff: str) -> str:
    about = finding.candidate.wrong_behaviour or finding.candidate.description
    witness = next((w for w in finding.witnesses if w.call), None)
    known = (
        f"\nknown: {witness.call} should give {witness.expected}, gives {witness.observed}" if witness else ""
    )
    return f"{about}{known}\n{diff}".strip()


def read_reply(
    task: Task,
    material: Material,
    reply: Reply,
    findings: Sequence[Finding],
    *,
    allow_unspecified: bool = False,
) -> Proposal | None:
    """The proposal in a reply; None for no answer, an empty one, or one that nothing specified."""
    if not reply.answered or reply.data is None:
        return None
    data = reply.data
    files = {str(f["path"]).removeprefix("./"): str(f["content"]) for f in data["files"] if f["content"]}
    ids = tuple(dict.fromkeys(str(i) for i in data["ids"]))
    cited = tuple(str(c) for c in data["citations"] if quoted(str(c), material.specification))
    if not files or not ids or not (cited or allow_unspecified):
        return None
    return Proposal(
        task_id=task.task_id,
        added=AddedTests(
            command=str(data["command"]) or task.suite.command,
            framework=task.suite.framework,
            test_files=files,
            test_ids=ids,
        ),
        targets=tuple(f.candidate.candidate_id for f in findings),
        rationale=str(data["rationale"])[:2000],
        citations=cited,
        origin=f"llm:{reply.model}",
        metadata={"usd": reply.cost_usd, "unspecified": not cited},
    )


def quoted(citation: str, text: str) -> bool:
    """Whether a citation of some length stands in the text, blanks aside."""
    words, where = _flat(citation), _flat(text)
    return len(words) >= 12 and words in where


def _flat(text: str) -> str:
    return re.sub(r"[\s`*>]+", " ", text).strip().lower()
