"""Settings of training scripts: a dataclass, presets of it, and a command line made from both."""

from __future__ import annotations

import argparse
import dataclasses
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

from experiments.reporting import machine

T = TypeVar("T")


def option(default: Any, text: str) -> Any:
    """Return a dataclass field with a help text."""
    return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass(frozen=True)
class RunSettings:
    """What a training by any library depends on."""

    name: str = option("run", "the run's folder in --runs")
    runs: str = option("runs", "where the folders of runs are")
    seed: int = option(0, "seed of the weights, the games and all choices")
    duels: int = option(1000, "games of each duel at the end, an even number")
    rules: str = option("g4a", "preset of the rules")
    encoding: str = option("onehot", "encoding of the observations")
    side_depth: int = option(3, "side-pile cards shown below the tops")
    reward: str = option("win", "win, points or margin")
    epochs: int = option(3, "passes over each rollout")
    gamma: float = option(0.99, "discount")
    gae_lambda: float = option(0.95, "lambda of the advantage estimates")
    entropy: float = option(0.01, "weight of the entropy bonus")
    hidden: str = option("128,128", "sizes of the hidden layers, of the policy and the value network each")
    deterministic: bool = option(True, "duel with the most probable action instead of a drawn one")

    def open_folder(self) -> Path:
        """Make the run's folder, write the settings and the machine there, and return it."""
        folder = Path(self.runs) / self.name
        folder.mkdir(parents=True, exist_ok=True)
        about = {**dataclasses.asdict(self), "machine": machine()}
        (folder / "config.json").write_text(json.dumps(about, indent=2))
        return folder


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
