"""Prove that paid programs are wrong: executed differences from gold on inputs of the task's own domain.

A finding is PROVEN when in-domain witnesses hold in fresh processes, twice: at least two of them, or one of the
strongest kind. A difference outside the established domain, or only in how the arguments are left, stays DIFFERS; a
paid program without any difference is a LEAD. A false accusation costs more than a miss, so every doubt says DIFFERS.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...envs.protocols import SandboxBackend
from ...envs.task import Task
from ..eqs import PoolPoint
from ..mutation.variants import variants_of
from ..records import Candidate, Family, Standing, Witness, WitnessKind
from ..search import FunctionSearch, GoldRow, Probe
from . import reseed
from .domain import IN_DOMAIN, SAMPLED, STATED, Domain, OracleInput
from .doubts import jittered, other_readings
from .equality import encode, same, show
from .witness import call_text, plain_json, render_test, script, shown

KINDS = {"v": WitnessKind.VALUE, "e": WitnessKind.EXCEPTION, "t": WitnessKind.TERMINATION}
STRENGTH = {"v": 1.0, "e": 0.95, "t": 0.7}
SCRIPT_KIND = {"v": "value", "e": "exception", "t": "termination"}
WITNESSES = 3
STAGES = ((False, 0, WITNESSES), (False, WITNESSES, WITNESSES + 1), (True, 0, 4 * WITNESSES))
"""(after the visible calls, which differences) that are confirmed, each for programs that still lack witnesses."""
GOLD_SECONDS = 0.03
"""CPU seconds that gold may need for all oracle inputs together; slower inputs are left out."""
VISIBLE_SECONDS = 16.0
"""CPU seconds that gold would need for the visible tests, once per candidate; beyond that mutants are thinned out."""
VARIANTS = 3
STRONG = 0.8
"""A single witness proves from this rating on; weaker ones need company."""


@dataclass(frozen=True)
class GoldDoubt:
    """A finding about gold: it contradicts an example of its own text, or raises inside the learned domain."""

    call: str
    expected: str
    observed: str
    kind: str


@dataclass(frozen=True)
class Examined:
    """One candidate after search and proof. duplicate_of: id of an earlier one with the same behaviour ("" if none)."""

    candidate: Candidate
    probe: Probe
    standing: Standing | None
    witnesses: tuple[Witness, ...] = ()
    reasons: tuple[str, ...] = ()
    duplicate_of: str = ""


@dataclass
class Oracle:
    """Domain, inputs and gold's results of one function task; examines candidates through an open search.

    widen: makes further inputs of the domain (admitted ones count as sampled), on top of `limit`.
    """

    search: FunctionSearch
    seed: int = 0
    limit: int = 300
    widen: Callable[[Domain, int], Iterable[tuple[Any, ...]]] | None = None
    domain: Domain | None = None
    inputs: list[OracleInput] = field(default_factory=list)
    doubts: list[GoldDoubt] = field(default_factory=list)
    _doubted: set[str] = field(default_factory=set)
    _variants: list[Probe] | None = None

    def prepare(self) -> None:
        """Record gold, learn the domain, make the inputs, run gold on them. Raises SearchUnsupported."""
        search = self.search
        recorded = search.record()
        self.domain = Domain.of(search.task, search.view, recorded)
        if self.domain is None:
            search.set_inputs([])
            return
        search.unordered = self.domain.unordered
        made = self._made(self.domain)
        made.sort(key=lambda one: -one.rating)
        rng = random.Random(self.seed)
        moved = {
            one.text: [j for _ in range(4) if (j := jittered(one.args, rng)) is not None] for one in made
        }
        extra = [OracleInput(args, 0.0) for several in moved.values() for args in several]
        rows = search.set_inputs([one.args for one in [*made, *extra]])
        by_text = {one.text: row for one, row in zip([*made, *extra], rows, strict=True)}
        self._doubt(made, rows)
        for one in made:
            twins = [by_text[repr(args)].value for args in moved[one.text]]
            if not all(same(by_text[one.text].value, value, search.unordered) for value in twins):
                self._doubted.add(one.text)
        rated = [self._rated(one, row) for one, row in zip(made, rows, strict=False)]
        chosen = self._affordable(rows[: len(made)])
        search.keep(chosen)
        self.inputs = [rated[at] for at in chosen]
        self._doubt_other_readings()

    def _made(self, domain: Domain) -> list[OracleInput]:
        """The domain's own inputs, and those of `widen` that are none of them and admitted."""
        made = domain.inputs(seed=self.seed, limit=self.limit)
        skip = {one.text for one in made} | {repr(call) for call in domain.visible}
        more = self.widen(domain, self.seed) if self.widen else ()
        wider = {repr(args): OracleInput(args, SAMPLED) for args in more if domain.admits(args)}
        return [*(one for text, one in wider.items() if text not in skip), *made]

    def _affordable(self, rows: Sequence[GoldRow]) -> list[int]:
        """Inputs in order until gold has used its share of CPU time (each program repeats it)."""
        spent, chosen = 0.0, []
        for at, row in enumerate(rows):
            if row.kind == "v" and (spent + row.seconds <= GOLD_SECONDS or row.seconds <= GOLD_SECONDS / 100):
                spent += row.seconds
                chosen.append(at)
        return chosen

    def _doubt_other_readings(self) -> None:
        """Distrust inputs on which a plausible other reading of gold, as good on the visible tests, differs."""
        readings = other_readings(self.search.view.gold, self.search.view.entry_point)
        for probe in self.search.probe(readings):
            if probe.accepted:
                for at, code in enumerate(probe.codes):
                    if code not in "=?":
                        self.inputs[at] = OracleInput(self.inputs[at].args, 0.0)

    def _rated(self, one: OracleInput, row: GoldRow) -> OracleInput:
        """The input with rating 0 where gold's own behaviour casts doubt on it."""
        assert self.domain is not None
        doubtful = row.kind != "v" or not self.domain.usual_result(row.value) or not self.domain.compared
        doubtful = (
            doubtful or self.domain.unlike_its_pattern(one.args, row.value) or one.text in self._doubted
        )
        return OracleInput(one.args, 0.0) if doubtful else one

    def _doubt(self, made: Sequence[OracleInput], rows: Sequence[GoldRow]) -> None:
        """Gold against the examples of the task's text (those that the tests also use included)."""
        assert self.domain is not None
        known = {one.text: row for one, row in zip(made, rows, strict=False)}
        visible = dict(self.search.record().calls)
        entry = self.search.view.entry_point
        for example in self.domain.examples:
            text = repr(example.args)
            row = known.get(text)
            value = row.value if row else visible.get(text)
            raised = row is not None and row.kind != "v"
            if not example.has_expected or (row is None and text not in visible):
                continue
            if self.domain.other_kind(encode(example.expected)):
                continue
            if raised or not same(encode(example.expected), value, self.domain.unordered):
                self._doubted.add(text)
                got = f"raises {value}" if raised else show(value)
                self.doubts.append(
                    GoldDoubt(call_text(entry, text), repr(example.expected), got, "contradicts its text")
                )
        for one, row in zip(made, rows, strict=False):
            if row.kind == "e" and one.rating >= STRONG and one.rating < STATED and len(self.doubts) < 8:
                self.doubts.append(
                    GoldDoubt(call_text(entry, one.text), "a value", f"raises {row.value}", "raises")
                )

    @property
    def chosen(self) -> list[int]:
        """Indices of the inputs that count as in-domain."""
        return [at for at, one in enumerate(self.inputs) if one.rating >= IN_DOMAIN]

    def pool_point(self, probe: Probe, kind: str) -> PoolPoint | None:
        """(s, q) of one program for V; None when no in-domain input ran."""
        quick = [at for at in self.chosen if at < self.search.quick]
        q = probe.agreement(quick)
        return None if q is None else PoolPoint(s=probe.share, q=q, accepted=probe.accepted, kind=kind)

    def variant_points(self) -> list[PoolPoint]:
        """Behaviour-preserving variants of gold in V's pool (a suite that rejects one is too narrow)."""
        probes = self.search.probe(self._variant_texts()) if self._variants is None else self._variants
        return [point for probe in probes if (point := self.pool_point(probe, "variant")) is not None]

    def _variant_texts(self) -> list[str]:
        view = self.search.view
        texts = map(view.source_of, variants_of(self.search.task, limit=VARIANTS))
        return [text for text in texts if text is not None]

    def affordable(self, candidates: Iterable[Candidate]) -> list[Candidate]:
        """The candidates, in order; where the visible tests are slow, mutants evenly thinned out, the others all."""
        given = list(candidates)
        mutants = [at for at, one in enumerate(given) if one.family is Family.MUTANT]
        room = int(VISIBLE_SECONDS / max(self.search.record().seconds, 1e-6)) - (len(given) - len(mutants))
        room = max(room, 10)
        if len(mutants) <= room:
            return given
        kept = {mutants[i * len(mutants) // room] for i in range(room)}
        return [one for at, one in enumerate(given) if at in kept or one.family is not Family.MUTANT]

    def examine(self, candidates: Iterable[Candidate]) -> list[Examined]:
        """Search and prove; results in the candidates' order. standing is None for what the visible tests reject."""
        given = list(candidates)
        texts = [self.search.view.source_of(candidate.patch) for candidate in given]
        programs = [text for text in texts if text is not None]
        searched = self.search.probe([*programs, *self._variant_texts()])
        probes, self._variants = iter(searched), searched[len(programs) :]
        found = [
            next(probes) if text is not None else Probe(share=0.0, accepted=False, error="no patch")
            for text in texts
        ]
        first: dict[tuple[str, int], Candidate] = {}
        duplicates: list[str] = []
        for candidate, probe in zip(given, found, strict=True):
            key = (probe.codes, probe.behaviour)
            known = (
                first.setdefault(key, candidate)
                if probe.accepted and set(probe.codes) - set("=?")
                else candidate
            )
            duplicates.append("" if known is candidate else known.candidate_id)
        todo = [at for at, probe in enumerate(found) if probe.accepted and not duplicates[at]]
        proofs = self._prove([(texts[at] or "", found[at]) for at in todo])
        by_id = {given[at].candidate_id: proof for at, proof in zip(todo, proofs, strict=True)}
        open_ = [
            (given[at].candidate_id, texts[at] or "") for at in todo if not by_id[given[at].candidate_id][0]
        ]
        by_id |= self._by_other_seeds(open_)
        out: list[Examined] = []
        for candidate, probe, duplicate in zip(given, found, duplicates, strict=True):
            if not probe.accepted:
                out.append(Examined(candidate, probe, None))
                continue
            witnesses, reasons = by_id[duplicate or candidate.candidate_id]
            standing = self._standing(probe, witnesses)
            if duplicate:
                witnesses = ()
            out.append(Examined(candidate, probe, standing, witnesses, reasons, duplicate))
        return out

    def _standing(self, probe: Probe, witnesses: Sequence[Witness]) -> Standing:
        if witnesses:
            return Standing.PROVEN
        return Standing.DIFFERS if set(probe.codes) - set("=?") else Standing.LEAD

    def _prove(
        self, programs: Sequence[tuple[str, Probe]]
    ) -> list[tuple[tuple[Witness, ...], tuple[str, ...]]]:
        """Witnesses (confirmed twice in fresh processes) and reasons per accepted program."""
        found: dict[tuple[str, int], Witness] = {}
        for warm, start, stop in STAGES:
            held_by = Counter(text for text, _ in found)
            todo = [
                (text, at, code)
                for text, probe in programs
                for at, code in self._pick(probe, stop)[start:]
                if held_by[text] < (1 if warm else WITNESSES)
            ]
            calls = [[*(self._warm() if warm else ()), self.inputs[at].text] for _, at, _ in todo]
            cases = [(t, c, self._seconds(at, code)) for (t, at, code), c in zip(todo, calls, strict=True)]
            first = self.search.confirm(cases, seed=2)
            held = [n for n, one in enumerate(first) if self._differs(todo[n][1], one)]
            second = self.search.confirm([cases[n] for n in held], seed=3)
            for n, two in zip(held, second, strict=True):
                (text, at, _), one = todo[n], first[n]
                if self._differs(at, two) and self._alike(one, two):
                    found[text, at] = self._witness(text, at, one[0], calls[n], one[1])
        out: list[tuple[tuple[Witness, ...], tuple[str, ...]]] = []
        for text, probe in programs:
            witnesses = [
                found[text, at] for at, _ in self._pick(probe, 4 * WITNESSES) if (text, at) in found
            ][:WITNESSES]
            enough = len(witnesses) >= 2 or any(w.rating >= STRONG for w in witnesses)
            out.append((tuple(witnesses) if enough else (), self._reasons(probe, witnesses, enough)))
        return out

    def _by_other_seeds(
        self, programs: Sequence[tuple[str, str]]
    ) -> dict[str, tuple[tuple[Witness, ...], tuple[str, ...]]]:
        """Proofs by the suite's own generator under other seeds, which gold passes and the program fails, twice."""
        view, proofs = self.search.view, dict[str, tuple[tuple[Witness, ...], tuple[str, ...]]]()
        for step, tests in reseed.reseeded(view.tests) if programs else []:
            todo = [(name, text) for name, text in programs if name not in proofs]
            for _ in range(2 if todo else 0):
                gold, *probes = self.search.probe([view.gold, *(text for _, text in todo)], tests=tests)
                failed = [gold.accepted and not probe.accepted for probe in probes]
                todo = [one for one, out in zip(todo, failed, strict=True) if out]
                if not todo:
                    break
            for name, text in todo:
                proofs[name] = ((reseed.witness(view, text, tests, step, STRONG),), (reseed.REASON,))
        return proofs

    def _differs(self, at: int, got: tuple[str, Any]) -> bool:
        kind, value = got
        return kind in STRENGTH and (
            kind != "v" or not same(self.search.gold[at].value, value, self.search.unordered)
        )

    def _alike(self, one: tuple[str, Any], two: tuple[str, Any]) -> bool:
        return one[0] == two[0] and (one[0] != "v" or same(one[1], two[1], self.search.unordered))

    def _pick(self, probe: Probe, most: int) -> list[tuple[int, str]]:
        """(input, code) of the differences worth confirming: best kind first, then closeness, then brevity."""
        options = [
            (at, code)
            for at, code in enumerate(probe.codes)
            if code in STRENGTH and self.inputs[at].rating >= IN_DOMAIN
        ]
        options.sort(
            key=lambda o: (-STRENGTH[o[1]] * self.inputs[o[0]].rating, len(self.inputs[o[0]].text), o[0])
        )
        firm = [o for o in options if o[1] != "t"]
        return firm[:most] if firm else options[:2]

    def _seconds(self, at: int, code: str) -> float:
        """CPU seconds of a confirming run: far beyond gold's own."""
        return max(0.5 if code == "t" else 2.0, 100 * self.search.gold[at].seconds)

    def _warm(self) -> list[str]:
        """The visible calls, for programs that keep state: one that is right alone may be wrong after them."""
        assert self.domain is not None
        return [repr(call) for call in self.domain.visible[:12]]

    def _witness(self, text: str, at: int, code: str, calls: Sequence[str], observed: Any) -> Witness:
        assert self.domain is not None
        view, one, row = self.search.view, self.inputs[at], self.search.gold[at]
        module = Path(view.path).stem
        name = f"{view.entry_point}_{at}"
        test = render_test(
            module=module, entry=view.entry_point, calls=calls, expected=row.value, name=name,
            unordered=self.domain.unordered,
        )  # fmt: skip
        standalone = script(
            task_id=view.task_id, gold=view.gold, candidate=text, entry=view.entry_point, calls=calls,
            kind=SCRIPT_KIND[code], expected=row.value, observed=observed, unordered=self.domain.unordered,
        )  # fmt: skip
        before = f"after {len(calls) - 1} visible calls: " if len(calls) > 1 else ""
        return Witness(
            kind=KINDS[code],
            call=call_text(view.entry_point, one.text),
            expected=show(row.value),
            observed=before + shown(SCRIPT_KIND[code], observed),
            script=standalone,
            test=test or "",
            in_domain=f"{one.how}; {self.domain.describe()}",
            rating=round(one.rating * STRENGTH[code], 4),
            runs=2,
            args_json=plain_json(one.args) if len(calls) == 1 else "",
        )

    def _reasons(self, probe: Probe, made: Sequence[Witness], enough: bool) -> tuple[str, ...]:
        if enough:
            return (f"{len(made)} in-domain witnesses hold in fresh processes",)
        if made:
            return ("one weak witness is not enough",)
        if self.domain is None or not self.domain.compared:
            return ("the tests give no domain or check only a property of the result",)
        codes = set(probe.codes) - set("=?")
        if not codes:
            return ("no difference from gold was found",)
        if codes == {"m"}:
            return ("only the arguments are left differently",)
        return ("every difference lies outside the established domain or did not hold in a fresh process",)


def prove(
    task: Task,
    candidates: Iterable[Candidate],
    *,
    backend: SandboxBackend | None = None,
    jobs: int | None = None,
    seed: int = 0,
) -> list[tuple[Candidate, tuple[Witness, ...], Standing | None]]:
    """(candidate, witnesses, standing) per candidate of a function task; standing None: its tests reject it.

    The acceptance here is the search's: count it only after `Verifier.verify(strict)`. Raises SearchUnsupported.
    """
    with FunctionSearch(task, backend, jobs=jobs) as search:
        oracle = Oracle(search, seed=seed)
        oracle.prepare()
        return [(found.candidate, found.witnesses, found.standing) for found in oracle.examine(candidates)]
