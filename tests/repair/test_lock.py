"""The lock serves what was hardened and refuses everything else, naming both digests."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from acidtest.envs.errors import LockError
from acidtest.envs.task import AddedTests, Suite, Task
from acidtest.repair import lock as lock_module
from acidtest.repair.lock import (
    LOCK_NAME,
    file_digest,
    hardened,
    load_lock,
    suite_folder,
    task_digest,
    write_lock,
)
from acidtest.repair.records import HardenedSuite

TEXT = "from solution import add\n\n\ndef test_add_1_3():\n    assert add(1, 3) == 4\n"


def make_task(task_id: str = "Toy/1", **changes: Any) -> Task:
    suite = Suite(
        command="python test_solution.py",
        framework="plain",
        test_files={
            "test_solution.py": "from solution import add\n\ndef test_check():\n    assert add(2, 2) == 4\n"
        },
        fail_to_pass=("test_solution.py::test_check",),
    )
    values = {"task_id": task_id, "dataset": "toy", "prompt": "p", "suite": suite, "gold_patch": "g"}
    return Task(**{**values, **changes})


def entry(task: Task, image_digest: str = "") -> HardenedSuite:
    added = AddedTests(
        command="python test_hardened.py",
        framework="plain",
        test_files={"test_hardened.py": TEXT},
        test_ids=("test_hardened.py::test_add_1_3",),
    )
    suite = replace(task.suite, added=added)
    return HardenedSuite(
        task_id=task.task_id,
        original_digest=task.suite.digest,
        hardened_digest=suite.digest,
        image_digest=image_digest,
        suite=suite,
        files={"test_hardened.py": file_digest(TEXT)},
        task_digest=task_digest(task),
    )


class Images:
    """A backend that only knows what an image's content id is."""

    name = "images"

    def __init__(self, digest: str) -> None:
        self.digest = digest

    def image_digest(self, image: str | None) -> str:
        return self.digest

    def open(self, spec: object) -> Any:
        raise AssertionError("nothing is run here")

    def close(self) -> None:
        pass


def test_swap_in_and_back(tmp_path: Path) -> None:
    task = make_task()
    write_lock(tmp_path, [entry(task)])
    lock = load_lock(tmp_path)
    served = hardened(task, lock)
    assert served.suite.added is not None
    assert served.suite.digest != task.suite.digest
    assert served.suite.original == task.suite
    assert (tmp_path / "suites" / "toy_1" / "test_hardened.py").read_text() == TEXT
    assert hardened(served, lock) == served, "serving twice changes nothing"


def test_a_task_that_was_not_repaired_is_refused(tmp_path: Path) -> None:
    write_lock(tmp_path, [entry(make_task())])
    with pytest.raises(LockError, match="Toy/2"):
        hardened(make_task("Toy/2"), tmp_path)


def test_another_original_suite_is_refused_with_both_digests(tmp_path: Path) -> None:
    task = make_task()
    lock = write_lock(tmp_path, [entry(task)])
    other = replace(task, suite=replace(task.suite, command="python other.py"))
    with pytest.raises(LockError) as refusal:
        hardened(other, lock)
    assert task.suite.digest in str(refusal.value)
    assert other.suite.digest in str(refusal.value)


def test_another_gold_or_tree_is_refused_with_both_digests(tmp_path: Path) -> None:
    task = make_task()
    lock = write_lock(tmp_path, [entry(task)])
    for other in (make_task(gold_patch="h"), make_task(files={"solution.py": "x = 1\n"})):
        with pytest.raises(LockError) as refusal:
            hardened(other, lock)
        assert task_digest(task) in str(refusal.value)
        assert task_digest(other) in str(refusal.value)


def test_another_image_is_refused_with_both_digests(tmp_path: Path) -> None:
    task = make_task(image="row:1")
    lock = write_lock(tmp_path, [entry(task, "sha256:aaaa")])
    assert hardened(task, lock, backend=Images("sha256:aaaa")).suite.added
    with pytest.raises(LockError) as refusal:
        hardened(task, lock, backend=Images("sha256:bbbb"))
    assert "sha256:aaaa" in str(refusal.value)
    assert "sha256:bbbb" in str(refusal.value)


