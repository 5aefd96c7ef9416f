"""The semi-formal judge: premises, traces, conclusion, label; three samples, two agree or it stays undecided.

After Ugare & Chandra (arXiv 2603.01896). It sees the task's text, the source before, and the change with the
candidate's own comments and docstrings removed, between lines that carry a fresh random fence; never the suite's
verdict, the candidate's claims or its origin. A sample whose premises quote nothing that really stands in the
material counts as undecided. Not covered: meaning carried by identifiers, and code that does not parse is shown raw.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..envs.errors import PatchError
from ..envs.patch import Patch, file_diff
from ..envs.record import Record
from ..envs.task import Task
from .llm.fence import fenced, new_fence, without_words
from .llm.prompts import load
from .llm.protocol import LLM, Reply, Request
from .source import Material, SourceTree

LABELS = ("correct", "partial", "incorrect", "undecided")
SAMPLES = 3
MAJORITY = 2
WRONG = frozenset({"partial", "incorrect"})

_TEXT = {"type": "string"}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "premises": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "number": {"type": "integer"},
                    "source": {"type": "string", "enum": ["text", "before", "change"]},
                    "quote": _TEXT,
                },
                "required": ["number", "source", "quote"],
                "additionalProperties": False,
            },
        },
        "traces": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "input": _TEXT,
                    "steps": _TEXT,
                    "premises": {"type": "array", "items": {"type": "integer"}},
                },
                "required": ["input", "steps", "premises"],
                "additionalProperties": False,
            },
        },
        "conclusion": _TEXT,
        "counterexample": _TEXT,
        "label": {"type": "string", "enum": list(LABELS)},
    },
    "required": ["premises", "traces", "conclusion", "counterexample", "label"],
    "additionalProperties": False,
}


@dataclass(frozen=True, kw_only=True)
class Judgement(Record):
    """label: of the majority, else undecided. votes: one label per sample. reasons: why samples did not count.

    counterexample: of a sample that voted with the majority. quotes: premises that stand in the material, of how many.
    """

    label: str
    votes: tuple[str, ...] = ()
    counterexample: str = ""
    reasons: tuple[str, ...] = ()
    quotes: tuple[int, int] = (0, 0)

    @property
    def wrong(self) -> bool:
        """The majority says wrong (partial counts as incorrect)."""
        return self.label in WRONG


class SemiFormalJudge:
    """One task's judge. samples: distinct calls per program, told apart by their sample index."""

    def __init__(
        self,
        task: Task,
        tree: SourceTree,
        llm: LLM,
        *,
        material: Material | None = None,
        samples: int = SAMPLES,
    ) -> None:
        self.task = task
        self.tree = tree
        self.llm = llm
        self.samples = samples
        self.material = material or Material.of(tree, "nothing")

    def judge_many(self, patches: Sequence[Patch]) -> list[Judgement]:
        """One judgement per patch, all samples asked at once. Raises AnswersPending, BudgetExceeded, LLMError."""
        requests = [self.request(patch, sample) for patch in patches for sample in range(self.samples)]
        replies = self.llm.complete_many(requests)
        step = self.samples
        return [judgement_of(replies[at : at + step], requests[at]) for at in range(0, len(requests), step)]

    def request(self, patch: Patch, sample: int = 0) -> Request:
        """The question about one patch, with a fence of its own."""
        change = shown_change(self.tree, patch)
        fence = new_fence(change, self.material.text, self.material.source)
        prompt = load("judge")
        values = {
            "text": self.material.specification,
            "source": self.material.source,
            "fence": fence,
            "change": fenced(change, fence, "CHANGE"),
        }
        return Request(
            purpose="judge",
            system=prompt.fill("system", values),
            context=prompt.fill("context", values),
            prompt=prompt.fill("prompt", values),
            schema=SCHEMA,
            prompt_version=prompt.version,
            fence=fence,
            sample=sample,
            max_tokens=6000,
            task_id=self.task.task_id,
        )


def shown_change(tree: SourceTree, patch: Patch) -> str:
    """The change as a diff of code without the candidate's words; the raw diff where that can't be made."""
    try:
        after = tree.after(patch)
    except PatchError:
        return patch.text
    parts = []
    for path, text in sorted(after.items()):
        before = tree.read(path)
        parts.append(_plain(path, before, text))
    shown = "".join(parts)
    return shown or "(no change of code: only comments or docstrings differ)"


def _plain(path: str, before: str | None, after: str) -> str:
    """Diff of one file; comments and docstrings are taken out of both sides when both parse."""
    if path.endswith(".py"):
        new, old = without_words(after), without_words(before or "")
        if new is not None and old is not None:
            if _code(new) == _code(old):
                return ""
            return file_diff(path, None if before is None else old, new)
    return file_diff(path, before, after)


def _code(text: str) -> list[str]:
    """The lines that hold something."""
    return [line.rstrip() for line in text.splitlines() if line.strip()]


def judgement_of(replies: Sequence[Reply], request: Request) -> Judgement:
    """Count the samples' votes. Pure."""
    material = request.context + "\n" + request.prompt
    votes: list[str] = []
    reasons: list[str] = []
    held = total = 0
    for index, reply in enumerate(replies):
        if not reply.answered or reply.data is None:
            votes.append("undecided")
            reasons.append(f"sample {index}: {reply.outcome} {reply.detail}".strip())
            continue
        real, of = real_quotes(reply.data, material)
        held, total = held + real, total + of
        label = str(reply.data["label"])
        if label != "undecided" and not real:
            reasons.append(f"sample {index}: said {label}, but none of its {of} premises quotes the material")
            label = "undecided"
        elif label in WRONG and not str(reply.data["counterexample"]).strip():
            reasons.append(f"sample {index}: said {label} without a counterexample")
            label = "undecided"
        votes.append(label)
    label = majority(votes)
    example = next(
        (str(r.data["counterexample"]) for r, v in zip(replies, votes, strict=True) if v == label and r.data),
        "",
    )
    return Judgement(
        label=label, votes=tuple(votes), counterexample=example[:2000] if label in WRONG else "",
        reasons=tuple(reasons), quotes=(held, total),
    )  # fmt: skip


def agreed(votes: Sequence[str], need: int = MAJORITY) -> str:
    """The most frequent label where it has at least `need` votes, else undecided."""
    label, count = Counter(votes).most_common(1)[0] if votes else ("undecided", 0)
    return label if count >= need else "undecided"


def majority(votes: Sequence[str], need: int = MAJORITY) -> str:
    """The label with at least `need` votes. Partial and incorrect agree that it is wrong: together they decide, and
    the more frequent of the two (incorrect at a tie) is the label. Otherwise undecided."""
    counts = Counter(votes)
    if counts["correct"] >= need and counts["correct"] > sum(counts[label] for label in WRONG):
        return "correct"
    if sum(counts[label] for label in WRONG) >= need and sum(counts[w] for w in WRONG) > counts["correct"]:
        return "partial" if counts["partial"] > counts["incorrect"] else "incorrect"
    return "undecided"


def real_quotes(data: Mapping[str, Any], material: str) -> tuple[int, int]:
    """(premises whose quote stands in the material, all premises); blanks count as one, very short quotes never."""
    flat = flattened(material)
    quotes = [flattened(str(premise["quote"])) for premise in data["premises"]]
    return sum(len(quote) >= 4 and quote in flat for quote in quotes), len(quotes)


def flattened(text: str) -> str:
    """Runs of blanks as one; diff marks at line starts dropped, so that code can be quoted from a diff."""
    text = re.sub(r"(?m)^[+\-](?![+\-])", " ", text)
    return re.sub(r"\s+", " ", text).strip()
