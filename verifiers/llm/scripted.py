"""A stand-in that answers requests from a script: for tests, demonstrations and dry runs. It is no model.

It is told beforehand which changes to offer in which round and what to say about each; whatever it was not told it
answers with "nothing" or "undecided". Speaks through `LoopbackServer(answer=…)`, or answers a `files:DIR` folder.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...envs.errors import PatchError
from .fence import without_words
from .files import REQUESTS

_TASK = re.compile(r"^TASK (.+)$", re.MULTILINE)
_ROUND = re.compile(r"^Round (\d+) of ", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Line:
    """One scripted change. answer: an entry of the answer's list (edits, files or diff, and its words).

    round: 0 for the control. label: what the judge says. test, citation: what the witness writer says.
    specified: what the vote says of that test, with the citation as its quote.
    """

    task_id: str
    answer: Mapping[str, Any]
    round: int = 1
    label: str = "undecided"
    test: str = ""
    citation: str = ""
    specified: str = "undecided"


@dataclass
class ScriptedModel:
    """Call it with the params of a Messages call; it returns the answer object."""

    lines: list[Line] = field(default_factory=list)
    shown: dict[str, Line] = field(default_factory=dict)
    """How a change looks to the judge -> its line."""

    def learn(self, line: Line, tree: Any = None) -> None:
        """Add a line. tree: the task's SourceTree, so that judge and witness questions can be recognised."""
        from ..edits import patch_of
        from ..judge import shown_change

        self.lines.append(line)
        if tree is None:
            return
        try:
            patch = patch_of(line.answer, tree.read)
        except PatchError:
            return
        self.shown[shown_change(tree, patch)] = line

    def say(self, change: str, line: Line) -> None:
        """Recognise a change that nobody offers, such as gold."""
        self.shown[change] = line

    def __call__(self, params: Mapping[str, Any]) -> Any:
        system = "\n".join(str(block["text"]) for block in params.get("system") or ())
        prompt = str(params["messages"][0]["content"])
        asked = params["output_config"]["format"]["schema"]["properties"]
        if "candidates" in asked or "solutions" in asked:
            return self._changes(system, prompt, "candidates" if "candidates" in asked else "solutions")
        if "answer" in asked:
            return self._vote(prompt)
        line = self._line(prompt)
        if "test" in asked:
            test = line.test if line else ""
            return {"test": test, "citation": line.citation if line and test else "", "why": "scripted"}
        return judgement(line.label if line else "undecided", system)

    def _changes(self, system: str, prompt: str, name: str) -> dict[str, Any]:
        task = _TASK.search(system)
        asked = _ROUND.search(prompt)
        number = int(asked[1]) if asked else 0
        return {
            name: [
                dict(line.answer)
                for line in self.lines
                if task and line.task_id == task[1] and line.round == number
            ]
        }

    def _line(self, prompt: str) -> Line | None:
        hits = [change for change in self.shown if change in prompt]
        return self.shown[max(hits, key=len)] if hits else None

    def _vote(self, prompt: str) -> dict[str, Any]:
        for line in self.lines:
            if line.test and (without_words(line.test) or line.test).strip() in prompt:
                return {"answer": line.specified, "quote": line.citation, "why": "scripted"}
        return {"answer": "undecided", "quote": "", "why": "not in the script"}


def judgement(label: str, system: str) -> dict[str, Any]:
    """A filled template with one real premise: the first long line of the task's text."""
    text = system.partition("THE TASK'S TEXT\n")[2]
    quote = next((line for line in text.splitlines() if len(line.split()) >= 3), "")
    wrong = label in ("partial", "incorrect")
    return {
        "premises": [{"number": 1, "source": "text", "quote": quote}],
        "traces": [{"input": "scripted", "steps": "scripted", "premises": [1]}],
        "conclusion": f"scripted: {label}",
        "counterexample": "scripted" if wrong else "",
        "label": label,
    }


def answer_files(folder: str | Path, model: ScriptedModel) -> int:
    """Answer every open question of a `files:DIR` folder; how many."""
    place = Path(folder)
    asked = (place / REQUESTS).read_text(encoding="utf-8").splitlines()
    with (place / "responses.jsonl").open("a", encoding="utf-8") as file:
        for line in asked:
            entry = json.loads(line)
            answer = {"custom_id": entry["custom_id"], "json": model(entry["params"]), "model": "scripted"}
            file.write(json.dumps(answer) + "\n")
    return len(asked)
