r"""Read a submission out of what a policy wrote.

The rules, in order (the first that fits decides; `Submission.form` says which):

1. What precedes the last ``</think>`` is dropped. Line ends become ``\n``, lone surrogates U+FFFD.
2. Blank text: the no-op (form ``empty``).
3. Text that begins with ``diff --git``, ``--- `` or ``Index: `` is a unified diff (``diff``).
4. The last closed fence tagged ``diff`` or ``patch``, or an untagged one whose body begins like a diff (``fenced-diff``).
5. Function tasks only. The last closed fence with Python or no tag; without any fence the whole text, if it parses:
   code that defines the entry point becomes the whole solution file, below the imports and helpers that stand above the
   entry point in the task's stub (``code``). Unfenced text that starts indented continues the stub (``completion``).
6. A line beginning ``diff --git`` somewhere: the diff from there on (``diff``).
7. Anything else is handed on as it stands and will be refused as no diff (``unreadable``).

Not read: several files in several fences, search/replace blocks, JSON tool calls.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from .edits import parse_quietly
from .patch import Patch
from .task import Task

_FENCE = re.compile(r"^[ \t]*(`{3,}|~{3,})[ \t]*([\w+.#-]*)[^\n]*\n(.*?)^[ \t]*\1[ \t]*$", re.M | re.S)
_DIFF_START = re.compile(r"\A\s*(diff --git |--- |Index: )")
_DIFF_LINE = re.compile(r"^diff --git ", re.M)
_SURROGATE = re.compile("[\ud800-\udfff]")
_LF_HEADER = re.compile(r"^(?:diff --git |--- |\+\+\+ )[^\r\n]*\n", re.M)
_PYTHON_TAGS = {"", "python", "py", "python3"}


@dataclass(frozen=True)
class Submission:
    """The patch that was read and the rule (`form`) that read it."""

    patch: Patch
    form: str


def read_submission(task: Task, text: str) -> Submission:
    """The patch in `text`; never raises: what is no patch is handed on and refused by the verdict."""
    text = _clean(text)
    if not text.strip():
        return Submission(Patch(), "empty")
    if _DIFF_START.match(text):
        return Submission(Patch(text.lstrip("\n")), "diff")
    fences = [(m.group(2).lower(), m.group(3)) for m in _FENCE.finditer(text)]
    for tag, body in reversed(fences):
        if tag in {"diff", "patch"} or (not tag and _DIFF_START.match(body)):
            return Submission(Patch(body), "fenced-diff")
    if task.is_function and (patch := _from_code(task, text, fences)):
        return patch
    if found := _DIFF_LINE.search(text):
        return Submission(Patch(text[found.start() :]), "diff")
    return Submission(Patch(text), "unreadable")


def _clean(text: str) -> str:
    """Line ends of the transport become newlines; those of a file's own lines in a diff stay, or it would not apply."""
    text = _SURROGATE.sub("\ufffd", text)
    if not _LF_HEADER.search(text):
        text = text.replace("\r\n", "\n")
    return text.rpartition("</think>")[2] if "</think>" in text else text


def _from_code(task: Task, text: str, fences: list[tuple[str, str]]) -> Submission | None:
    path = str(task.metadata.get("solution_file") or "solution.py")
    stub = task.files.get(path, "")
    bodies = [body for tag, body in reversed(fences) if tag in _PYTHON_TAGS] if fences else [text]
    for code in bodies:
        if _defines(code, str(task.metadata["entry_point"])):
            return Submission(_writing(task, path, _preamble(task, stub, code) + code.lstrip("\n")), "code")
        if not fences and code[:1] in " \t" and stub:
            whole = stub.rstrip("\n") + "\n" + code.rstrip() + "\n"
            if _defines(whole, str(task.metadata["entry_point"])):
                return Submission(_writing(task, path, whole), "completion")
    return None


def _writing(task: Task, path: str, text: str) -> Patch:
    return Patch.writing({path: text if text.endswith("\n") else text + "\n"}, dict(task.files))


def _defines(code: str, name: str) -> bool:
    """Whether `code` parses and binds `name` at the top level (def, class, assignment or import)."""
    try:
        tree = parse_quietly(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    bound: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            bound.add(node.name)
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            bound |= {t.id for t in targets if isinstance(t, ast.Name)}
        elif isinstance(node, ast.Import | ast.ImportFrom):
            bound |= {(alias.asname or alias.name).split(".")[0] for alias in node.names}
    return name in bound


def _preamble(task: Task, stub: str, code: str) -> str:
    """What stands above the entry point in the stub, when the code does not bring it along itself."""
    if "from __future__" in code or not stub:
        return ""
    found = re.search(
        rf"^(@[^\n]*\n)*(async[ \t]+)?(def|class)[ \t]+{re.escape(str(task.metadata['entry_point']))}\b",
        stub,
        re.M,
    )
    head = stub[: found.start()] if found else ""
    return "" if not head.strip() or code.lstrip().startswith(head.strip()) else head.rstrip("\n") + "\n\n\n"
