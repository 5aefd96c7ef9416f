"""The folder listing is the registry: find a data set, sandbox, framework, attacker, augmenter or hook by name."""

from __future__ import annotations

import importlib
import pkgutil
from types import ModuleType

from .errors import UnknownName


def names(package: str) -> list[str]:
    """Names of the files in a registry folder, e.g. ``names("acidtest.envs.datasets")``; `_private` ones left out."""
    module = importlib.import_module(package)
    return sorted(m.name.replace("_", "-") for m in pkgutil.iter_modules(module.__path__) if m.name[0] != "_")


def find(package: str, name: str) -> ModuleType:
    """The module for `name` (dashes and underscores are one), or for a dotted path of the user's own.

    Raises UnknownName, which lists what exists.
    """
    if "." in name and "/" not in name:
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise UnknownName(
                f"No module {name!r} ({error}).", mend="Give a dotted path that can be imported."
            ) from error
    known = names(package)
    if name.replace("_", "-") not in known:
        kind = package.rsplit(".", 1)[-1]
        raise UnknownName(
            f"No {kind} named {name!r}.", mend=f"There are: {', '.join(known)}; or give a dotted path."
        )
    return importlib.import_module(f"{package}.{name.replace('-', '_')}")
