"""A policy made for rollouts: the expert's rules of thumb without its look ahead, many times as fast."""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.ranks import lacking_ranks, rank_words
from spite_env.acceleration import runs_compiled
from spite_env.actions import ActionTable
from spite_env.observation import ObservationTable
from spite_env.policies import Actions, Mask
from spite_env.rules import Rules

Array = NDArray[Any]

# What a play is worth, in arbitrary units: a card less in the hand or on a side pile, and that a player lacks 0, 1, 2
# and more of the ranks below its pay-off card, on the centre pile where it lacks fewest.
HAND_CARD, SIDE_CARD = 60, 30
OWN_GAP = np.array([0, -40, -80, -110, -130], np.int16)
OPPONENT_GAP = np.array([-480, -240, -120, -40, 0], np.int16)

#: Kings that may be spent to reach a pay-off card that isn't the last.
MOST_KINGS = 2

# What changes the worth of a discard: that it covers a rank that the pay-off card waits for, that it is the only hand
# card of such a rank, and that the hand has another one of it.
BURY_NEEDED, KEEP_NEEDED, DUPLICATE = -60, -30, 20


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
    lacking = lacking_ranks(rules)
    bits = 1 << np.arange(rules.ranks)
    return RankSets(
        bit=np.array([0, *bits, 0], np.uint16),
        needed=(lacking * bits[:, None, None]).sum(axis=0).astype(np.uint16),
        size=np.array([bin(number).count("1") for number in range(1 << rules.ranks)], np.uint8),
    )


class PlayoutPolicy:
    """Plays the pay-off card, heads for it by the shortest way that tops, hand and two kings allow, and tidies up.

    It is deterministic, and looks at no side-pile card but the tops.

    Attributes:
        compiled: Whether it runs compiled; None: where Numba is installed. The actions are the same.
    """

    compiled: bool | None = None

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        self.rules = rules
        self.actions = ActionTable(rules)
        self.observation_table = ObservationTable(rules, "compact", 0)
        self._sets = rank_sets(rules)
        self._discard_value = self._discards()
        self._tables = self._compiled_tables()

    def _compiled_tables(self) -> tuple[Array, ...]:
        from agents import kernels  # imports Numba

        weights = kernels.PlayoutWeights(HAND_CARD, SIDE_CARD, MOST_KINGS, BURY_NEEDED, KEEP_NEEDED, DUPLICATE)
        tables = (np.array(weights), *rank_words(self.rules), self._discard_value, OWN_GAP, OPPONENT_GAP)
        return kernels.view_of(self.observation_table), *(table.astype(np.int64) for table in tables)

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
        if runs_compiled(self.compiled):
            from agents import kernels

            return kernels.run(kernels.playout, observation, self._tables)
        rules, table, sets, natural = self.rules, self.actions, self._sets, observation.T
        part, game = self.observation_table.slices, np.arange(natural.shape[1])
        payoff, rival_payoff = natural[part["own_payoff_top"]][0], natural[part["opponent_payoff_top"]][0]
        height, hand, tops = natural[part["center_height"]], natural[part["own_hand"]], natural[part["own_side_cards"]]
        held, on_sides = sets.of_tally(hand), sets.of_cards(tops)
        at_hand = held | on_sides
        rival_at_hand = sets.of_cards(natural[part["opponent_side_cards"]])

        # The pay-off card, or the way to it that takes the fewest kings, and then the fewest plays.
        needed = sets.needed[height, payoff]
        gap = sets.size[needed & ~at_hand]
        cost = gap * np.int16(16) + sets.size[needed].astype(np.int16)
        cost[(height + np.uint8(1) == payoff) | (payoff == rules.kinds)] = -1
        target = cost.argmin(axis=0)
        least = cost[target, game]
        kings = np.where(natural[part["own_payoff_size"]][0] == 1, hand[-1], np.minimum(hand[-1], MOST_KINGS))
        heading = least < 16 * (kings.astype(np.int16) + 1)

        # Else the play that is worth most.
        own_gap = sets.size[sets.needed[:, payoff] & ~at_hand]  # by height
        rival_gap = sets.size[sets.needed[:, rival_payoff] & ~rival_at_hand]
        card = sets.bit[1:][height]
        on_side, in_hand = (card & on_sides) > 0, (card & held) > 0
        worth = self._worth(height, own_gap, rival_gap) + np.where(on_side, SIDE_CARD, HAND_CARD)
        worth[~(on_side | in_hand)] = -1000
        center = np.where(heading, target, worth.argmax(axis=0))
        playing = heading | (worth[center, game] > 0)

        rank = height[center, game] + np.uint8(1)
        side = tops == rank
        from_hand = np.where(hand[rank - 1, game] > 0, table.num_sources - 2, table.num_sources - 1)
        source = np.where(side.any(axis=0), 1 + side.argmax(axis=0), from_hand)
        source[least < 0] = 0
        chosen = center * table.num_sources + source
        passing = np.flatnonzero(~playing)
        if passing.size:
            chosen[passing] = self._discard(passing, hand, tops, needed, gap, action_mask)
        return chosen

    def _worth(self, height: Array, own_gap: Array, rival_gap: Array) -> Array:
        """Return what it is worth to add a card to each centre pile, by the gaps of both players alone."""
        game, after = np.arange(height.shape[1]), (height + np.uint8(1)) % np.uint8(self.rules.ranks)
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
        """Return the best discard, or ``end_turn``, in some games."""
        rules, table, sets = self.rules, self.actions, self._sets
        top, cards = tops[:, games], hand[:, games]
        score = self._discard_value[:, top]
        wanted = needed[:, games]
        wanted = wanted[gap[:, games].argmin(axis=0), np.arange(games.size)]
        lies = (sets.bit[top] & wanted) > 0
        score += np.int16(BURY_NEEDED) * (lies & (top != np.arange(1, rules.kinds + 1)[:, None, None]))
        only = ((sets.bit[1:, None] & wanted) > 0) & (cards == 1)
        keep = np.int16(DUPLICATE) * (cards > 1) + np.int16(KEEP_NEEDED) * only
        score += keep.astype(np.int16)[:, None]
        score[np.broadcast_to((cards == 0)[:, None], score.shape)] = -2000
        best = score.reshape(-1, games.size).argmax(axis=0)
        return np.where(action_mask[games, table.end_turn], table.end_turn, table.num_plays + best)
