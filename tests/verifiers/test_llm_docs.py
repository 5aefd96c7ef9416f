"""The example of docs/llm.md is real: its answer, written by hand, fits the question as it is asked."""

from __future__ import annotations

import json
import re
from pathlib import Path

from acidtest.verifiers.llm.answers import misfit
from acidtest.verifiers.llm.prices import price_of
from acidtest.verifiers.llm.prompts import FOLDER, load
from acidtest.verifiers.llm.protocol import CallOutcome, Reply
from acidtest.verifiers.standing import Cited
from acidtest.verifiers.witness import VOTE, specified_of

DOC = (Path(__file__).resolve().parents[2] / "docs" / "llm.md").read_text()
BLOCKS = [json.loads(block) for block in re.findall(r"```json\n(.*?)```", DOC, re.DOTALL)]


def test_the_example_answers_its_question() -> None:
    _, question, answer = BLOCKS
    assert question["custom_id"] == answer["custom_id"]
    schema = question["params"]["output_config"]["format"]["schema"]
    assert schema == VOTE
    assert misfit(answer["json"], schema) == ""
    text = question["params"]["system"][1]["text"]
    reply = Reply(outcome=CallOutcome.ANSWERED, data=answer["json"])
    assert specified_of([reply] * 2, text).cited is Cited.YES


def test_the_price_table_of_the_docs_is_read() -> None:
    assert price_of("my-model-2", BLOCKS[0], batch=True).output == 2.5


def test_every_prompt_has_a_version_and_fills() -> None:
    ours = {"benign", "exploit", "judge", "specified", "witness"}
    names = sorted(path.stem for path in FOLDER.glob("*.md"))
    assert ours <= set(names)
    for name in names:
        prompt = load(name)
        assert re.fullmatch(rf"{name}/\d+", prompt.version)
        slots = set(re.findall(r"\{\{(\w+)\}\}", prompt.system + prompt.context + prompt.prompt))
        hostile = dict.fromkeys(slots, "{{text}}")
        assert "{{text}}" in prompt.fill("prompt", hostile) or "{{text}}" in prompt.fill("context", hostile)
        assert name not in ours or f"`{name}`" in DOC
