"""Rewards of ended episodes, the same behind every door."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spite_env.game import Game
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
    winner = game.winner
    if kind == "win":
        signed = (winner == 0).astype(np.float64) - (winner == 1)
    else:
        points = game.points.astype(np.float64)
        signed = np.where(winner == NO_WINNER, 0.0, points[:, 0] - points[:, 1])
        if kind == "margin":
            signed /= game.rules.payoff_size
    return np.stack([signed, -signed], axis=1) + 0.0
