"""Kinds of command line options that the scripts share: what can't be used is refused before anything is played."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from spite_env.policies import make_policy

Number = TypeVar("Number", int, float)


def from_on(least: Number) -> Callable[[str], Number]:
    """Return a ``type`` for ``argparse``: finite numbers of ``least`` or more, integers if it is one.

    Raises:
        argparse.ArgumentTypeError: by what is returned, for anything else.
    """

    def parse(text: str) -> Number:
        try:
            number = type(least)(text)
        except ValueError:
            number = None
        if number is None or not least <= number < math.inf:
            raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it is {least} or more")
        return number

    return parse


def even_number(text: str) -> int:
    """Return an even number of 2 or more, like that of a duel's games.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    number = from_on(2)(text)
    if number % 2:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it is an even number")
    return number


def seed_number(text: str) -> int:
    """Return a seed, small enough that scripts may count on from it.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    number = from_on(0)(text)
    if number >= 2**63:
        raise argparse.ArgumentTypeError(f"{text!r} is not allowed; it is less than 2**63")
    return number


def known_policy(text: str) -> str:
    """Return the name of a policy that there is.

    Raises:
        argparse.ArgumentTypeError: it is none.
    """
    try:
        make_policy(text)
    except (ValueError, ImportError) as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    return text


def destination(text: str) -> Path:
    """Return the path of a file to write, or its beginning, in a folder that is made if there is none.

    Raises:
        argparse.ArgumentTypeError: it is a folder, or there can't be one for it.
    """
    path = Path(text)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise argparse.ArgumentTypeError(f"{text!r} can't be written: {error}") from None
    if path.is_dir():
        raise argparse.ArgumentTypeError(f"{text!r} is a folder; a file is asked for")
    return path
