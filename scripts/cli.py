"""The `acidtest` command: each subcommand is a file `scripts/cmd_NAME.py` that defines `register(app)`."""

from __future__ import annotations

import errno
import importlib
import pkgutil
import signal
import sys
from pathlib import Path

import typer

from ..envs.errors import AcidtestError

EXIT_CODES = """Exit codes: 0 done · 1 other error · 2 bad option, name or file · 3 unusable task or row ·
4 sandbox or engine trouble · 5 locked suite does not match · 6 model error · 7 budget reached ·
8 answers of --llm files:/batch: pending · 10 --fail-on condition met · 130 interrupted."""


def build() -> typer.Typer:
    """The application with every command file of this folder."""
    app = typer.Typer(
        name="acidtest",
        help="Find code-RL tasks whose suites pay for wrong patches, repair them, train on what is left.",
        epilog=EXIT_CODES,
        no_args_is_help=True,
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    @app.callback(invoke_without_command=True)
    def root(
        ctx: typer.Context, version: bool = typer.Option(False, "--version", help="Print the version.")
    ) -> None:
        if version:
            from ..envs.version import __version__

            typer.echo(__version__)
            raise typer.Exit()

    for module in sorted(m.name for m in pkgutil.iter_modules([str(Path(__file__).parent)])):
        if module.startswith("cmd_"):
            importlib.import_module(f".{module}", __package__).register(app)
    return app


def main() -> None:
    """Entry point: one clear line per error, documented exit codes, SIGTERM ends like Ctrl-C."""
    signal.signal(signal.SIGTERM, _interrupt)
    try:
        build()()
    except AcidtestError as error:
        typer.echo(f"acidtest: {error}", err=True)
        sys.exit(error.exit_code)
    except OSError as error:
        if error.filename is None and error.errno != errno.ENOSPC:
            raise
        typer.echo(f"acidtest: {error.filename or 'the disk'}: {error.strerror}.", err=True)
        sys.exit(1 if error.errno == errno.ENOSPC else 2)
    except KeyboardInterrupt:
        typer.echo(
            "acidtest: interrupted; what was computed is kept, run the same command to go on.", err=True
        )
        sys.exit(130)


def _interrupt(number: int, frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
