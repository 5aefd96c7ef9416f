"""`suites.lock.json`: which hardened suite belongs to which task, and the refusal of everything else.

A lock entry names the digests of the original suite, of the task, of the hardened suite and of the image, and the
SHA-256 of every readable test file under `suites/<task>/`. Loading checks all that can be checked from the files
alone; `hardened` checks what depends on the task. Each refusal is a `LockError` that names both digests. A lock is no
signature: whoever can rewrite file and digests together can forge one.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from ..envs.errors import LockError, SandboxError, TaskError
from ..envs.protocols import SandboxBackend
from ..envs.record import digest_of
from ..envs.sandboxes import open_backend
from ..envs.task import Suite, Task
from .records import HardenedSuite
from .render import slug_of

LOCK_NAME = "suites.lock.json"
FORMAT = 1
REPAIR_AGAIN = "Run `acidtest repair` again, or take the files back from version control."


@dataclass(frozen=True)
class Lock:
    """A loaded and checked lockfile. path: None for one that lives in memory only."""

    entries: Mapping[str, HardenedSuite] = field(default_factory=dict)
    path: Path | None = None

    def __contains__(self, task_id: object) -> bool:
        return task_id in self.entries

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    @property
    def digest(self) -> str:
        return digest_of([entry.to_dict() for _, entry in sorted(self.entries.items())])


def task_digest(task: Task) -> str:
    """Digest of what a hardened suite was proven on: tree, gold and original suite; not of the prompt's metadata."""
    parts = [task.task_id, task.image, task.workdir, dict(task.files), task.gold_patch, task.base_commit]
    return digest_of([*parts, task.suite.original.digest])


