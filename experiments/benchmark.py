"""Measure decisions a second with random legal play: the core at several batch sizes, and the doors into it.

Each figure is the median of some repeats, after a warm-up, in one process pinned to one core. Choosing the action is
counted, and so is dealing ended games anew. Where the opponent, who plays at random too, is part of the environment,
only the learner's decisions are counted.

    python experiments/benchmark.py
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from experiments.reporting import machine, write_results
from spite_env import Game, Rules, random_legal_actions, spite_and_malice_v0
from spite_env.envs.gym import SpiteVectorEnv


def core(batch: int, encoding: str | None) -> Callable[[int], int]:
    """Return a function that makes at least as many decisions as asked for, and says how many."""
    game = Game(Rules(), batch, seed=1, encoding=encoding or "compact")
    rng = np.random.default_rng(1)

    def play(decisions: int) -> int:
        steps = -(-decisions // batch)
        for _ in range(steps):
            if encoding is not None:
                game.observe()
            game.step(random_legal_actions(game.legal_actions(), rng.random(batch)))
            ended = np.flatnonzero(game.terminated | game.truncated)
            if ended.size:
                game.reset(ended)
        return steps * batch

    return play


def aec(make: Callable[[], Any]) -> Callable[[int], int]:
    """Return the same for one AEC game, whose mask and observation are made at every decision."""
    env = make()
    rng = np.random.default_rng(1)

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            env.reset(seed=made)
            while env.agents:
                observation, _, terminated, truncated, _ = env.last()
                if terminated or truncated:
                    env.step(None)
                    continue
                env.step(int(rng.choice(np.flatnonzero(observation["action_mask"]))))
                made += 1
        return made

    return play


def single_seat() -> Callable[[int], int]:
    """Return the same for one game of a learner in Gymnasium."""
    env = gymnasium.make("SpiteAndMalice-v0", opponent="random", disable_env_checker=True)
    rng = np.random.default_rng(1)

    def play(decisions: int) -> int:
        made = 0
        while made < decisions:
            _, info = env.reset(seed=made)
            over = False
            while not over:
                action = rng.choice(np.flatnonzero(info["action_mask"]))
                _, _, terminated, truncated, info = env.step(action)
                over = terminated or truncated
                made += 1
        return made

    return play


def learners(env: Any) -> Callable[[int], int]:
    """Return the same for a batch of games of learners, in Gymnasium or in Stable-Baselines3."""
    rng = np.random.default_rng(1)
    env.reset()

    def play(decisions: int) -> int:
        steps = -(-decisions // env.num_envs)
        for _ in range(steps):
            env.step(random_legal_actions(env.action_masks(), rng.random(env.num_envs)))
        return steps * env.num_envs

    return play


def sb3() -> Callable[[int], int]:
    """Return the same for Stable-Baselines3."""
    from spite_env.envs.sb3 import SpiteVecEnv

    return learners(SpiteVecEnv(1024, "random", seed=1))


SUBJECTS: dict[str, tuple[Callable[[], Callable[[int], int]], int]] = {
    "core, batch 1": (lambda: core(1, None), 2_000),
    "core, batch 256": (lambda: core(256, None), 200_000),
    "core, batch 4096": (lambda: core(4096, None), 1_000_000),
    "core, batch 65536": (lambda: core(65_536, None), 2_000_000),
    "core, batch 4096, compact observation": (lambda: core(4096, "compact"), 500_000),
    "core, batch 4096, one-hot observation": (lambda: core(4096, "onehot"), 500_000),
    "AEC raw_env": (lambda: aec(spite_and_malice_v0.raw_env), 4_000),
    "AEC env": (lambda: aec(spite_and_malice_v0.env), 4_000),
    "Gymnasium, one game": (single_seat, 1_000),
    "Gymnasium, batch 1024": (lambda: learners(SpiteVectorEnv(1024, "random")), 200_000),
    "Stable-Baselines3, batch 1024": (sb3, 200_000),
}


def main() -> None:
    """Measure every subject and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the usual number of decisions")
    parser.add_argument("--out", default="runs/benchmark", help="where the .json and .md files go")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})

    players = {name: make() for name, (make, _) in SUBJECTS.items()}
    rates: dict[str, list[float]] = {name: [] for name in SUBJECTS}
    for repeat in range(options.repeats + 1):
        for name, play in players.items():
            wanted = max(1, int(SUBJECTS[name][1] * options.scale))
            started = time.perf_counter()
            made = play(wanted)
            if repeat:  # the first round warms up
                rates[name].append(made / (time.perf_counter() - started))
    rows = [
        {
            "subject": name,
            "decisions a second": f"{np.median(rate):,.0f}",
            "spread": f"{min(rate):,.0f} to {max(rate):,.0f}",
        }
        for name, rate in rates.items()
    ]
    print(write_results(options.out, rows, {"machine": machine(), "rates": rates}))


if __name__ == "__main__":
    main()
