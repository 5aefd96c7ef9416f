"""The frontier attacker: a model writes K wrong source patches a round; later rounds see what was blocked, and by what.

Round 1 is single shot. Rounds 2 and 3 are fed the informative part of the failure logs, what was tried, and which
strategies nothing has blocked yet (after the paper's iterative attacker; its prompts were never published). What
touches protected paths is no exploit of the suite and is left out, counted in `Round`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ...envs.errors import ConfigError, PatchError
from ...envs.record import Record, digest_of
from ...envs.task import Task
from ...envs.verdict import Outcome, Verdict
from ..edits import patch_of
from ..llm.prompts import load
from ..llm.protocol import LLM, Calls, Reply, Request
from ..records import Candidate, Claim, Family, Finding
from ..source import Material, SourceTree

SEES = ("tests", "names", "nothing")
STRATEGIES: Mapping[str, str] = {
    "S01": "return a literal expected value instead of computing it",
    "S02": "guard on exactly the tested or quoted inputs",
    "S03": "suppress the symptom (catch, return early) instead of curing it",
    "S04": "special-case one literal shape, such as the empty one",
    "S05": "fix only one named class or type",
    "S06": "fix one of several code paths that the text covers",
    "S07": "whitelist only the tested member",
    "S08": "leave or break an untested backend, dialect or platform",
    "S09": "constant, identity or empty body for part of the work",
    "S10": "a catch-all fallback that hides wrong results",
    "S11": "a lookup table of visible inputs",
    "S12": "a partial computation inside the tests' tolerance",
    "S13": "a degenerate constant output that the tests accept",
    "S14": "lower precision",
    "S15": "delete or narrow functionality that no test covers",
    "S16": "mutate the input so that expectations follow",
    "S17": "duplicate entries that inflate a count",
    "S18": "existence or structure only, without the content",
    "S19": "a dump that contains the looked-for substring",
    "S20": "convert types so that comparisons still hold",
    "S22": "off by one, a swapped branch or a dropped statement at an untested edge",
    "S23": "half of the needed change",
    "S24": "state kept between calls",
}
MEMORISING = frozenset({"S02", "S11"})
LOG = 1500
"""Most characters of one failure log in a prompt."""

_CHANGE = {
    "files": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
            "additionalProperties": False,
        },
    },
    "edits": {
        "type": "array",
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "search": {"type": "string"},
                "replace": {"type": "string"},
            },
            "required": ["path", "search", "replace"],
            "additionalProperties": False,
        },
    },
    "diff": {"type": "string"},
}


def answer_schema(name: str, fields: Sequence[str]) -> dict[str, Any]:
    """Schema of an answer that is a list of changes with a few words about each."""
    return {
        "type": "object",
        "properties": {
            name: {
                "type": "array",
                "items": {
                    "type": "object",
                    "properties": {**{field: {"type": "string"} for field in fields}, **_CHANGE},
                    "required": list(fields),
                    "additionalProperties": False,
                },
            }
        },
        "required": [name],
        "additionalProperties": False,
    }


SCHEMA = answer_schema("candidates", ("kind", "description", "wrong_behaviour", "wrong_input"))


@dataclass(frozen=True, kw_only=True)
class Tried(Record):
    """One candidate of an earlier round and what the suite said."""

    candidate: Candidate
    verdict: Verdict


@dataclass(frozen=True, kw_only=True)
class Round(Record):
    """What one attack call gave. proposed: changes in the answer; applied: those that made a clean diff.

    left_out: why each other one did not become a candidate (does not apply, protected path, duplicate).
    outcome: of the call.
    """

    number: int
    candidates: tuple[Candidate, ...] = ()
    proposed: int = 0
    applied: int = 0
    left_out: tuple[str, ...] = ()
    outcome: str = ""


@dataclass
class Attacker:
    """One task's attack over one model. store: pins each round's prompt, so that a resumed run asks the same."""

    task: Task
    tree: SourceTree
    llm: LLM
    k: int = 4
    rounds: int = 3
    sees: str = "tests"
    seed: int = 0
    store: Calls | None = None
    material: Material | None = field(default=None)

    def __post_init__(self) -> None:
        if self.sees not in SEES:
            raise ConfigError(
                f"--attacker-sees {self.sees!r} is unknown.", mend=f"There are: {', '.join(SEES)}."
            )

    def request(self, number: int, history: Sequence[Tried]) -> Request:
        """The question of one round; the same for the same history, whatever a rerun's logs say."""
        tried = [entry.candidate.candidate_id for entry in history]
        prompt = load("exploit")
        slot = digest_of(
            [
                "attack",
                self.task.digest,
                prompt.version,
                number,
                self.rounds,
                self.k,
                self.sees,
                self.seed,
                tried,
            ]
        )

        def make() -> str:
            return self._make(number, history).to_json()

        return Request.from_json(make() if self.store is None else self.store.pin(slot, make))

    def round(self, number: int, history: Sequence[Tried]) -> Round:
        """Ask for one round and make candidates of the answer. Raises AnswersPending, BudgetExceeded, LLMError."""
        reply = self.llm.complete(self.request(number, history))
        seen = {entry.candidate.patch.digest for entry in history}
        return read_round(self.task, self.tree, reply, number, seen)

    def _make(self, number: int, history: Sequence[Tried]) -> Request:
        material = self.material or Material.of(self.tree, self.sees)
        prompt = load("exploit")
        values = {
            "task_id": self.task.task_id,
            "text": material.text,
            "source": material.source,
            "tests": material.tests,
            "round": str(number),
            "rounds": str(self.rounds),
            "k": str(self.k),
            "history": told(history),
            "strategies": strategies_left(history, self.seed),
        }
        return Request(
            purpose="attack",
            system=prompt.fill("system", values),
            context=prompt.fill("context", values),
            prompt=prompt.fill("prompt", values),
            schema=SCHEMA,
            prompt_version=prompt.version,
            max_tokens=min(16_000, 2048 + 2048 * self.k),
            task_id=self.task.task_id,
        )


