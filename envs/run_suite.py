"""Run one suite on one submission in one fresh sandbox: one message for patch, tests and command. No judgement."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from .defence import Defence
from .diff_policy import Plan, apply_op, disagreement
from .errors import SandboxDied
from .protocols import Channel, Exec, ExecResult, Framework, Op, Read, ReadResult, Report, Sandbox, Write
from .run import SuiteRun

LOG_BYTES = 200_000
"""How much of a suite's printed text is kept (head and tail): for people and attackers, never for grading."""


WATCHED_BYTES = 2_000_000
"""How much of the trusted files is read back after a run."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """A command with its framework and the trusted files it needs (path -> content)."""

    command: str
    framework: Framework
    files: Mapping[str, bytes] = field(default_factory=dict)
    deleted: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict)
    timeout_s: float = 300.0
    seed: int | None = None
    helpers: Mapping[str, bytes] = field(default_factory=dict)
    """More files for the scratch folder."""
    keys: tuple[str, ...] = ()
    """All beacon keys that its tests may ask. Each gets an answer, whatever it is: the real run and the twin look alike."""


@dataclass(frozen=True, kw_only=True)
class Observation:
    """run: for the record. report: beacon keys, alarms and other names, which grading needs once.

    rejected: why the submission did not apply ("" when it did; then `run` is empty). changed: trusted files and helpers
    that were not what we wrote when the command had ended (helpers as `{scratch}/…`).
    """

    run: SuiteRun
    report: Report
    rejected: str = ""
    patch_s: float = 0.0
    changed: tuple[str, ...] = ()


def run_job(
    sandbox: Sandbox,
    plan: Plan,
    job: Job,
    defence: Defence,
    replies: Mapping[str, str] | None = None,
    stop: tuple[str, ...] = (),
) -> Observation:
    """Apply the submission (unless `plan` is empty), place the tests, run. Raises SandboxError, nothing else.

    replies, stop: the supervisor's side of the channel (`Channel`); what runs in the sandbox is the same with any.
    """
    ops: list[Op] = []
    if plan.text:
        diff = f"{sandbox.scratch}/acid.diff"
        ops += [
            Write(files={diff: plan.text.encode("utf-8", "surrogateescape")}),
            apply_op(diff, sandbox.workdir),
        ]
    ops += run_ops(sandbox, job, replies, stop)
    written = next(op.files for op in ops[2 if plan.text else 0 :] if isinstance(op, Write))
    kept = watched(written) if defence.integrity and defence.trusted_tests else {}
    if not defence.trusted_tests and plan.text:
        ops = _tests_first(ops)
    ended = len(ops)
    results = sandbox.script([*ops, *(Read(path=path, limit=len(data) + 1) for path, data in kept.items())])
    applied = next((r for op, r in zip(ops, results, strict=False) if _is_apply(op)), None)
    patch_s = applied.seconds if isinstance(applied, ExecResult) else 0.0
    if isinstance(applied, ExecResult) and (problem := disagreement(plan, applied)):
        return Observation(run=SuiteRun(finished=False), report=Report(), rejected=problem, patch_s=patch_s)
    last = results[ended - 1] if len(results) == ended + len(kept) else None
    if not isinstance(last, ExecResult):
        raise SandboxDied("The sandbox ended before the suite's command did.")
    after = zip(kept.items(), results[ended:], strict=True)
    changed = [
        path for (path, data), read in after if not (isinstance(read, ReadResult) and read.data == data)
    ]
    names = tuple(path.replace(sandbox.scratch, "{scratch}", 1) for path in changed)
    return replace(observation(job.framework, last, patch_s), changed=names)


def watched(files: Mapping[str, bytes]) -> dict[str, bytes]:
    """Of the files that were written, those that are read back after the run: small ones first, WATCHED_BYTES in all."""
    out: dict[str, bytes] = {}
    left = WATCHED_BYTES
    for path, data in sorted(files.items(), key=lambda pair: (len(pair[1]), pair[0])):
        left -= len(data)
        if left < 0:
            break
        out[path] = data
    return out


def run_ops(
    sandbox: Sandbox, job: Job, replies: Mapping[str, str] | None = None, stop: tuple[str, ...] = ()
) -> list[Op]:
    """The ops that place trusted files and run the command; the command is the last."""
    call = job.framework.invocation(job.command, seed=job.seed)
    files = {f"{sandbox.scratch}/{name}": data for name, data in {**call.files, **job.helpers}.items()}
    ops: list[Op] = [Write(files={**job.files, **files})]
    if job.deleted:
        ops.append(Exec(command=f"rm -rf -- {' '.join(shlex.quote(path) for path in job.deleted)}"))

    def placed(text: str) -> str:
        return text.replace("{scratch}", sandbox.scratch)

    env = {**pinned(job.env), **{k: placed(v) for k, v in call.env.items()}}
    if job.env.get("PYTEST_ADDOPTS") and "PYTEST_ADDOPTS" in call.env:
        env["PYTEST_ADDOPTS"] = f"{call.env['PYTEST_ADDOPTS']} {job.env['PYTEST_ADDOPTS']}"
    ops.append(
        Exec(
            command=placed(call.command),
            ready=tuple(placed(word) for word in call.script),
            timeout_s=job.timeout_s,
            env=env,
            channel=Channel(
                replies={**dict.fromkeys(job.keys, Channel.default), **(replies or {})},
                stop=stop,
                armed=not replies,
            ),
            output_bytes=LOG_BYTES,
        )
    )
    return ops


def pinned(env: Mapping[str, str]) -> dict[str, str]:
    """The suite's own environment over a pinned hash seed, so that orders do not change between runs."""
    return {"PYTHONHASHSEED": "0", **env}


def observation(framework: Framework, result: ExecResult, patch_s: float = 0.0) -> Observation:
    report = framework.parse(result)
    run = SuiteRun(
        statuses=report.statuses,
        exit_code=result.exit_code,
        log=result.output.decode("utf-8", "replace"),
        log_truncated=result.truncated,
        timed_out=result.timed_out,
        out_of_memory=result.out_of_memory,
        stopped=result.stopped,
        finished=report.finished,
        durations=report.durations,
        beacons={ident: sum(counts.values()) for ident, counts in report.keys.items()},
        seconds=result.seconds,
    )
    return Observation(run=run, report=report, patch_s=patch_s)


def _is_apply(op: Op) -> bool:
    return isinstance(op, Exec) and op.check


def _tests_first(ops: Iterable[Op]) -> list[Op]:
    """The trusted-tests layer switched off: tests are there before the submission, as in naive harnesses."""
    patch, apply, write, *rest = ops
    return [write, patch, apply, *rest]