def file_digest(text: str) -> str:
    """SHA-256 of a text file, as `sha256sum` prints it."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def entry_files(suite: Suite) -> dict[str, str]:
    """Files of `suites/<task>/`: path below the folder -> text."""
    return {} if suite.added is None else dict(suite.added.test_files)


def write_lock(folder: str | Path, entries: Iterable[HardenedSuite]) -> Lock:
    """Write `suites/<task>/…` and the lockfile; each step is a rename, so kill -9 leaves the old or the new state."""
    root = Path(folder)
    lock = Lock({entry.task_id: entry for entry in entries}, root / LOCK_NAME)
    if len({suite_folder(root, task_id) for task_id in lock}) < len(lock):
        raise LockError(
            "Two task ids read the same as folder names.", mend="Repair them into two run folders."
        )
    for entry in lock.entries.values():
        _write_suite_folder(root, entry)
    body = {
        "format": FORMAT,
        "digest": lock.digest,
        "suites": {key: entry.to_dict() for key, entry in sorted(lock.entries.items())},
    }
    part = root / f".{LOCK_NAME}.part"
    with part.open("w", encoding="utf-8") as file:
        file.write(json.dumps(body, indent=1, sort_keys=True, ensure_ascii=False) + "\n")
        file.flush()
        os.fsync(file.fileno())
    part.replace(root / LOCK_NAME)
    return lock


def suite_folder(root: Path, task_id: str) -> Path:
    """`suites/<task>`, the id written as a folder name."""
    return root / "suites" / slug_of(task_id)


def _write_suite_folder(root: Path, entry: HardenedSuite) -> None:
    target = suite_folder(root, entry.task_id)
    files = entry_files(entry.suite)
    if _held(target) == files:
        return
    part = target.with_name(f".{target.name}.part")
    shutil.rmtree(part, ignore_errors=True)
    for name, text in files.items():
        path = part / _safe(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8", errors="surrogatepass", newline="")
    if target.exists():
        shutil.rmtree(target)
    part.mkdir(parents=True, exist_ok=True)
    part.replace(target)


def _held(folder: Path) -> dict[str, str]:
    if not folder.is_dir():
        return {}
    return {str(p.relative_to(folder)): _read(p) for p in sorted(folder.rglob("*")) if p.is_file()}


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", errors="surrogatepass", newline="") as file:
        return file.read()


def _safe(name: str) -> PurePosixPath:
    path = PurePosixPath(name)
    if path.is_absolute() or ".." in path.parts or not path.parts:
        raise LockError(f"The suite file name {name!r} leaves its folder.", mend=REPAIR_AGAIN)
    return path


def load_lock(path: str | Path) -> Lock:
    """Read and check a lockfile (or the run folder that holds one).

    Raises LockError, naming both digests, when the lockfile was edited, when a suite file is missing or differs
    from what was locked, or when the format is another one.
    """
    file = Path(path)
    file = file / LOCK_NAME if file.is_dir() else file
    try:
        body = json.loads(_read(file))
    except FileNotFoundError as error:
        raise LockError(f"There is no lockfile {file}.", mend="Run `acidtest repair` first.") from error
    except (OSError, ValueError) as error:
        raise LockError(f"The lockfile {file} cannot be read: {error}.", mend=REPAIR_AGAIN) from error
    if not isinstance(body, dict) or body.get("format") != FORMAT:
        found = body.get("format") if isinstance(body, dict) else None
        raise LockError(f"The lockfile {file} has format {found!r}, this version reads {FORMAT}.")
    try:
        entries = {key: HardenedSuite.from_dict(value) for key, value in body["suites"].items()}
    except (TaskError, KeyError, AttributeError, TypeError) as error:
        raise LockError(f"The lockfile {file} is not well formed: {error}.", mend=REPAIR_AGAIN) from error
    lock = Lock(entries, file)
    for key, entry in entries.items():
        _check_entry(key, entry, file.parent)
    if lock.digest != body.get("digest"):
        raise LockError(
            f"The lockfile {file} was changed: it says digest {body.get('digest')}, its content has {lock.digest}.",
            mend=REPAIR_AGAIN,
        )
    return lock


def _check_entry(key: str, entry: HardenedSuite, root: Path) -> None:
    pairs = [
        ("task", entry.task_id, key),
        ("hardened suite", entry.hardened_digest, entry.suite.digest),
        ("original suite", entry.original_digest, entry.suite.original.digest),
    ]
    for what, locked, found in pairs:
        if locked != found:
            raise LockError(
                f"{key}: the lock names {what} {locked}, its content is {found}.", mend=REPAIR_AGAIN
            )
    texts = entry_files(entry.suite)
    if set(texts) != set(entry.files):
        raise LockError(f"{key}: the lock lists files {sorted(entry.files)}, its suite has {sorted(texts)}.")
    for name, locked in entry.files.items():
        path = suite_folder(root, key) / _safe(name)
        found = file_digest(_read(path)) if path.is_file() else "no file"
        for where, digest in ((str(path), found), ("the locked suite", file_digest(texts[name]))):
            if digest != locked:
                raise LockError(
                    f"{key}: {name} was locked as {locked}, {where} is {digest}.", mend=REPAIR_AGAIN
                )


def hardened(task: Task, lock: Lock | str | Path, *, backend: SandboxBackend | None = None) -> Task:
    """The task with its hardened suite in place of its own; `task.suite.original` is the one switch back.

    backend: where the task's image lies (None: the Docker engine, when one answers and holds the image; otherwise the
    image is compared by name only, through the task digest). Its content id is compared with the locked one. Raises
    LockError, naming both digests, when suite, task or image is not the one that was hardened, and when the lock has
    no entry for the task.
    """
    held = lock if isinstance(lock, Lock) else load_lock(lock)
    entry = held.entries.get(task.task_id)
    if entry is None:
        raise LockError(
            f"{task.task_id} is not in the lock ({len(held)} tasks).", mend="Repair it, or leave it out."
        )
    _refuse_other(task.task_id, "original suite", entry.original_digest, task.suite.original.digest)
    if entry.task_digest:
        _refuse_other(task.task_id, "task", entry.task_digest, task_digest(task))
    if entry.image_digest and task.image:
        found = backend.image_digest(task.image) if backend is not None else engine_image_digest(task.image)
        if found:
            _refuse_other(task.task_id, "image", entry.image_digest, found)
    return replace(task, suite=entry.suite)


def engine_image_digest(image: str) -> str:
    """Content id of an image in the Docker engine; "" when no engine answers or it does not hold the image."""
    try:
        engine = open_backend("docker")
    except SandboxError:
        return ""
    try:
        return engine.image_digest(image)
    except SandboxError:
        return ""
    finally:
        engine.close()


def _refuse_other(task_id: str, what: str, locked: str, found: str) -> None:
    if locked != found:
        raise LockError(
            f"{task_id}: hardened on {what} {locked}, asked for on {found}.",
            mend="Repair this one, or take that one.",
        )
