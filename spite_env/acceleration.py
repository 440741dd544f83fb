"""Whether the core runs compiled: an optional extra, found when it is first needed."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType


@functools.cache
def compiled_core() -> ModuleType | None:
    """Return :mod:`spite_env.compiled`, or None where Numba is not installed (or not for this NumPy)."""
    try:
        return importlib.import_module("spite_env.compiled")
    except ImportError:
        return None


def check_compiled(compiled: bool | None) -> None:
    """Check the argument ``compiled`` of :class:`~spite_env.game.Game`.

    Raises:
        ValueError: it is neither a bool nor None.
        ImportError: it is True, and Numba is not installed; the message says how to install it.
    """
    if compiled not in (None, False, True):
        raise ValueError(f"compiled={compiled!r} is not allowed; it is True, False, or None (if Numba is installed)")
    if compiled and compiled_core() is None:
        raise ImportError("compiled=True needs Numba: pip install 'spite-env[fast]'")
