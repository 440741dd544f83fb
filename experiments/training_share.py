"""Measure where the time of training goes: masked PPO of Stable-Baselines3, and self-play on both seats.

The first has the settings of ``train_ppo.py`` but for the network, which has two layers of 256 as in the other, and an
opponent that plays at random; the second those of ``ppo_selfplay.py``. The opponents' moves belong to the environment.

    python experiments/training_share.py
"""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from experiments import ppo_selfplay
from experiments.options import destination, from_on
from experiments.reporting import machine, write_results
from experiments.train_ppo import Settings
from spite_env.envs.sb3 import SpiteVecEnv

PARTS = ("environment", "network, to choose", "update", "the rest")


class Stopwatch:
    """Adds up the seconds that are spent in some methods; what one of them calls is its own."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)
        self._running = False

    def watch(self, part: str, owner: Any, *names: str) -> None:
        """Count the time of an object's methods as a part's."""
        for name in names:
            setattr(owner, name, self._timed(part, getattr(owner, name)))

    def _timed(self, part: str, method: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*args: Any, **kwargs: Any) -> Any:
            if self._running:
                return method(*args, **kwargs)
            self._running, started = True, time.perf_counter()
            try:
                return method(*args, **kwargs)
            finally:
                self.seconds[part] += time.perf_counter() - started
                self._running = False

        return timed


def sb3(watch: Stopwatch) -> tuple[Callable[[], Any], int]:
    """Return what trains for one rollout, and how many decisions that is."""
    settings = Settings()
    torch.set_num_threads(settings.threads)
    torch.distributions.Distribution.set_default_validate_args(False)
    env = SpiteVecEnv(settings.envs, "random")
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=settings.rollout,
        batch_size=settings.batch,
        n_epochs=settings.epochs,
        policy_kwargs={"net_arch": [256, 256]},
        device="cpu",
        seed=settings.seed,
    )
    watch.watch("environment", env, "step_wait", "action_masks")
    watch.watch("network, to choose", model.policy, "forward", "predict_values")
    watch.watch("update", model, "train")
    decisions = settings.rollout * settings.envs
    return lambda: model.learn(decisions, reset_num_timesteps=False), decisions


def selfplay(watch: Stopwatch) -> tuple[Callable[[], Any], int]:
    """Return the same for both-seats self-play."""
    with tempfile.TemporaryDirectory() as folder:
        trainer = ppo_selfplay.Trainer(ppo_selfplay.Args(runs=Path(folder)))
        trainer.writer.close()
    watch.watch("environment", trainer.stream, "observe", "action_masks", "step")
    watch.watch("network, to choose", trainer.agent, "forward")
    watch.watch("update", trainer, "update")

    def train() -> None:
        trainer.update(trainer.play(imitate=False), imitate=False, done=0.0)

    return train, trainer.args.rollout * trainer.args.games


def main() -> None:
    """Train for some rollouts in turns, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=from_on(1), default=5)
    parser.add_argument("--rollouts", type=from_on(1), default=3, help="rollouts a repeat")
    parser.add_argument(
        "--out", type=destination, default="runs/training_share", help="where the .json and .md files go"
    )
    options = parser.parse_args()
    rows, taken = [], {}
    for name, make in {"MaskablePPO": sb3, "ppo_selfplay.py": selfplay}.items():
        watch = Stopwatch()
        train, decisions = make(watch)
        rates, shares = [], []
        for repeat in range(options.repeats + 1):
            watch.seconds, started = dict.fromkeys(PARTS, 0.0), time.perf_counter()
            for _ in range(options.rollouts):
                train()
            elapsed = time.perf_counter() - started
            watch.seconds["the rest"] = elapsed - sum(watch.seconds.values())
            if repeat:  # the first round warms up
                rates.append(options.rollouts * decisions / elapsed)
                shares.append({part: seconds / elapsed for part, seconds in watch.seconds.items()})
        row = {
            "trainer": name,
            "decisions a second": f"{np.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
        }
        for part in PARTS:
            of_part = [share[part] for share in shares]
            row[part] = f"{np.median(of_part):.1%} ({min(of_part):.1%} to {max(of_part):.1%})"
        rows.append(row)
        taken[name] = {"rates": rates, "shares": shares}
    print(write_results(options.out, rows, {"machine": machine(), **taken}))


if __name__ == "__main__":
    main()
