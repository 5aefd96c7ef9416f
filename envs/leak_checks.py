"""What the leak audit looks for: each check is one bash command that prints what it found, or nothing.

Ids are those of THREATS (L01 … L09); W01 and W02 are evaluator files and interpreters an agent can write to.
Commands run in a throw-away sandbox of the task's image, in the workdir, as the user of an episode.
Not looked for: L05 to L07 (frames, trace hooks, harness globals) live in the test process, not in the image.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass

from .task import Task

LEAK, NOTICE = "leak", "notice"
GIT = "git -c safe.directory='*'"
EVALUATORS = (
    "run_tests.sh",
    "/run_tests.sh",
    "/root/run_tests.sh",
    "/eval.sh",
    "/root/eval.sh",
    "/tests/test.sh",
    "/tests/calculate_reward.py",
    "/logs/verifier",
    "expected_test_output.json",
)
HELD_BACK = (
    "r2e_tests",
    "/r2e_tests",
    "/root/r2e_tests",
    "/tests",
    "/solution",
    "/oracle",
    "/gold*",
    "/*.patch",
    "/*.diff",
    "/root/*.patch",
    "/root/*.diff",
    "/tmp/*.patch",
    "/tmp/*.diff",
    *EVALUATORS[:6],
    "expected_test_output.json",
)
UNTRACKED_HELD_BACK = (
    f"for p in {' '.join(path for path in HELD_BACK if not path.startswith('/'))}; do "
    f'[ -e "$p" ] && ! {GIT} ls-files --error-unmatch "$p" >/dev/null 2>&1 && echo "$p"; done; true'
)
"""Prints the known places inside the tree that are there and that git does not track."""
_NAMES = "FAIL_TO_PASS|PASS_TO_PASS|GOLD|SOLUTION|ORACLE|HIDDEN_TEST|TEST_PATCH|EXPECTED_OUTPUT"
_SECRETS = "_KEY=|TOKEN=|SECRET|PASSWORD|CREDENTIAL"
_TEST_NAME = re.compile(r"\b(test\w{4,})")
_SHOWN = "head -n 20"


@dataclass(frozen=True)
class Check:
    """id: as in THREATS. severity: `leak` gives the fix or the tests away, `notice` makes cheating easier."""

    id: str
    title: str
    severity: str
    command: str


def image_checks() -> tuple[Check, ...]:
    """Checks that need to know the image only."""
    return (*_git_checks(), *_file_checks(), *_environment_checks())


def task_checks(task: Task) -> tuple[Check, ...]:
    """Checks that look for this task's own solution and tests."""
    checks = []
    if line := distinctive_line(task.gold_patch):
        checks.append(Check("L04", "a line of the solution stands in a readable file", LEAK, _grep(line)))
    if names := sorted({match for i in task.suite.fail_to_pass for match in _TEST_NAME.findall(i)})[:20]:
        pattern = rf"def ({'|'.join(map(re.escape, names))})\b"
        checks.append(
            Check(
                "L04", "the tests that decide stand in a readable file", LEAK, _grep(pattern, expression=True)
            )
        )
        words = "|".join(map(re.escape, names))
        command = f"env | grep -E {shlex.quote(words)} | {_SHOWN}"
        checks.append(Check("L08", "names of the tests that decide are in the environment", LEAK, command))
    if task.gold_patch:
        checks.append(
            Check(
                "L01",
                "the solved version of a file is in git's object store",
                LEAK,
                _solved_blobs(task.gold_patch),
            )
        )
    return tuple(checks)


def distinctive_line(patch: str) -> str:
    """The longest line that a patch adds to code (stripped, at least 24 characters), "" where there is none."""
    added = [line[1:].strip() for line in patch.splitlines() if line.startswith("+") and line[:3] != "+++"]
    removed = {line[1:].strip() for line in patch.splitlines() if line.startswith("-") and line[:3] != "---"}
    usable = [
        a for a in added if len(a) >= 24 and a not in removed and not a.startswith(("#", "import ", "from "))
    ]
    return max(usable, key=len, default="")


def lines_in_prompt(task: Task) -> tuple[str, ...]:
    """Lines of the solution (at least 16 characters) that stand word for word in the task's text (L09)."""
    added = {
        line[1:].strip()
        for line in task.gold_patch.splitlines()
        if line.startswith("+") and line[:3] != "+++" and len(line.strip()) > 16
    }
    return tuple(sorted(line for line in added if line in task.prompt))


