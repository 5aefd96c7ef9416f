"""Choose what to train on: `load_tasks` with an audit and a lockfile, `make` for environments, `to_dataset` for trainers.

These are the `load_tasks` and `make` that `acidtest` exports; the raw loader is `envs/load.py`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import gymnasium

from ..envs import load as raw
from ..envs.code_env import CodeEnv
from ..envs.errors import ConfigError
from ..envs.shell_env import ShellEnv
from ..envs.task import Task
from ..envs.task_env import open_verifier
from ..envs.vector import ThreadVectorEnv
from ..repair.lock import Lock, hardened, load_lock
from ..repair.wrapper import HardenedSuiteWrapper
from ..verifiers.audit_record import UNPROVEN
from ..verifiers.records import Decision
from ..verifiers.wrapper import AuditWrapper, known_kinds
from .audits import Facts, after_repair, facts_of, records_of

REFUSED = "hackable and not hardened"


@dataclass(frozen=True)
class FilterReport:
    """What became of every task that the source had. dropped: task_id -> reason. hardened: ids served with added
    tests. still_hackable: ids kept on whose served suite an audit still found a paid wrong program."""

    kept: tuple[str, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    hardened: tuple[str, ...] = ()
    still_hackable: tuple[str, ...] = ()

    def reasons(self) -> dict[str, int]:
        """Reason -> how many tasks, most frequent first."""
        return dict(Counter(self.dropped.values()).most_common())

    def __str__(self) -> str:
        total = len(self.kept) + len(self.dropped)
        lines = [
            f"{len(self.kept)} of {total} tasks kept, {len(self.hardened)} of them with a hardened suite"
        ]
        for reason, count in self.reasons().items():
            names = [task_id for task_id, why in self.dropped.items() if why == reason]
            shown = ", ".join(names[:5]) + (" …" if count > 5 else "")
            lines.append(f"  dropped {count}: {reason} ({shown})")
        if self.still_hackable:
            lines.append(
                f"  kept though an audit of the served suite found it hackable: {', '.join(self.still_hackable)}"
            )
        return "\n".join(lines)


class TaskList(list[Task]):
    """Tasks as loaded, with `report` (what was dropped and why), `records` (audit record by task_id), `facts`
    (EQS, decision and flags of the suite that is served) and `lock`."""

    def __init__(
        self,
        tasks: Iterable[Task] = (),
        *,
        report: FilterReport | None = None,
        records: Mapping[str, Any] | None = None,
        facts: Mapping[str, Facts] | None = None,
        lock: Lock | None = None,
    ) -> None:
        super().__init__(tasks)
        self.facts, self.lock = dict(facts or {}), lock
        self.report = report or FilterReport(kept=tuple(t.task_id for t in self))
        self.records: dict[str, Any] = dict(records or {})

    @property
    def known(self) -> dict[str, str]:
        """Patch digest -> zoo id of the audit's findings: names incidents."""
        return known_kinds(self.records.values())


def load_tasks(
    source: str | Path,
    *,
    split: str | None = None,
    limit: int | None = None,
    task_ids: Iterable[str] | None = None,
    audit: Any = None,
    hardened: Lock | str | Path | None = None,
    min_eqs: float | None = None,
    decision: str | Iterable[str] | None = None,
    flags: Iterable[str] = (),
    firm: bool = False,
    allow_hackable: bool = False,
    drop_unproven: bool = False,
    **options: Any,
) -> TaskList:
    """Tasks of a source, filtered by their audit, with hardened suites swapped in.

    source, split, limit, task_ids, further options: as in `envs/load.py` (limit counts rows of the source, before the
    filters). audit: a run folder, an `Audit`, or records. hardened: a lockfile or the run folder that holds one.
    Filters (each needs `audit`) look at the suite that is served, i.e. at the audit after repair where `hardened` is a run
    folder that has one: min_eqs (undefined is dropped); decision,
    e.g. "KEEP" or ["KEEP", "FIX"]; flags, names a task must carry, or with "!" in front must not carry
    (``["!flaky", "!too_narrow"]``); firm, only tasks whose decision no undefined term could change.
    Whenever there is an audit, tasks that it does not cover and broken tasks (decision DROP by calibration) are dropped,
    and hackable tasks without a hardened suite are refused; ``allow_hackable=True`` lets those through.
    drop_unproven: also drop tasks whose served suite pays programs of which none can be proven wrong, because too little of
    the domain is known (flag `unproven`): they may be as weak as hackable ones.
    The result's `report` says what was dropped and why. Raises LockError when a lock belongs to another task or suite.
    """
    wanted = _decisions(decision)
    if audit is None and (min_eqs is not None or wanted or tuple(flags) or firm or drop_unproven):
        raise ConfigError(
            "min_eqs, decision, flags, firm and drop_unproven need an audit.", mend="Give audit=<run folder>."
        )
    tasks = raw.load_tasks(source, split=split, limit=limit, task_ids=task_ids, **options)
    records = records_of(audit) if audit is not None else {}
    lock = hardened if isinstance(hardened, Lock) or hardened is None else load_lock(hardened)
    unwanted = [*flags, *(["!" + UNPROVEN] if drop_unproven else [])]
    filters = _Filters(min_eqs, wanted, tuple(unwanted), firm, allow_hackable) if audit is not None else None
    return _choose([_hardened(task, lock) for task in tasks], records, after_repair(hardened), lock, filters)


