"""A plain grader, as common harnesses build it, to measure what a naive reward would have paid.

It does what SWE-bench style harnesses do, in the same sandboxes as our verdict: the submission is applied with
`git apply` and, when that fails, with GNU `patch`; a bash script prints `git diff`, checks the test files out, applies the
test patch, reinstalls the project (only where setup.py was changed: else it changes nothing), runs the command between two markers, and records the exit code; one merged log is read for status lines.
Paid: every expected id has a passing line (XFAIL counts, a skipped PASS_TO_PASS counts), and the exit code is 0 or some
line says FAILED. Plain scripts: exit code 0 and a line "OK". Nothing here defends anything: never use it as a reward.
"""

from __future__ import annotations

import re
import shlex
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field

from ..envs.errors import SandboxError
from ..envs.patch import Patch
from ..envs.protocols import Exec, ExecResult, Limits, Op, SandboxBackend, SandboxSpec, Write
from ..envs.record import Record
from ..envs.task import Task

START, END, CODE = ">>>>> Start Test Output", ">>>>> End Test Output", ">>>>> Test Exit Code"
_GOOD, _KEPT = {"PASSED", "XFAIL"}, {"PASSED", "XFAIL", "SKIPPED"}
_WORDS = ("PASSED", "FAILED", "SKIPPED", "ERROR", "XFAIL")
_DIFF_PATH = re.compile(r'^diff --git "?a/.+?"? "?b/(.+?)"?$', re.M)
_UNITTEST_ID = re.compile(r"^(\w+) \(([\w.]+)\)$")


@dataclass(frozen=True, kw_only=True)
class BaselineVerdict(Record):
    """What a naive harness says. applied: "git apply", "patch" or "" (not at all). statuses: from printed lines."""

    task_id: str
    paid: bool
    applied: str
    exit_code: int | None
    statuses: Mapping[str, str] = field(default_factory=dict)
    log: str = ""
    swebench_paid: bool | None = None
    """What swebench's own grading says of the same log; None where it is not installed or has no parser."""


class BaselineGrader:
    """Grades patches the naive way. The backend stays the caller's."""

    def __init__(self, backend: SandboxBackend, *, limits: Limits | None = None) -> None:
        self.backend = backend
        self.limits = limits

    def grade(self, task: Task, patch: Patch, *, timeout_s: float | None = None) -> BaselineVerdict:
        """One patch in one fresh sandbox. Raises SandboxError for trouble with the sandbox itself."""
        limit = task.timeout_s if timeout_s is None else timeout_s
        with self.backend.open(SandboxSpec.of(task, self.limits)) as sandbox:
            files = {
                f"{sandbox.scratch}/{name}": text.encode("utf-8", "surrogateescape")
                for name, text in (
                    ("patch.diff", patch.text),
                    ("test.diff", test_patch(task)),
                    ("eval.sh", eval_script(task, sandbox.scratch)),
                    ("apply.sh", apply_script(sandbox.scratch)),
                )
            }
            ops: list[Op] = [
                Write(files=files),
                Exec(command=("bash", f"{sandbox.scratch}/apply.sh"), timeout_s=120),
                Exec(
                    command=("bash", f"{sandbox.scratch}/eval.sh"),
                    timeout_s=limit,
                    output_bytes=4_000_000,
                    env=task.suite.env,
                ),
            ]
            results = sandbox.script(ops)
        applied, ran = results[1], results[2]
        if not isinstance(applied, ExecResult) or not isinstance(ran, ExecResult):
            raise SandboxError(f"{task.task_id}: the sandbox returned no result of the baseline script.")
        return judge(task, _how(applied, patch), ran)


def judge(task: Task, applied: str, ran: ExecResult) -> BaselineVerdict:
    """Pure: the naive verdict on a log."""
    text = ran.output.decode("utf-8", "replace").replace("\r\n", "\n").replace("\r", "\n")
    statuses = statuses_of(task.suite.framework, between_markers(text))
    code = exit_code_of(text)
    paid = bool(applied) and not ran.timed_out and _pays(task, text, statuses, code)
    return BaselineVerdict(
        task_id=task.task_id,
        paid=paid,
        applied=applied,
        exit_code=code,
        statuses=statuses,
        log=text[-20_000:],
        swebench_paid=swebench_pays(task, text) if applied and not ran.timed_out else False,
    )


def _pays(task: Task, text: str, statuses: Mapping[str, str], code: int | None) -> bool:
    if START not in text or END not in text:
        return False
    if task.suite.framework == "plain":
        return code == 0 and any(line.strip() == "OK" for line in between_markers(text).split("\n"))
    if code not in (0, None) and not {"FAILED", "ERROR"} & set(statuses.values()):
        return False
    excluded = set(task.suite.exclude_ids)
    wanted = [(i, _GOOD) for i in task.suite.fail_to_pass] + [(i, _KEPT) for i in task.suite.pass_to_pass]
    return all(_status(i, statuses) in good for i, good in wanted if i not in excluded)


def _status(test_id: str, statuses: Mapping[str, str]) -> str:
    found = statuses.get(canonical(test_id))
    if found is None and test_id.count("[") > test_id.count("]"):
        found = next((s for i, s in statuses.items() if i.startswith(test_id)), None)
    return found or ""


def between_markers(text: str) -> str:
    """What stands between the first start marker and the first end marker after it."""
    return text.split(START, 1)[1].split(END, 1)[0] if START in text else ""


def exit_code_of(text: str) -> int | None:
    match = re.search(rf"{re.escape(CODE)}:\s*(-?\d+)", text)
    return int(match.group(1)) if match else None


