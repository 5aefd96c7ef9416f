"""The version that records carry; the package's own `__version__` is this one."""

__version__ = "0.1.0"
