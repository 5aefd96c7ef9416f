"""Prompt files (`verifiers/prompts/*.md`): a version line, then sections `# system`, `# context`, `# prompt`.

`{{name}}` is filled in once; what is filled in is never read again, so no text can bring placeholders of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from ...envs.record import Record

FOLDER = Path(__file__).parents[1] / "prompts"
_SECTION = re.compile(r"^# (system|context|prompt)\n", re.MULTILINE)
_SLOT = re.compile(r"\{\{(\w+)\}\}")


@dataclass(frozen=True, kw_only=True)
class Prompt(Record):
    """name/version of the file, and its three parts as templates."""

    name: str
    version: str
    system: str
    context: str
    prompt: str

    def fill(self, part: str, values: Mapping[str, str]) -> str:
        """One part with its slots filled. A slot without a value is a KeyError: a prompt never goes out half filled."""
        return _SLOT.sub(lambda match: values[match[1]], str(getattr(self, part)))


@cache
def load(name: str, folder: Path = FOLDER) -> Prompt:
    """Read `<folder>/<name>.md` (default: `verifiers/prompts`)."""
    text = (folder / f"{name}.md").read_text(encoding="utf-8")
    first, _, rest = text.partition("\n")
    if not first.startswith("version: "):
        raise ValueError(f"{name}.md does not begin with a version line")
    parts = _SECTION.split(rest)
    sections = {key: body.strip("\n") for key, body in zip(parts[1::2], parts[2::2], strict=True)}
    return Prompt(
        name=name,
        version=f"{name}/{first.removeprefix('version: ').strip()}",
        system=sections.get("system", ""),
        context=sections.get("context", ""),
        prompt=sections["prompt"],
    )
