"""OpenEnv: tasks behind its HTTP and WebSocket API (`acidtest serve`). Written against openenv-core 0.3.

Actions and observations are flat models: openenv drops ``Observation.metadata`` on the wire, so every flag is a field. A reward that is not
valid is sent as None together with ``reward_valid`` False. Each session has its own environment; all share one verifier.
"""

from __future__ import annotations

import contextlib
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from openenv.core.env_server.interfaces import Environment
from openenv.core.env_server.types import Action, EnvironmentMetadata, Observation, State

from ..envs.task import Task
from ..envs.task_env import open_verifier
from .curate import make
from .datasets import prompt_of
from .incidents import IncidentLog
from .records import Score

MANIFEST = """spec_version: 1
name: acidtest
type: space
runtime: fastapi
app: acidtest.training_hooks.openenv_server:app_from_environment
port: {port}
"""


class CodeAction(Action):  # type: ignore[misc]
    """text: a patch or completion (code episodes), or a shell command, or the word ``submit`` (shell episodes)."""

    text: str


class CodeObservation(Observation):  # type: ignore[misc]
    """What a client sees. Before the end `outcome` is "" and `reward` None."""

    text: str = ""
    task_id: str = ""
    suite_digest: str = ""
    outcome: str = ""
    reward_valid: bool = True
    reward_original: float | None = None
    reward_hardened: float | None = None
    incident: str = ""
    incident_kind: str = ""
    truncated: bool = False
    error: str = ""
    eqs: float | None = None
    decision: str = ""
    flags: list[str] = []  # noqa: RUF012 (a pydantic field)


class CodeState(State):  # type: ignore[misc]
    task_id: str = ""
    done: bool = False


class CodeSession(Environment[CodeAction, CodeObservation, CodeState]):  # type: ignore[misc]
    """One session: a Gymnasium environment behind OpenEnv's interface. Blocking; openenv runs it in threads."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self, env: Any, log: IncidentLog | None = None, lock: threading.Lock | None = None) -> None:
        super().__init__()
        self._env, self._log, self._lock = env, log, lock or threading.Lock()
        self._state = CodeState()

    def reset(
        self, seed: int | None = None, episode_id: str | None = None, **options: Any
    ) -> CodeObservation:
        """options: ``task_id`` or ``index`` choose the task."""
        chosen = {k: options[k] for k in ("task_id", "index") if options.get(k) is not None}
        text, info = self._env.reset(seed=seed, options=chosen)
        self._state = CodeState(episode_id=episode_id, task_id=info["task_id"])
        return observation(text, info, None)

    def step(self, action: CodeAction, timeout_s: float | None = None, **options: Any) -> CodeObservation:
        """timeout_s is not used: limits belong to the task, and a verdict is never cut short into a reward."""
        text, reward, terminated, truncated, info = self._env.step(action.text)
        done = terminated or truncated
        self._state.step_count += 1
        self._state.done = done
        valid = info.get("reward_valid", True)
        seen = observation(text, info, float(reward) if valid and done else None)
        seen.done, seen.truncated = done, truncated
        if done and self._log is not None:
            with self._lock:
                self._log.batch([_score(info, float(reward) if valid else None)])
        return seen

    @property
    def state(self) -> CodeState:
        return self._state

    def get_metadata(self) -> EnvironmentMetadata:
        return EnvironmentMetadata(
            name="acidtest", description="Code tasks whose suites were audited and hardened", version="1"
        )

    def close(self) -> None:
        self._env.close()


def observation(text: str, info: dict[str, Any], reward: float | None) -> CodeObservation:
    incident = info.get("incident")
    return CodeObservation(
        text=text,
        reward=reward,
        task_id=info["task_id"],
        suite_digest=info["suite_digest"],
        outcome=info.get("outcome", ""),
        reward_valid=info.get("reward_valid", True),
        reward_original=info.get("reward_original"),
        reward_hardened=info.get("reward_hardened"),
        incident=str(incident.severity) if incident else "",
        incident_kind=incident.kind if incident else "",
        error=info.get("error", ""),
        eqs=info.get("eqs"),
        decision=str(info.get("decision", "")),
        flags=list(info.get("flags", ())),
    )


def _score(info: dict[str, Any], reward: float | None) -> Score:
    return Score(
        task_id=info["task_id"],
        reward=reward,
        patch=info.get("patch", ""),
        verdict=info.get("verdict"),
        incident=info.get("incident"),
        error=info.get("error", ""),
    )


def app(
    tasks: Sequence[Task],
    *,
    env: str = "code",
    log: IncidentLog | None = None,
    max_sessions: int = 64,
    verifier: Any = None,
    **options: Any,
) -> Any:
    """The FastAPI application. env: "code" or "shell"; further options go to the environments.

    Its `state.close()` closes the verifier (when it was opened here) and the log; call it when the server has stopped.
    """
    from openenv.core.env_server.http_server import create_fastapi_app

    mode = options.get("reward", "resolved")
    shared = verifier or open_verifier(mode, **{k: options[k] for k in ("sandbox", "limits") if k in options})
    rest = options if env == "shell" else {k: v for k, v in options.items() if k not in ("sandbox", "limits")}
    lock = threading.Lock()
    make_env: Callable[[], Any] = lambda: CodeSession(  # noqa: E731
        make(tasks, env=env, verifier=shared, prompt=prompt_of if env == "code" else None, **rest), log, lock
    )
    made = create_fastapi_app(make_env, CodeAction, CodeObservation, max_concurrent_envs=max_sessions)

    def close() -> None:
        if verifier is None:
            shared.close()
        if log is not None:
            log.close()

    made.state.close = close
    return made


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A bound TCP socket; port 0 takes a free one."""
    with socket.create_server((host, port)) as sock:
        yield sock


def app_from_environment() -> Any:
    """The application that `openenv.yaml` names: ACIDTEST_SOURCE, ACIDTEST_AUDIT, ACIDTEST_HARDENED say which tasks."""
    import os

    from .curate import load_tasks
    from .incidents import open_log

    tasks = load_tasks(
        os.environ.get("ACIDTEST_SOURCE", "toy"),
        audit=os.environ.get("ACIDTEST_AUDIT"),
        hardened=os.environ.get("ACIDTEST_HARDENED"),
    )
    return app(tasks, log=open_log(os.environ.get("ACIDTEST_INCIDENTS")))
