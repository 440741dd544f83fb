"""Rollouts of a policy: what is likely to become of a game if it is played on in one's stead."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.information import InformationSets
from spite_env.policies import Actions, Evaluation, GuidedPolicy, Mask, Policy, Values, make_policy, move, policy_name
from spite_env.rules import Rules, checked_integer


class Rollouts(GuidedPolicy):
    """A policy that acts as another one, and tells how often it would win if that one played on for both sides.

    The games played on fit what the player to move knows, see :mod:`spite_env.information`. So the win chance is
    that of the average game that this player might be in, not that of the true cards.

    Args:
        policy: The other policy, or its name.
        count: Games to play on for each decision.
    """

    def __init__(self, policy: str | Policy = "greedy", count: int = 128) -> None:
        self.count = checked_integer("count", count, 1)
        self.name = policy_name(policy)
        self._guide, self._rollout = make_policy(policy), make_policy(policy)
        self.evaluation: Evaluation | None = None

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        super().reset(rules, num_games, seed)
        self._guide.reset(rules, num_games, seed)
        self._game_rules = rules.replace(match_points=None)  # of a match, the game that is being played
        self.evaluation = None

    def act(
        self,
        observation: NDArray[np.uint8],
        action_mask: Mask,
        infosets: InformationSets | None,
        indices: Actions,
    ) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        if infosets is None:
            raise ValueError("rollouts need infosets, to sample what is hidden")
        seeds = self._keys(indices)
        self.evaluation = Evaluation(
            f"{self.count} games played on by {self.name}, in deals that fit what the player to move knows",
            value=self._play_on(infosets, seeds),
        )
        return self._guide.act(observation, action_mask, infosets, indices)

    def _play_on(self, infosets: InformationSets, seeds: streams.Words) -> Values:
        """Return the mean result of games played on, for those who are to move."""
        games = infosets.sample(self.count, seeds)
        games.rules = self._game_rules
        viewer = games.current_player
        self._rollout.reset(self._game_rules, games.num_games, int(seeds[0]))
        while (live := np.flatnonzero(~games.state.over)).size:
            move(self._rollout, self.name, games, live)
        result = np.where(games.winner < 0, 0.0, np.where(games.winner == viewer, 1.0, -1.0))
        return result.reshape(-1, self.count).mean(axis=1)
