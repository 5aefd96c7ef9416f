"""Ids as data sets print them: every form of the official rows, and the mapping rules one by one."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from acidtest.envs import ids
from acidtest.envs.frameworks import framework_of
from acidtest.envs.ids import Form, form_of
from acidtest.envs.load import load_tasks

BY_CONSTRUCTION = {Form.EXACT, Form.CUT, Form.METHOD, Form.DOTTED, Form.SUBTEST, Form.DESCRIPTION, Form.NAME}


@pytest.mark.data
def test_every_id_of_the_500_official_rows_has_a_form_with_a_rule(data_dir: Path) -> None:
    tasks = list(load_tasks(str(data_dir / "swebench_verified.parquet")))
    assert len(tasks) == 500
    table: Counter[tuple[str, Form]] = Counter()
    rows: dict[Form, set[str]] = {}
    for task in tasks:
        for ident in (*task.suite.fail_to_pass, *task.suite.pass_to_pass):
            form = form_of(task.suite.framework, ident)
            table[task.suite.framework, form] += 1
            rows.setdefault(form, set()).add(task.task_id)
    total = sum(table.values())
    ruled = sum(count for (_, form), count in table.items() if form in BY_CONSTRUCTION)
    assert set(rows) - BY_CONSTRUCTION == {Form.PROGRESS}
    assert total - ruled == 2, "the two literal progress marks are all that has no rule"
    assert len(rows[Form.PROGRESS]) == 2
    assert 600 <= sum(n for (_, form), n in table.items() if form is Form.CUT) <= 700
    assert len(rows[Form.CUT]) >= 60
    assert 3500 <= sum(n for (_, form), n in table.items() if form is Form.DESCRIPTION) <= 3800
    assert 160 <= len(rows[Form.DESCRIPTION]) <= 170


@pytest.mark.data
def test_cut_ids_of_official_rows_map_to_what_they_were_cut_from(data_dir: Path) -> None:
    """Complete ids with blanks, made from the cut ones, are found again; a neighbour that differs earlier is not."""
    seen = 0
    for task in load_tasks(str(data_dir / "swebench_verified.parquet")):
        if task.suite.framework != "pytest":
            continue
        cut = [i for i in task.suite.expected_ids if form_of("pytest", i) is Form.CUT]
        executed = [f"{ident} {tail}]" for ident in cut for tail in ("one", "two x")]
        other = [ident + "x y]" for ident in cut if ident + "x" not in cut]
        found = ids.pytest_map(cut, executed + other)
        for ident in dict.fromkeys(cut):
            assert found.mapped[ident] == tuple(e for e in executed if e.split(" ")[0] == ident)
            seen += 1
    assert seen > 600


@pytest.mark.parametrize(
    ("framework", "wanted", "executed", "mapped"),
    [
        ("pytest", "t.py::a[x-y]", ["t.py::a[x-y]"], ("t.py::a[x-y]",)),
        (
            "pytest",
            "t.py::a[png-w/",
            ["t.py::a[png-w/ o]", "t.py::a[png-w/ p q]", "t.py::a[png-w]"],
            ("t.py::a[png-w/ o]", "t.py::a[png-w/ p q]"),
        ),
        ("pytest", "t.py::a[/f.py]", ["t.py::a[/tmp/d/f.py]"], ("t.py::a[/tmp/d/f.py]",)),
        ("pytest", "t.py::a[1-x]", ["t.py::a[MouseButton.LEFT-x]"], ("t.py::a[MouseButton.LEFT-x]",)),
        ("pytest", "lib/t.py::C::a", ["t.py::C::a", "u.py::C::a"], ("t.py::C::a",)),
        ("pytest", "t.py::a[\\u212b]", ["t.py::a[\\u212b]"], ("t.py::a[\\u212b]",)),
        ("pytest", "t.py::a[ä]", ["t.py::a[ä]"], ("t.py::a[ä]",)),
        ("django", "test_x (app.tests.Cls)", ["test_x (app.tests.Cls)"], ("test_x (app.tests.Cls)",)),
        ("django", "test_x (app.tests.Cls.test_x)", ["test_x (app.tests.Cls)"], ("test_x (app.tests.Cls)",)),
        (
            "django",
            "test_x (app.tests.Cls) (lookup='a b')",
            ["test_x (app.tests.Cls)"],
            ("test_x (app.tests.Cls)",),
        ),
        (
            "django",
            "test_x (app.tests.Cls) [message] (i=1)",
            ["test_x (app.tests.Cls)"],
            ("test_x (app.tests.Cls)",),
        ),
        ("unittest", "app.tests.Cls.test_x", ["test_x (app.tests.Cls)"], ("test_x (app.tests.Cls)",)),
        (
            "sympy",
            "test_x",
            ["sympy/a/tests/test_a.py:test_x", "sympy/b/tests/test_b.py:test_x", "sympy/a.py:test_xy"],
            ("sympy/a/tests/test_a.py:test_x", "sympy/b/tests/test_b.py:test_x"),
        ),
    ],
)
def test_each_rule(framework: str, wanted: str, executed: list[str], mapped: tuple[str, ...]) -> None:
    assert framework_of(framework).map_ids([wanted], executed).mapped == {wanted: mapped}


def test_a_description_stands_for_every_test_that_has_it() -> None:
    executed = ["test_a (m.C)", "test_b (m.C)", "test_c (m.C)"]
    aliases = {"Named URLs should be  reversible": ("test_a (m.C)", "test_b (m.C)")}
    found = framework_of("django").map_ids(["Named URLs should be reversible", "Gone"], executed, aliases)
    assert found.mapped == {"Named URLs should be reversible": ("test_a (m.C)", "test_b (m.C)")}
    assert found.unmapped == {"Gone": "no executed test answers to it"}


@pytest.mark.parametrize("framework", ["pytest", "django", "sympy", "unittest", "plain"])
def test_a_progress_mark_is_no_test(framework: str) -> None:
    found = framework_of(framework).map_ids(["[100%]", "[  3%]"], ["t.py::a", "test_a (m.C)"])
    assert found.mapped == {}
    assert set(found.unmapped.values()) == {"a progress mark, not a test"}
