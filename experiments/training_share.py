"""Measure how much of a training's time the environment takes: masked PPO against a policy that plays at random.

The settings are those of ``train_ppo.py`` but for the network, which has two layers of 256. The time inside the
environment is that of its steps and masks, the opponents' moves included.

    python experiments/training_share.py
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO

from experiments.reporting import machine, write_results
from experiments.train_ppo import Settings
from spite_env.envs.sb3 import SpiteVecEnv


class TimedVecEnv(SpiteVecEnv):
    """Adds up the seconds that are spent in the environment."""

    seconds = 0.0

    def step_wait(self) -> Any:
        """See `SpiteVecEnv.step_wait`."""
        started = time.perf_counter()
        result = super().step_wait()
        self.seconds += time.perf_counter() - started
        return result

    def action_masks(self) -> Any:
        """See `SpiteVecEnv.action_masks`."""
        started = time.perf_counter()
        masks = super().action_masks()
        self.seconds += time.perf_counter() - started
        return masks


def main() -> None:
    """Train for some rollouts, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rollouts", type=int, default=3, help="rollouts a repeat")
    parser.add_argument("--hidden", default="256,256", help="sizes of the hidden layers")
    parser.add_argument("--out", default="runs/training_share", help="where the .json and .md files go")
    options = parser.parse_args()
    settings = Settings()
    torch.set_num_threads(settings.threads)
    torch.distributions.Distribution.set_default_validate_args(False)
    env = TimedVecEnv(settings.envs, "random")
    model = MaskablePPO(
        "MlpPolicy",
        env,
        n_steps=settings.rollout,
        batch_size=settings.batch,
        n_epochs=settings.epochs,
        policy_kwargs={"net_arch": [int(size) for size in options.hidden.split(",")]},
        device="cpu",
        seed=settings.seed,
    )
    decisions = options.rollouts * settings.rollout * settings.envs
    rates, shares = [], []
    for repeat in range(options.repeats + 1):
        env.seconds, started = 0.0, time.perf_counter()
        model.learn(decisions, reset_num_timesteps=False)
        elapsed = time.perf_counter() - started
        if repeat:  # the first round warms up
            rates.append(decisions / elapsed)
            shares.append(env.seconds / elapsed)
    row = {
        "network": options.hidden,
        "the learner's decisions a second": f"{np.median(rates):,.0f} ({min(rates):,.0f} to {max(rates):,.0f})",
        "share in the environment": f"{np.median(shares):.1%} ({min(shares):.1%} to {max(shares):.1%})",
    }
    print(write_results(options.out, [row], {"machine": machine(), "rates": rates, "shares": shares}))


if __name__ == "__main__":
    main()
