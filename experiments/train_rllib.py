"""Train a network with RLlib's PPO by self-play, then duel it with random and greedy.

    python experiments/train_rllib.py                                  # a few minutes on two cores
    python experiments/train_rllib.py --quick                          # try whether it runs
    python experiments/train_rllib.py --address auto --runners 64     # on a machine of a Ray cluster
    python experiments/train_rllib.py --resume --iterations 200

The learner has a random seat in each game, against itself or one of its frozen earlier selves, which are renewed in
turn. Random play doesn't empty a pay-off pile of the full game before the stock runs out, so that self-play from
nothing needs smaller ones: the default is ``--set payoff_size=2``.

Everything is written to ``runs/<name>``: RLlib's checkpoint, the settings, the learning curve, TensorBoard logs of all
that RLlib measures, and the duels. The same settings and seed give the same weights on the same machine, in processes
with the same PYTHONHASHSEED. On a cluster every node needs spite_env and its ``rllib`` extra.
"""

from __future__ import annotations

import csv
import dataclasses
import json
import math
import numbers
import os
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

# Or else Ray makes a token in the home folder, and reports to its makers.
os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")

import ray
import torch
from ray.rllib.algorithms.ppo import PPOConfig
from ray.tune.trainable import trainable
from ray.tune.utils import flatten_dict
from tensorboardX import SummaryWriter

from experiments.reporting import write_curve, write_duels
from experiments.settings import RunSettings, option, parse
from spite_env.arena import DuelResult, duel
from spite_env.cli import parse_rules
from spite_env.envs.rllib import ModulePolicy, freeze, load_module, self_play


@dataclass(frozen=True)
class Settings(RunSettings):
    """Everything that a training depends on."""

    name: str = option("rllib", "the run's folder in --runs")
    address: str = option("local", "address of a Ray cluster; local: start Ray here")
    cpus: int = option(2, "processors that a local Ray may use")
    iterations: int = option(100, "RLlib's iterations: games, then updates")
    set: tuple[str, ...] = option(("payoff_size=2",), "change a field of the rules, field=value (repeatable)")
    frozen: int = option(2, "frozen earlier selves among the opponents")
    refresh: int = option(10, "iterations between renewals of one of them")
    runners: int = option(2, "processes that play; 0: play in this one")
    envs: int = option(16, "games that each of them plays at once")
    rollout: int = option(4096, "decisions of both players in an iteration")
    batch: int = option(512, "decisions of a minibatch")
    lr: float = option(5e-4, "learning rate")
    threads: int = option(1, "torch's threads here")
    checkpoint: int = option(10, "iterations between checkpoints")


PRESETS: dict[str, dict[str, Any]] = {
    "small": {},
    "quick": {
        "name": "rllib-quick",
        "iterations": 2,
        "duels": 40,
        "rules": "mini",
        "set": (),
        "frozen": 1,
        "refresh": 1,
        "runners": 0,
        "envs": 8,
        "rollout": 256,
        "batch": 128,
        "epochs": 1,
        "hidden": "32",
        "checkpoint": 1,
    },
}


def configure(settings: Settings, done: int) -> Any:
    """Return RLlib's config of a training of which some iterations are done."""
    env_config = {
        "rules": parse_rules(settings.rules, settings.set),
        "reward": settings.reward,
        "encoding": settings.encoding,
        "side_depth": settings.side_depth,
    }
    hidden = [int(size) for size in settings.hidden.split(",")]
    config = self_play(PPOConfig(), env_config, frozen=settings.frozen, model_config={"fcnet_hiddens": hidden})
    return (
        config.env_runners(num_env_runners=settings.runners, num_envs_per_env_runner=settings.envs)
        .training(
            train_batch_size_per_learner=settings.rollout,
            minibatch_size=settings.batch,
            num_epochs=settings.epochs,
            lr=settings.lr,
            gamma=settings.gamma,
            lambda_=settings.gae_lambda,
            entropy_coeff=settings.entropy,
            grad_clip=0.5,
        )
        .debugging(seed=settings.seed + done, log_level="ERROR")
    )


