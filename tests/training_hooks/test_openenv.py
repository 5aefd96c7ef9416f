"""An OpenEnv client over a real socket. Tested with openenv-core 0.3.0, fastapi 0.165, uvicorn 0.54, websockets 17.4."""

from __future__ import annotations

import importlib
import importlib.util
import json
import threading
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import acidtest as at
from acidtest.envs.errors import SandboxDied
from acidtest.envs.scripted import ScriptedVerifier
from acidtest.training_hooks.incidents import open_log

pytestmark = [
    pytest.mark.skipif(importlib.util.find_spec("openenv") is None, reason="openenv-core is not installed"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:websockets"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:uvicorn"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:openenv"),
    pytest.mark.filterwarnings("ignore::UserWarning:openenv"),
]

TASK = at.Task(
    task_id="add",
    dataset="unit",
    prompt="Add two numbers.",
    suite=at.Suite(command="true", framework="plain", fail_to_pass=("t::a",)),
    gold_patch="",
)


def diff(line: str) -> str:
    return f"--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+{line}\n"


SCRIPT: dict[str, Any] = {
    diff("gold"): at.Outcome.RESOLVED,
    diff("fooled"): (at.Outcome.UNRESOLVED, at.Outcome.RESOLVED),
    diff("lost"): SandboxDied("gone"),
}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[tuple[str, Path]]:
    import uvicorn

    from acidtest.training_hooks import openenv_server

    app = openenv_server.app(
        [TASK], verifier=ScriptedVerifier(SCRIPT), log=open_log(tmp_path / "i.jsonl"), max_sessions=8
    )
    config = uvicorn.Config(app, log_level="warning", ws="websockets-sansio", lifespan="off")
    running = uvicorn.Server(config)
    with openenv_server.listening("127.0.0.1", 0) as sock:
        thread = threading.Thread(target=running.run, kwargs={"sockets": [sock]})
        thread.start()
        while not running.started:
            time.sleep(0.01)
        yield f"http://127.0.0.1:{sock.getsockname()[1]}", tmp_path / "i.jsonl"
        running.should_exit = True
        thread.join(20)
        app.state.close()
    assert not thread.is_alive()


def episode(url: str, text: str) -> tuple[Any, Any]:
    from openenv.core.generic_client import GenericEnvClient

    with GenericEnvClient(base_url=url).sync() as client:
        first = client.reset(seed=1)
        return first, client.step({"text": text})


def test_a_client_over_a_socket_gets_flags_and_masks(server: tuple[str, Path]) -> None:
    url, log = server
    first, paid = episode(url, diff("gold"))
    assert first.observation["text"].startswith("Add two numbers.")
    assert (first.done, first.reward) == (False, None)
    assert (paid.reward, paid.done, paid.observation["outcome"]) == (1.0, True, "resolved")
    _, fooled = episode(url, diff("fooled"))
    assert fooled.reward == 0.0
    assert fooled.observation["incident"] == "false_pass"
    assert (fooled.observation["reward_original"], fooled.observation["reward_hardened"]) == (1.0, 0.0)
    _, lost = episode(url, diff("lost"))
    assert lost.reward is None
    assert lost.observation["reward_valid"] is False
    assert "SandboxDied" in lost.observation["error"]
    assert json.loads(log.read_text().splitlines()[0])["severity"] == "false_pass"


def test_sessions_do_not_share_an_episode(server: tuple[str, Path]) -> None:
    url, _ = server
    results: dict[int, Any] = {}

    def run(i: int) -> None:
        results[i] = episode(url, diff("gold") if i % 2 else diff("bad"))[1].reward

    threads = [threading.Thread(target=run, args=(i,)) for i in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == {i: float(i % 2) for i in range(6)}


def test_health_and_schema_over_plain_http(server: tuple[str, Path]) -> None:
    url, _ = server
    with urllib.request.urlopen(f"{url}/health") as answer:
        assert answer.status == 200
    with urllib.request.urlopen(f"{url}/schema") as answer:
        assert "reward_valid" in answer.read().decode()


def test_the_manifest_names_the_application(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from acidtest.scripts.cli import build

    done = CliRunner().invoke(build(), ["serve", "--manifest", str(tmp_path), "--port", "8123"])
    assert done.exit_code == 0, done.output
    text = (tmp_path / "openenv.yaml").read_text()
    assert "port: 8123" in text
    module, _, name = text.split("app: ")[1].split("\n")[0].partition(":")
    assert callable(getattr(importlib.import_module(module), name))
