"""R2E-style images and rows out of source trees, so that R2E-Gym tasks can be had without a registry.

A spec (TOML, see examples/r2e/) names a tree, the text that fixes it and what stands there before the fix, an
issue, and test files. The image is laid out as the published ones are, leaks included: /testbed is a git repository
at the parent of the fix, whose fix commit is still in `.git`; the tests lie readable in /r2e_tests; run_tests.sh
and the interpreter lie in the tree. The row has R2E-Gym's columns: statuses of both commits are observed by running
the tests in the image, so what fails after the fix too is *expected* to fail, as in the published data.
"""

from __future__ import annotations

import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ..envs import r2e_rule
from ..envs.datasets.r2e_gym import COMMAND, TESTS, TIMEOUT_S
from ..envs.errors import ConfigError, TaskError
from ..envs.images import TREE
from ..envs.protocols import Exec, ExecResult, Limits, SandboxSpec
from ..envs.sandboxes import docker
from .image_plan import Tree
from .image_sources import archive

LIMITS = Limits(memory_mib=4096, cpus=0, pids=1024, tmpfs_mib=2048)
_GIT = (
    "git -c user.name=author -c user.email=author@localhost -c init.defaultBranch=main -c gc.auto=0 "
    "-c advice.detachedHead=false"
)
_LAYOUT = f"""
set -e
export GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' GIT_COMMITTER_DATE='2000-01-01T00:00:00Z'
mkdir -p {TREE} /{TESTS} && cd {TREE}
tar -xf /scratch/tree.tar --no-same-owner
cp -r /scratch/tests/. /{TESTS}/
{_GIT} init -q
printf '.venv\\nrun_tests.sh\\n{TESTS}\\n__pycache__/\\n*.pyc\\n' >> .git/info/exclude
cp -r /scratch/before/. .
{_GIT} add -A -f && {_GIT} commit -q -m 'Before the fix'
cp -r /scratch/after/. .
{_GIT} add -A -f && {_GIT} commit -q -m 'Fix the issue'
{_GIT} checkout -q HEAD^
python3 -m venv --without-pip --system-site-packages .venv
for site in .venv/lib/python3*/site-packages; do printf '{TREE}\\n{TREE}/src\\n' > "$site/tree.pth"; done
printf '%s\\n' "{COMMAND}" > run_tests.sh
"""
_RUN = f"cd {TREE} && ln -sfn /{TESTS} {TREE}/{TESTS} && bash run_tests.sh"


@dataclass(frozen=True, kw_only=True)
class R2ESpec:
    """source: "Name==1.2" (a PyPI source distribution) or a folder. changes: (path, fixed text, text before)."""

    name: str
    repo_name: str
    source: str
    issue: str
    changes: tuple[tuple[str, str, str], ...]
    tests: Mapping[str, str] = field(default_factory=dict)

    @property
    def image(self) -> str:
        text = json.dumps([self.repo_name, self.source, self.changes, dict(self.tests), _LAYOUT])
        digest = hashlib.sha256(text.encode()).hexdigest()[:12]
        return f"acidtest/r2e.{self.name}:{digest}".lower()

    @property
    def tree(self) -> Tree:
        return Tree(pypi=self.source) if "==" in self.source else Tree(folder=self.source)


def read_spec(path: Path) -> R2ESpec:
    """Read a TOML spec; a relative `source` folder is taken from the file's own. Raises ConfigError."""
    try:
        value = tomllib.loads(path.read_text(encoding="utf-8"))
        source = str(value["source"])
        if "==" not in source:
            source = str((path.parent / source).resolve())
        return R2ESpec(
            name=path.stem,
            repo_name=str(value["repo_name"]),
            source=source,
            issue=str(value["issue"]).strip(),
            changes=tuple((str(c["path"]), str(c["fixed"]), str(c["broken"])) for c in value["change"]),
            tests={str(name): str(text).lstrip("\n") for name, text in value["tests"].items()},
        )
    except (OSError, tomllib.TOMLDecodeError) as error:
        raise ConfigError(f"{path}: {error}.", mend="examples/r2e/ has specs to start from.") from error
    except (KeyError, TypeError, AttributeError) as error:
        raise ConfigError(
            f"{path}: no field {error}.", mend="examples/r2e/ has specs to start from."
        ) from error