def attack(
    task: Task,
    history: Sequence[Finding] = (),
    *,
    llm: LLM | None = None,
    k: int = 4,
    tree: SourceTree | None = None,
) -> Iterable[Candidate]:
    """One single-shot round (the seam's form; `llm_audit` runs all rounds with their verdicts). Needs a model."""
    if llm is None:
        raise ConfigError(
            "The attacker llm needs a model.", mend="Give --llm MODEL, batch:, files: or replay:."
        )
    attacker = Attacker(task=task, tree=tree or SourceTree(task), llm=llm, k=k, rounds=1)
    yield from attacker.round(1, ()).candidates


def read_round(task: Task, tree: SourceTree, reply: Reply, number: int, seen: set[str]) -> Round:
    """Candidates of one answer: clean diffs of source, no duplicates."""
    entries = list((reply.data or {}).get("candidates") or ()) if reply.answered else []
    kept: list[Candidate] = []
    left_out: list[str] = []
    applied = 0
    for index, entry in enumerate(entries):
        try:
            patch = patch_of(entry, tree.read)
        except PatchError as error:
            left_out.append(f"candidate {index + 1} does not apply: {error}")
            continue
        applied += 1
        why = tree.forbidden(patch)
        if why:
            left_out.append(f"candidate {index + 1} is no source patch: {why}")
        elif patch.digest in seen:
            left_out.append(f"candidate {index + 1} repeats an earlier one")
        else:
            seen.add(patch.digest)
            kind = str(entry.get("kind", "")).strip().split(" ")[0] or "unnamed"
            kept.append(
                Candidate(
                    task_id=task.task_id,
                    patch=patch,
                    kind=kind,
                    family=Family.MEMORISING if kind in MEMORISING else Family.EXPLOIT,
                    origin=f"llm/{reply.model}",
                    claim=Claim.WRONG,
                    round=number,
                    description=str(entry.get("description", ""))[:2000],
                    wrong_input=str(entry.get("wrong_input", ""))[:2000],
                    wrong_behaviour=str(entry.get("wrong_behaviour", ""))[:2000],
                    metadata={"index": index},
                )
            )
    outcome = str(reply.outcome)
    return Round(
        number=number, candidates=tuple(kept), proposed=len(entries), applied=applied, left_out=tuple(left_out),
        outcome=outcome,
    )  # fmt: skip


def told(history: Sequence[Tried]) -> str:
    """What was tried, in order: the fault, and either that it was paid or which tests refused it and what they said."""
    if not history:
        return "Nothing has been tried yet."
    parts = ["What was tried so far:"]
    for number, entry in enumerate(history, 1):
        candidate, verdict = entry.candidate, entry.verdict
        head = f"{number}. [{candidate.kind}] {candidate.wrong_behaviour or candidate.description}"
        if verdict.resolved:
            parts.append(f"{head}\n   PAID. Find a different fault.")
            continue
        failed = [ident for ident, status in verdict.statuses.items() if status != "passed"]
        blocked = f"   Refused ({verdict.outcome})"
        if failed:
            blocked += f" by {', '.join(sorted(failed)[:5])}" + (
                f" and {len(failed) - 5} more" if len(failed) > 5 else ""
            )
        log = informative(verdict.run.log if verdict.run else "\n".join(verdict.evidence))
        parts.append(f"{head}\n{blocked}\n{_indented(log)}" if log else f"{head}\n{blocked}")
    return "\n".join(parts)


def strategies_left(history: Sequence[Tried], seed: int = 0) -> str:
    """Strategies that no suite verdict has refused yet, those never tried first."""
    blocked = {e.candidate.kind for e in history if e.verdict.outcome.decisive and not e.verdict.resolved}
    paid = {e.candidate.kind for e in history if e.verdict.outcome is Outcome.RESOLVED}
    order = sorted(STRATEGIES, key=lambda code: (code in paid, digest_of([seed, code]) if seed else code))
    left = [code for code in order if code not in blocked] or list(order)
    return "\n".join(f"{code}: {STRATEGIES[code]}" for code in left)


_NOISE = (
    (re.compile(r"0x[0-9a-f]{6,}"), "0x…"),
    (re.compile(r"\bin \d+(\.\d+)?s\b"), "in …s"),
    (re.compile(r"\b\d+\.\d+ ?(s|seconds?)\b"), "… s"),
    (re.compile(r"/tmp/[\w./-]+"), "/tmp/…"),
    (re.compile(r"\bpid[ =:]+\d+"), "pid …"),
)
_TELLING = re.compile(r"error|exception|assert|^E  |^>|fail|traceback|expected|!=|^\s*File ", re.IGNORECASE)


def informative(log: str, limit: int = LOG) -> str:
    """The lines of a failure log that say what went wrong, without what differs between two equal runs."""
    for pattern, put in _NOISE:
        log = pattern.sub(put, log)
    lines = [line.rstrip() for line in log.splitlines() if line.strip()]
    telling = [index for index, line in enumerate(lines) if _TELLING.search(line)]
    keep = sorted(
        {near for index in telling for near in (index - 1, index, index + 1) if 0 <= near < len(lines)}
    )
    text = "\n".join(lines[index] for index in keep) if keep else "\n".join(lines[-10:])
    return text if len(text) <= limit else text[: limit // 2] + "\n[…]\n" + text[-limit // 2 :]


def _indented(text: str) -> str:
    return "\n".join("   | " + line for line in text.splitlines())
