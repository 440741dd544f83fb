"""Files that are whole, or not there."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import BinaryIO


@contextmanager
def whole_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """Open a file for writing that takes its name once the context ends without an error.

    Until then an old file of that name is as it was, and what has been written is in another file of the same folder.
    A link stays one, and what is no plain file (a pipe, a device) is written into.

    Raises:
        OSError: the file can't be written.
    """
    if not os.fspath(path):
        raise FileNotFoundError("'' is no file's name")
    if os.path.isdir(path):
        raise IsADirectoryError(f"{os.fspath(path)!r} is a folder; it has to be a file")
    target = os.path.realpath(path)
    if os.path.exists(target) and not os.path.isfile(target):
        with open(target, "wb") as file:
            yield file
        return
    if not os.path.isdir(os.path.dirname(target)):
        raise FileNotFoundError(f"{os.path.dirname(path)!r} is no folder that a file can be written to")
    descriptor, part = tempfile.mkstemp(".part", f"{os.path.basename(target)}.", os.path.dirname(target))
    try:
        with open(descriptor, "wb") as file:
            yield file
        os.chmod(part, 0o666 & ~_umask())
        os.replace(part, target)
    finally:
        if os.path.exists(part):
            os.remove(part)


def _umask() -> int:
    """Return the process's mask of file permissions, which only setting it tells."""
    mask = os.umask(0o022)
    os.umask(mask)
    return mask
