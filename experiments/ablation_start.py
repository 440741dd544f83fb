"""Measure what gets a training started: shaping, a reward for pay-off cards, a curriculum over pay-off sizes, or none.

Each variant is trained with some seeds by ``train_ppo.train``, with the settings of its preset demo, but fewer games
at once in longer rollouts, and fewer steps. Then it is duelled with random and with greedy, in the whole game and in a
short one with small pay-off piles, in which a beginner's progress shows earlier. The last column counts only games that
somebody won: a policy that lets the stock run out draws, and looks better by its margin against greedy than one that
tries to win.

    python experiments/ablation_start.py
"""

from __future__ import annotations

import argparse
import dataclasses
import tempfile
import time
from pathlib import Path
from typing import Any

from experiments.options import destination, even_number, from_on
from experiments.reporting import machine, write_results
from experiments.train_ppo import Settings, train
from spite_env import Rules
from spite_env.arena import DuelResult, duel
from spite_env.envs.sb3 import ModelPolicy

VARIANTS: dict[str, dict[str, Any]] = {
    "none": {"shaping": 0.0, "card_reward": 0.0, "curriculum": False},
    "shaping": {"shaping": 1.0, "card_reward": 0.0, "curriculum": False},
    "card reward": {"shaping": 0.0, "card_reward": 0.05, "curriculum": False},
    "curriculum": {"shaping": 0.0, "card_reward": 0.0, "curriculum": True},
    "curriculum, shaping": {"shaping": 1.0, "card_reward": 0.0, "curriculum": True},
    "curriculum, card reward": {"shaping": 0.0, "card_reward": 0.05, "curriculum": True},
}


def judge(policy: ModelPolicy, name: str, games: int, short: int) -> list[DuelResult]:
    """Duel a policy with random and greedy, in the whole game and in the short one."""
    return [
        duel(policy, opponent, rules, games=games, seed=2_000_000, names=(name, opponent))
        for rules in (Rules(), Rules(payoff_size=short))
        for opponent in ("random", "greedy")
    ]


def row(variant: str, seed: int, result: DuelResult) -> dict[str, str]:
    """Return a duel as a row of the table."""
    low, high = result.margin_interval
    share = "no game won"
    if result.win_share is not None and result.win_share_interval is not None:
        share = "{:.3f} ({:.3f} to {:.3f})".format(result.win_share, *result.win_share_interval)
    return {
        "help": variant,
        "seed": str(seed),
        "pay-off pile": str(result.rules["payoff_size"]),
        "opponent": result.players[1],
        "games": str(result.games),
        "won": str(result.wins),
        "drawn": str(result.draws + result.truncated),
        "lost": str(result.losses),
        "(won - lost) / games": f"{result.margin:+.3f} ({low:+.3f} to {high:+.3f})",
        "won / (won + lost)": share,
    }


def main() -> None:
    """Train and judge all variants, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=from_on(1), default=200_000, help="the learner's decisions in each training")
    parser.add_argument("--seeds", type=from_on(1), default=2, help="trainings of each variant")
    parser.add_argument("--games", type=even_number, default=1000, help="games of each duel")
    parser.add_argument("--short", type=from_on(1), default=5, help="size of the pay-off piles in the short game")
    parser.add_argument(
        "--out", type=destination, default="runs/start_ablation", help="where the table goes, without an ending"
    )
    options = parser.parse_args()
    try:
        Rules(payoff_size=options.short)
    except ValueError as error:
        parser.error(f"--short: {error}")

    rows: list[dict[str, str]] = []
    runs: list[dict[str, Any]] = []
    for variant, changes in VARIANTS.items():
        for seed in range(options.seeds):
            common = Settings(steps=options.steps, envs=256, rollout=32, progress=False)
            settings = dataclasses.replace(common, seed=seed, **changes)
            started = time.perf_counter()
            with tempfile.TemporaryDirectory() as folder:
                model = train(settings, Path(folder))
            seconds = round(time.perf_counter() - started, 1)
            results = judge(ModelPolicy(model, settings.deterministic), variant, options.games, options.short)
            rows += [row(variant, seed, result) for result in results]
            duels = [result.to_dict() for result in results]
            runs.append({"settings": dataclasses.asdict(settings), "training_seconds": seconds, "duels": duels})
            print(variant, seed, f"{seconds} s", *rows[-len(results) :], sep="\n", flush=True)
    print(write_results(options.out, rows, {"machine": machine(), "runs": runs}))


if __name__ == "__main__":
    main()
