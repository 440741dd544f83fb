"""Kinds of command line options that the scripts share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TypeVar

Number = TypeVar("Number", int, float)


def from_on(least: Number) -> Callable[[str], Number]:
    """Return a ``type`` for ``argparse``: numbers of ``least`` or more, integers if it is one.

    Raises:
        argparse.ArgumentTypeError: by what is returned, for anything else.
    """

    def parse(text: str) -> Number:
        try:
            number = type(least)(text)
        except ValueError:
            number = None
        if number is None or not number >= least:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it is {least} or more")
        return number

    return parse