def train(settings: Settings, folder: Path, resume: bool = False) -> Path:
    """Train as the settings say, and write the checkpoint and the learning curve to ``folder``.

    Returns:
        The folder of the checkpoint.
    """
    torch.set_num_threads(settings.threads)
    trainable.DEFAULT_STORAGE_PATH = str(folder / "ray")  # or else RLlib makes folders in the home folder
    checkpoint = (folder / "checkpoint").absolute()
    curve = folder / "curve.csv"
    rows: list[dict[str, Any]] = []
    if resume:
        done = json.loads((folder / "checkpoint.json").read_text())["iterations"]
        with curve.open(newline="") as file:
            rows = list(csv.DictReader(file))[:done]
    algo = configure(settings, len(rows)).build_algo()
    if resume:
        algo.restore_from_path(str(checkpoint))
    before = float(rows[-1]["seconds"]) if rows else 0.0
    started = time.perf_counter()
    with SummaryWriter(str(folder / "tensorboard")) as writer:
        for iteration in range(len(rows), settings.iterations):
            if settings.frozen and iteration % settings.refresh == 0:
                freeze(algo, f"frozen_{iteration // settings.refresh % settings.frozen}")
            result = algo.train()
            seconds = round(before + time.perf_counter() - started, 1)
            rows.append({"iteration": iteration + 1, "seconds": seconds, **summary(result)})
            write_curve(curve, rows)
            for name, value in flatten_dict(result).items():
                if isinstance(value, numbers.Real) and math.isfinite(value) and not name.startswith("config/"):
                    writer.add_scalar(name, value, rows[-1]["steps"])
            if (iteration + 1) % settings.checkpoint == 0 or iteration + 1 == settings.iterations:
                algo.save_to_path(str(checkpoint))
                (folder / "checkpoint.json").write_text(json.dumps({"iterations": iteration + 1}))
    algo.stop()
    return checkpoint


def summary(result: dict[str, Any]) -> dict[str, Any]:
    """Return what the learning curve shows of the result of an iteration."""
    games, learner = result["env_runners"], result["learners"]["main"]
    outcomes = games.get("outcome", {})
    against = [outcomes[name] for name in outcomes if name != "main"] or [outcomes.get("main", {})]
    return {
        "steps": int(games["num_env_steps_sampled_lifetime"]),
        "length": float(games.get("episode_len_mean", "nan")),
        **{name: sum(item.get(name, 0.0) for item in against) / len(against) for name in ("win", "draw", "loss")},
        "entropy": float(learner["entropy"]),
        "explained_variance": float(learner["vf_explained_var"]),
    }


def evaluate(checkpoint: Path, settings: Settings, folder: Path) -> list[DuelResult]:
    """Duel the learner of a checkpoint with random and greedy, print the table, and write it to ``folder``."""
    policy = ModulePolicy(load_module(checkpoint), settings.deterministic)
    results = [
        duel(
            policy,
            other,
            parse_rules(settings.rules, settings.set),
            games=settings.duels,
            seed=1_000_000 + settings.seed,
            names=(settings.name, other),
            encoding=settings.encoding,
            side_depth=settings.side_depth,
        )
        for other in ("random", "greedy")
    ]
    print(write_duels(folder / "duels", results, {"settings": dataclasses.asdict(settings)}))
    return results


def main(arguments: Sequence[str] | None = None) -> list[DuelResult]:
    """Train and duel; return the duels."""
    settings, resume = parse(Settings, PRESETS, __doc__, arguments)
    folder = settings.open_folder()
    if not ray.is_initialized():
        local = {"num_cpus": settings.cpus, "include_dashboard": False} if settings.address == "local" else {}
        ray.init(address=settings.address, log_to_driver=False, logging_level="ERROR", **local)
    checkpoint = train(settings, folder, resume and (folder / "checkpoint.json").exists())
    return evaluate(checkpoint, settings, folder)


if __name__ == "__main__":
    main()
