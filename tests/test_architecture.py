"""The floors: imports run downward only, and the packaging facts that keep the door open."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
FLOORS = {"envs": 1, "verifiers": 2, "repair": 3, "training_hooks": 4, "scripts": 5}
FILES = [path for floor in FLOORS for path in sorted((ROOT / floor).rglob("*.py")) if "toy" not in path.parts]


def imported_floors(path: Path) -> set[str]:
    """Floors that a file's relative imports reach, and any absolute import of our own package."""
    here = ["acidtest", *path.relative_to(ROOT).with_suffix("").parts]
    if path.name == "__init__.py":
        here = here[:-1] + ["__init__"]
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = here[: len(here) - node.level]
            names = [node.module] if node.module else [alias.name for alias in node.names]
            for name in names:
                parts = [*base, *str(name).split(".")]
                if len(parts) > 1 and parts[0] == "acidtest":
                    found.add(parts[1])
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "acidtest":
            found.add("absolute")
        elif isinstance(node, ast.Import) and any(a.name.split(".")[0] == "acidtest" for a in node.names):
            found.add("absolute")
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_imports_run_downward_only(path: Path) -> None:
    floor = FLOORS[path.relative_to(ROOT).parts[0]]
    found = imported_floors(path)
    assert "absolute" not in found, "imports inside the package are relative"
    upward = {name for name in found if FLOORS.get(name, 0) > floor}
    assert not upward, f"{path.relative_to(ROOT)} (floor {floor}) imports {sorted(upward)}"


PARSE_ALONE = {
    "envs/pyast.py",
    "envs/inside/acid_plain.py",
    "verifiers/search_suite.py",
    "verifiers/search_worker.py",
}
"""`pyast` itself, and files that run alone in a process inside a sandbox."""


def direct_parses(text: str) -> list[int]:
    """Lines that take `ast.parse` or `ast.literal_eval` from the standard library, by attribute or by import."""
    names = {"parse", "literal_eval"}
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Attribute) and node.attr in names:
            if isinstance(node.value, ast.Name) and node.value.id == "ast":
                found.append(node.lineno)
        elif isinstance(node, ast.ImportFrom) and node.module == "ast":
            found += [node.lineno for alias in node.names if alias.name in names]
        elif isinstance(node, ast.Import):
            found += [node.lineno for alias in node.names if alias.name == "ast" and alias.asname]
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda p: str(p.relative_to(ROOT)))
def test_source_is_parsed_by_pyast(path: Path) -> None:
    """The standard library's own parsing fails now and then where threads parse side by side (envs/pyast.py says why)."""
    if str(path.relative_to(ROOT)) not in PARSE_ALONE:
        assert direct_parses(path.read_text()) == []


def test_direct_parses_are_seen() -> None:
    assert direct_parses("import ast\nast.parse('x')\nast.literal_eval('1')\n") == [2, 3]
    assert direct_parses("from ast import walk, parse\nimport ast as a\n") == [1, 2]
    assert direct_parses("from acidtest.envs import pyast\npyast.parse('x')\n") == []


def test_verifiers_has_no_init() -> None:
    """With one, `python -m pytest` from the root would shadow Prime Intellect's `verifiers`, which our hook imports."""
    assert not (ROOT / "verifiers" / "__init__.py").exists()


def test_floors_are_linked_into_the_package() -> None:
    for floor in FLOORS:
        link = ROOT / "src" / "acidtest" / floor
        if link.is_symlink():
            assert link.resolve() == ROOT / floor
