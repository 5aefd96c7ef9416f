"""In the sandbox: were the things that asserts rest on changed while the tests ran?

Objects are kept as they are when this file is imported (before any submitted code), those of unittest, pytest and
numpy as soon as they are imported. `look()` at the tail of a test names what is another object by then, and trace
functions. Restored before the tail: not seen.
"""

import builtins
import math
import operator
import sys

import acid_import

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_BUILTINS = [
    "abs",
    "all",
    "any",
    "bool",
    "bytes",
    "dict",
    "divmod",
    "enumerate",
    "filter",
    "float",
    "frozenset",
    "getattr",
    "hasattr",
    "hash",
    "id",
    "int",
    "isinstance",
    "issubclass",
    "iter",
    "len",
    "list",
    "map",
    "max",
    "min",
    "next",
    "object",
    "range",
    "repr",
    "reversed",
    "round",
    "set",
    "sorted",
    "str",
    "sum",
    "tuple",
    "type",
    "zip",
]
_OPERATOR = ["eq", "ne", "lt", "le", "gt", "ge", "contains", "is_", "is_not", "not_", "truth"]
_MATH = ["isclose", "fabs", "floor", "ceil", "sqrt", "isnan", "isinf", "fsum"]
_PYTEST = ["raises", "warns", "approx", "fail", "skip", "xfail", "deprecated_call"]
_NUMPY = ["allclose", "isclose", "array_equal", "array_equiv", "all", "any", "abs"]
_kept = []  # type: Any
_told = set()  # type: Any
_gettrace = sys.gettrace
_getprofile = sys.getprofile


def _code(value: "Any") -> "Any":
    return getattr(value, "__code__", None)


def _now(owner: "Any", name: str) -> "Any":
    if isinstance(owner, type):
        return owner.__dict__.get(name)
    return getattr(owner, name, None)


def keep(label: str, owner: "Any", names: "Any") -> None:
    for name in names:
        value = _now(owner, name)
        _kept.append((label + "." + name, owner, name, value, _code(value)))


def _unittest(module: "Any") -> None:
    case = module.TestCase
    names = [n for n in case.__dict__ if n.startswith("assert")] + ["run", "__call__", "fail", "subTest"]
    keep("TestCase", case, names)
    for name in ("_AssertRaisesContext", "_AssertWarnsContext"):
        if hasattr(module, name):
            keep(name, getattr(module, name), ["__exit__", "handle"])
    outcome = getattr(module, "_Outcome", None)
    if outcome is not None:
        keep("_Outcome", outcome, ["testPartExecutor"])


def _pytest(module: "Any") -> None:
    keep("pytest", module, _PYTEST)
    for place in ("_pytest.python_api", "_pytest.raises"):
        for name in ("RaisesContext", "RaisesExc", "ApproxBase", "ApproxScalar"):
            owner = getattr(sys.modules.get(place), name, None)
            if owner is not None:
                keep(name, owner, ["__exit__", "__eq__"])


def _numpy(module: "Any") -> None:
    keep("numpy", module, _NUMPY)


def _numpy_testing(module: "Any") -> None:
    keep("numpy.testing", module, [n for n in dir(module) if n.startswith("assert")])


keep("builtins", builtins, _BUILTINS)
keep("operator", operator, _OPERATOR)
keep("math", math, _MATH)
acid_import.when_imported("unittest.case", _unittest)
acid_import.when_imported("pytest", _pytest)
acid_import.when_imported("numpy", _numpy)
acid_import.when_imported("numpy.testing", _numpy_testing)
_traced = _gettrace() is not None or _getprofile() is not None


def look() -> "Any":
    """Names of what was changed and not told yet."""
    found = []
    for label, owner, name, kept, code in _kept:
        now = _now(owner, name)
        if (now is not kept or (code is not None and _code(now) is not code)) and label not in _told:
            found.append(label)
    if not _traced and "trace" not in _told and (_gettrace() is not None or _getprofile() is not None):
        found.append("trace")
    _told.update(found)
    return found
