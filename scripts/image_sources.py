"""Getting source trees onto this machine as one tar archive each, and the pip settings of this machine."""

from __future__ import annotations

import hashlib
import io
import os
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from ..envs.errors import ConfigError, TaskError
from .image_plan import Tree

PIP_KEYS = ("index-url", "extra-index-url", "trusted-host", "proxy", "retries", "timeout", "default-timeout")


MTIME = 946_684_800
"""Modification time of every file of a tree (1 January 2000): the same image each time, and valid in ZIP archives."""


def cache_folder() -> Path:
    """Where downloaded source distributions are kept: ACIDTEST_CACHE or the user's cache folder."""
    root = os.environ.get("ACIDTEST_CACHE") or os.path.join(
        os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"), "acidtest"
    )
    return Path(root)


def archive(tree: Tree) -> bytes:
    """The tree as an uncompressed tar whose entries lie at its top. Raises TaskError, ConfigError."""
    if tree.pypi:
        return _unpacked(sdist(tree.pypi))
    if tree.commit:
        argv = ["git", "-C", tree.folder, "archive", "--format=tar", tree.commit]
        made = subprocess.run(argv, capture_output=True, check=False)
        if made.returncode:
            text = made.stderr.decode("utf-8", "replace").strip()
            raise ConfigError(f"No commit {tree.commit} in {tree.folder}: {text}.", mend="Fetch it first.")
        return made.stdout
    return _folder(Path(tree.folder))


def sdist(requirement: str) -> Path:
    """The source distribution of ``Name==version``, downloaded by pip once. Raises TaskError."""
    folder = cache_folder() / "sdists" / requirement.replace("==", "-")
    found = _sdists(folder)
    if found:
        return found[0]
    folder.mkdir(parents=True, exist_ok=True)
    argv = [
        sys.executable,
        "-m",
        "pip",
        "download",
        "-q",
        "--no-deps",
        "--no-binary",
        requirement.partition("==")[0],
        requirement,
    ]
    made = subprocess.run([*argv, "--dest", str(folder)], capture_output=True, check=False)
    found = _sdists(folder)
    if made.returncode or not found:
        last = (made.stderr.decode("utf-8", "replace").strip().splitlines() or ["nothing was downloaded"])[-1]
        raise TaskError(
            f"No source distribution of {requirement}: {last}.",
            mend=f"Check the index that pip uses, or put the archive into {folder}.",
        )
    return found[0]


def _sdists(folder: Path) -> list[Path]:
    return sorted([*folder.glob("*.tar.gz"), *folder.glob("*.zip"), *folder.glob("*.tar.bz2")])


def _unpacked(path: Path) -> bytes:
    """The archive's single top folder stripped; unsafe members are refused."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for name, mode, data in _members(path):
            _, _, inner = name.partition("/")
            if not inner or name.startswith("/") or inner.startswith("/") or ".." in inner.split("/"):
                continue
            info = tarfile.TarInfo(inner)
            info.size, info.mode = len(data), 0o755 if mode & 0o100 else 0o644
            info.mtime = MTIME
            made.addfile(info, io.BytesIO(data))
    return out.getvalue()


def _members(path: Path) -> list[tuple[str, int, bytes]]:
    if path.suffix == ".zip":
        with zipfile.ZipFile(path) as file:
            return [
                (i.filename, i.external_attr >> 16, file.read(i)) for i in file.infolist() if not i.is_dir()
            ]
    found = []
    with tarfile.open(path) as tar:
        for member in tar:
            if member.isreg():
                content = tar.extractfile(member)
                found.append((member.name, member.mode, content.read() if content else b""))
    return found


def _folder(folder: Path) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as made:
        for path in sorted(folder.rglob("*")):
            inner = path.relative_to(folder)
            if ".git" not in inner.parts and (path.is_file() or path.is_symlink()):
                made.add(path, arcname=str(inner), recursive=False)
    return out.getvalue()


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


def pip_environment() -> tuple[dict[str, str], bytes]:
    """This machine's pip settings as variables for a build container, and its CA bundle ("" when it has none).

    Indexes and link folders on this machine's disk are left out: the container cannot see them.
    """
    argv = [sys.executable, "-m", "pip", "config", "list"]
    listed = subprocess.run(argv, capture_output=True, text=True, check=False).stdout
    values = dict(re.findall(r"^[\w:]+\.([\w-]+)='(.*)'$", listed, flags=re.M))
    env = {
        name: value
        for name, value in os.environ.items()
        if name.lower() in {"http_proxy", "https_proxy", "no_proxy"}
    }
    for key in PIP_KEYS:
        words = [word for word in values.get(key, "").split() if not word.startswith(("file:", "/"))]
        if words:
            env[f"PIP_{key.upper().replace('-', '_')}"] = " ".join(words)
    bundles = [values.get("cert"), os.environ.get("SSL_CERT_FILE"), "/etc/ssl/certs/ca-certificates.crt"]
    for bundle in bundles:
        if bundle and Path(bundle).is_file():
            return env, Path(bundle).read_bytes()
    return env, b""
