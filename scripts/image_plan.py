"""What images to build and from what: rows of a CSV, a source tree, a git checkout, a source distribution."""

from __future__ import annotations

import csv
import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..envs.errors import ConfigError
from ..envs.images import TREE, image_name, safe_name

COLUMNS = ("instance_id", "pypi_name", "sdist_version", "requirements", "install", "test_command")


@dataclass(frozen=True, kw_only=True)
class Tree:
    """Where a source tree comes from: exactly one of a PyPI source distribution, or a local folder.

    pypi: "Name==1.2.3". folder: a path; with `commit` it is a git checkout and that commit is taken.
    """

    pypi: str = ""
    folder: str = ""
    commit: str = ""

    def __str__(self) -> str:
        return self.pypi or (f"{self.folder}@{self.commit[:12]}" if self.commit else self.folder)


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One image. Images with equal requirements share a layer; with an equal tree too they are one image."""

    name: str
    tree: Tree
    requirements: tuple[str, ...] = ()
    pythonpath: str = TREE
    env: Mapping[str, str] = field(default_factory=dict)
    task_id: str = ""

    @property
    def requirements_digest(self) -> str:
        return _digest("\n".join(self.requirements))

    @property
    def tree_digest(self) -> str:
        env = sorted(self.env.items())
        return _digest(f"{self.requirements_digest} {self.tree} {self.pythonpath} {env}")


def plans_of_csv(path: Path, *, only: Iterable[str] = ()) -> list[Plan]:
    """One plan per row of a table like verified_on_sdists.csv. `only`: instance ids to keep (empty: all).

    `install` says where the packages of the tree begin (``PYTHONPATH=$TREE`` or ``$TREE/src``); a variable that
    `notes` asks for ("with NAME=value") goes into the image's environment. Raises ConfigError that names the row.
    """
    wanted = set(only)
    with path.open(newline="") as file:
        rows = list(csv.DictReader(file))
    missing = [column for column in COLUMNS if rows and column not in rows[0]]
    if missing:
        raise ConfigError(
            f"{path} has no column {', '.join(missing)}.", mend=f"It needs {', '.join(COLUMNS)}."
        )
    plans = [_of_row(row, path) for row in rows if not wanted or row["instance_id"] in wanted]
    unknown = wanted - {row["instance_id"] for row in rows}
    if unknown:
        raise ConfigError(f"{path} has no row {', '.join(sorted(unknown))}.", mend="Check the instance ids.")
    return plans


def _of_row(row: Mapping[str, str], path: Path) -> Plan:
    found = re.search(r"PYTHONPATH=\$TREE(/[\w./-]+)?", row["install"])
    if not (found and row["pypi_name"] and row["sdist_version"]):
        raise ConfigError(
            f"{path}: row {row['instance_id']} cannot be built (pypi_name, sdist_version or install is unreadable).",
            mend="install must hold PYTHONPATH=$TREE or $TREE/FOLDER.",
        )
    return Plan(
        name=image_name(row["instance_id"]),
        task_id=row["instance_id"],
        tree=Tree(pypi=f"{row['pypi_name']}=={row['sdist_version']}"),
        requirements=tuple(part.strip() for part in row["requirements"].split(";") if part.strip()),
        pythonpath=TREE + (found[1] or ""),
        env=dict(re.findall(r"with ([A-Z][A-Z_]*)=(\w+)", row.get("notes", ""))),
    )


def plan_of_source(
    source: str, *, name: str = "", commit: str = "", requirements: Path | None = None, pythonpath: str = ""
) -> Plan:
    """A plan for one tree: a folder, a git checkout (`commit`), or ``pypi:NAME==VERSION``. Raises ConfigError."""
    lines = requirements.read_text().splitlines() if requirements else []
    wanted = tuple(line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#"))
    if source.startswith("pypi:"):
        tree = Tree(pypi=source[5:])
    elif Path(source).is_dir():
        tree = Tree(folder=str(Path(source).resolve()), commit=commit)
    else:
        raise ConfigError(
            f"{source} is no CSV, no folder and no pypi:NAME==VERSION.", mend="Name a source that exists."
        )
    if tree.pypi and "==" not in tree.pypi:
        raise ConfigError(f"{source} has no version.", mend="Write pypi:NAME==VERSION.")
    label = name or f"acidtest/tree.{safe_name(tree.pypi or Path(tree.folder).name)}:latest"
    return Plan(name=label, tree=tree, requirements=wanted, pythonpath=f"{TREE}/{pythonpath}".rstrip("/"))


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