def build(spec: R2ESpec, *, force: bool = False, base_image: str | None = None) -> dict[str, Any]:
    """Make the image (taken as it is when it exists) and return its R2E-Gym row.

    Raises TaskError when the texts do not stand in the tree or no test tells the two commits apart.
    """
    backend = docker.backend(base_image=base_image, timeout_s=600, spares=0, run="images")
    try:
        before, after = _two_sides(spec)
        if force or backend.engine.image(spec.image) is None:
            _make(spec, backend, before, after)
        commit = _output(backend, spec.image, f"git -C {TREE} rev-parse main").strip()
        old = _output(backend, spec.image, _RUN)
        new = _output(backend, spec.image, f"git -C {TREE} checkout -q main && {_RUN}")
    finally:
        backend.close()
    expected = r2e_rule.normalised(r2e_rule.parse_log(new))
    if r2e_rule.reward(r2e_rule.parse_log(old), expected) != 0.0 or not expected:
        raise TaskError(
            f"{spec.name}: no test tells the commits apart ({len(expected)} statuses).",
            mend="A test has to fail before the fix and pass after it.",
        )
    return _row(spec, commit, before, after, old, new, expected)


def _two_sides(spec: R2ESpec) -> tuple[dict[str, str], dict[str, str]]:
    """Texts of the changed files before and after the fix."""
    after = _texts(archive(spec.tree), {path for path, _, _ in spec.changes})
    before = dict(after)
    for path, fixed, broken in spec.changes:
        if before.get(path, "").count(fixed) != 1:
            raise TaskError(
                f"{spec.name}: the fixed text stands {before.get(path, '').count(fixed)} times in {path}.",
                mend="It must stand there exactly once, word for word.",
            )
        before[path] = before[path].replace(fixed, broken)
    return before, after


def _texts(data: bytes, wanted: set[str]) -> dict[str, str]:
    import io
    import tarfile

    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for member in tar:
            if member.name in wanted and (content := tar.extractfile(member)) is not None:
                found[member.name] = content.read().decode("utf-8")
    return found


def _make(
    spec: R2ESpec, backend: docker.DockerBackend, before: Mapping[str, str], after: Mapping[str, str]
) -> None:
    files = {"/scratch/tree.tar": archive(spec.tree)}
    for folder, texts in (("before", before), ("after", after), ("tests", spec.tests)):
        files |= {f"/scratch/{folder}/{path}": text.encode() for path, text in texts.items()}
    with backend.open(SandboxSpec(image=backend.base_image, workdir="/", limits=LIMITS)) as box:
        box.write(files)
        result = box.exec(_LAYOUT, timeout_s=600)
        if result.exit_code != 0:
            text = result.output.decode("utf-8", "replace").strip().splitlines()
            raise TaskError(f"{spec.name}: the image could not be laid out ({(text or ['?'])[-1]}).")
        backend.engine.commit(box.container, spec.image, [f"WORKDIR {TREE}", 'CMD ["bash"]', "ENTRYPOINT []"])


def _output(backend: docker.DockerBackend, image: str, command: str) -> str:
    """Merged output of a command in a fresh container; what its exit code is does not matter here."""
    with backend.open(SandboxSpec(image=image, workdir=TREE, limits=LIMITS)) as box:
        (result,) = box.script([Exec(command=command, timeout_s=TIMEOUT_S, output_bytes=8_000_000)])
        assert isinstance(result, ExecResult)
        return result.output.decode("utf-8", "replace")


def _row(
    spec: R2ESpec,
    commit: str,
    before: Mapping[str, str],
    after: Mapping[str, str],
    old: str,
    new: str,
    expected: Mapping[str, str],
) -> dict[str, Any]:
    diffs = [
        {
            "header": {"file": {"path": path}},
            "minus_file": {"path": path},
            "plus_file": {"path": path},
            "old_file_content": before[path],
            "new_file_content": after[path],
        }
        for path in sorted(before)
    ]
    execution = {
        "repo_name": spec.repo_name,
        "new_commit_hash": commit,
        "test_file_names": list(spec.tests),
        "test_file_codes": list(spec.tests.values()),
        "old_commit_res_stdout": old,
        "new_commit_res_stdout": new,
    }
    return {
        "repo_name": spec.repo_name,
        "docker_image": spec.image,
        "commit_hash": commit,
        "problem_statement": f"[ISSUE]\n\n{spec.issue}\n\n[/ISSUE]",
        "parsed_commit_content": json.dumps({"new_commit_hash": commit, "file_diffs": diffs}),
        "execution_result_content": json.dumps(execution),
        "expected_output_json": json.dumps(expected),
        "modified_files": sorted(before),
        "relevant_files": sorted(before),
    }
