"""What policies think of their decisions, for tools that show games; and win chances for those that don't tell.

A policy that tells keeps an attribute ``evaluation``: an :class:`Evaluation` of the decisions that its ``act`` made
last, in their order. Others need nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.information import InformationSets
from spite_env.observation import ObservationTable
from spite_env.policies import Actions, Mask, Policy, PolicyError, SeededPolicy, make_policy, move, policy_name
from spite_env.rules import Rules, checked_integer

Values = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Evaluation:
    """What a policy thinks of decisions in ``n`` games; whatever it can't tell is None.

    Values are results to expect for the player to move: 1 is a win, -1 a loss, 0 a draw.

    Attributes:
        about: How all this was come by, in a few words to show beside it.
        probabilities: How the choice spreads over the actions, float ``(n, actions)``, each row adding up to 1: the
            probabilities of drawing them, or what else the policy weighs them by, as a search does by its rollouts.
        action_values: The value of each action, float ``(n, actions)``; NaN where it isn't known.
        value: The value of the position, float ``(n,)``; NaN where it isn't known.
    """

    about: str
    probabilities: Values | None = None
    action_values: Values | None = None
    value: Values | None = None

    def of(self, places: Sequence[int]) -> Evaluation:
        """Return what is thought of some of the ``n`` decisions, given by their places from 0 on."""
        parts = (self.probabilities, self.action_values, self.value)
        return Evaluation(self.about, *(None if part is None else part[list(places)] for part in parts))


def evaluation_of(policy: Policy, name: str, action_mask: Mask) -> Evaluation | None:
    """Return what a policy thinks of the decisions that it has just made; None if it doesn't tell.

    Args:
        policy: The policy.
        name: What a message calls it.
        action_mask: bool ``(n, actions)``; what it chose from.

    Raises:
        PolicyError: it tells something impossible.
    """
    told: Evaluation | None = getattr(policy, "evaluation", None)
    if told is None:
        return None
    every, most = action_mask.shape, 1 + 1e-6
    for what, values, shape, least in (
        ("probabilities", told.probabilities, every, 0.0),
        ("action_values", told.action_values, every, -most),
        ("value", told.value, every[:1], -most),
    ):
        if values is None:
            continue
        known = np.isfinite(values) if least == 0 else ~np.isnan(values)
        if values.shape != shape or (known < (least == 0)).any() or ((values < least) | (values > most))[known].any():
            raise PolicyError(
                f"policy {name!r} tells impossible {what}: they are of shape {values.shape}, from {np.min(values)} to "
                f"{np.max(values)}; allowed is shape {shape}, from {round(least)} to 1"
            )
    return told


class Rollouts(SeededPolicy):
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
        self._policy, self._rollout = make_policy(policy), make_policy(policy)
        self.evaluation: Evaluation | None = None

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        super().reset(rules, num_games, seed)
        self._policy.reset(rules, num_games, seed)
        self._game_rules = rules.replace(match_points=None)  # of a match, the game that is being played
        self.evaluation = None

    @property
    def needs_observation(self) -> bool:  # type: ignore[override]
        """Whether the other policy needs observations."""
        return getattr(self._policy, "needs_observation", True)

    @property
    def observation_table(self) -> ObservationTable | None:
        """The layout that the other policy reads."""
        return getattr(self._policy, "observation_table", None)

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
        seeds = streams.combine(self._seeds[indices], self._decisions[indices])
        self._decisions[indices] += np.uint64(1)
        self.evaluation = Evaluation(
            f"{self.count} games played on by {self.name}, in deals that fit what the player to move knows",
            value=self._play_on(infosets, seeds),
        )
        return self._policy.act(observation, action_mask, infosets, indices)

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
