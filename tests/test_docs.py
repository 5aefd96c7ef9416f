"""The documentation is executed: fenced `python` and `bash` blocks run, inline `acidtest …` commands parse, links exist.

A fence's info string may say more: `bash any-exit` (the exit code depends on the machine), `elsewhere:PATH` (needs a
server, a trainer, data or an engine: the test file at PATH executes it). `text`, `json` and `toml` are not code.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
FENCE = re.compile(r"^```(\S*)([^\n]*)\n(.*?)^```$", re.M | re.S)
INLINE = re.compile(r"`(acidtest [a-z][^`]*)`")
RUN = [sys.executable, "-m", "acidtest.scripts.cli"]
ENV = {
    **os.environ,
    "PYTHONPATH": str(ROOT / "src"),
    "REPO": str(ROOT),
    "ACIDTEST_SANDBOX": "local",
    "PYTHONWARNINGS": "ignore",
    "COLUMNS": "100",
}


@dataclass(frozen=True)
class Block:
    page: str
    line: int
    language: str
    more: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [
        Block(page.name, text[: m.start()].count("\n") + 1, m[1], m[2].strip(), m[3])
        for m in FENCE.finditer(text)
    ]


EVERY = [block for page in PAGES for block in blocks(page)]
CODE = [b for b in EVERY if b.language in {"python", "bash"}]
HERE = [b for b in CODE if not b.more.startswith("elsewhere:")]
ELSEWHERE = [b for b in CODE if b.more.startswith("elsewhere:")]
RUNNABLE = sorted({b.page for b in HERE})


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One folder for all pages: the quick start runs first, other pages read its run."""
    folder = tmp_path_factory.mktemp("docs")
    execute(folder, "quickstart.md")
    return folder


_done: dict[str, int] = {}


def execute(folder: Path, page: str) -> None:
    """Run a page's blocks in order; the Python blocks of a page share their names."""
    if page in _done:
        return
    before: list[str] = []
    for block in (b for b in HERE if b.page == page):
        if block.language == "python":
            body = "".join(f"{text}\n" for text in [*before, block.text])
            script = folder / "block.py"
            script.write_text(body, encoding="utf-8")
            finished = subprocess.run(
                [sys.executable, str(script)],
                cwd=folder,
                env=ENV,
                capture_output=True,
                text=True,
                timeout=400,
            )
            assert finished.returncode == 0, f"{block}\n{finished.stdout[-2000:]}{finished.stderr[-3000:]}"
            before.append(block.text)
            continue
        for line in block.text.splitlines():
            shell = (
                line.strip().replace("acidtest ", " ".join(RUN) + " ", 1)
                if line.startswith("acidtest ")
                else line
            )
            finished = subprocess.run(
                ["bash", "-c", shell], cwd=folder, env=ENV, capture_output=True, text=True, timeout=400
            )
            good = finished.returncode == 0 or block.more == "any-exit"
            assert good, f"{block}: {line}\n{finished.stdout[-2000:]}{finished.stderr[-3000:]}"
    _done[page] = sum(b.page == page for b in HERE)


@pytest.mark.slow
@pytest.mark.parametrize("page", RUNNABLE)
def test_every_block_of_a_page_runs(workspace: Path, page: str) -> None:
    execute(workspace, page)


@pytest.mark.parametrize("block", ELSEWHERE, ids=str)
def test_blocks_executed_elsewhere_name_a_test_that_does_it(block: Block) -> None:
    """The test file exists and holds the words that the block's commands or calls are made of."""
    test = (ROOT / block.more.removeprefix("elsewhere:")).read_text(encoding="utf-8")
    if block.language == "bash":
        wanted = {
            line.split()[1] if line.startswith("acidtest ") else line.split()[0]
            for line in block.text.splitlines()
            if line
        }
    else:
        wanted = set(re.findall(r"import (\w+)|\.trl_grpo\.(\w+)\(", block.text)[0]) - {""}
    assert [w for w in wanted if w not in test] == []


def test_every_block_says_what_it_is() -> None:
    assert [
        str(b)
        for b in EVERY
        if b.language not in {"python", "bash", "text", "json", "jsonl", "toml", "diff", ""}
    ] == []
    unnamed = [str(b) for b in EVERY if not b.language and re.search(r"^(import |acidtest )", b.text, re.M)]
    assert unnamed == [], "code in a block without a language is never executed"


def commands() -> dict[str, set[str]]:
    """Subcommand -> its options, from the application itself."""
    import typer.main

    from acidtest.scripts.cli import build

    group = typer.main.get_command(build())
    found: dict[str, set[str]] = {}
    pending = [((), group)]
    while pending:
        path, command = pending.pop()
        inner = getattr(command, "commands", None)
        if inner:
            pending += [((*path, name), one) for name, one in inner.items()]
        found[" ".join(path)] = {o for p in command.params for o in (*p.opts, *p.secondary_opts)} | {
            "--help",
            "-h",
        }
    return found


def test_every_inline_command_and_option_exists() -> None:
    known = commands()
    wrong = []
    for page in PAGES:
        for text in INLINE.findall(page.read_text(encoding="utf-8")):
            words = [w for part in text.split(";") for w in part.split()][1:]
            if "|" in words:
                continue
            name = next((n for n in (" ".join(words[:2]), words[0]) if n in known), None)
            options = [w.split("=")[0] for w in words if re.fullmatch(r"-{1,2}[A-Za-z][\w-]*(=.*)?", w)]
            if name is None or not set(options) <= known[name]:
                wrong.append(f"{page.name}: {text}")
    assert wrong == []


def test_every_link_between_pages_exists() -> None:
    missing = []
    for page in PAGES:
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
            if not (page.parent / target).exists():
                missing.append(f"{page.name} -> {target}")
    assert missing == []


def test_the_pages_are_all_there() -> None:
    """What docs/ must hold, and that the count of executed blocks is no accident."""
    wanted = {"quickstart", "audit", "repair", "train", "report", "formats", "security", "science", "faq"}
    assert wanted <= {p.stem for p in PAGES}
    assert len(HERE) >= 15


def test_no_page_holds_marks_of_a_merge() -> None:
    marked = [p.name for p in PAGES if re.search(r"^(<{7}|>{7}) ", p.read_text(encoding="utf-8"), re.M)]
    assert marked == []
