"""Floor 3: propose tests, gate them, prove them, lock the hardened suite.

The package is also the verb: `acidtest.repair(audit)` is `acidtest.repair.repair.repair(audit)` (lazily imported).
"""

from __future__ import annotations

import sys
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .report import RepairReport


class _Verb(ModuleType):
    """A module that can be called; its submodules are reached as ever."""

    def __call__(self, audit: Any, **options: Any) -> RepairReport:
        from .repair import repair

        return repair(audit, **options)


sys.modules[__name__].__class__ = _Verb
