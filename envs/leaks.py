"""The leak audit of an image, and how an episode shuts what it found.

`audit_leaks(task)` runs every check of `envs/leak_checks.py` in a fresh sandbox of the task's image and says what
was found with the command that shows it. Results are cached by image digest, task and version of the checks.
`shut_script(task)` is what an episode's container runs before its first command; `audit_leaks(task, shut=True)`
audits after it, to prove it. Grading needs none of this: it happens in a fresh sandbox from trusted files.
"""

from __future__ import annotations

import os
import shlex
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from .errors import TaskError
from .leak_checks import (
    HELD_BACK,
    LEAK,
    NOTICE,
    UNTRACKED_HELD_BACK,
    Check,
    image_checks,
    lines_in_prompt,
    task_checks,
)
from .protocols import Exec, ExecResult, Limits, Sandbox, SandboxBackend, SandboxSpec
from .record import Record, digest_of
from .task import Task

if TYPE_CHECKING:
    from .verify import Verifier

VERSION = 1
CHECK_TIMEOUT_S = 150.0
EVIDENCE_CHARS = 2_000


@dataclass(frozen=True, kw_only=True)
class LeakFinding(Record):
    """One thing found. `command` shows it again (bash, in the image, in the workdir); `evidence` is its output."""

    check: str
    title: str
    severity: str
    command: str
    evidence: str


@dataclass(frozen=True, kw_only=True)
class LeakReport(Record):
    """All findings about one task's image. `undecided`: checks that did not end within their limit."""

    task_id: str
    image: str
    image_digest: str
    findings: tuple[LeakFinding, ...] = ()
    undecided: tuple[str, ...] = ()
    shut: bool = False
    seconds: float = 0.0
    version: int = VERSION
    cached: bool = False

    @property
    def leaks(self) -> tuple[LeakFinding, ...]:
        """Findings that give the fix or the tests away (notices left out)."""
        return tuple(finding for finding in self.findings if finding.severity == LEAK)


def audit_leaks(
    task: Task,
    *,
    backend: SandboxBackend | None = None,
    cache: Path | None = None,
    shut: bool = False,
    limits: Limits | None = None,
) -> LeakReport:
    """Audit one task's image.

    backend: an open sandbox backend (None: the default one, opened and closed here). cache: folder (None:
    `cache_folder()`). shut: run `shut_script` first, to see what an episode would still see.
    A task without an image has nothing to leak but its text. Raises SandboxError (image missing, engine gone).
    """
    if task.image is None:
        return LeakReport(
            task_id=task.task_id, image="", image_digest="", findings=_in_prompt(task), shut=shut
        )
    if backend is None:
        from .sandboxes import open_backend

        backend = open_backend()
        try:
            return audit_leaks(task, backend=backend, cache=cache, shut=shut, limits=limits)
        finally:
            backend.close()
    digest = backend.image_digest(task.image)
    path = (cache or cache_folder()) / f"{digest_of([digest, VERSION, shut, task.digest])}.json"
    held = _read(path)
    if held is not None:
        return replace(held, cached=True)
    report = _audit(task, backend, digest, shut, limits)
    if not report.undecided:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_suffix(f".{os.getpid()}.part")
        part.write_text(report.to_json(), encoding="utf-8")
        part.replace(path)
    return report


def leaks_of(task: Task, verifier: Verifier) -> tuple[str, ...]:
    """One sentence for each finding about the task's image, in the sandbox that a verifier uses."""
    report = audit_leaks(task, backend=verifier.backend, limits=verifier.limits)
    sentences = [
        f"{finding.check} {finding.severity}: {finding.title}: {finding.evidence.splitlines()[0]}"
        for finding in report.findings
    ]
    return (*sentences, *(f"undecided: {name}" for name in report.undecided))