def canonical(test_id: str) -> str:
    """One form for what unittest prints ("test_x (a.B.test_x)", "test_x (a.B)") and dotted ids."""
    match = _UNITTEST_ID.match(test_id)
    if not match:
        return test_id
    return f"{match.group(2).removesuffix('.' + match.group(1))}.{match.group(1)}"


def statuses_of(framework: str, log: str) -> dict[str, str]:
    """Status lines of a log: the last one for an id counts."""
    found: dict[str, str] = {}
    for raw in log.split("\n"):
        line = raw.strip()
        if framework in ("django", "unittest"):
            name, dots, end = line.rpartition(" ... ")
            word = {"ok": "PASSED", "FAIL": "FAILED", "ERROR": "ERROR"}.get(end, "")
            if dots and (word or end.startswith("skipped")):
                found[canonical(name)] = word or "SKIPPED"
        elif framework == "sympy":
            parts = line.split()
            if len(parts) == 2 and line.startswith("test_") and parts[1] in ("ok", "F", "E"):
                found[parts[0]] = {"ok": "PASSED", "F": "FAILED", "E": "ERROR"}[parts[1]]
        elif raw.startswith(_WORDS):
            word, _, rest = raw.partition(" ")
            name = rest.split(" - ")[0].strip()
            if word in _WORDS and name and not (word == "SKIPPED" and rest.startswith("[")):
                found[name] = word
    return found


def test_patch(task: Task) -> str:
    """The suite's test files as a diff against the unsolved tree, as SWE-bench rows carry them."""
    if task.suite.test_patch:
        return task.suite.test_patch
    return Patch.writing(task.suite.test_files, task.files).text


def apply_script(scratch: str) -> str:
    """Make the tree a repository, then apply as common harnesses do: strictly, with rejects, with GNU patch."""
    return f"""cd "$(pwd)"
git config --global --add safe.directory '*' 2>/dev/null
[ -d .git ] || {{ git init -q . && git add -A . && git -c user.name=a -c user.email=a@b.c commit -qm base; }} >/dev/null 2>&1
[ -s {scratch}/patch.diff ] || {{ echo applied:empty; exit 0; }}
git apply --verbose {scratch}/patch.diff && {{ echo applied:git; exit 0; }}
patch --batch --fuzz=5 -p1 -i {scratch}/patch.diff && {{ echo applied:patch; exit 0; }}
echo applied:no
"""


def eval_script(task: Task, scratch: str) -> str:
    """The script of the second step; its merged output is the log."""
    diff = test_patch(task)
    paths = " ".join(shlex.quote(p) for p in dict.fromkeys(_DIFF_PATH.findall(diff)))
    reinstall = (
        "git diff --quiet HEAD -- setup.py || { python -m pip install -q --no-deps --no-build-isolation --no-index -e . "
        "|| python setup.py -q develop --no-deps; } >/dev/null 2>&1\n"
        if task.image is not None
        else ""
    )
    return f"""git status
git diff
{reinstall}git checkout HEAD {paths}
git apply -v {scratch}/test.diff
echo '{START}'
{task.suite.command}
code=$?
echo '{END}'
echo "{CODE}: $code"
git checkout HEAD {paths}
"""


def _how(result: ExecResult, patch: Patch) -> str:
    output = result.output.decode("utf-8", "replace")
    for word, name in (("git", "git apply"), ("patch", "patch"), ("empty", "nothing to apply")):
        if f"applied:{word}" in output:
            return name
    return ""


def swebench_pays(task: Task, text: str) -> bool | None:
    """swebench's own reading of the log; None where it is not installed or knows no parser for the framework."""
    names = {
        "pytest": "parse_log_pytest",
        "django": "parse_log_django",
        "unittest": "parse_log_django",
        "sympy": "parse_log_sympy",
    }
    name = str(task.metadata.get("log_parser") or names.get(task.suite.framework, ""))
    if not name:
        return None
    try:
        from swebench.harness import grading
        from swebench.types import TestSpec
    except ImportError:
        return None
    ids = task.suite.expected_ids
    spec = TestSpec(
        instance_id=task.task_id,
        image="",
        eval_script_list=[],
        repo=str(task.metadata.get("repo", "")),
        version=str(task.metadata.get("version", "")),
        FAIL_TO_PASS=[_for_swebench(i) for i in ids if i in set(task.suite.fail_to_pass)],
        PASS_TO_PASS=[_for_swebench(i) for i in ids if i not in set(task.suite.fail_to_pass)],
        log_parser=name,
        eval_type="pass_and_fail",
    )
    with tempfile.NamedTemporaryFile("w", suffix=".log", encoding="utf-8", newline="") as file:
        file.write(_NEW_FORM.sub(r"\1 (\2)", text))
        file.flush()
        prediction = {"instance_id": task.task_id, "model_patch": "x"}
        report = grading.get_eval_report(spec, prediction, file.name, False)
    return bool(report[task.task_id]["resolved"])


_NEW_FORM = re.compile(r"\b(test\w*) \(([\w.]+)\.\1\)")
"""Python 3.11 prints "test_x (a.B.test_x)", rows say "test_x (a.B)": the log is put into the rows' form."""


def _for_swebench(test_id: str) -> str:
    """Dotted unittest ids in the printed form that swebench's parser knows."""
    match = re.match(r"^((?:\w+\.)+\w+)\.(test\w*)$", test_id)
    return f"{match.group(2)} ({match.group(1)})" if match else test_id
