"""The leak audit: every planted leak is found with a command that shows it, and shut in an episode; a clean image is clean."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from uuid import uuid4

import pytest

from acidtest.envs import leak_checks
from acidtest.envs.leaks import LeakReport, audit_leaks, leaking_environment, shut_script
from acidtest.envs.patch import Patch
from acidtest.envs.protocols import SandboxSpec
from acidtest.envs.sandboxes import docker
from acidtest.envs.task import Suite, Task

BROKEN = "def add(a, b):\n    return a\n"
FIXED = "def add(a, b):\n    return sum_of_both_operands(a, b)\n"
TREE = f"""
set -e
export GIT_AUTHOR_DATE='2020-01-01T00:00:00Z' GIT_COMMITTER_DATE='2020-01-01T00:00:00Z'
mkdir -p /testbed/calc && cd /testbed
git config --global user.name a; git config --global user.email a@localhost
git init -q
printf '%s' '{BROKEN}' > calc/core.py; touch calc/__init__.py
printf 'build/\\n' > .gitignore; mkdir build; echo kept > build/tracked.txt; echo scratch > build/ignored.txt
git add -A; git add -f build/tracked.txt; git commit -q -m base
"""
PLANTED = f"""
set -e
cd /testbed
printf '%s' '{FIXED}' > calc/core.py; git commit -q -a -m 'the fix'
git tag v2; git branch future
git checkout -q --detach HEAD^
echo x > lost; git add lost; git commit -q -m 'only in the reflog'; git checkout -q --detach HEAD^
echo y > y; git stash -q -u
git remote add origin https://host.invalid/x.git
mkdir -p /r2e_tests /opt/notes /usr/lib/python3/dist-packages/calc
printf 'def test_the_operands(): pass\\n' > /r2e_tests/test_1.py
printf '%s' '{FIXED}' > /opt/notes/answer.txt
printf '%s' '{FIXED}' > /usr/lib/python3/dist-packages/calc/core.py
touch /usr/lib/python3/dist-packages/calc/__init__.py
mkdir /usr/lib/python3/dist-packages/calc-2.0.dist-info
touch run_tests.sh /eval.sh
"""


def task(image: str | None) -> Task:
    return Task(
        task_id="calc-1",
        dataset="test",
        prompt="Adding gives the first operand only.",
        image=image,
        suite=Suite(command="true", framework="pytest", fail_to_pass=("t.py::test_the_operands",)),
        gold_patch=Patch.writing({"calc/core.py": FIXED}, {"calc/core.py": BROKEN}).text,
    )


@pytest.fixture(scope="module")
def backend(engine: str) -> Iterator[docker.DockerBackend]:
    opened = docker.backend(spares=0, run="leak-tests")
    yield opened
    opened.close()


@pytest.fixture(scope="module")
def images(backend: docker.DockerBackend) -> Iterator[dict[str, str]]:
    """Two images of the same tree: `clean`, and `leaky` with one of everything."""
    import docker as sdk

    tag = uuid4().hex[:12]
    names = {"clean": f"acidtest-test/clean:{tag}", "leaky": f"acidtest-test/leaky:{tag}"}
    for name, script, env in (
        ("clean", TREE, []),
        ("leaky", TREE + PLANTED, ["ENV FAIL_TO_PASS=test_the_operands"]),
    ):
        with backend.open(SandboxSpec(image=backend.base_image, workdir="/")) as box:
            result = box.exec(script, timeout_s=120)
            assert result.exit_code == 0, result.output.decode()
            backend.engine.commit(
                box.container, names[name], ["WORKDIR /testbed", 'CMD ["bash"]', "ENTRYPOINT []", *env]
            )
    yield names
    client = sdk.from_env()
    for image in names.values():
        client.images.remove(image, force=True)
    client.close()


@pytest.fixture(scope="module")
def found(
    backend: docker.DockerBackend, images: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> LeakReport:
    return audit_leaks(task(images["leaky"]), backend=backend, cache=tmp_path_factory.mktemp("leaks"))


@pytest.mark.docker
@pytest.mark.parametrize(
    ("title", "evidence"),
    [
        ("commits that are not in the history of HEAD can be read", "the fix"),
        ("tags point past HEAD", "v2"),
        ("the reflog holds commits that are in no branch", "only in the reflog"),
        ("packed or loose objects hold unreachable commits", "unreachable commit"),
        ("a remote is configured", "host.invalid"),
        ("the solved version of a file is in git's object store", "calc/core.py"),
        ("another release of the project is installed", "calc-2.0.dist-info"),
        ("tests, evaluator or solution stand at a known place", "/r2e_tests"),
        ("a line of the solution stands in a readable file", "/opt/notes/answer.txt"),
        ("the tests that decide stand in a readable file", "/r2e_tests/test_1.py"),
        ("the environment names tests or the solution", "FAIL_TO_PASS=test_the_operands"),
        ("names of the tests that decide are in the environment", "test_the_operands"),
        ("evaluator files can be written", "/eval.sh"),
    ],
)
def test_every_planted_leak_is_found(found: LeakReport, title: str, evidence: str) -> None:
    findings = [finding for finding in found.findings if finding.title == title]
    assert findings, [finding.title for finding in found.findings]
    assert evidence in findings[0].evidence


@pytest.mark.docker
def test_the_command_of_a_finding_shows_it_again(
    found: LeakReport, backend: docker.DockerBackend, images: dict[str, str]
) -> None:
    with backend.open(SandboxSpec(image=images["leaky"], workdir="/testbed")) as box:
        for finding in found.findings:
            output = box.exec(finding.command, timeout_s=60).output.decode().strip()
            assert output == finding.evidence, finding.title


@pytest.mark.docker
def test_a_clean_image_has_no_findings(
    backend: docker.DockerBackend, images: dict[str, str], tmp_path: Path
) -> None:
    report = audit_leaks(task(images["clean"]), backend=backend, cache=tmp_path)
    assert report.findings == ()
    assert report.undecided == ()


@pytest.mark.docker
def test_an_episode_shuts_them(backend: docker.DockerBackend, images: dict[str, str], tmp_path: Path) -> None:
    """What is left: variables (blanked per command) and the copy that is in nobody's way."""
    report = audit_leaks(task(images["leaky"]), backend=backend, cache=tmp_path, shut=True)
    assert {finding.check for finding in report.leaks} == {"L08"}, report.leaks
    with backend.open(SandboxSpec(image=images["leaky"], workdir="/testbed")) as box:
        box.exec(shut_script(task(images["leaky"])), timeout_s=60)
        blank = leaking_environment(box, task(images["leaky"]))
        assert blank == {"FAIL_TO_PASS": ""}
        tracked = box.exec(
            "git log --oneline --all | wc -l; git status --short; git ls-files"
        ).output.decode()
        assert tracked.split() == ["1", ".gitignore", "build/tracked.txt", "calc/__init__.py", "calc/core.py"]
        assert box.exec("cat build/ignored.txt calc/core.py").output.decode() == "scratch\n" + BROKEN