def test_the_engine_is_asked_where_no_backend_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = make_task(image="row:1")
    lock = write_lock(tmp_path, [entry(task, "sha256:aaaa")])
    for found, refused in (("sha256:aaaa", False), ("", False), ("sha256:bbbb", True)):
        monkeypatch.setattr(lock_module, "engine_image_digest", lambda image, found=found: found)
        if refused:
            with pytest.raises(LockError, match="sha256:bbbb"):
                hardened(task, lock)
        else:
            assert hardened(task, lock).suite.added


@pytest.mark.docker
def test_content_ids_of_real_images(engine: str) -> None:
    from acidtest.repair.lock import engine_image_digest

    assert engine_image_digest("no-such-image:anywhere") == ""


def test_a_suite_file_changed_after_locking_is_refused_with_both_digests(tmp_path: Path) -> None:
    write_lock(tmp_path, [entry(make_task())])
    file = tmp_path / "suites" / "toy_1" / "test_hardened.py"
    changed = TEXT.replace("== 4", "== 4 or True")
    file.write_text(changed)
    with pytest.raises(LockError) as refusal:
        load_lock(tmp_path)
    assert file_digest(TEXT) in str(refusal.value)
    assert file_digest(changed) in str(refusal.value)
    file.unlink()
    with pytest.raises(LockError, match="no file"):
        load_lock(tmp_path)


def _edit_command(body: dict[str, Any]) -> None:
    body["suites"]["Toy/1"]["suite"]["added"]["command"] = "true"


def _edit_text(body: dict[str, Any]) -> None:
    files = body["suites"]["Toy/1"]["suite"]["added"]["test_files"]
    files["test_hardened.py"] = "def test_add_1_3():\n    pass\n"


def _edit_gates(body: dict[str, Any]) -> None:
    body["suites"]["Toy/1"]["proof"] = {"blocked": 99}


def _edit_image(body: dict[str, Any]) -> None:
    body["suites"]["Toy/1"]["image_digest"] = "sha256:other"


def _edit_original(body: dict[str, Any]) -> None:
    body["suites"]["Toy/1"]["original_digest"] = "0" * 16


@pytest.mark.parametrize("edit", [_edit_command, _edit_text, _edit_gates, _edit_image, _edit_original])
def test_a_lockfile_edited_by_hand_is_refused_with_both_digests(
    tmp_path: Path, edit: Callable[[dict[str, Any]], None]
) -> None:
    write_lock(tmp_path, [entry(make_task())])
    file = tmp_path / LOCK_NAME
    body = json.loads(file.read_text())
    edit(body)
    file.write_text(json.dumps(body))
    with pytest.raises(LockError) as refusal:
        load_lock(tmp_path)
    digests = [
        word for word in str(refusal.value).replace(",", " ").replace(".", " ").split() if len(word) == 16
    ]
    assert len(set(digests)) >= 2, str(refusal.value)


@pytest.mark.parametrize(
    "text", ["", "[]", '{"format": 9}', '{"format": 1, "suites": {"a": 3}}', '{"format": 1']
)
def test_what_is_no_lockfile_is_refused_in_one_line(tmp_path: Path, text: str) -> None:
    (tmp_path / LOCK_NAME).write_text(text)
    with pytest.raises(LockError) as refusal:
        load_lock(tmp_path)
    assert "\n" not in str(refusal.value)


def test_writing_again_leaves_equal_files_and_drops_stale_ones(tmp_path: Path) -> None:
    task = make_task()
    write_lock(tmp_path, [entry(task)])
    before = (tmp_path / LOCK_NAME).read_bytes()
    (suite_folder(tmp_path, task.task_id) / "stale.py").write_text("x")
    write_lock(tmp_path, [entry(task)])
    assert (tmp_path / LOCK_NAME).read_bytes() == before
    assert [p.name for p in suite_folder(tmp_path, task.task_id).iterdir()] == ["test_hardened.py"]
    assert not list(tmp_path.rglob("*.part"))


def test_names_that_leave_the_folder_are_refused(tmp_path: Path) -> None:
    good = entry(make_task())
    added = good.suite.added
    assert added is not None
    evil = replace(good, suite=replace(good.suite, added=replace(added, test_files={"../../evil.py": TEXT})))
    with pytest.raises(LockError, match="leaves its folder"):
        write_lock(tmp_path, [evil])
