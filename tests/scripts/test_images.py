"""Images are built without a registry, share layers, and hold nothing of the machine that built them."""

from __future__ import annotations

import io
import json
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from acidtest.envs.errors import ConfigError, TaskError
from acidtest.envs.images import image_name, safe_name
from acidtest.envs.protocols import SandboxSpec
from acidtest.envs.sandboxes import docker
from acidtest.scripts.cli import build as app
from acidtest.scripts.image_check import check_images
from acidtest.scripts.image_plan import Plan, Tree, plan_of_source, plans_of_csv
from acidtest.scripts.image_sources import archive, sdist
from acidtest.scripts.images import Builder

HEAD = "instance_id,pypi_name,sdist_version,requirements,install,test_command,notes\n"
ROW = 'o__p-1,Proj,1.0,a==1;b==2,"PYTHONPATH=$TREE/src (deps only)",python -m pytest,with PROJ_CACHE=no\n'


def test_names() -> None:
    assert image_name("Django__Django-1") == "acidtest/sdist.django__django-1:latest"
    assert safe_name("A b/c___d..e-") == "a-b-c__d.e"


def test_rows_become_plans(tmp_path: Path) -> None:
    table = tmp_path / "rows.csv"
    table.write_text(HEAD + ROW)
    (plan,) = plans_of_csv(table)
    assert plan == Plan(
        name="acidtest/sdist.o__p-1:latest",
        task_id="o__p-1",
        tree=Tree(pypi="Proj==1.0"),
        requirements=("a==1", "b==2"),
        pythonpath="/testbed/src",
        env={"PROJ_CACHE": "no"},
    )
    with pytest.raises(ConfigError, match="no row o__p-9"):
        plans_of_csv(table, only=["o__p-9"])
    table.write_text(HEAD + ROW.replace("PYTHONPATH=$TREE/src", "pip install ."))
    with pytest.raises(ConfigError, match="o__p-1"):
        plans_of_csv(table)
    table.write_text("instance_id\nx\n")
    with pytest.raises(ConfigError, match="pypi_name"):
        plans_of_csv(table)


def test_every_row_of_the_real_table_has_a_plan(data_dir: Path) -> None:
    plans = plans_of_csv(data_dir / "verified_on_sdists.csv")
    assert len({plan.name for plan in plans}) == 60
    assert len({plan.tree_digest for plan in plans}) == 27
    assert len({plan.requirements_digest for plan in plans}) == 11


def test_an_archive_cannot_write_outside_the_tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACIDTEST_CACHE", str(tmp_path))
    write_sdist(tmp_path, {"p-1/a.py": "1", "p-1/../../evil": "2", "/abs/evil": "3", "p-1/b/c.py": "4"})
    with tarfile.open(fileobj=io.BytesIO(archive(Tree(pypi="p==1")))) as tar:
        assert tar.getnames() == ["a.py", "b/c.py"]


def test_a_source_distribution_that_does_not_exist(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ACIDTEST_CACHE", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    with pytest.raises(TaskError, match="No source distribution of nothing-here==1"):
        sdist("nothing-here==1")


def write_sdist(cache: Path, files: dict[str, str]) -> None:
    folder = cache / "sdists" / "p-1"
    folder.mkdir(parents=True)
    with tarfile.open(folder / "p-1.tar.gz", "w:gz") as tar:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A git checkout whose second commit is the future."""
    folder = tmp_path / "project"
    folder.mkdir()
    git = ["git", "-C", str(folder), "-c", "user.name=x", "-c", "user.email=x@localhost"]
    subprocess.run([*git, "init", "-q"], check=True)
    for text in ("value = 1\n", "value = 2\n"):
        (folder / "mod.py").write_text(text)
        (folder / ".gitignore").write_text("*.log\n")
        subprocess.run([*git, "add", "-A"], check=True)
        subprocess.run([*git, "commit", "-q", "-m", "x"], check=True)
    return folder


@pytest.fixture
def cleaned(base_image: str) -> Iterator[list[str]]:
    """Names of images to remove afterwards."""
    names: list[str] = []
    yield names
    engine = docker.Engine()
    try:
        for name in names:
            engine._api.remove_image(name, force=True)
    finally:
        engine.close()


GOOD = "--- a/mod.py\n+++ b/mod.py\n@@ -1 +1 @@\n-value = 1\n+value = 3\n"
BAD = GOOD.replace("value = 1", "value = 7")


@pytest.mark.docker
def test_a_git_checkout_becomes_an_image(project: Path, cleaned: list[str]) -> None:
    name = f"acidtest/test-{os.getpid()}:latest"
    plan = plan_of_source(str(project), name=name, commit="HEAD~1")
    with Builder() as builder:
        built = builder.build(plan, patches=[GOOD])
        cleaned += [name, builder._tree_layer(plan)[0]]
        assert (built.problem, built.fresh) == ("", True)
        again = builder.build(plan, patches=[BAD])
        assert "does not apply" in again.problem
        assert not builder.build(plan).fresh
        (project / "mod.py").write_text("value = 9\n")
        moved = plan_of_source(str(project), name=name)
        assert builder._tree_layer(moved)[1], "a folder whose content changed is another tree"
        cleaned.append(builder._tree_layer(moved)[0])
    backend = docker.backend(spares=0)
    try:
        with backend.open(SandboxSpec(image=name, workdir="/testbed")) as box:
            assert box.exec("git log --all --oneline | wc -l; git status --porcelain").output == b"1\n"
            code = "import mod, sys; print(mod.value, mod.__cached__, sys.prefix)"
            out = box.exec(("python", "-c", code)).output
            assert out == b"1 /testbed/__pycache__/mod.cpython-311.pyc /opt/venv\n"
            box.write({"mod.py": b"value = 5\n"})
            assert box.exec(("python", "-c", "import mod; print(mod.value)")).output == b"5\n"
            traces = box.exec(
                "ls -A /scratch /tmp; env | grep -i -e ^pip_ -e cert -e proxy; ls /etc/pip.conf"
            )
            assert [line for line in traces.output.split(b"\n") if line and b"No such" not in line] == [
                b"/scratch:",
                b"/tmp:",
            ]
        image = backend.engine.image(name)
        assert image is not None
        assert image["Config"]["Labels"]["acidtest.owner"] == ""
        assert not [entry for entry in image["Config"]["Env"] if "PIP" in entry or "CERT" in entry]
    finally:
        backend.close()


@pytest.mark.docker
def test_check_tells_what_is_missing(base_image: str) -> None:
    found = check_images([base_image, None, "acidtest/absent:latest", base_image])
    assert (found.images, found.missing, found.foreign) == (2, ("acidtest/absent:latest",), {})
    assert found.forecast_bytes == found.present_bytes > 0
    assert "missing: acidtest/absent:latest" in str(found)


@pytest.mark.docker
@pytest.mark.data
def test_check_command_on_a_data_set(engine: str, data_dir: Path) -> None:
    source = str(data_dir / "swebench_verified.parquet")
    made = CliRunner().invoke(app(), ["images", "check", source, "--limit", "2", "--json"])
    assert made.exit_code == 4
    assert len(json.loads(made.output)["missing"]) == 2