def _git_checks() -> tuple[Check, ...]:
    here = f"[ -e .git ] && command -v git >/dev/null && {GIT}"
    return (
        Check(
            "L01",
            "commits that are not in the history of HEAD can be read",
            LEAK,
            f"{here} log --all --not HEAD --format='%h %ad %s' --date=short 2>/dev/null | {_SHOWN}",
        ),
        Check(
            "L01",
            "tags point past HEAD",
            LEAK,
            f"{here} for-each-ref --no-merged=HEAD --format='%(refname:short) %(objectname:short)' refs/tags 2>/dev/null | {_SHOWN}",
        ),
        Check(
            "L01",
            "the reflog holds commits that are in no branch",
            LEAK,
            f"{here} log --reflog --not --all --format='%h %ad %s' --date=short 2>/dev/null | {_SHOWN}",
        ),
        Check(
            "L01",
            "packed or loose objects hold unreachable commits",
            LEAK,
            f"{here} fsck --unreachable --no-reflogs --no-progress 2>/dev/null | grep ' commit ' | {_SHOWN}",
        ),
        Check("L01", "a remote is configured", NOTICE, f"{here} remote -v 2>/dev/null | {_SHOWN}"),
        Check(
            "L01",
            "another repository is readable",
            NOTICE,
            f'find / -xdev -name .git -not -path "$PWD/.git" -not -path "/proc/*" 2>/dev/null | {_SHOWN}',
        ),
        Check(
            "L01",
            "there is a .git but no git to look into it",
            NOTICE,
            "[ -e .git ] && ! command -v git >/dev/null && ls -d .git",
        ),
    )


def _file_checks() -> tuple[Check, ...]:
    outside = " ".join(path for path in HELD_BACK if path.startswith("/"))
    places = f"ls -1d {outside} 2>/dev/null\n{UNTRACKED_HELD_BACK}"
    writable = f'for p in {" ".join(EVALUATORS)}; do [ -w "$p" ] && echo "$p"; done; true'
    path = 'echo "$PWD/.venv/bin:$PATH" | tr : "\\n" | grep "^$PWD/" | while read -r d; do [ -w "$d" ] && ls -d "$d"; done'
    return (
        Check("L02", "another release of the project is installed", LEAK, _OTHER_RELEASE),
        Check(
            "L04",
            "tests, evaluator or solution stand at a known place",
            LEAK,
            places,
        ),
        Check("W01", "evaluator files can be written", NOTICE, writable),
        Check(
            "W02", "the interpreter's own folder lies in the tree and can be written", NOTICE, f"{path}; true"
        ),
    )


def _environment_checks() -> tuple[Check, ...]:
    return (
        Check("L03", "there is a route to a network", LEAK, "tail -n +2 /proc/net/route 2>/dev/null"),
        Check(
            "L08",
            "the environment names tests or the solution",
            LEAK,
            f"env | grep -E '^[^=]*({_NAMES})' | {_SHOWN}",
        ),
        Check(
            "L08",
            "the environment holds secrets",
            NOTICE,
            f"env | grep -E '^[^=]*({_SECRETS})' | sed 's/=.*/=…/' | {_SHOWN}",
        ),
    )


_OTHER_RELEASE = r"""
for p in ./*/__init__.py src/*/__init__.py lib/*/__init__.py; do
  [ -f "$p" ] || continue
  here=$(readlink -f "$(dirname "$p")"); name=$(basename "$here")
  case "$name" in test|tests|testing|doc|docs|examples|r2e_tests) continue;; esac
  find / -xdev -type d \( -name site-packages -o -name dist-packages \) -not -path '/proc/*' 2>/dev/null |
  while read -r site; do
    there=$(readlink -f "$site/$name")
    [ -d "$there" ] && [ "$there" != "$here" ] || continue
    diff -rq -x __pycache__ -x '*.pyc' "$here" "$there" >/dev/null 2>&1 && continue
    echo "$site/$name $(cd "$site" && ls -d "$name"-*.dist-info "$name"-*.egg-info 2>/dev/null | tr '\n' ' ')"
  done
done | head -n 20
"""


def _grep(text: str, *, expression: bool = False) -> str:
    """Files that hold the text: outside the tree, and those in the tree that git does not track.

    Names of tests are common words, so installed packages are left out for expressions.
    """
    kind = "-E" if expression else "-F"
    names = ["proc", "sys", "dev", ".git", *(("site-packages", "dist-packages") if expression else ())]
    skip = " ".join(f"--exclude-dir={name}" for name in names)
    return (
        f"timeout 120 grep -rlI {kind} {skip} -e {shlex.quote(text)} / 2>/dev/null | while read -r f; do\n"
        f'  case "$f" in "$PWD"/*) {GIT} ls-files --error-unmatch "$f" >/dev/null 2>&1 && continue;; esac\n'
        f'  echo "$f"\ndone | {_SHOWN}'
    )


def _solved_blobs(patch: str) -> str:
    """Apply the gold patch in the throw-away tree, and ask git's store for the files that result."""
    quoted = shlex.quote(patch if patch.endswith("\n") else patch + "\n")
    return (
        f"[ -e .git ] && command -v git >/dev/null || exit 0\n"
        f"printf %s {quoted} > /tmp/.acidtest-gold\n"
        f"{GIT} apply /tmp/.acidtest-gold 2>/dev/null || exit 0\n"
        f"{GIT} apply --numstat /tmp/.acidtest-gold 2>/dev/null | cut -f3 | while read -r f; do\n"
        f'  h=$({GIT} hash-object "$f" 2>/dev/null) && {GIT} cat-file -e "$h" 2>/dev/null && echo "$f $h"\n'
        f"done | {_SHOWN}; true"
    )
