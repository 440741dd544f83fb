"""Train a network with masked PPO, then duel it with random and greedy.

    python experiments/train_ppo.py --preset demo       # a few minutes on two cores
    python experiments/train_ppo.py --preset train      # 10 to 30 minutes
    python experiments/train_ppo.py --preset train --resume

Random play never empties a pay-off pile before the stock runs out, so that nothing is won at first; and against a
better opponent the first thing to learn would be to let the stock run out too. The training therefore starts with small
pay-off piles, takes the next size whenever the learner has won enough of its games, and rewards every pay-off card that
the learner has fewer than its opponent. The opponent is greedy; the option ``--opponents greedy:0.5,self:0.5`` adds a
frozen copy of the learner, which is renewed now and then.

Everything is written to ``runs/<name>``: the model, a checkpoint, the settings, the learning curve, TensorBoard logs
and the duels. The same settings and seed give the same weights on the same machine.
"""

from __future__ import annotations

import dataclasses
import json
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sb3_contrib import MaskablePPO
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.utils import LinearSchedule

from experiments.reporting import write_curve, write_duels
from experiments.settings import RunSettings, option, parse
from spite_env import Rules
from spite_env.arena import DuelResult, duel
from spite_env.envs.sb3 import ModelPolicy, SpiteVecEnv

LADDER = (1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 17, 20)


@dataclass(frozen=True)
class Settings(RunSettings):
    """Everything that a training depends on."""

    name: str = option("demo", "the run's folder in --runs")
    steps: int = option(1_200_000, "the learner's decisions")
    shaping: float = option(0.0, "scale of the potential of pay-off cards; 0: none")
    card_reward: float = option(0.05, "reward for a pay-off card less than the opponent")
    curriculum: bool = option(True, "start with small pay-off piles")
    promotion: float = option(0.3, "share of games won that takes the curriculum to the next size")
    opponents: str = option("greedy:1", "names and weights; self is a frozen copy of the learner")
    refresh: int = option(10, "rollouts between copies of the learner")
    envs: int = option(512, "games played at once")
    rollout: int = option(16, "decisions of each game between updates")
    batch: int = option(1024, "decisions of a minibatch")
    lr: float = option(1e-3, "learning rate at the start")
    lr_end: float = option(1e-4, "learning rate at the end; it falls linearly")
    threads: int = option(1, "torch's threads; more help little, and cost much where other programs use the cores")
    checkpoint: int = option(25, "rollouts between checkpoints")
    progress: bool = option(True, "show a progress bar")

    def mixture(self) -> list[tuple[str, float]]:
        """Return the opponents and their weights."""
        pairs = [item.partition(":") for item in self.opponents.split(",")]
        return [(name.strip(), float(weight or 1)) for name, _, weight in pairs]


PRESETS: dict[str, dict[str, Any]] = {
    "demo": {},
    "train": {"name": "train", "steps": 4_000_000, "duels": 4000},
    "quick": {
        "name": "quick",
        "rules": "mini",
        "steps": 4096,
        "envs": 64,
        "rollout": 16,
        "batch": 256,
        "hidden": "32,32",
        "checkpoint": 2,
        "duels": 40,
        "progress": False,
    },
}


class Coach(BaseCallback):
    """Renews the frozen copy, moves the curriculum on, and keeps the learning curve and the checkpoints."""

    def __init__(self, settings: Settings, folder: Path, frozen: ModelPolicy, ladder: Sequence[int]) -> None:
        super().__init__()
        self.settings, self.folder, self.frozen, self.ladder = settings, folder, frozen, ladder
        self.rollouts = 0
        self.rung = 0
        self.rows: list[dict[str, float]] = []
        self.recent: deque[bool] = deque(maxlen=600)
        self.games: list[dict[str, Any]] = []
        self.before = 0.0

    def load(self) -> None:
        """Go on from the newest checkpoint's state."""
        state = json.loads((self.folder / "checkpoint.json").read_text())
        self.rollouts, self.rung, self.rows = state["rollouts"], state["rung"], state["curve"]
        self.before = self.rows[-1]["seconds"] if self.rows else 0.0

    def _on_training_start(self) -> None:
        self.started = time.perf_counter()

    def _on_rollout_start(self) -> None:
        if self.rollouts % self.settings.refresh == 0:
            self.frozen.update(self.model)

    def _on_step(self) -> bool:
        for index in np.flatnonzero(self.locals["dones"]):
            episode = self.locals["infos"][index]["episode"]
            self.games.append(episode)
            if episode["payoff_size"] == self.ladder[self.rung]:
                self.recent.append(episode["outcome"] == "win")
        return True

    def _on_rollout_end(self) -> None:
        self.rollouts += 1
        self._note()
        enough = len(self.recent) >= 300 and np.mean(self.recent) >= self.settings.promotion
        if enough and self.rung + 1 < len(self.ladder):
            self.rung += 1
            self.recent.clear()
            self.training_env.set_payoff_sizes([self.ladder[self.rung]])  # type: ignore[attr-defined]
        if self.rollouts % self.settings.checkpoint == 0:
            self.save()

    def _note(self) -> None:
        """Add a row to the learning curve."""
        games, self.games = self.games, []
        row: dict[str, float] = {
            "steps": self.num_timesteps,
            "seconds": round(self.before + time.perf_counter() - self.started, 1),
            "payoff_size": self.ladder[self.rung],
            "games": len(games),
        }
        for outcome in ("win", "draw", "loss"):
            row[outcome] = float(np.mean([game["outcome"] == outcome for game in games])) if games else float("nan")
        for key, name in (("l", "length"), ("payoff", "payoff_left"), ("opponent_payoff", "opponent_payoff_left")):
            row[name] = float(np.mean([game[key] for game in games])) if games else float("nan")
        self.rows.append(row)
        write_curve(self.folder / "curve.csv", self.rows)
        for name in ("payoff_size", "win", "draw", "loss", "payoff_left"):
            self.logger.record(f"game/{name}", row[name])

    def save(self) -> None:
        """Write a checkpoint."""
        self.model.save(self.folder / "checkpoint.zip")
        state = {"rollouts": self.rollouts, "rung": self.rung, "curve": self.rows}
        (self.folder / "checkpoint.json").write_text(json.dumps(state))


