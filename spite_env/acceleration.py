"""Whether the core runs compiled: an optional extra, imported when it is first needed."""

from __future__ import annotations

import functools
import importlib
from typing import Any


@functools.cache
def kernels() -> Any:
    """Return :mod:`spite_env.kernels`. It imports Numba, which takes a second: too long for every import."""
    return importlib.import_module("spite_env.kernels")


def runs_compiled(compiled: bool | None) -> bool:
    """Return whether the core runs compiled; None asks for it where Numba is installed.

    Raises:
        ValueError: ``compiled`` is neither a bool nor None.
        ImportError: it is True, and Numba is not installed; the message says how to install it.
    """
    if compiled is not None and not isinstance(compiled, bool):
        raise ValueError(f"compiled={compiled!r} is not allowed; it is True, False, or None (if Numba is installed)")
    installed: bool = compiled is not False and kernels().COMPILED
    if compiled and not installed:
        raise ImportError("compiled=True needs Numba: pip install 'spite-env[fast]'")
    return installed
