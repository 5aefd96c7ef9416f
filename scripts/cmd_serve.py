"""`acidtest serve`: tasks behind OpenEnv's HTTP and WebSocket API."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..envs.errors import ConfigError


def register(app: typer.Typer) -> None:
    app.command("serve")(serve)


def serve(
    source: Annotated[str, typer.Argument(help="Data set name, file or folder.")] = "toy",
    host: Annotated[
        str, typer.Option(help="Address to listen on. There is no login: keep it local.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port; 0 picks a free one, which is printed.")] = 8000,
    env: Annotated[
        str, typer.Option(help="code: one patch an episode. shell: commands in a container.")
    ] = "code",
    audit: Annotated[Path | None, typer.Option(help="Run folder of an audit.")] = None,
    hardened: Annotated[
        Path | None, typer.Option(help="Lockfile or run folder with hardened suites.")
    ] = None,
    min_eqs: Annotated[float | None, typer.Option(help="Serve only tasks with at least this EQS.")] = None,
    limit: Annotated[int | None, typer.Option(help="At most so many rows of the source.")] = None,
    allow_hackable: Annotated[
        bool, typer.Option(help="Serve hackable tasks without a hardened suite too.")
    ] = False,
    sandbox: Annotated[str | None, typer.Option(help="docker or local; default: what is there.")] = None,
    incidents: Annotated[str, typer.Option(help="jsonl, wandb, or a *.jsonl file.")] = "jsonl",
    max_sessions: Annotated[int, typer.Option(help="Sessions at once.")] = 64,
    manifest: Annotated[
        Path | None, typer.Option(help="Write openenv.yaml into this folder and stop.")
    ] = None,
) -> None:
    """Serve tasks to OpenEnv clients (needs `pip install acidtest[openenv]`)."""
    try:
        import uvicorn

        from ..training_hooks import openenv_server
    except ImportError as error:
        raise ConfigError(
            f"serve needs openenv-core ({error}).", mend="pip install 'acidtest[openenv]'"
        ) from error
    from ..training_hooks.curate import load_tasks
    from ..training_hooks.incidents import open_log

    if manifest is not None:
        manifest.mkdir(parents=True, exist_ok=True)
        (manifest / "openenv.yaml").write_text(openenv_server.MANIFEST.format(port=port))
        typer.echo(f"wrote {manifest / 'openenv.yaml'}")
        return
    tasks = load_tasks(
        source, limit=limit, audit=audit, hardened=hardened, min_eqs=min_eqs, allow_hackable=allow_hackable
    )
    typer.echo(str(tasks.report))
    app = openenv_server.app(
        tasks, env=env, log=open_log(incidents), max_sessions=max_sessions, sandbox=sandbox
    )
    server = uvicorn.Server(
        uvicorn.Config(app, host=host, port=port, log_level="warning", ws="websockets-sansio")
    )
    with openenv_server.listening(host, port) as sock:
        typer.echo(f"serving {len(tasks)} tasks on http://{host}:{sock.getsockname()[1]}")
        try:
            server.run(sockets=[sock])
        finally:
            app.state.close()
