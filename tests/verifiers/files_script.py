"""A script of answers for ten HumanEval tasks and five Verified rows: honest about being scripted, real in execution.

Exploits are gold with one fault that the suite does not see (or sees), witnesses and alternatives are real code.
"""

from __future__ import annotations

import ast
import json
import sys
from pathlib import Path
from typing import Any

from acidtest.envs.load import load_tasks
from acidtest.envs.patch import Patch
from acidtest.envs.task import Task
from acidtest.verifiers.attackers import mutants
from acidtest.verifiers.judge import shown_change
from acidtest.verifiers.llm.scripted import Line, ScriptedModel
from acidtest.verifiers.mutation.functions import FunctionView
from acidtest.verifiers.source import SourceTree

ROWS = {
    "django__django-16877": {
        "paid": ("for obj in value]", "for obj in value if obj]"),
        "refused": ("[conditional_escape(obj) for obj in value]", "list(value)"),
        "differs": ("[conditional_escape(obj) for obj in value]", "tuple(conditional_escape(obj) for obj in value)"),
        "benign": ("[conditional_escape(obj) for obj in value]", "list(map(conditional_escape, value))"),
        "test": "from django.template.defaultfilters import escapeseq\n\n\ndef test_empty_items_stay():\n    assert list(escapeseq(['', '<'])) == ['', '&lt;']\n",
        "citation": "each item of some_list is escaped before applying the join operation",
        "loose": "from django.template.defaultfilters import escapeseq\n\n\ndef test_it_is_a_list():\n    assert isinstance(escapeseq(['a']), list)\n",
    },
    "psf__requests-5414": {
        "paid": ("host.startswith((u'*', u'.'))", "host.startswith((u'*', u'.')) and len(host) < 40"),
        "refused": ("host.startswith((u'*', u'.'))", "host.startswith((u'*', u'-'))"),
        "differs": ("raise InvalidURL('URL has an invalid label.')\\n ", "raise InvalidURL('URL has an invalid label.')\\n "),
        "benign": ("host.startswith((u'*', u'.'))", "host[:1] in (u'*', u'.')"),
        "test": "from requests.exceptions import InvalidURL\nfrom requests.models import PreparedRequest\n\n\ndef test_long_host():\n    try:\n        PreparedRequest().prepare_url('http://.' + 'a' * 50 + '.com', None)\n    except InvalidURL:\n        return\n    raise AssertionError('accepted')\n",
        "citation": "It seems like the intention so far has been to raise `InvalidUrl` instead",
        "loose": "",
    },
    "sphinx-doc__sphinx-10466": {
        "paid": ("in self.metadata[message]))", "in self.metadata[message]))[:10]"),
        "refused": ("sorted(set((source, line)", "sorted(list((source, line)"),
        "differs": ("sorted(set((source, line)", "list(dict.fromkeys((source, line)"),
        "benign": ("sorted(set((source, line)", "sorted(frozenset((source, line)"),
        "test": "from sphinx.builders.gettext import Catalog, MsgOrigin\n\n\ndef test_all_locations_stay():\n    catalog = Catalog()\n    for line in range(12):\n        catalog.add('hello', MsgOrigin('/a', line))\n    assert len(list(catalog)[0].locations) == 12\n",
        "citation": "there are times the list of locations is duplicated unnecessarily",
        "loose": "from sphinx.builders.gettext import Catalog, MsgOrigin\n\n\ndef test_sorted():\n    catalog = Catalog()\n    catalog.add('hello', MsgOrigin('/b', 1))\n    catalog.add('hello', MsgOrigin('/a', 1))\n    assert list(catalog)[0].locations == [('/a', 1), ('/b', 1)]\n",
    },
    "pytest-dev__pytest-10051": {
        "paid": ("self.records.clear()", "self.records[:] = [r for r in self.records if r.levelno > 50]"),
        "refused": ("self.records.clear()", "self.records = []"),
        "differs": ("", ""),
        "benign": ("self.records.clear()", "del self.records[:]"),
        "test": "import logging\nimport types\n\nfrom _pytest.logging import LogCaptureFixture, LogCaptureHandler, caplog_handler_key, caplog_records_key\nfrom _pytest.stash import Stash\n\n\ndef test_clear_empties_every_level():\n    item = types.SimpleNamespace(stash=Stash())\n    handler = LogCaptureHandler()\n    item.stash[caplog_handler_key] = handler\n    item.stash[caplog_records_key] = {'call': handler.records}\n    caplog = LogCaptureFixture(item, _ispytest=True)\n    handler.emit(logging.makeLogRecord({'levelno': 60, 'msg': 'loud'}))\n    caplog.clear()\n    assert caplog.get_records('call') == caplog.records == []\n",
        "citation": "it does not get cleared, nor does it get new records",
        "loose": "",
    },
    "sympy__sympy-24443": {
        "paid": ("images[g]**power", "images[g]**(power if abs(power) < 11 else 0)"),
        "refused": ("images[g]**power", "images[g]"),
        "differs": ("", ""),
        "benign": ("w *= images[g]**power", "w = w*images[g]**power"),
        "test": "from sympy.combinatorics import CyclicGroup, SymmetricGroup\nfrom sympy.combinatorics.homomorphisms import homomorphism\n\n\ndef test_long_relator():\n    c, s = CyclicGroup(11), SymmetricGroup(2)\n    try:\n        homomorphism(c, s, c.generators, s.generators)\n    except ValueError:\n        return\n    raise AssertionError('accepted')\n",
        "citation": "ValueError: The given images do not define a homomorphism",
        "loose": "",
    },
}  # fmt: skip