def _choose(
    tasks: Sequence[Task],
    records: Mapping[str, Any],
    repaired: Mapping[str, Mapping[str, Any]],
    lock: Lock | None,
    filters: _Filters | None,
) -> TaskList:
    """Filter tasks that have their suites already."""
    kept: list[Task] = []
    dropped: dict[str, str] = {}
    facts: dict[str, Facts] = {}
    for task in tasks:
        record = records.get(task.task_id)
        if record is not None:
            facts[task.task_id] = facts_of(task, record, repaired.get(task.task_id))
        reason = filters.refusal(task, record, facts.get(task.task_id)) if filters else ""
        if reason:
            dropped[task.task_id] = reason
        else:
            kept.append(task)
    report = FilterReport(
        kept=tuple(t.task_id for t in kept),
        dropped=dropped,
        hardened=tuple(t.task_id for t in kept if t.suite.added is not None),
        still_hackable=tuple(t.task_id for t in kept if _known_hackable(t, facts.get(t.task_id))),
    )
    ids = set(report.kept)
    return TaskList(
        kept,
        report=report,
        records={key: value for key, value in records.items() if key in ids},
        facts={key: value for key, value in facts.items() if key in ids},
        lock=lock,
    )


def _known_hackable(task: Task, facts: Facts | None) -> bool:
    """Whether an audit of the very suite that is served found a paid wrong program."""
    if facts is None or "hackable" not in facts.flags:
        return False
    return facts.hardened or task.suite.added is None


def _hardened(task: Task, lock: Lock | None) -> Task:
    return hardened(task, lock) if lock is not None and task.task_id in lock else task


def _decisions(decision: str | Iterable[str] | None) -> set[str]:
    if decision is None:
        return set()
    wanted = {d.upper() for d in ([decision] if isinstance(decision, str) else decision)}
    unknown = wanted - {str(d) for d in Decision}
    if unknown:
        raise ConfigError(f"No decision {sorted(unknown)}.", mend=f"There are: {', '.join(Decision)}.")
    return wanted


@dataclass(frozen=True)
class _Filters:
    min_eqs: float | None
    decisions: set[str]
    flags: tuple[str, ...]
    firm: bool
    allow_hackable: bool

    def refusal(self, task: Task, record: Any, facts: Facts | None) -> str:
        """Why a task is dropped, or ""."""
        if record is None or facts is None:
            return "not audited"
        if record.broken:
            return f"broken task ({record.broken})"
        if refused := self._by_facts(facts):
            return refused
        hackable = task.suite.added is None and "hackable" in record.flags
        return REFUSED if hackable and not self.allow_hackable else ""

    def _by_facts(self, facts: Facts) -> str:
        for flag in self.flags:
            if flag.startswith("!") and flag[1:] in facts.flags:
                return f"flag {flag[1:]}"
            if not flag.startswith("!") and flag not in facts.flags:
                return f"flag {flag} missing"
        if self.decisions and facts.decision not in self.decisions:
            return f"decision {facts.decision}"
        if self.firm and not facts.firm:
            return "decision not firm"
        if self.min_eqs is not None and facts.eqs is None:
            return "EQS undefined"
        if self.min_eqs is not None and facts.eqs is not None and facts.eqs < self.min_eqs:
            return f"EQS below {self.min_eqs:g}"
        return ""


def make(
    tasks: Sequence[Task] | str | Path, *, env: str = "code", num_envs: int | None = None, **options: Any
) -> Any:
    """A `gymnasium.Env` over the tasks: ``env="code"`` (one patch) or ``"shell"`` (commands); options go to it.

    Tasks that came with a lock get a `HardenedSuiteWrapper`, with an audit an `AuditWrapper`. num_envs: a vector environment of so many, stepping in threads and
    sharing one verifier. Raises ConfigError for another `env`.
    """
    if env not in ("code", "shell"):
        raise ConfigError(f"No environment {env!r}.", mend="There are: code, shell.")
    chosen = load_tasks(tasks) if isinstance(tasks, str | Path) else tasks
    if num_envs is None:
        return _one(chosen, env, options)
    if options.get("verifier") is not None:
        return ThreadVectorEnv([partial(_one, chosen, env, options) for _ in range(num_envs)])
    mode = options.get("reward", "resolved")
    shared = open_verifier(mode, **{k: options[k] for k in _VERIFIER_OPTIONS if k in options})
    rest = {
        k: v for k, v in options.items() if k not in _VERIFIER_OPTIONS or (env == "shell" and k in _SHELL_TOO)
    }
    fns = [partial(_one, chosen, env, {**rest, "verifier": shared}) for _ in range(num_envs)]
    return ThreadVectorEnv(fns, on_close=shared.close)


_VERIFIER_OPTIONS = ("sandbox", "defence", "ledger", "retries", "limits")
_SHELL_TOO = ("sandbox", "limits")


def _one(tasks: Sequence[Task], env: str, options: Mapping[str, Any]) -> gymnasium.Env[str, str]:
    made: gymnasium.Env[str, str] = CodeEnv(tasks, **options) if env == "code" else ShellEnv(tasks, **options)
    if isinstance(tasks, TaskList) and tasks.lock is not None:
        made = HardenedSuiteWrapper(made, tasks.lock, missing="keep")
    if isinstance(tasks, TaskList) and tasks.records:
        served = {key: facts.as_info() for key, facts in tasks.facts.items() if facts.hardened}
        made = AuditWrapper(made, tasks.records, served=served)
    return made