def cache_folder() -> Path:
    """Where reports are kept: $XDG_CACHE_HOME/acidtest/leaks (~/.cache when unset)."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "acidtest" / "leaks"


def hidden_paths(task: Task) -> tuple[str, ...]:
    """What an episode removes: the task's `metadata["hidden_paths"]` and, in an image, the known places outside the tree.

    Without an image only paths inside the workdir are removed: such a sandbox may see this machine's files.
    """
    named = [str(path) for path in task.metadata.get("hidden_paths", ())]
    if task.image is None:
        return tuple(p for p in named if not p.startswith(("/", "~")) and ".." not in p.split("/"))
    return tuple(dict.fromkeys((*named, *(p for p in HELD_BACK if p.startswith("/")))))


def shut_script(task: Task) -> str:
    """Bash for an episode's fresh container (run in the workdir): afterwards the leaks of `LEAK` kind are shut.

    Removes the held-back paths and every readable copy of the solution's distinctive line outside the tree; makes
    of the tree's repository one with a single commit (the same files tracked, no refs, reflog, stash, remotes,
    packed objects); removes another installed release of the project where the project still imports without it.
    What the environment gives away is told by `leaking_environment`.
    """
    if task.image is None:
        return f"exec 2>/dev/null\n{_removal(hidden_paths(task))}{_FORGET}true\n"
    installed = "grep -v -e /site-packages/ -e /dist-packages/ -e ^/usr/lib"
    copies = "\n".join(
        f"{{ {check.command}\n}} | {installed} | xargs -r -d '\\n' rm -f --"
        for check in task_checks(task)
        if check.id == "L04"
    )
    inside = f"{{ {UNTRACKED_HELD_BACK}; }} | xargs -r -d '\\n' rm -rf --\n"
    return f"exec 2>/dev/null\n{_removal(hidden_paths(task))}{inside}{_FORGET}{_ONE_RELEASE}{copies}\ntrue\n"


def _removal(paths: Sequence[str]) -> str:
    globs = " ".join(path if "*" in path else shlex.quote(path) for path in paths)
    return f"rm -rf -- {globs}\n" if globs else ""


def leaking_environment(sandbox: Sandbox, task: Task) -> dict[str, str]:
    """Variables of a sandbox that name tests or the solution, each mapped to "".

    Pass them as `env` of every command of an episode: an environment can't be changed from inside.
    """
    if task.image is None:
        return {}
    checks = [check for check in (*image_checks(), *task_checks(task)) if check.id == "L08"]
    found: dict[str, str] = {}
    for result in sandbox.script([Exec(command=check.command) for check in checks]):
        if isinstance(result, ExecResult):
            lines = result.output.decode("utf-8", "replace").splitlines()
            found |= {line.split("=", 1)[0]: "" for line in lines if "=" in line}
    return found


def _audit(task: Task, backend: SandboxBackend, digest: str, shut: bool, limits: Limits | None) -> LeakReport:
    start = time.monotonic()
    checks = (*image_checks(), *task_checks(task))
    with backend.open(SandboxSpec.of(task, limits)) as sandbox:
        if shut:
            sandbox.exec(shut_script(task), timeout_s=4 * CHECK_TIMEOUT_S)
        results = sandbox.script([Exec(command=check.command, timeout_s=CHECK_TIMEOUT_S) for check in checks])
    findings, undecided = _found(checks, results)
    return LeakReport(
        task_id=task.task_id,
        image=task.image or "",
        image_digest=digest,
        findings=(*findings, *_in_prompt(task)),
        undecided=undecided,
        shut=shut,
        seconds=time.monotonic() - start,
    )


def _found(
    checks: Sequence[Check], results: Sequence[object]
) -> tuple[tuple[LeakFinding, ...], tuple[str, ...]]:
    findings, undecided = [], []
    for check, result in zip(checks, results, strict=True):
        if not isinstance(result, ExecResult) or result.timed_out or result.out_of_memory:
            undecided.append(f"{check.id}: {check.title}")
            continue
        evidence = result.output.decode("utf-8", "replace").strip()
        if evidence:
            findings.append(
                LeakFinding(
                    check=check.id,
                    title=check.title,
                    severity=check.severity,
                    command=check.command.strip(),
                    evidence=evidence[:EVIDENCE_CHARS],
                )
            )
    return tuple(findings), tuple(undecided)


def _in_prompt(task: Task) -> tuple[LeakFinding, ...]:
    lines = lines_in_prompt(task)
    if not lines:
        return ()
    return (
        LeakFinding(
            check="L09",
            title=f"{len(lines)} lines of the solution stand in the task's text",
            severity=NOTICE,
            command=f"grep -nF {shlex.quote(lines[0])} prompt.txt",
            evidence="\n".join(lines)[:EVIDENCE_CHARS],
        ),
    )


def _read(path: Path) -> LeakReport | None:
    try:
        return LeakReport.from_json(path.read_text(encoding="utf-8"))
    except (OSError, TaskError):
        return None


_FORGET = r"""
if command -v git >/dev/null; then
  export GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_DATE='2000-01-01T00:00:00Z'
  export GIT_COMMITTER_DATE="$GIT_AUTHOR_DATE" GIT_AUTHOR_NAME=task GIT_AUTHOR_EMAIL=task@localhost
  export GIT_COMMITTER_NAME=task GIT_COMMITTER_EMAIL=task@localhost
  list=$(mktemp); ignore=$(mktemp); had=no
  if [ -e .git ]; then
    had=yes
    git -c safe.directory='*' ls-files -z --cached > "$list"
    cat .git/info/exclude > "$ignore"
    git -c safe.directory='*' ls-files --others --directory | sed 's|^|/|' >> "$ignore"
  fi
  find . -name .git -prune -exec rm -rf {} +
  git init -q . && mkdir -p .git/info && cat "$ignore" >> .git/info/exclude
  if [ "$had" = yes ]; then xargs -0 -r -n 500 git add -f --ignore-errors -- < "$list"; else git add -A; fi
  git commit -q --no-gpg-sign --no-verify -m task
  rm -f "$list" "$ignore"
else
  find . -name .git -prune -exec rm -rf {} +
fi
"""
_ONE_RELEASE = r"""
for p in ./*/__init__.py src/*/__init__.py lib/*/__init__.py; do
  [ -f "$p" ] || continue
  here=$(readlink -f "$(dirname "$p")"); name=$(basename "$here"); parent=$(dirname "$here")
  case "$name" in test|tests|testing|doc|docs|examples|r2e_tests) continue;; esac
  find / -xdev -type d \( -name site-packages -o -name dist-packages \) -not -path '/proc/*' |
  while read -r site; do
    there=$(readlink -f "$site/$name")
    [ -d "$there" ] && [ "$there" != "$here" ] || continue
    diff -rq -x __pycache__ -x '*.pyc' "$here" "$there" >/dev/null && continue
    mv "$there" "$there.acidtest-away"
    python=$(ls "$site"/../../../bin/python3 /usr/bin/python3 /usr/local/bin/python3 | head -n 1)
    if "$python" -c "import $name" >/dev/null || PYTHONPATH="$parent" "$python" -c "import $name" >/dev/null
    then rm -rf "$there.acidtest-away"; else mv "$there.acidtest-away" "$there"; fi
  done
done
"""
