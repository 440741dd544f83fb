"""Rewards of ended episodes, the same behind every door."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env.game import Game
from spite_env.rules import Rules
from spite_env.state import NO_WINNER

#: What each kind of reward pays the winner; the loser gets as much less than 0, and anything else pays 0.
REWARDS = {
    "win": "1",
    "points": "the winner's points; in a match the difference of the scores",
    "margin": "these points / pay-off size",
}


def check_reward(kind: str) -> str:
    """Return ``kind``.

    Raises:
        ValueError: an unknown kind of reward.
    """
    if kind not in REWARDS:
        raise ValueError(f"reward={kind!r} is not allowed; it is one of {', '.join(map(repr, REWARDS))}")
    return kind


def rewards(game: Game, kind: str = "win") -> NDArray[np.float64]:
    """Return both players' rewards for the episodes that have ended, float64 ``(num_games, 2)``, zero-sum.

    Games that go on, draws and truncated episodes give 0.
    """
    return rewards_of(game.winner, game.points, game.rules, kind)


def rewards_of(winner: NDArray[Any], points: NDArray[Any], rules: Rules, kind: str = "win") -> NDArray[np.float64]:
    """Return both players' rewards for results, float64 ``(n, 2)``, zero-sum.

    Args:
        winner: The winners, int ``(n,)``; `NO_WINNER` gives 0.
        points: The points of both players, or the scores of a match, int ``(n, 2)``.
        rules: The variant.
        kind: One of :data:`REWARDS`.
    """
    if kind == "win":
        signed = (winner == 0).astype(np.float64) - (winner == 1)
    else:
        difference = points[:, 0].astype(np.float64) - points[:, 1]
        signed = np.where(winner == NO_WINNER, 0.0, difference)
        if kind == "margin":
            signed /= rules.payoff_size
    return np.stack([signed, -signed], axis=1) + 0.0