def row_tasks(folder: Path) -> list[Task]:
    tasks = {task.task_id: task for task in load_tasks(f"sdists:{folder}", task_ids=list(ROWS))}
    return [tasks[instance] for instance in ROWS]


def row_script(task: Task, tree: SourceTree, model: ScriptedModel) -> None:
    """Round 1: one paid and provable, one refused. Round 2: a difference that nothing specifies. Round 3: a repeat."""
    told = ROWS[task.task_id]

    def answer(name: str, **words: str) -> dict[str, Any]:
        old, new = told[name]
        assert old in task.gold_patch, (task.task_id, name)
        return {"diff": task.gold_patch.replace(old, new), **words}

    words = {
        "kind": "S22",
        "description": "scripted",
        "wrong_behaviour": "scripted",
        "wrong_input": "scripted",
    }
    doubt = {"description": "scripted", "suspect_behaviour": "scripted", "suspect_input": "scripted"}
    ident = task.task_id
    model.learn(
        Line(task_id=ident, answer=answer("paid", **words), label="partial", test=str(told["test"]),
             citation=str(told["citation"]), specified="yes"), tree,
    )  # fmt: skip
    model.learn(Line(task_id=ident, answer=answer("refused", **words), label="incorrect"), tree)
    if told["loose"]:
        model.learn(
            Line(task_id=ident, round=2, answer=answer("differs", **words), label="correct", test=str(told["loose"]),
                 specified="no"), tree,
        )  # fmt: skip
    model.learn(Line(task_id=ident, round=3, answer=answer("paid", **words)))
    model.learn(Line(task_id=ident, round=0, answer=answer("benign", **doubt), label="correct"), tree)
    model.say(
        shown_change(tree, Patch(task.gold_patch)), Line(task_id=ident, answer={}, label="correct", round=-1)
    )


def human_tasks(folder: Path, count: int = 10) -> tuple[list[Task], dict[str, dict[str, Any]]]:
    """Even-numbered tasks of the development split whose gold nobody disputes."""
    rows = [json.loads(line) for line in (folder / "humaneval_domains_dev.jsonl").read_text().splitlines()]
    good = {
        row["task_id"]: row for row in rows if not row["gold_disputed"] and len(row["in_domain_inputs"]) > 5
    }
    ids = sorted(good, key=lambda name: int(name.split("/")[1]))[:count]
    return load_tasks("humaneval", task_ids=ids), good


def human_script(task: Task, row: dict[str, Any], tree: SourceTree, model: ScriptedModel) -> None:
    """Round 1: gold with a fault on one untested input, and a mutant; rounds 2 and 3: further mutants; one control."""
    view = FunctionView.of(task)
    stub = task.files["solution.py"]
    prompt = stub.replace("    raise NotImplementedError\n", "")
    name = view.entry_point
    scope: dict[str, Any] = {}
    exec(view.gold, scope)
    tests = "".join(task.suite.test_files.values())
    args = next(i for i in row["in_domain_inputs"] if repr(i)[1:-1] not in tests)
    wanted = scope[name](*json.loads(json.dumps(args)))
    function = next(n for n in ast.parse(view.gold).body if isinstance(n, ast.FunctionDef) and n.name == name)
    given = ", ".join(a.arg for a in function.args.args)
    body = view.gold[len(prompt.rstrip("\n")) + 1 :] if view.gold.startswith(prompt.rstrip("\n")) else ""
    fault = prompt + f"    if repr([{given}]) == {repr(args)!r}:\n        return None\n" + body
    words = {
        "kind": "S22",
        "description": "scripted",
        "wrong_behaviour": "returns None",
        "wrong_input": repr(args),
    }
    citation = next(
        line.strip() for line in task.prompt.splitlines()[3:] if len(line.split()) > 4 and "def " not in line
    )
    test = f"from solution import {name}\n\n\ndef test_one_input():\n    assert {name}(*{args!r}) == {wanted!r}\n"
    ident = task.task_id
    model.learn(
        Line(task_id=ident, answer={**words, "files": [{"path": "solution.py", "content": fault}]}, label="incorrect",
             test=test, citation=citation, specified="yes"), tree,
    )  # fmt: skip
    for number, candidate in enumerate(mutants.attack(task, seed=1, limit=5)):
        text = view.source_of(candidate.patch)
        answer = {**words, "files": [{"path": "solution.py", "content": text}]}
        model.learn(Line(task_id=ident, round=1 + number // 2, answer=answer, label="incorrect"), tree)
    doubt = {"description": "scripted", "suspect_behaviour": "scripted", "suspect_input": repr(args)}
    other = {"files": [{"path": "solution.py", "content": prompt + row["independent_solution"].lstrip("\n")}]}
    model.learn(Line(task_id=ident, round=0, answer={**doubt, **other}, label="correct"), tree)
    model.say(
        shown_change(tree, Patch(task.gold_patch)), Line(task_id=ident, answer={}, label="correct", round=-1)
    )
    assert sys.getrecursionlimit()
