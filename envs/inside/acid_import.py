"""In the sandbox: call a function on a module right after it was first imported, without importing it ourselves."""

import _frozen_importlib
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_waiting = {}  # type: Any


class _Loader:
    """Delegates to the real loader, then calls what waits for the module."""

    def __init__(self, real: "Any") -> None:
        self._real = real

    def __getattr__(self, name: str) -> "Any":
        return getattr(self._real, name)

    def create_module(self, spec: "Any") -> "Any":
        return self._real.create_module(spec)

    def exec_module(self, module: "Any") -> None:
        module.__spec__.loader = self._real
        module.__loader__ = self._real
        self._real.exec_module(module)
        for function in _waiting.pop(module.__name__, ()):
            function(module)


class _Finder:
    def find_spec(self, name: str, path: "Any" = None, target: "Any" = None) -> "Any":
        if name not in _waiting:
            return None
        at = sys.meta_path.index(self)
        sys.meta_path.remove(self)
        try:
            spec = _frozen_importlib._find_spec(name, path)  # type: ignore[attr-defined]
        finally:
            sys.meta_path.insert(at, self)
        if spec is not None and spec.loader is not None and hasattr(spec.loader, "exec_module"):
            loader = _Loader(spec.loader)  # type: Any
            spec.loader = loader
        return spec


def when_imported(name: str, function: "Any") -> None:
    """Call `function(module)` now if the module is there, else as soon as it is."""
    if name in sys.modules:
        function(sys.modules[name])
        return
    if not _waiting:
        sys.meta_path.insert(0, _Finder())
    _waiting.setdefault(name, []).append(function)
