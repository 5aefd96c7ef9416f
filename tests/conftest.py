"""Fixtures that turn a missing engine or data folder into a reported skip, or a failure where it is required."""

from __future__ import annotations

import functools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]


def _missing(what: str, variable: str) -> None:
    if os.environ.get(variable) == "1":
        pytest.fail(f"{what}, and {variable}=1 requires it", pytrace=False)
    pytest.skip(what)


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data (ACIDTEST_DATA, default ../shared/data beside the repository)."""
    folder = Path(os.environ.get("ACIDTEST_DATA") or ROOT.parent / "shared" / "data")
    if not (folder / "swebench_verified.parquet").is_file():
        _missing("no data folder (ACIDTEST_DATA)", "ACIDTEST_REQUIRE_DATA")
    return folder


@pytest.fixture(scope="session")
def engine() -> str:
    """A Docker engine that answers; the value is its version."""
    import docker

    try:
        client = docker.from_env(timeout=10)
        try:
            return str(client.version()["Version"])
        finally:
            client.close()
    except (docker.errors.DockerException, OSError) as error:
        _missing(f"no Docker engine ({type(error).__name__})", "ACIDTEST_REQUIRE_DOCKER")
        raise AssertionError("unreachable") from error


@pytest.fixture(scope="session")
def base_image(engine: str) -> str:
    """The image for tasks without one, made by `scripts/make_base_image.sh` when it is missing."""
    import docker

    name = os.environ.get("ACIDTEST_BASE_IMAGE") or "acidtest-base:bookworm"
    client = docker.from_env(timeout=60)
    try:
        if not client.api.images(name):
            subprocess.run(["sh", str(ROOT / "scripts" / "make_base_image.sh"), name], check=True)
    finally:
        client.close()
    return name


@pytest.fixture(scope="session")
def sdist_image(base_image: str, data_dir: Path) -> Callable[[str], str]:
    """Image name of a row of verified_on_sdists.csv, built on demand; at once where it exists already."""
    from acidtest.envs.images import image_name
    from acidtest.scripts.image_plan import plans_of_csv
    from acidtest.scripts.images import Builder

    def build(instance_id: str) -> str:
        (plan,) = plans_of_csv(data_dir / "verified_on_sdists.csv", only=[instance_id])
        with Builder() as builder:
            built = builder.build(plan)
        assert not built.problem, built.problem
        return image_name(instance_id)

    return functools.cache(build)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Campaign tests run only when asked for by mark (`-m campaign`)."""
    if "campaign" in (config.option.markexpr or ""):
        return
    chosen = [item for item in items if "campaign" not in item.keywords]
    dropped = [item for item in items if "campaign" in item.keywords]
    if dropped:
        config.hook.pytest_deselected(items=dropped)
        items[:] = chosen
