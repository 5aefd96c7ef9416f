"""Quick search over many programs of one function task: visible tests and oracle inputs, a fork per program.

Runs inside a sandbox (docker or local), a few execs per task, on all cores. It only *searches*: what it accepts is a
lead until `Verifier.verify(strict)` has accepted it too. Measured: see docs/measurements.md.
Not covered: tasks whose tests need more than the standard library (`SearchUnsupported`), and programs that attack
the worker itself: they can only mislead the search about themselves.
"""

from __future__ import annotations

import json
import marshal
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from ..envs import pyast
from ..envs.errors import SandboxError, TaskError
from ..envs.protocols import Exec, ExecResult, Limits, Sandbox, SandboxBackend, SandboxSpec, Write
from ..envs.sandboxes import open_backend
from ..envs.task import Task
from . import search_boot
from .mutation.functions import FunctionView
from .search_boot import worker_source as worker_source

OUTPUT_BYTES = 64_000_000
CHUNK = 400


class SearchUnsupported(TaskError):
    """Gold does not pass this task's visible tests inside the search worker, so nothing can be searched."""


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """CPU seconds. Limits scale from gold (factor x gold's own time), between a floor and a cap.

    visible: for loading a program and all visible tests; step: from one assert to the next; call: one oracle input.
    gold_budget: for gold on all oracle inputs together; inputs after that are not used. slow_suite: where gold needs
    longer for the visible tests, a program stops at its first failed assert (the later ones count as failed), and
    slow_factor stands for factor.
    """

    visible_floor: float = 0.06
    step_floor: float = 0.02
    visible_cap: float = 4.0
    call_floor: float = 0.02
    call_cap: float = 2.0
    factor: float = 8.0
    gold_budget: float = 0.5
    slow_suite: float = 0.1
    slow_factor: float = 4.0
    memory_bytes: int = 1 << 30


@dataclass(frozen=True, kw_only=True)
class Recorded:
    """Gold under the visible tests. calls: (text of the argument tuple, encoded result), literal arguments only.

    sites: assert statements that gold passes. seconds, longest, step: CPU time of all the tests, of the longest call, of
    the longest way from one assert to the next.
    """

    calls: tuple[tuple[str, Any], ...]
    sites: frozenset[int]
    seconds: float
    longest: float
    step: float = 0.0


@dataclass(frozen=True, kw_only=True)
class GoldRow:
    """Gold on one oracle input. kind: v (value), e (exception), t (out of time), ? (differs between two runs)."""

    kind: str
    value: Any
    after: str
    seconds: float


@dataclass(frozen=True, kw_only=True)
class Difference:
    """The program's result on input `index`. code: v value, e exception, m arguments left differently, t time."""

    index: int
    code: str
    observed: Any = None


@dataclass(frozen=True, kw_only=True)
class Probe:
    """What the search saw of one program.

    share: passed share of the assert sites that gold passes. accepted: all of them, and everything ran to its end.
    codes: one letter per oracle input (= v e m t, ? not run), shorter for rejected programs.
    behaviour: equal for programs that did the same on the inputs run; differences: the first few.
    """

    share: float
    accepted: bool
    codes: str = ""
    behaviour: int = 0
    differences: tuple[Difference, ...] = ()
    error: str = ""
    seconds: float = 0.0

    def agreement(self, chosen: Iterable[int]) -> float | None:
        """Share of the chosen oracle inputs (those that ran) on which the program does what gold does."""
        codes = [self.codes[i] for i in chosen if i < len(self.codes) and self.codes[i] != "?"]
        return sum(code in "=m" for code in codes) / len(codes) if codes else None