@pytest.mark.docker
def test_reports_are_cached_by_image_and_task(
    backend: docker.DockerBackend, images: dict[str, str], tmp_path: Path
) -> None:
    first = audit_leaks(task(images["clean"]), backend=backend, cache=tmp_path)
    again = audit_leaks(task(images["clean"]), backend=backend, cache=tmp_path)
    assert (first.cached, again.cached) == (False, True)
    assert replace(again, cached=False) == first
    other = replace(task(images["clean"]), gold_patch="")
    assert not audit_leaks(other, backend=backend, cache=tmp_path).cached


def test_the_issue_text_is_checked_without_any_image() -> None:
    telling = replace(task(None), prompt="Use `return sum_of_both_operands(a, b)` instead.")
    (finding,) = audit_leaks(telling).findings
    assert (finding.check, finding.evidence) == ("L09", "return sum_of_both_operands(a, b)")
    assert audit_leaks(task(None)).findings == ()


def test_without_an_image_nothing_outside_the_workdir_is_touched() -> None:
    """Such a sandbox may be a plain process of this machine."""
    named = replace(task(None), metadata={"hidden_paths": ["answers", "/etc", "../up", "~/x"]})
    lines = [line for line in shut_script(named).splitlines() if line.startswith("rm ")]
    assert lines == ["rm -rf -- answers"]
    assert "site-packages" not in shut_script(named)


@pytest.mark.parametrize(
    ("patch", "line"),
    [
        ("--- a\n+++ b\n+x = 1\n", ""),
        ("--- a\n+++ b\n-    return value_of(the_thing)\n+  return value_of(the_thing)\n", ""),
        (
            "--- a\n+++ b\n+# a comment that is long enough to count\n+return value_of(the_thing, 2)\n",
            "return value_of(the_thing, 2)",
        ),
    ],
    ids=["short", "moved", "code"],
)
def test_only_telling_lines_are_searched_for(patch: str, line: str) -> None:
    assert leak_checks.distinctive_line(patch) == line
