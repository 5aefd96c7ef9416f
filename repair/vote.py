"""The paper's judge in repair: three semi-formal samples say whether proposed tests block a wrong program.

Its votes are recorded and reported (arm "judge only", `arms.py`); whether a program is blocked is decided by execution.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..envs.task import Task
from ..verifiers.judge import SAMPLES
from ..verifiers.llm.fence import fenced, new_fence
from ..verifiers.llm.prompts import load
from ..verifiers.llm.protocol import LLM, Request
from ..verifiers.records import Finding
from .records import Proposal

PROMPTS = Path(__file__).parent / "prompts"
BLOCKS, LEAVES, UNDECIDED = "blocks", "does not block", "undecided"

_TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "premises": {"type": "array", "items": _TEXT},
        "trace": _TEXT,
        "conclusion": _TEXT,
        "label": {"type": "string", "enum": [BLOCKS, LEAVES, UNDECIDED]},
    },
    "required": ["premises", "trace", "conclusion", "label"],
    "additionalProperties": False,
}


def votes_of(task: Task, proposal: Proposal, findings: Sequence[Finding], llm: LLM) -> tuple[str, ...]:
    """One label per sample, about the first open target. Raises AnswersPending, BudgetExceeded, LLMError."""
    if not findings:
        return ()
    requests = [request(task, proposal, findings[0], sample) for sample in range(SAMPLES)]
    replies = llm.complete_many(requests)
    return tuple(str(r.data["label"]) if r.answered and r.data else UNDECIDED for r in replies)


def request(task: Task, proposal: Proposal, finding: Finding, sample: int) -> Request:
    tests = "\n\n".join(f"FILE {path}\n{text}" for path, text in proposal.added.test_files.items())
    program = finding.candidate.patch.text
    fence = new_fence(tests, program, task.prompt)
    prompt = load("blocks", PROMPTS)
    values = {
        "text": task.prompt,
        "fence": fence,
        "tests": fenced(tests, fence, "TESTS"),
        "exploit": fenced(program, fence, "PROGRAM"),
    }
    return Request(
        purpose="blocks",
        system=prompt.fill("system", values),
        context=prompt.fill("context", values),
        prompt=prompt.fill("prompt", values),
        schema=SCHEMA,
        prompt_version=prompt.version,
        fence=fence,
        sample=sample,
        max_tokens=4000,
        task_id=task.task_id,
    )
