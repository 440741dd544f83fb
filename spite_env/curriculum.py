"""A curriculum over the size of the pay-off piles: short games first, for learners that win nothing at random."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from spite_env import streams
from spite_env.game import Game
from spite_env.rules import checked_integer
from spite_env.state import Index

# What a game draws a random number for, besides its cards.
_PAYOFF_SIZE = 0x5E1F


class Dealer:
    """Deals the games of a batch with pay-off piles whose sizes are drawn anew for each game.

    Args:
        game: The batch.
        sizes: See :meth:`set_payoff_sizes`.

    Attributes:
        payoff_sizes: The pay-off cards that each player of a game was dealt, int ``(num_games,)``.
    """

    def __init__(self, game: Game, sizes: Iterable[int] | None = None) -> None:
        self._game = game
        self.payoff_sizes = np.full(game.num_games, game.rules.payoff_size)
        self.set_payoff_sizes(sizes)

    def set_payoff_sizes(self, sizes: Iterable[int] | None) -> None:
        """Draw the pay-off piles of the games to come from ``sizes``, all with the same probability.

        The cards left over are in the stock. None deals ``rules.payoff_size``.

        Raises:
            ValueError: no size, a size that isn't from 1 to ``rules.payoff_size``, or a match.
        """
        most = self._game.rules.payoff_size
        if sizes is not None and not isinstance(sizes, Iterable):
            raise ValueError(f"payoff_sizes={sizes!r} is not allowed; it is a list of sizes, or None")
        listed = None if sizes is None else [checked_integer("payoff_sizes", size, 1, most) for size in sizes]
        if listed is not None:
            if not listed:
                raise ValueError("payoff_sizes=[] is not allowed; give at least one size")
            if self._game.rules.match_points is not None:
                raise ValueError("payoff_sizes need single games: rules.match_points must be None")
        self._sizes = None if listed is None or set(listed) == {most} else np.array(listed)

    def deal(self, games: Index, seed: int | Sequence[int] | None = None) -> None:
        """Deal games: their next episodes, or the first ones of a seed.

        :meth:`~spite_env.game.Game.reset` explains seeds and episodes.

        Raises:
            ValueError: an impossible seed; nothing is changed then.
        """
        state = self._game.state
        if seed is None:
            seeds, episodes = state.seed[games], state.episode[games] + np.uint64(1)
        else:
            seeds, episodes = streams.seeds_for(seed, games.size), np.zeros(games.size, np.uint64)
        sizes = None
        if self._sizes is not None:
            number = streams.uniform_of_episode(seeds, episodes, _PAYOFF_SIZE)
            sizes = self._sizes[(number * self._sizes.size).astype(np.intp)]
        self._game.reset(games, seed, payoff_sizes=sizes)
        self.payoff_sizes[games] = self._game.rules.payoff_size if sizes is None else sizes
