"""Measure what each part of a decision costs in the core, on NumPy's arrays and compiled, and write the table.

Games are played at random; each part is timed on its own, in processor time on one core.

    python experiments/parts.py
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import TypeVar

import numpy as np

from experiments.measuring import pin_to_one_core
from experiments.options import destination, from_on
from experiments.players import CorePlayer
from experiments.reporting import machine, write_results
from spite_env import Rules, random_legal_actions
from spite_env.observation import ObservationTable
from spite_env.policies import _random_legal_actions

BATCHES = (4096, 256, 1)
PARTS = ("mask", "random legal action", "step", "dealing ended games", "compact observation", "one-hot observation")

Result = TypeVar("Result")


def costs(batch: int, compiled: bool, seconds: float) -> dict[str, float]:
    """Return the nanoseconds a decision of each part."""
    player = CorePlayer(batch, compiled=compiled)
    player(1)
    game, rng = player.game, np.random.default_rng(1)
    compact, onehot = (ObservationTable(Rules(), encoding) for encoding in ("compact", "onehot"))
    choose = random_legal_actions if compiled else _random_legal_actions
    spent = dict.fromkeys(PARTS, 0)

    def timed(part: str, do: Callable[[], Result]) -> Result:
        started = time.process_time_ns()
        result = do()
        spent[part] += time.process_time_ns() - started
        return result

    steps = 0
    while sum(spent.values()) < seconds * 1e9:
        uniform = rng.random(batch)
        timed("compact observation", lambda: game.observe(table=compact))
        timed("one-hot observation", lambda: game.observe(table=onehot))
        mask = timed("mask", game.legal_actions)
        actions = timed("random legal action", lambda: choose(mask, uniform))  # noqa: B023
        timed("step", lambda: game.step(actions))  # noqa: B023
        ended = np.flatnonzero(game.terminated | game.truncated)
        timed("dealing ended games", lambda: game.reset(ended))  # noqa: B023
        steps += 1
    return {part: nanoseconds / steps / batch for part, nanoseconds in spent.items()}


def main() -> None:
    """Measure all parts in turns, and write the table of medians."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=from_on(1), default=7)
    parser.add_argument(
        "--seconds", type=from_on(1e-6), default=0.5, help="of each batch and repeat (default: %(default)s)"
    )
    parser.add_argument(
        "--out", type=destination, default="runs/parts", help="where the .md and .json files go (default: %(default)s)"
    )
    options = parser.parse_args()
    pin_to_one_core()
    ways = {f"batch {batch}, NumPy": (batch, False) for batch in BATCHES}
    ways |= {f"batch {batch}, compiled": (batch, True) for batch in BATCHES}
    taken: dict[str, list[dict[str, float]]] = {name: [] for name in ways}
    for _ in range(options.repeats + 1):
        for name, (batch, compiled) in ways.items():
            taken[name].append(costs(batch, compiled, options.seconds))
    rows = [
        {"nanoseconds a decision": part}
        | {name: f"{np.median([cost[part] for cost in costs[1:]]):,.0f}" for name, costs in taken.items()}
        for part in PARTS
    ]
    print(write_results(options.out, rows, {"machine": machine(), "costs": taken}))


if __name__ == "__main__":
    main()
