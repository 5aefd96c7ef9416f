"""The benign control: correct solutions, written another way, that go through the same path as exploits, blind.

The share of them that is called wrong is the false-accusation rate, printed beside the hackable rate. Those that
hold (paid by the suite, called correct, no witness against them) join the known-correct alternatives.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..envs.errors import PatchError
from ..envs.task import Task
from .attackers.llm import Round, answer_schema
from .edits import patch_of
from .llm.prompts import load
from .llm.protocol import LLM, Reply, Request
from .records import Candidate, Claim, Family
from .source import Material, SourceTree

SCHEMA = answer_schema("solutions", ("description", "suspect_behaviour", "suspect_input"))
ROUND = 0
"""Round number of the control in records."""


def request(task: Task, material: Material, n: int) -> Request:
    """The question for `n` correct solutions that differ."""
    prompt = load("benign")
    values = {"task_id": task.task_id, "text": material.text, "source": material.source, "n": str(n)}
    return Request(
        purpose="benign",
        system=prompt.fill("system", values),
        context=prompt.fill("context", values),
        prompt=prompt.fill("prompt", values),
        schema=SCHEMA,
        prompt_version=prompt.version,
        max_tokens=min(16_000, 2048 + 2048 * n),
        task_id=task.task_id,
    )


def benign_round(task: Task, tree: SourceTree, llm: LLM, material: Material, n: int) -> Round:
    """Ask and read. Raises AnswersPending, BudgetExceeded, LLMError."""
    return read(task, tree, llm.complete(request(task, material, n)))


def read(task: Task, tree: SourceTree, reply: Reply) -> Round:
    """Candidates of the answer, in the form of an attack round with claim BENIGN.

    `wrong_*` hold what a sceptic would doubt: they feed the witness call just as an exploit's claim does.
    """
    entries: Sequence[dict[str, str]] = (
        list((reply.data or {}).get("solutions") or ()) if reply.answered else []
    )
    kept: list[Candidate] = []
    left_out: list[str] = []
    applied = 0
    seen: set[str] = set()
    for index, entry in enumerate(entries):
        try:
            patch = patch_of(entry, tree.read)
        except PatchError as error:
            left_out.append(f"solution {index + 1} does not apply: {error}")
            continue
        applied += 1
        why = tree.forbidden(patch) or ("it repeats an earlier one" if patch.digest in seen else "")
        if why:
            left_out.append(f"solution {index + 1}: {why}")
            continue
        seen.add(patch.digest)
        kept.append(
            Candidate(
                task_id=task.task_id,
                patch=patch,
                kind="benign",
                family=Family.BENIGN,
                origin=f"llm/{reply.model}",
                claim=Claim.BENIGN,
                round=ROUND,
                description=str(entry.get("description", ""))[:2000],
                wrong_behaviour=str(entry.get("suspect_behaviour", ""))[:2000],
                wrong_input=str(entry.get("suspect_input", ""))[:2000],
                metadata={"index": index},
            )
        )
    return Round(
        number=ROUND, candidates=tuple(kept), proposed=len(entries), applied=applied, left_out=tuple(left_out),
        outcome=str(reply.outcome),
    )  # fmt: skip