@dataclass
class FunctionSearch:
    """Runs programs of one function task. A context manager; owns its sandbox, and its backend unless given one.

    cpu_seconds: CPU time its execs used so far, the programs' included. jobs: programs at a time (None: all cores this
    process may use). quick: oracle inputs for rejected programs, which only place V's points.
    """

    task: Task
    backend: SandboxBackend | None = None
    jobs: int | None = None
    quick: int = 40
    details: int = 24
    limits: SearchLimits = field(default_factory=SearchLimits)
    unordered: bool = False

    def __post_init__(self) -> None:
        self.view = FunctionView.of(self.task)
        self._owns = self.backend is None
        self._sandbox: Sandbox | None = None
        self._opened: Any = None
        self._recorded: Recorded | None = None
        self._literals: dict[str, bytes] = {}
        self.cpu_seconds = 0.0
        self.inputs: tuple[str, ...] = ()
        self.gold: tuple[GoldRow, ...] = ()

    def __enter__(self) -> Self:
        if self.backend is None:
            self.backend = open_backend()
        limits = Limits(memory_mib=8192, cpus=float(self._jobs()), tmpfs_mib=1024, output_bytes=OUTPUT_BYTES)
        spec = SandboxSpec(image=self.task.image, workdir=self.task.workdir, files={}, limits=limits)
        self._opened = self.backend.open(spec)
        self._sandbox = self._opened.__enter__()
        self._sandbox.write(
            {f"{self._sandbox.scratch}/{name}": data for name, data in search_boot.files().items()}
        )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the sandbox, and the backend when it is ours."""
        opened, self._opened, self._sandbox = self._opened, None, None
        if opened is not None:
            opened.__exit__(None, None, None)
        if self._owns and self.backend is not None:
            self.backend.close()
            self.backend = None

    def record(self) -> Recorded:
        """Run gold under the visible tests (once). Raises SearchUnsupported where it does not pass there."""
        if self._recorded is None:
            (found,) = self._run("record", {"record_limit": max(10.0, self.task.timeout_s)}, 1) or [{}]
            sites = frozenset(int(k) for k, ok in found.get("sites", {}).items() if ok)
            failed = [k for k, ok in found.get("sites", {}).items() if not ok]
            if not found.get("clean") or found.get("error") or failed:
                why = found.get("error") or (
                    f"{len(failed)} asserts fail" if failed else "a test ends with an error"
                )
                raise SearchUnsupported(f"{self.task.task_id}: gold fails in the search worker: {why}.")
            self._recorded = Recorded(
                calls=tuple((key, value) for key, value in found["calls"] if is_literal(key)),
                sites=sites,
                seconds=float(found["seconds"]),
                longest=float(found["longest"]),
                step=float(found["step"]),
            )
        return self._recorded

    def set_inputs(self, arguments: Sequence[tuple[Any, ...]]) -> tuple[GoldRow, ...]:
        """Fix the oracle inputs (argument tuples of plain data); gold runs on them twice, under different hash seeds."""
        recorded = self.record()
        inputs = [repr(one) for one in arguments]
        self._literals.update(
            (text, marshal.dumps(one, 2)) for text, one in zip(inputs, arguments, strict=True)
        )
        limit = min(self.limits.call_cap, max(0.3, 50 * recorded.longest))
        more = {
            "packed": [self._packed(text) for text in inputs],
            "gold_limit": limit,
            "gold_budget": self.limits.gold_budget,
        }
        rows = [self._run("gold", more, 1, seed=seed) for seed in (0, 1)]
        first, second = ((run or [{}])[0].get("rows") for run in rows)
        if first is None or second is None or len(first) != len(inputs):
            raise SearchUnsupported(f"{self.task.task_id}: gold died on the oracle's inputs.")
        self.inputs = tuple(inputs)
        self.gold = tuple(
            GoldRow(
                kind=a[0] if (a[:2] == b[:2] or a[1] != a[1]) else "?",
                value=a[1],
                after=a[2],
                seconds=float(a[3]),
            )
            for a, b in zip(first, second, strict=True)
        )
        return self.gold

    def keep(self, chosen: Sequence[int]) -> None:
        """Go on with these of the oracle inputs only, in this order."""
        self.inputs = tuple(self.inputs[at] for at in chosen)
        self.gold = tuple(self.gold[at] for at in chosen)

    def probe(self, programs: Sequence[str], *, tests: Mapping[str, str] | None = None) -> list[Probe]:
        """One Probe per program text, in order. tests: other texts of the test files (same asserts, other data)."""
        recorded = self.record()
        probes: list[Probe] = []
        for start in range(0, len(programs), CHUNK):
            chunk = list(programs[start : start + CHUNK])
            found: dict[int, dict[str, Any]] = {}
            job = self._job(recorded, chunk) | (
                {"tests": dict(tests), "packed": []} if tests is not None else {}
            )
            for line in self._run("programs", job, len(chunk)):
                parts = [part for part in line[1:] if isinstance(part, dict)]
                found[int(line[0])] = {key: value for part in parts for key, value in part.items()}
            missing = {"error": "the worker gave no answer"}
            probes += [self._probe(recorded, found.get(i, missing)) for i in range(len(chunk))]
        return probes

    def confirm(
        self, cases: Sequence[tuple[str, Sequence[str], float]], *, seed: int = 2
    ) -> list[tuple[str, Any]]:
        """(kind, encoded result) of each case, every one in a fresh fork without the visible tests before it.

        A case is (program text, texts of argument tuples, CPU seconds); the last call counts. kind: v, e or t.
        """
        programs = list(dict.fromkeys(case[0] for case in cases))
        place = {text: number for number, text in enumerate(programs)}
        rows = [[place[text], [self._packed(call) for call in calls], limit] for text, calls, limit in cases]
        job = {"programs": programs, "cases": rows, "memory": self.limits.memory_bytes}
        found = (
            {int(n): (str(r[0]), r[1]) for n, r in self._run("confirm", job, len(cases), seed=seed)}
            if rows
            else {}
        )
        return [found.get(number, ("?", None)) for number in range(len(rows))]

    def _packed(self, text: str) -> bytes:
        """An argument tuple as the worker reads it. Raises what `ast.literal_eval` raises."""
        if text not in self._literals:
            self._literals[text] = marshal.dumps(pyast.literal(text), 2)
        return self._literals[text]

    def _job(self, recorded: Recorded, programs: list[str]) -> dict[str, Any]:
        limits = self.limits
        slow = recorded.seconds > limits.slow_suite
        factor = limits.slow_factor if slow else limits.factor
        visible = min(limits.visible_cap, limits.visible_floor + factor * recorded.seconds)
        total = sum(row.seconds for row in self.gold)
        slowest = max((row.seconds for row in self.gold), default=0.0)
        return {
            "programs": programs,
            "packed": [self._packed(text) for text in self.inputs],
            "expected": [[row.kind, row.value, row.after, row.seconds] for row in self.gold],
            "visible_limit": visible,
            "step_limit": limits.step_floor + factor * recorded.step,
            "call_limit": min(limits.call_cap, limits.call_floor + limits.factor * slowest / 2),
            "oracle_limit": min(10.0, 0.3 + limits.factor * total),
            "quick_limit": min(
                5.0, 0.1 + limits.factor * sum(row.seconds for row in self.gold[: self.quick])
            ),
            "need": sorted(recorded.sites),
            "fail_fast": slow,
            "jobs": self._jobs(),
            "quick": self.quick,
            "details": self.details,
            "memory": limits.memory_bytes,
            "unordered": self.unordered,
        }

    def _probe(self, recorded: Recorded, found: Mapping[str, Any]) -> Probe:
        passed = recorded.sites & set(found.get("passed", ()))
        share = len(passed) / len(recorded.sites) if recorded.sites else float(bool(found.get("survivor")))
        return Probe(
            share=share,
            accepted=bool(found.get("survivor")),
            codes=str(found.get("codes", "")),
            behaviour=int(found.get("behaviour", 0)),
            differences=tuple(
                Difference(index=i, code=c, observed=o)
                for i, c, o in found.get("details", ())
                if i < len(self.inputs)
            ),
            error=str(found.get("error", "")),
            seconds=float(found.get("seconds", 0.0)),
        )

    def _jobs(self) -> int:
        return self.jobs or len(os.sched_getaffinity(0))

    def _run(self, mode: str, more: Mapping[str, Any], programs: int, *, seed: int = 0) -> list[Any]:
        """One exec of the worker; its JSON lines. Raises SandboxError when it could not be run at all."""
        if self._sandbox is None:
            raise SandboxError(
                f"{self.task.task_id}: the search is not open.", mend="Use it as a context manager."
            )
        job: dict[str, Any] = {
            "mode": mode,
            "module": Path(self.view.path).stem,
            "entry_point": self.view.entry_point,
            "gold": self.view.gold,
            "tests": dict(self.view.tests),
            "packed": [],
            **more,
        }
        scratch = self._sandbox.scratch
        job["imports"] = search_boot.imports_of(
            self.view.gold, *job["tests"].values(), *job.get("programs", ())
        )
        run = Exec(
            command=(*search_boot.COMMAND, scratch),
            timeout_s=60 + 12.0 * max(programs, 1),
            env={"PYTHONHASHSEED": str(seed), "PYTHONDONTWRITEBYTECODE": "1"},
            output_bytes=OUTPUT_BYTES,
        )
        write = Write(files={f"{scratch}/job": search_boot.job_bytes(job)})
        _, result = self._sandbox.script([write, run])
        assert isinstance(result, ExecResult)
        lines = [_json(line) for line in result.output.split(b"\n") if line[:1] in (b"[", b"{")]
        found = [line for line in lines if line is not None]
        self.cpu_seconds += sum(
            line.pop("cpu") for line in found if isinstance(line, dict) and set(line) == {"cpu"}
        )
        found = [line for line in found if line]
        if not found and result.exit_code != 0:
            raise SandboxError(f"{self.task.task_id}: the search worker failed: {result.output[-300:]!r}")
        return found


def _json(line: bytes) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        return None


def is_literal(text: str) -> bool:
    """Whether an argument tuple's text can be read back by `ast.literal_eval`."""

    try:
        pyast.literal(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return False
    return True
