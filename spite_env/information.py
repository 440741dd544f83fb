"""What a player can't see: sampling games that fit what it has seen, for search.

Hidden from a player are the opponent's hand, the face-down cards of both pay-off piles, and the order of the stock. All
else stands in every sampled game as it is: the table, the sizes of all piles and hands, the player's own hand, scores.

**What fits.** For each kind of card the player knows how many it can't see. Cards that it has seen in play and that
went back into the stock can't lie in a pay-off pile; these are *recycled*, the other unseen cards are *fresh*. How many
are recycled follows from one count a kind, ``State.seen``: the largest number of different cards that the player has
had in view at once (on the table, and in its own hand), taken whenever cards went back, plus the pay-off cards
uncovered since. A game that started from a position has no history: all its unseen cards are fresh.

**Which are likely.** Every way to lay the unseen cards, each one a card of its own, in the hidden places is equally
likely, as long as no recycled card gets into a pay-off pile. Under ``recycle="shuffle"`` the recycled cards may be
anywhere else; otherwise they lie under the rest of the stock, and only those that no longer fit there are elsewhere.

**How exact that is.** Until cards go back into the stock, this is the player's exact posterior, if the opponent's moves
say nothing about the cards it keeps (as when it chooses blindly which hand card to use): moves are never evidence here.
Afterwards it is an approximation in three points:

- A card that is drawn, or played from a hand, is taken for a recycled one as long as one of its kind is about. So
  pay-off cards are sampled from too many cards rather than too few: what truly lies there always can be.
- Which hand cards the opponent has held since before cards went back isn't tracked; its hand is drawn from all.
- With ``"bottom"`` and ``"set_aside"`` the recycled cards lie in any order, though piles came back one by one.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.rules import checked_integer
from spite_env.state import Bytes, Index
from spite_env.streams import Purpose, Words

if TYPE_CHECKING:
    from spite_env.game import Game


class InformationSets:
    """What the players to move in some games know of them.

    It shows the games as they stand when it is asked, so ask within ``Policy.act``.

    Args:
        game: The batch.
        games: Games of the batch, int ``(n,)``.
    """

    def __init__(self, game: Game, games: Index) -> None:
        self._game = game
        self._games = games
        self._viewers = game.state.player[games]

    def select(self, places: NDArray[np.integer]) -> InformationSets:
        """Return those of some of the ``n`` games, given by their places from 0 to ``n - 1``."""
        selected = copy.copy(self)
        selected._games, selected._viewers = self._games[places], self._viewers[places]
        return selected

    def sample(self, k: int, rng: np.random.Generator | Sequence[int] | NDArray[np.integer]) -> Game:
        """Return a batch of games that fit what the players to move know.

        Args:
            k: Games to sample for each of the ``n`` games, 1 or more.
            rng: A generator, or one seed for each of the ``n`` games. From seeds, a game's samples depend on its own
                seed and on what its player knows alone, and a larger ``k`` adds to the samples of a smaller one.

        Returns:
            A ``Game`` of ``n * k`` games: sample ``j`` of game ``i`` is number ``i * k + j``. They have random numbers
            of their own, and are not dealt anew when they end.

        Raises:
            ValueError: an impossible ``k`` or seeds.
        """
        k = checked_integer("k", k, 1)
        n = self._games.size
        if isinstance(rng, np.random.Generator):
            seeds = rng.integers(2**64, size=n, dtype=np.uint64)
        else:
            seeds = streams.seeds_for(rng, n)
        worlds = self._game.copy(np.repeat(self._games, k))
        worlds._branch(streams.combine(np.repeat(seeds, k), np.tile(np.arange(k, dtype=np.uint64), n)))
        _deal_hidden_cards(worlds, np.repeat(self._viewers, k))
        return worlds


def _deal_hidden_cards(game: Game, viewer: Bytes) -> None:
    """Deal what each game's viewer can't see anew, from the game's random numbers."""
    s, rules = game.state, game.rules
    every = np.arange(game.num_games)
    opponent = 1 - viewer.astype(np.intp)
    keys = streams.combine(s.key, Purpose.HIDDEN_CARDS)

    unseen = s.hidden - s.hand[viewer, :, every].T
    most_fresh = np.array(rules.deck, np.uint8)[:, None] - s.seen[viewer, :, every].T
    fresh = np.minimum(unseen, most_fresh)
    recycled = unseen - fresh

    # Pay-off piles: the first of the fresh cards.
    cards = _shuffled(fresh, streams.combine(keys, 0))
    dealt = np.zeros(game.num_games, np.intp)
    for player in (0, 1):
        count = np.maximum(s.pile_size[player, 0].astype(np.intp) - 1, 0)
        place = np.arange(count.max(initial=0))[:, None]
        pile = s.pile[player, 0, 1 : 1 + place.size]
        np.copyto(pile, _at(cards, dealt + place), where=place < count)
        dealt += count

    # The stock, bottom to top, and then the opponent's hand: the recycled cards, and the rest of the fresh ones.
    under, num_under = _shuffled(recycled, streams.combine(keys, 1)), recycled.sum(axis=0, dtype=np.intp)
    stock, hand = s.stock_size.astype(np.intp), s.hand_size[opponent, every].astype(np.intp)
    place = np.arange((stock + hand).max(initial=0))[:, None]
    rest = np.where(place < num_under, _at(under, place), _at(cards, dealt + place - num_under))
    if rules.recycle == "shuffle":
        rest = streams.shuffle(rest.T, streams.combine(keys, 2), (place < stock + hand).T).T
    s.stock[:] = 0
    np.copyto(s.stock[: place.size], rest, where=place < stock)
    s.hand[opponent, :, every] = 0
    for earlier in range(hand.max(initial=0)):
        holding = every[hand > earlier]
        card = rest[stock[holding] + earlier, holding].astype(np.intp) - 1
        s.hand[opponent[holding], card, holding] += 1
    s.seen[opponent, :, every] = 0  # it comes from the opponent's true hands


def _shuffled(tally: Bytes, keys: Words) -> Bytes:
    """Return cards, counted by kind and game, in a random order, uint8 ``(cards, games)``; holes come last."""
    last = np.cumsum(tally, axis=0, dtype=np.intp)
    place = np.arange(last[-1].max(initial=0))
    cards = 1 + (last[:, :, None] <= place).sum(axis=0, dtype=np.uint8)
    return streams.shuffle(cards, keys, place < last[-1][:, None]).T


def _at(cards: Bytes, place: Index) -> Bytes:
    """Return the cards at each game's places; at places that don't exist, any number."""
    if not len(cards):
        return np.zeros(place.shape, np.uint8)
    return np.take_along_axis(cards, np.clip(place, 0, len(cards) - 1), axis=0)
