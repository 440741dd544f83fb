"""A policy made for rollouts: the expert's rules of thumb without its look ahead, many times as fast."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env.actions import ActionTable
from spite_env.observation import ObservationTable
from spite_env.policies import Actions, Mask
from spite_env.rules import Rules

Array = NDArray[Any]

# What is worth how much, in arbitrary units.
HAND_CARD = 60
SIDE_CARD = 30
OWN_GAP = np.array([0, -40, -80, -110, -130], np.int16)
OPPONENT_GAP = np.array([-480, -240, -120, -40, 0], np.int16)
MOST_KINGS = 2


@dataclass(frozen=True)
class RankSets:
    """Sets of ranks as bits, and what is in the way of a card; king and no card are in no set.

    Attributes:
        bit: The set of a card, uint16 ``(kinds + 1,)``.
        needed: The ranks that a centre pile of some height lacks below a card, uint16 ``(ranks, kinds + 1)``; for one
            that it has passed, those up to its completion and those from the ace on.
        size: The number of ranks in a set.
    """

    bit: NDArray[np.uint16]
    needed: NDArray[np.uint16]
    size: NDArray[np.uint8]

    def of_tally(self, tally: Array) -> Array:
        """Return the ranks of which a tally (kinds first) has a card."""
        return ((tally[:-1] > 0) * self.bit[1:-1, None]).sum(axis=0, dtype=np.uint16)

    def of_cards(self, cards: Array) -> Array:
        """Return the ranks among cards (along the first axis)."""
        return np.bitwise_or.reduce(self.bit[cards], axis=0)


@functools.cache
def rank_sets(rules: Rules) -> RankSets:
    """Return the sets for a variant of the game."""
    height, card = np.arange(rules.ranks)[:, None], np.arange(rules.kinds + 1)
    rank = np.arange(1, rules.kinds)[:, None, None]
    lacking = np.where(height < card, (rank > height) & (rank < card), (rank > height) | (rank < card))
    lacking &= (card > 0) & (card < rules.kinds)
    bits = 1 << np.arange(rules.ranks)
    return RankSets(
        bit=np.array([0, *bits, 0], np.uint16),
        needed=(lacking * bits[:, None, None]).sum(axis=0).astype(np.uint16),
        size=np.array([bin(number).count("1") for number in range(1 << rules.ranks)], np.uint8),
    )


class PlayoutPolicy:
    """Plays the pay-off card, heads for it by the shortest way that tops, hand and two kings allow, and tidies up.

    It is deterministic, and looks at no side-pile card but the tops.
    """

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        self.rules = rules
        self.actions = ActionTable(rules)
        self.observation_table = ObservationTable(rules, "compact", 0)
        self._sets = rank_sets(rules)
        self._discard_value = self._discards()

    def _discards(self) -> Array:
        """Return what it is worth to lay a card on a top, ``(kinds, kinds + 1)``; top 0 is an empty pile."""
        kinds = self.rules.kinds
        card, top = np.arange(1, kinds + 1)[:, None], np.arange(kinds + 1)
        value = np.where(top > card, 60 - 8 * (top - card), -20 - 4 * (card - top))
        value = np.where(top == card + 1, 100, np.where(top == card, 90, value))
        value[:, 0] = 80
        value[:, kinds] = -300
        value[-1] -= 500
        return value.astype(np.int16)

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        rules, table, natural = self.rules, self.actions, observation.T
        count = natural.shape[1]
        part = self.observation_table.slices
        game = np.arange(count)
        payoff, rival = natural[part["own_payoff_top"]][0], natural[part["opponent_payoff_top"]][0]
        height = natural[part["center_height"]]
        hand = natural[part["own_hand"]]
        tops = natural[part["own_side_cards"]]
        rival_tops = natural[part["opponent_side_cards"]]
        kings = hand[-1]

        held, on_sides = self._sets.of_tally(hand), self._sets.of_cards(tops)
        at_hand = held | on_sides
        needed = self._sets.needed[height, payoff]
        gap = self._sets.size[needed & ~at_hand]

        # The pay-off card, or the way to it with the fewest kings and plays.
        fits = (height + np.uint8(1) == payoff) | (payoff == rules.kinds)
        cost = gap * np.int16(16) + self._sets.size[needed]
        cost[fits] = -1
        target = cost.argmin(axis=0)
        least = cost[target, game]
        most_kings = np.where(natural[part["own_payoff_size"]][0] == 1, kings, np.minimum(kings, MOST_KINGS))
        reached = least < 16 * (most_kings.astype(np.int16) + 1)
        next_rank = height[target, game] + np.uint8(1)

        # Else the play that is worth most.
        rival_at_hand = self._sets.of_cards(rival_tops)
        rival_needed = self._sets.needed[:, rival] & ~rival_at_hand  # by height
        rival_gap = self._sets.size[rival_needed]
        own_gap = self._sets.size[self._sets.needed[:, payoff] & ~at_hand]
        after = (height + np.uint8(1)) % np.uint8(rules.ranks)
        worth = self._worth(height, after, own_gap, rival_gap, game)
        bit = self._sets.bit[1:][height]
        from_side, from_hand = (bit & on_sides) > 0, (bit & held) > 0
        worth += np.where(from_side, np.int16(SIDE_CARD), np.int16(HAND_CARD))
        worth[~(from_side | from_hand)] = -1000
        center = worth.argmax(axis=0)
        plays = worth[center, game] > 0
        center = np.where(reached, target, center)
        rank = np.where(reached, next_rank, height[center, game] + np.uint8(1))

        on_top = tops == rank
        is_side, is_hand = on_top.any(axis=0), hand[rank - 1, game] > 0
        source = np.where(
            is_side, 1 + on_top.argmax(axis=0), np.where(is_hand, table.num_sources - 2, table.num_sources - 1)
        )
        source[least < 0] = 0
        chosen = center * table.num_sources + source
        passing = np.flatnonzero(~(reached | plays))
        if passing.size:
            chosen[passing] = self._discard(passing, hand, tops, needed, gap, action_mask)
        return chosen

    def _worth(self, height: Array, after: Array, own_gap: Array, rival_gap: Array, game: Array) -> Array:
        """Return by how much it betters the gaps to add a card to each centre pile."""
        now, then = OWN_GAP.take(own_gap[height, game], mode="clip"), OWN_GAP.take(own_gap[after, game], mode="clip")
        rival_now = OPPONENT_GAP.take(rival_gap[height, game], mode="clip")
        rival_then = OPPONENT_GAP.take(rival_gap[after, game], mode="clip")
        worth = np.empty_like(now)
        for center in range(len(height)):
            others = [other for other in range(len(height)) if other != center]
            best = np.max([*now[others], then[center]], axis=0)
            rival_best = np.min([*rival_now[others], rival_then[center]], axis=0)
            worth[center] = best + rival_best
        return worth - (now.max(axis=0) + rival_now.min(axis=0))

    def _discard(self, games: Array, hand: Array, tops: Array, needed: Array, gap: Array, action_mask: Mask) -> Array:
        rules, table = self.rules, self.actions
        top, cards = tops[:, games], hand[:, games]
        score = self._discard_value[:, top]
        wanted = needed[:, games]
        wanted = wanted[gap[:, games].argmin(axis=0), np.arange(games.size)]
        lies = (self._sets.bit[top] & wanted) > 0
        score -= np.int16(60) * (lies & (top != np.arange(1, rules.kinds + 1)[:, None, None]))
        keep = np.int16(20) * (cards > 1) - np.int16(30) * (((self._sets.bit[1:, None] & wanted) > 0) & (cards == 1))
        score += keep.astype(np.int16)[:, None]
        score[np.broadcast_to((cards == 0)[:, None], score.shape)] = -2000
        best = score.reshape(-1, games.size).argmax(axis=0)
        return np.where(action_mask[games, table.end_turn], table.end_turn, table.num_plays + best)