def train(settings: Settings, folder: Path, resume: bool = False) -> MaskablePPO:
    """Train a model as the settings say, and write it, its checkpoints and its learning curve to ``folder``."""
    torch.set_num_threads(settings.threads)
    torch.distributions.Distribution.set_default_validate_args(False)
    rules = Rules.preset(settings.rules)
    frozen = ModelPolicy()
    env = SpiteVecEnv(
        settings.envs,
        [(frozen if name == "self" else name, weight) for name, weight in settings.mixture()],
        rules,
        encoding=settings.encoding,
        side_depth=settings.side_depth,
        reward=settings.reward,
        shaping=settings.shaping,
        gamma=settings.gamma,
        card_reward=settings.card_reward,
        illegal="raise",
        seed=settings.seed,
    )
    last = rules.payoff_size
    ladder = [*(size for size in LADDER if size < last), last] if settings.curriculum else [last]
    coach = Coach(settings, folder, frozen, ladder)
    if resume:
        model = MaskablePPO.load(folder / "checkpoint.zip", env, device="cpu")
        coach.load()
        env.seed(settings.seed + model.num_timesteps)
    else:
        hidden = [int(size) for size in settings.hidden.split(",")]
        model = MaskablePPO(
            "MlpPolicy",
            env,
            learning_rate=LinearSchedule(settings.lr, settings.lr_end, 1.0),
            n_steps=settings.rollout,
            batch_size=settings.batch,
            n_epochs=settings.epochs,
            gamma=settings.gamma,
            gae_lambda=settings.gae_lambda,
            ent_coef=settings.entropy,
            policy_kwargs={"net_arch": hidden},
            tensorboard_log=str(folder / "tensorboard"),
            seed=settings.seed,
            device="cpu",
        )
    env.set_payoff_sizes([ladder[coach.rung]])
    left = settings.steps - model.num_timesteps
    if left > 0:
        model.learn(left, coach, reset_num_timesteps=not resume, progress_bar=settings.progress, tb_log_name="ppo")
        coach.save()
    model.save(folder / "model.zip")
    draw_curve(coach.rows, folder / "curve.png", settings)
    return model


def draw_curve(rows: Sequence[dict[str, float]], path: Path, settings: Settings) -> None:
    """Draw how games against the training's opponents ended; without matplotlib, only say so."""
    try:
        import matplotlib
    except ImportError:
        print(f"no {path.name}: it needs matplotlib, pip install 'spite_env[render]'")
        return
    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, (upper, lower) = plt.subplots(2, 1, sharex=True, figsize=(8, 6), height_ratios=(2, 1))
    steps = [row["steps"] for row in rows]
    width = max(1, len(rows) // 60)
    for outcome, color in (("win", "tab:green"), ("draw", "tab:gray"), ("loss", "tab:red")):
        values = np.array([row[outcome] for row in rows])
        smooth = [np.nanmean(values[max(0, i - width) : i + 1]) if i else values[0] for i in range(len(values))]
        upper.plot(steps, smooth, color=color, label=outcome)
    upper.set(ylabel="share of games", ylim=(0, 1), title=f"{settings.name}: games against {settings.opponents}")
    upper.legend()
    lower.step(steps, [row["payoff_size"] for row in rows], where="post")
    lower.set(xlabel="decisions of the learner", ylabel="pay-off cards dealt", ylim=(0, None))
    figure.tight_layout()
    figure.savefig(path, dpi=120)
    plt.close(figure)


def evaluate(model: MaskablePPO, settings: Settings, folder: Path, seconds: float) -> list[DuelResult]:
    """Duel the model with random and greedy, print the table, and write it to ``folder``."""
    policy = ModelPolicy(model, settings.deterministic)
    results = [
        duel(
            policy,
            other,
            Rules.preset(settings.rules),
            games=settings.duels,
            seed=1_000_000 + settings.seed,
            names=(settings.name, other),
            encoding=settings.encoding,
            side_depth=settings.side_depth,
        )
        for other in ("random", "greedy")
    ]
    details = {
        "settings": dataclasses.asdict(settings),
        "training_seconds": round(seconds, 1),
    }
    print(write_duels(folder / "duels", results, details))
    return results


def main(arguments: Sequence[str] | None = None) -> list[DuelResult]:
    """Train and duel; return the duels."""
    settings, resume = parse(Settings, PRESETS, __doc__, arguments)
    folder = settings.open_folder()
    started = time.perf_counter()
    model = train(settings, folder, resume and (folder / "checkpoint.zip").exists())
    return evaluate(model, settings, folder, time.perf_counter() - started)


if __name__ == "__main__":
    main()
