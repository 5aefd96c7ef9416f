"""`acidtest images`: build task images without a registry, check what a data set needs and what its images leak."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..envs.errors import ConfigError, TaskError
from . import image_extras

if TYPE_CHECKING:
    from .image_plan import Plan
    from .images import Built

Json = Annotated[bool, typer.Option("--json", help="Machine-readable output on standard output.")]
Limit = Annotated[int | None, typer.Option(help="At most so many rows.")]
Only = Annotated[list[str] | None, typer.Option("--task", help="Only this instance id (repeatable).")]


def register(app: typer.Typer) -> None:
    group = typer.Typer(help="Build and check the images of tasks.", no_args_is_help=True)
    group.command("build")(build)
    group.command("check")(check)
    group.command("base")(base)
    group.command("r2e")(image_extras.r2e)
    group.command("leaks")(image_extras.leaks)
    app.add_typer(group, name="images")


def build(
    source: Annotated[
        str, typer.Argument(help="CSV of rows, source folder, git checkout, or pypi:NAME==VERSION.")
    ],
    task: Only = None,
    limit: Limit = None,
    name: Annotated[str, typer.Option(help="Name of the image (single tree).")] = "",
    commit: Annotated[str, typer.Option(help="Commit of a git checkout to take.")] = "",
    requirements: Annotated[
        Path | None, typer.Option(help="Pinned requirements, one a line (single tree).")
    ] = None,
    pythonpath: Annotated[
        str, typer.Option(help="Folder of the tree that goes on PYTHONPATH, e.g. src.")
    ] = "",
    base_image: Annotated[
        str | None, typer.Option("--base", help="Base image (ACIDTEST_BASE_IMAGE).")
    ] = None,
    patches: Annotated[
        Path | None, typer.Option(help="Parquet with `patch` and `test_patch`, checked against the trees.")
    ] = None,
    force: Annotated[bool, typer.Option(help="Build trees anew, also those that exist.")] = False,
    as_json: Json = False,
) -> None:
    """Build images: base, then a layer per requirement set, then a layer per tree; equal ones are shared.

    Ends with exit code 3 when a row cannot be built; the others are built all the same.
    """
    from .image_plan import plan_of_source, plans_of_csv
    from .images import Builder

    if source.endswith(".csv"):
        plans = plans_of_csv(Path(source), only=task or ())[:limit]
        diffs = _patches(patches or _beside(Path(source)))
    else:
        one = plan_of_source(
            source, name=name, commit=commit, requirements=requirements, pythonpath=pythonpath
        )
        plans, diffs = [one], {}
    results: list[Built] = []
    with Builder(
        base_image=base_image, force=force, tell=lambda text: typer.echo(f"  {text}", err=True)
    ) as builder:
        for plan in plans:
            results.append(builder.build(plan, patches=diffs.get(plan.task_id, ())))
            if not as_json:
                typer.echo(_line(results[-1]))
    failed = [built for built in results if built.problem]
    if as_json:
        typer.echo(json.dumps([_dict(built) for built in results], indent=1))
    else:
        seconds = sum(built.seconds for built in results)
        typer.echo(f"{len(results) - len(failed)} of {len(results)} images, {seconds:.0f} s")
    if failed:
        raise typer.Exit(TaskError.exit_code)


def check(
    source: Annotated[str, typer.Argument(help="Data set name or file.")],
    limit: Limit = None,
    as_json: Json = False,
) -> None:
    """What a data set's images need: which are missing, which are for another architecture, disk forecast.

    Ends with exit code 4 when an image is missing or cannot run here.
    """
    from ..envs.errors import ImageMissing
    from ..envs.load import load_tasks
    from .image_check import check_images

    found = check_images([task.image for task in load_tasks(source, limit=limit)])
    if as_json:
        typer.echo(json.dumps(asdict(found), indent=1))
    else:
        typer.echo(str(found))
    if found.missing or found.foreign:
        raise typer.Exit(ImageMissing.exit_code)


def base(
    name: Annotated[str, typer.Argument(help="Name of the image.")] = "acidtest-base:bookworm",
    suite: Annotated[str, typer.Option(help="Debian release.")] = "bookworm",
) -> None:
    """Make the base image from Debian packages (needs root, debootstrap and a mirror in apt's sources)."""
    script = Path(__file__).with_name("make_base_image.sh")
    made = subprocess.run(["sh", str(script), name, suite], check=False)
    if made.returncode:
        raise ConfigError(f"The base image {name} was not made.", mend="See the lines above.")


def _beside(path: Path) -> Path | None:
    found = path.with_name("swebench_verified.parquet")
    return found if found.is_file() else None


def _patches(path: Path | None) -> dict[str, tuple[str, str]]:
    """instance id -> gold and test patch."""
    if path is None:
        return {}
    import pyarrow.parquet as pq

    rows = pq.read_table(path, columns=["instance_id", "patch", "test_patch"]).to_pylist()
    return {row["instance_id"]: (row["patch"], row["test_patch"]) for row in rows}


def _line(built: Built) -> str:
    state = built.problem or ("built" if built.fresh else "there already")
    return f"{built.plan.name}  {built.size / 1e6:.0f} MB  {built.seconds:.1f} s  {state}"


def _dict(built: Built) -> dict[str, object]:
    plan: Plan = built.plan
    return {
        "image": plan.name,
        "tree": str(plan.tree),
        "seconds": round(built.seconds, 2),
        "bytes": built.size,
        "fresh": built.fresh,
        "problem": built.problem,
    }
