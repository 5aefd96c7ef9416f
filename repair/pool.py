"""From a function task to the pool that inputs are chosen from: in-domain inputs, gold's results, what programs do.

Every wrong program that can be made mechanically is run on every input in one quick search (a fork each); its
differences from gold are the refusals to choose by. The search only steers: what the chosen tests really refuse is
for the gates. Inputs come from `verifiers/oracle` with the rating of how surely they belong to the task's domain.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..envs.protocols import SandboxBackend
from ..envs.task import Task
from ..verifiers.attackers import memorise, mutants, recipes
from ..verifiers.oracle.domain import task_text
from ..verifiers.oracle.equality import show
from ..verifiers.oracle.prove import Oracle
from ..verifiers.oracle.witness import call_text
from ..verifiers.records import Candidate
from ..verifiers.search import FunctionSearch, Probe, SearchUnsupported
from .describe import described
from .fallbacks import Known, cut_programs, fallbacks
from .render import Case, literal
from .select import Pool
from .ties import made_of_pieces, speaks_of_ties, tie_twins
from .widen import MOST, far_inputs

SURE = 0.65
"""Inputs below this rating are never pinned, whatever they would refuse."""
PAID_WEIGHT, REFUSED_WEIGHT = 4.0, 0.5
ANTICIPATED_WEIGHT = 2.0
MAX_TEXT = 300
"""A pinned call or value longer than this (characters) is no readable test."""
DIFFERS = frozenset("ve")


@dataclass(frozen=True)
class InputPool:
    """cases: what could be pinned, in the order of `pool`'s indices. unordered: results are compared without order."""

    cases: tuple[Case, ...]
    pool: Pool
    unordered: bool = False


def wrong_programs(task: Task, *, seed: int = 0, limit: int = 400) -> list[Candidate]:
    """Mutants of gold, semantic recipes and memorising programs: what a choice of inputs learns from."""
    return [*mutants.attack(task, seed=seed, limit=limit), *recipes.attack(task), *memorise.attack(task)]


def build_pool(
    task: Task,
    targets: Sequence[Candidate],
    *,
    backend: SandboxBackend | None = None,
    programs: Iterable[Candidate] | None = None,
    seed: int = 0,
    inputs: int = 300,
    sure: float = SURE,
) -> InputPool | None:
    """None where the task's tests can't be searched or nothing is known of its domain.

    programs: wrong programs to learn from (None: `wrong_programs`); targets are always among them.
    """
    try:
        with FunctionSearch(task, backend, quick=inputs + MOST) as search:
            oracle = Oracle(search, seed=seed, limit=inputs, widen=far_inputs)
            oracle.prepare()
            if oracle.domain is None:
                return None
            usable = _usable(oracle, sure, _tied(search, oracle))
            if not usable:
                return None
            others = wrong_programs(task, seed=seed) if programs is None else list(programs)
            named = {c.candidate_id: c for c in [*others, *targets]}
            texts = {key: search.view.source_of(c.patch) for key, c in named.items()}
            known = {key: text for key, text in texts.items() if text is not None}
            probes = dict(zip(known, search.probe(list(known.values())), strict=True))
            anticipated = _anticipated(search, oracle, usable)
    except SearchUnsupported:
        return None
    cases = tuple(
        Case(
            call=call_text(search.view.entry_point, oracle.inputs[at].text),
            expected=show(search.gold[at].value),
            note=f"in the task's domain: {oracle.inputs[at].how}",
        )
        for at in usable
    )
    shapes = described(
        oracle.domain, [oracle.inputs[at].args for at in usable], [case.expected for case in cases]
    )
    cost = [
        len(case.call) + len(case.expected) + round(200 * (1 - oracle.inputs[at].rating))
        for case, at in zip(cases, usable, strict=True)
    ]
    kills, weights = _kills(probes, usable)
    kills |= anticipated
    weights |= dict.fromkeys(anticipated, ANTICIPATED_WEIGHT)
    must = frozenset(c.candidate_id for c in targets)
    kills |= {key: kills.get(key, frozenset()) for key in must}
    must |= anticipated.keys()
    pool = Pool(kills=kills, shapes=shapes, cost=cost, weights=weights, must=must)
    return InputPool(cases, pool, oracle.domain.unordered)


def _tied(search: FunctionSearch, oracle: Oracle) -> set[int]:
    """Inputs on which gold chooses among equals and the text does not say how (`ties.py`)."""
    assert oracle.domain is not None
    if speaks_of_ties(task_text(search.task, search.view)):
        return set()
    tied: set[int] = set()
    for probe in search.probe(tie_twins(search.view.gold)):
        for at, code in enumerate(probe.codes):
            if code in DIFFERS and (result := literal(show(search.gold[at].value))) is not None:
                if made_of_pieces(result.value, oracle.inputs[at].args):
                    tied.add(at)
    return tied


def _anticipated(search: FunctionSearch, oracle: Oracle, usable: Sequence[int]) -> dict[str, frozenset[int]]:
    """Fallbacks of programs that know the visible tests (`fallbacks.py`) -> positions in `usable` that give them away."""
    domain, recorded = oracle.domain, dict(search.record().calls)
    assert domain is not None
    visible = [call for call in domain.visible if repr(call) in recorded]
    if not visible:
        return {}
    known = Known(
        visible=visible,
        visible_results=[recorded[repr(call)] for call in visible],
        inputs=[oracle.inputs[at].args for at in usable],
        results=[search.gold[at].value for at in usable],
        unordered=domain.unordered,
    )
    cuts = cut_programs(search.view, visible)
    seen = {
        name: frozenset(
            at for at, i in enumerate(usable) if i < len(probe.codes) and probe.codes[i] in DIFFERS
        )
        for name, probe in zip(cuts, search.probe(list(cuts.values())), strict=True)
    }
    return fallbacks(known) | {name: where for name, where in seen.items() if where}


def _usable(oracle: Oracle, sure: float, tied: set[int]) -> list[int]:
    """Inputs that are surely in-domain and no matter of taste, with a short plain result of gold."""
    return [
        at
        for at, (one, row) in enumerate(zip(oracle.inputs, oracle.search.gold, strict=True))
        if one.rating >= sure
        and at not in tied
        and row.kind == "v"
        and len(one.text) <= MAX_TEXT
        and len(show(row.value)) <= MAX_TEXT
        and literal(show(row.value)) is not None
    ]


def _kills(
    probes: dict[str, Probe], usable: Sequence[int]
) -> tuple[dict[str, frozenset[int]], dict[str, float]]:
    """Refusals by position in `usable`; programs that behave alike share the weight of one and a bit."""
    found: dict[str, frozenset[int]] = {}
    alike: Counter[tuple[bool, frozenset[int]]] = Counter()
    for key, probe in probes.items():
        codes = probe.codes
        found[key] = frozenset(at for at, i in enumerate(usable) if i < len(codes) and codes[i] in DIFFERS)
        alike[probe.accepted, found[key]] += 1
    weights = {}
    for key, probe in probes.items():
        count = alike[probe.accepted, found[key]]
        base = PAID_WEIGHT if probe.accepted else REFUSED_WEIGHT
        weights[key] = base * (1 + math.log(count)) / count
    return {key: indices for key, indices in found.items() if indices}, weights
