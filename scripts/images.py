"""Building task images without a registry: base image -> requirements layer -> tree layer -> one name per task.

Everything happens in a container that our own agent serves, so that downloads use this machine's pip settings and
CA bundle without leaving a trace of them in an image; the container is then committed. A layer whose digest
already exists is taken as it is. The tree lies in /testbed as a git repository with a single commit (there is no
future to look up), its modules are compiled with hashes checked (a changed source is always compiled anew).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from ..envs.errors import AcidtestError, SandboxError, TaskError
from ..envs.images import TREE, VENV
from ..envs.protocols import Exec, ExecResult, Limits, SandboxSpec
from ..envs.sandboxes import docker
from .image_plan import Plan
from .image_sources import MTIME, archive, digest, pip_environment

Tell = Callable[[str], None]
LIMITS = Limits(memory_mib=8192, cpus=0, pids=2048, tmpfs_mib=4096)
COMMIT = """
set -e
mkdir -p {tree} && cd {tree} && tar -xf /scratch/tree.tar --no-same-owner
git -c init.defaultBranch=main init -q
printf '__pycache__/\\n*.pyc\\n' >> .git/info/exclude
git add -A -f
GIT_AUTHOR_DATE='2000-01-01T00:00:00Z' GIT_COMMITTER_DATE='2000-01-01T00:00:00Z' \
  git -c user.name=acidtest -c user.email=acidtest@localhost -c gc.auto=0 commit -q -m 'The tree as it was given'
{venv}/bin/python -m compileall -q -j 0 --invalidation-mode checked-hash . >/dev/null 2>&1 || true
"""


@dataclass(frozen=True, kw_only=True)
class Built:
    """What became of one plan. problem: why there is no image ("" when there is one). Seconds of work, bytes."""

    plan: Plan
    seconds: float = 0.0
    size: int = 0
    fresh: bool = False
    problem: str = ""


@dataclass
class Builder:
    """Builds plans one after another, sharing layers. A context manager. Raises EngineUnavailable on entering."""

    base_image: str | None = None
    force: bool = False
    tell: Tell = lambda text: None
    _backend: docker.DockerBackend = field(init=False)

    def __enter__(self) -> Builder:
        self._backend = docker.backend(base_image=self.base_image, timeout_s=900, spares=0, run="images")
        self._backend.reap()
        return self

    def __exit__(self, *exc: object) -> None:
        self._backend.close()

    def build(self, plan: Plan, *, patches: Sequence[str] = ()) -> Built:
        """Make the image of a plan. `patches`: diffs that must apply to its tree (gold and test patch of a row).

        What is wrong with the plan comes back as `problem`; trouble with the engine is raised.
        """
        start = time.monotonic()
        try:
            name, fresh = self._tree_layer(plan)
            self._check_patches(name, patches)
        except SandboxError:
            raise
        except AcidtestError as error:
            return Built(plan=plan, seconds=time.monotonic() - start, problem=str(error))
        self._backend.engine.tag(name, plan.name)
        size = int((self._backend.engine.image(plan.name) or {}).get("Size", 0))
        return Built(plan=plan, seconds=time.monotonic() - start, size=size, fresh=fresh)

    def _tree_layer(self, plan: Plan) -> tuple[str, bool]:
        base, _ = self._requirements_layer(plan)
        data = archive(plan.tree) if plan.tree.folder else b""
        tree = digest(f"{plan.tree_digest} {digest(data) if data else ''} {MTIME}".encode())[:12]
        name = f"acidtest/layer.tree:{self._key(tree)}"
        if not self.force and self._backend.engine.image(name):
            return name, False
        self.tell(f"tree {plan.tree}")
        data = data or archive(plan.tree)
        with self._box(base) as box:
            box.write({"/scratch/tree.tar": data})
            _run(box, COMMIT.format(tree=TREE, venv=VENV), str(plan.tree))
            env = {"PYTHONPATH": plan.pythonpath, **plan.env}
            changes = [f"ENV {key}={value}" for key, value in env.items()]
            changes += [f"WORKDIR {TREE}", f'LABEL acidtest.tree="{plan.tree}"', *_START]
            self._backend.engine.commit(box.container, name, changes)
        return name, True

    def _requirements_layer(self, plan: Plan) -> tuple[str, bool]:
        name = f"acidtest/layer.requirements:{self._key(plan.requirements_digest)}"
        if self._backend.engine.image(name):
            return name, False
        self.tell(f"{len(plan.requirements)} requirements of {plan.tree}")
        env, bundle = pip_environment()
        files = {
            "/scratch/requirements.txt": "\n".join(plan.requirements).encode(),
            "/scratch/ca.pem": bundle,
        }
        cert = {"PIP_CERT": "/scratch/ca.pem", "SSL_CERT_FILE": "/scratch/ca.pem"} if bundle else {}
        pip = f"python3 -m pip --python {VENV}/bin/python install -q --no-deps --no-cache-dir --root-user-action=ignore"
        make = f"python3 -m venv --without-pip {VENV} && {pip} -r /scratch/requirements.txt"
        with self._box(self._backend.base_image, network="host") as box:
            box.write(files)
            _run(box, make, "its requirements", env={**env, **cert, "HOME": "/scratch"})
            path = f"{VENV}/bin:/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
            changes = [f"ENV PATH={path}", f"ENV VIRTUAL_ENV={VENV}", *_START]
            self._backend.engine.commit(box.container, name, changes)
        return name, True

    def _key(self, digest: str) -> str:
        """Layers belong to a base image: another base makes other layers."""
        return f"{digest}-{self._backend.image_digest(self._backend.base_image).removeprefix('sha256:')[:8]}"

    def _check_patches(self, image: str, patches: Sequence[str]) -> None:
        if not patches:
            return
        with self._box(image) as box:
            for patch in patches:
                op = Exec(command=("git", "apply", "--check", "-"), stdin=patch.encode(), cwd=TREE)
                result = box.script([op])[0]
                assert isinstance(result, ExecResult)
                if result.exit_code != 0:
                    text = result.output.decode("utf-8", "replace").strip().splitlines()
                    raise TaskError(
                        f"A patch of the row does not apply to the tree: {text[:1]}.",
                        mend="Use another version.",
                    )

    @contextmanager
    def _box(self, image: str, network: str = "none") -> Iterator[docker.DockerSandbox]:
        spec = SandboxSpec(image=image, workdir="/", limits=LIMITS)
        with self._backend.open(spec, network=network) as box:
            yield box


_START = ['CMD ["bash"]', "ENTRYPOINT []"]


def _run(box: docker.DockerSandbox, command: str, what: str, *, env: Mapping[str, str] | None = None) -> None:
    result = box.script([Exec(command=command, timeout_s=1800, env=env or {})])[0]
    assert isinstance(result, ExecResult)
    if result.exit_code != 0:
        last = result.output.decode("utf-8", "replace").strip().splitlines()[-3:]
        raise TaskError(
            f"Building {what} failed: {' / '.join(last)}.", mend="Mend the row or its requirements."
        )
