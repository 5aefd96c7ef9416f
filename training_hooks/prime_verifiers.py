"""Prime Intellect's `verifiers` (v1 API): a Taskset over curated tasks. Written against verifiers 0.4.

    vf-validate acidtest-verifiers --taskset.source toy --runtime.type subprocess
    vf-eval acidtest-verifiers --env.taskset.source toy --env.agent.runtime.type subprocess -m MODEL …

`acidtest_verifiers` is the top-level module that their loader needs (a dotted id does not resolve there). The model answers in text;
the patch is read from its last reply and verified on this machine, not in their runtime. A masked score raises, which marks the rollout
as failed instead of paying 0. `OneReplyHarness`, the default for these tasks, asks the model once and installs nothing; any of their harnesses
works too. `trace.info["acidtest"]` has outcome, incident, kind, both rewards and the audit's flags.

This module imports *their* `verifiers`; our folder of that name is `acidtest.verifiers` and has no ``__init__.py`` on purpose.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from typing import Any

import verifiers.v1 as vf
from openai import AsyncOpenAI
from verifiers.v1.runtimes import ProgramResult

from ..envs.patch import Patch
from .curate import TaskList, load_tasks
from .datasets import prompt_of
from .incidents import open_log
from .records import Score
from .scorer import Scorer


class AcidConfig(vf.TasksetConfig):  # type: ignore[misc]
    """Which tasks, and how they are verified; ``--env.taskset.<name>`` on their command line. See `load_tasks` and `Scorer`."""

    source: str = "toy"
    split: str | None = None
    limit: int | None = None
    audit: str | None = None
    hardened: str | None = None
    min_eqs: float | None = None
    decision: str | None = None
    allow_hackable: bool = False
    sandbox: str | None = None
    max_concurrent: int = 8
    incidents: str | None = None


class AcidData(vf.TaskData):  # type: ignore[misc]
    """What goes over the wire: no gold patch, no tests."""

    task_id: str
    dataset: str
    suite_digest: str
    flags: tuple[str, ...] = ()


class AcidTask(vf.Task[AcidData, vf.State, vf.TaskConfig]):  # type: ignore[misc]
    """One task. `serving` names the Scorer in this process (tasks are copied, a Scorer is not)."""

    serving: str = ""

    @property
    def key(self) -> str:
        return f"{self.data.dataset}/{self.data.task_id}/{self.data.suite_digest}"

    def _scorer(self) -> Scorer:
        return _SERVING[self.serving]

    async def validate(self, runtime: Any) -> bool:
        """Gold is paid."""
        gold = Patch(self._scorer().tasks[self.data.task_id].gold_patch)
        return _valid((await self._scorer().ascore([(self.data.task_id, gold)]))[0]).reward == 1.0

    @vf.reward  # type: ignore[untyped-decorator]
    async def resolved(self, trace: Any) -> float:
        """The verdict's reward. Raises where there is none."""
        (score,) = await self._scorer().ascore([(self.data.task_id, trace.last_reply)])
        trace.info["acidtest"] = {
            "outcome": score.outcome,
            "incident": score.severity,
            "kind": score.kind,
            "reward_original": score.reward_original,
            "reward_hardened": score.reward_hardened,
            "form": score.form,
            "error": score.error,
            "flags": list(self.data.flags),
        }
        trace.record_metrics(
            {"false_pass": float(score.severity == "false_pass"), "tamper": float(score.severity == "tamper")}
        )
        return float(_valid(score).reward or 0.0)


def _valid(score: Score) -> Score:
    if score.masked:
        raise RuntimeError(f"no valid reward for {score.task_id}: {score.error or score.outcome}")
    return score


class AcidTaskset(vf.Taskset[AcidTask, AcidConfig]):  # type: ignore[misc]
    """The tasks of a source, with audit and hardened suites, one prompt each."""

    def load(self) -> Iterator[AcidTask]:
        config = self.config
        tasks = load_tasks(
            config.source,
            split=config.split,
            limit=config.limit,
            audit=config.audit,
            hardened=config.hardened,
            min_eqs=config.min_eqs,
            decision=config.decision,
            allow_hackable=config.allow_hackable,
        )
        serving = serve(tasks, config)
        for task in tasks:
            record = tasks.records.get(task.task_id)
            data = AcidData(
                id=task.task_id,
                name=task.task_id,
                prompt=prompt_of(task),
                task_id=task.task_id,
                dataset=task.dataset,
                suite_digest=task.suite.digest,
                flags=tuple(record.flags) if record is not None else (),
            )
            made = AcidTask(data, config.task)
            made.serving = serving
            yield made


class OneReplyConfig(vf.HarnessConfig):  # type: ignore[misc]
    """No options of its own."""


class OneReplyHarness(vf.Harness[OneReplyConfig]):  # type: ignore[misc]
    """One question, one answer, asked from this process (runtime ``subprocess``): no tools, no program to install."""

    APPENDS_SYSTEM_PROMPT = True
    EXECUTES_CODE = False
    NEEDS_CONTAINER = False

    async def launch(
        self,
        ctx: Any,
        trace: Any,
        runtime: Any,
        endpoint: str,
        secret: str,
        mcp_urls: dict[str, str],
        data: Any,
        tool_interception_url: str | None = None,
    ) -> ProgramResult:
        system, prompt = self.resolve_prompt(data)
        asked = prompt if isinstance(prompt, str) else data.prompt_text
        messages: list[Any] = [{"role": "system", "content": system}] if system else []
        messages.append({"role": "user", "content": asked or ""})
        async with AsyncOpenAI(base_url=endpoint, api_key=secret, max_retries=0) as client:
            await client.chat.completions.create(model=ctx.model, messages=messages)
        return ProgramResult(exit_code=0, stdout="", stderr="")


_SERVING: dict[str, Scorer] = {}
_LOCK = threading.Lock()


def serve(tasks: TaskList, config: AcidConfig) -> str:
    """The Scorer of a configuration, made once a process; gives its name. It lives until the process ends or `close`."""
    key = str(config.model_dump_json())
    with _LOCK:
        if key not in _SERVING:
            _SERVING[key] = Scorer(
                tasks,
                known=tasks.known,
                log=open_log(config.incidents),
                max_concurrent=config.max_concurrent,
                sandbox=config.sandbox,
            )
    return key


def close() -> None:
    """Close every Scorer of this process."""
    with _LOCK:
        while _SERVING:
            _SERVING.popitem()[1].close()


__all__ = ["AcidTaskset", "OneReplyHarness"]
