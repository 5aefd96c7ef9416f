"""Wheel, sdist and editable install carry the whole package; the root does not shadow other libraries."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tarfile
import time
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
CLEAN = {k: v for k, v in os.environ.items() if k not in {"PYTHONPATH", "PYTEST_CURRENT_TEST"}}
NEEDED = [
    "envs/task.py",
    "verifiers/records.py",
    "repair/records.py",
    "training_hooks/__init__.py",
    "scripts/cli.py",
    "py.typed",
]


def run(*argv: str, cwd: Path, env: dict[str, str] | None = None) -> str:
    done = subprocess.run(argv, cwd=cwd, env=env or CLEAN, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    return done.stdout


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("build") is None:
        pytest.skip("the `build` package is not installed")
    tree = tmp_path_factory.mktemp("tree") / "acidtest"
    run("git", "clone", "-q", str(ROOT), str(tree), cwd=ROOT)
    run(sys.executable, "-m", "build", "--outdir", str(tree / "dist"), str(tree), cwd=tree)
    return tree


@pytest.mark.slow
def test_wheel_and_sdist_hold_every_floor(built: Path) -> None:
    wheel = next((built / "dist").glob("*.whl"))
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    assert {f"acidtest/{name}" for name in NEEDED} <= names
    top = {name.split("/")[0].split("-")[0] for name in names}
    assert top == {"acidtest", "acidtest_verifiers"}, (
        "the second is the id that Prime's `verifiers` loads; no others"
    )
    with tarfile.open(next((built / "dist").glob("*.tar.gz"))) as archive:
        inside = {name.split("/", 1)[1] for name in archive.getnames() if "/" in name}
    assert {f"src/acidtest/{name}" for name in NEEDED} <= inside


@pytest.mark.slow
@pytest.mark.parametrize("what", ["wheel", "sdist", "editable"])
def test_each_install_runs_the_command(built: Path, tmp_path: Path, what: str) -> None:
    """Installed without dependencies into a folder of its own; the test environment lends the dependencies."""
    run(
        sys.executable,
        "-m",
        "venv",
        "--system-site-packages",
        "--without-pip",
        str(tmp_path / "v"),
        cwd=tmp_path,
    )
    python = tmp_path / "v" / "bin" / "python"
    lent = [p for p in sys.path if p.endswith("site-packages")]
    source = {
        "wheel": [str(next((built / "dist").glob("*.whl")))],
        "sdist": [str(next((built / "dist").glob("*.tar.gz")))],
        "editable": ["-e", str(built)],
    }[what]
    run(
        sys.executable,
        "-m",
        "pip",
        "--python",
        str(python),
        "install",
        "-q",
        "--no-deps",
        "--force-reinstall",
        *source,
        cwd=tmp_path,
    )
    code = (
        f"import sys; sys.path += {lent!r}\n"
        "import acidtest, pathlib\nprint(pathlib.Path(acidtest.__file__).resolve())\n"
        "from acidtest.scripts.cli import build\nfrom acidtest.envs.load import load_tasks\n"
        "build(); assert load_tasks('toy')"
    )
    where = Path(run(str(python), "-c", code, cwd=tmp_path).strip())
    assert where.is_relative_to(built if what == "editable" else tmp_path / "v")


def test_importing_is_light() -> None:
    """Under 0.5 s above bare Python (the smallest of three), and no heavy library is pulled in."""

    def seconds(code: str) -> float:
        start = time.perf_counter()
        run(sys.executable, "-c", code, cwd=ROOT, env={**CLEAN, "PYTHONPATH": str(ROOT / "src")})
        return time.perf_counter() - start

    run(sys.executable, "-c", "import acidtest", cwd=ROOT, env={**CLEAN, "PYTHONPATH": str(ROOT / "src")})
    above = min(seconds("import acidtest") - seconds("pass") for _ in range(3))
    assert above < 0.5
    heavy = "import acidtest, sys; print([m for m in ('docker','datasets','wandb','anthropic','torch','pandas') if m in sys.modules])"
    assert (
        run(sys.executable, "-c", heavy, cwd=ROOT, env={**CLEAN, "PYTHONPATH": str(ROOT / "src")}).strip()
        == "[]"
    )


def test_the_root_does_not_shadow_prime_verifiers() -> None:
    """`python -m pytest` puts the root on sys.path; `import verifiers` must still be Prime Intellect's."""
    if importlib.util.find_spec("verifiers") is None or not getattr(
        importlib.util.find_spec("verifiers"), "origin", None
    ):
        pytest.skip("Prime Intellect's `verifiers` is not installed")
    code = "import verifiers; print(verifiers.__file__)"
    where = run(sys.executable, "-c", code, cwd=ROOT, env={**CLEAN, "PYTHONPATH": str(ROOT / "src")}).strip()
    assert "site-packages" in where
