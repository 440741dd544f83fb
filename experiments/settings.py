"""Settings of training scripts: a dataclass, presets of it, and a command line made from both."""

from __future__ import annotations

import argparse
import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

T = TypeVar("T")


def option(default: Any, text: str) -> Any:
    """Return a dataclass field with a help text."""
    return dataclasses.field(default=default, metadata={"help": text})


def parse(
    kind: type[T], presets: Mapping[str, Mapping[str, Any]], about: str, arguments: Sequence[str] | None = None
) -> tuple[T, bool]:
    """Read a command line: ``--preset``, ``--quick``, ``--resume``, and an option for each field of a dataclass.

    Args:
        kind: The dataclass; fields that hold a tuple become options that may be repeated.
        presets: Values of fields by the names of presets, the default one first; one of them is called quick.
        about: What the help says first.
        arguments: The command line; default: that of the process.

    Returns:
        The settings, and whether to resume.
    """
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    usual = next(iter(presets))
    parser.add_argument("--preset", choices=presets, default=usual, help="where the other options' defaults come from")
    parser.add_argument("--quick", action="store_true", help="the preset quick: a few seconds, to try whether it runs")
    text = "go on from the run's newest checkpoint, if there is one; the algorithm keeps the settings it has there"
    parser.add_argument("--resume", action="store_true", help=text)
    items = dataclasses.fields(kind)  # type: ignore[arg-type]
    for item in items:
        default = presets[usual].get(item.name, item.default)
        how: dict[str, Any] = {"type": type(default)}
        if isinstance(default, bool):
            how = {"action": argparse.BooleanOptionalAction}
        elif isinstance(default, tuple):
            how = {"action": "append"}
            default = ", ".join(default) or "none"
        text = f"{item.metadata['help']} ({usual}: {default})"
        parser.add_argument("--" + item.name.replace("_", "-"), default=None, help=text.replace("%", "%%"), **how)
    given = vars(parser.parse_args(arguments))
    preset = presets["quick" if given["quick"] else given["preset"]]
    named = {item.name: given[item.name] for item in items if given[item.name] is not None}
    values = {name: tuple(value) if isinstance(value, list) else value for name, value in named.items()}
    return kind(**{**preset, **values}), given["resume"]
