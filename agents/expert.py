"""A rule-based policy that looks through its whole own turn, without guessing at hidden cards.

Of all the positions that the turn's plays can lead to, it goes for the best one: one in which the pay-off card fits,
with the fewest kings and then the fewest plays, or else the one that :class:`Weights` value most. If no play is worth
it, it discards, or ends the turn.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env.actions import ActionTable
from spite_env.observation import ObservationTable
from spite_env.policies import Actions, Mask
from spite_env.rules import Rules

Array = NDArray[Any]

#: Side-pile cards below the tops that the policy looks at.
DEPTH = 7

#: Positions of one turn that are searched further after as many plays; those left out come last in no particular order.
WIDTH = 256

#: What a position in which the pay-off card fits is worth.
GOAL = 1_000_000

_POPCOUNT = np.array([bin(number).count("1") for number in range(1 << 13)], np.int64)


@dataclass(frozen=True)
class Weights:
    """What the policy values, in arbitrary units; found by duels.

    Attributes:
        hand_play: A card played from the hand: it brings a new one.
        side_play: A card played from a side pile.
        empty_hand: No card left in the hand.
        refilled_hand: The same where the hand is then refilled within the turn.
        empty_side: An empty side pile.
        own_gap: For 0, 1, 2, ... missing ranks below the pay-off card, on the centre pile where fewest are missing.
        opponent_gap: Likewise for the opponent.
        king: A king played without reaching the pay-off card.
    """

    hand_play: int = 60
    side_play: int = 0
    empty_hand: int = 40
    refilled_hand: int = 300
    empty_side: int = 0
    own_gap: tuple[int, ...] = (0, -40, -80, -110, -130)
    opponent_gap: tuple[int, ...] = (-480, -240, -120, -40, 0)
    king: int = -60
    goal_kings: int = 2
    # discards
    step_down: int = 100
    same: int = 90
    empty: int = 80
    down: int = 60
    down_gap: int = 8
    bury: int = -20
    bury_gap: int = 4
    bury_king: int = -300
    discard_king: int = -500
    bury_needed: int = -60
    keep_needed: int = -30
    duplicate: int = 20
    depth: int = 2


@dataclass
class _View:
    """What the mover sees of a batch of games, each array with the games last.

    ``sides`` are the cards of each side pile, top first, and a 0 below the last one that is shown.
    """

    payoff: Array
    opponent_payoff: Array
    payoff_size: Array
    opponent_payoff_size: Array
    height: Array
    sides: Array
    hand: Array
    opponent_ranks: Array  #: bits of the ranks on the opponent's side piles
    below: Array  #: by side pile and cards taken off it: bits of the ranks that are left
    side_key: Array
    size: int


@dataclass
class _Nodes:
    """Positions within the turns of several games."""

    game: Array
    first: Array  #: the first action that led here; -1: none
    key: Array
    height: Array  #: of each centre pile
    taken: Array  #: cards taken off each side pile
    hand: Array  #: cards of each kind
    kings: Array  #: played so far

    def take(self, rows: Array) -> _Nodes:
        return _Nodes(*(np.take(array, rows, axis=-1) for array in vars(self).values()))


class ExpertPolicy:
    """The rule-based expert; it is deterministic.

    Args:
        weights: What it values.
    """

    def __init__(self, weights: Weights = Weights()) -> None:
        self.weights = weights

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        self.rules = rules
        self.actions = ActionTable(rules)
        self.observation_table = ObservationTable(rules, "compact", min(DEPTH, rules.num_cards))
        rng = np.random.default_rng(0)

        def words(*shape: int) -> Array:
            return rng.integers(1 << 63, size=shape, dtype=np.uint64) << np.uint64(1) | np.uint64(1)

        self._height_key = words(rules.ranks + 1)
        self._card_key = words(rules.kinds)
        self._pile_key = words(rules.kinds + 1)
        height, card = np.arange(rules.ranks)[:, None], np.arange(rules.kinds + 1)
        # The ranks that are played between a height and a card, past the pile's completion if need be.
        rank = np.arange(1, rules.ranks + 1)[:, None, None]
        between = np.where(height < card, (rank > height) & (rank < card), (rank > height) | (rank < card))
        between &= (card > 0) & (card < rules.kinds)
        self._between = (between * (1 << (rank - 1))).sum(axis=0)

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        if not len(indices):
            return np.zeros(0, np.intp)
        view = self._read(observation)
        best, chosen = self._best_plays(view)
        passing = chosen < 0
        if passing.any():
            games = np.flatnonzero(passing)
            chosen[games] = self._discards(view, games, action_mask[games])
        return chosen

    def _read(self, observation: NDArray[np.uint8]) -> _View:
        rules, natural = self.rules, np.ascontiguousarray(observation.T)
        size = natural.shape[1]

        def part(name: str) -> Array:
            return natural[self.observation_table.slices[name]]

        def piles(name: str) -> Array:
            return part(name).reshape(rules.side_piles, -1, size)

        sides = piles("own_side_cards")
        depth = sides.shape[1]
        sides = np.concatenate((sides, np.zeros_like(sides[:, :1])), axis=1)
        bits = self._bits(sides)
        below, key = np.zeros_like(bits), np.zeros(sides.shape, np.uint64)
        for taken in reversed(range(depth)):
            below[:, taken] = below[:, taken + 1] | bits[:, taken]
            # The order of the cards counts, but not which of the piles has them.
            key[:, taken] = key[:, taken + 1] * np.uint64(0x9E3779B97F4A7C15) + self._pile_key[sides[:, taken]]
            key[:, taken] ^= key[:, taken] >> np.uint64(29)
        opponent_ranks = np.bitwise_or.reduce(self._bits(piles("opponent_side_cards")), axis=(0, 1))
        return _View(
            payoff=part("own_payoff_top")[0],
            opponent_payoff=part("opponent_payoff_top")[0],
            payoff_size=part("own_payoff_size")[0],
            opponent_payoff_size=part("opponent_payoff_size")[0],
            height=part("center_height"),
            sides=sides,
            hand=part("own_hand"),
            opponent_ranks=opponent_ranks,
            below=below,
            side_key=key,
            size=size,
        )

    def _bits(self, cards: Array) -> Array:
        table = np.append(1 << np.arange(self.rules.kinds) >> 1, 0)
        return table[cards]

    # The turn's plays

    def _best_plays(self, view: _View) -> tuple[Array, Array]:
        """Return the value of each game's best turn, and its first play; -1 where none is worth it."""
        w = self.weights
        root = _Nodes(
            game=np.arange(view.size),
            first=np.full(view.size, -1),
            key=np.zeros(view.size, np.uint64),
            height=view.height,
            taken=np.zeros((self.rules.side_piles, view.size), np.uint8),
            hand=view.hand,
            kings=np.zeros(view.size, np.int64),
        )
        best, chosen = self._value(view, root), root.first.copy()
        # The pay-off card itself
        fits, center = self._payoff_play(view)
        chosen[fits] = self.actions.play(0, 0) + center[fits] * self.actions.num_sources
        best[fits] = 2 * GOAL
        denying = self._near(view)
        self._search(view, root.take(np.flatnonzero(~fits)), best, chosen, denying.astype(np.int64), prune=False)
        # Kings for the pay-off card
        most = np.where(view.payoff_size == 1, view.hand[-1] + (view.sides == self.rules.kinds).sum(axis=(0, 1)), w.goal_kings)
        gap = self._gap(view, root)
        for kings in range(1, int(most.max(initial=0)) + 1):
            games = np.flatnonzero((best < GOAL // 2) & (gap <= kings) & (kings <= most))
            if games.size:
                self._search(view, root.take(games), best, chosen, np.full(view.size, kings), prune=True)
        return best, chosen

    def _near(self, view: _View) -> Array:
        missing = self._between[view.height, view.opponent_payoff] & ~view.opponent_ranks
        return _POPCOUNT[missing].min(axis=0) <= 1

    def _payoff_play(self, view: _View) -> tuple[Array, Array]:
        fits = (view.height + 1 == view.payoff) | (view.payoff == self.rules.kinds)
        # A king should not open the opponent's pay-off card.
        opening = view.height + 2 == view.opponent_payoff
        return fits.any(axis=0), (2 * fits - opening).argmax(axis=0)

    def _search(
        self, view: _View, nodes: _Nodes, best: Array, chosen: Array, budget: Array, *, prune: bool
    ) -> None:
        while nodes.game.size:
            nodes = self._children(view, nodes, budget)
            if prune and nodes.game.size:
                nodes = nodes.take(np.flatnonzero(nodes.kings + self._gap(view, nodes) <= budget[nodes.game]))
            if not nodes.game.size:
                return
            goal = (nodes.height + 1 == view.payoff[nodes.game]).any(axis=0)
            value = self._value(view, nodes)
            value[goal] += GOAL
            value -= (goal * nodes.kings) * (GOAL // 8)
            starts = np.flatnonzero(np.diff(nodes.game, prepend=-1))
            count = nodes.game.size
            packed = value * (1 << 32) + np.arange(count)[::-1]
            top = np.maximum.reduceat(packed, starts)
            row = count - 1 - (top & 0xFFFFFFFF)
            games = nodes.game[row]
            better = value[row] > best[games]
            best[games[better]] = value[row[better]]
            chosen[games[better]] = nodes.first[row[better]]
            place = np.arange(count) - np.repeat(starts, np.diff(starts, append=count))
            going = ~goal & (place < WIDTH)
            going &= best[nodes.game] < GOAL // 2
            nodes = nodes.take(np.flatnonzero(going))

    def _children(self, view: _View, nodes: _Nodes, budget: Array) -> _Nodes:
        """Return the positions one play further, each once, sorted by game."""
        rules, size = self.rules, view.size
        sides, kinds, count = rules.side_piles, rules.kinds, nodes.game.size
        side = np.arange(sides)[:, None]
        top_at = (side * view.sides.shape[1] + nodes.taken) * size + nodes.game
        tops = view.sides.reshape(-1)[top_at]
        need = nodes.height + np.uint8(1)
        may_king = nodes.kings < budget[nodes.game]
        legal = np.empty((rules.center_piles, sides + 2, count), np.bool_)
        np.equal(tops, need[:, None], out=legal[:, :sides])
        legal[:, :sides] |= (tops == kinds) & may_king
        legal[:, sides] = nodes.hand.reshape(-1)[nodes.height.astype(np.intp) * count + np.arange(count)] > 0
        legal[:, sides + 1] = (nodes.hand[-1] > 0) & may_king
        for center in range(1, rules.center_piles):
            legal[center] &= (nodes.height[:center] != nodes.height[center]).all(axis=0)
        center, source, parent = np.nonzero(legal)

        children = nodes.take(parent)
        place = np.arange(parent.size)
        height_at = center * parent.size + place
        old = children.height.reshape(-1)[height_at]
        new = (old + 1) % rules.ranks
        children.height.reshape(-1)[height_at] = new
        children.key += self._height_key[new] - self._height_key[old]
        from_side = np.flatnonzero(source < sides)
        pile = source[from_side]
        at = top_at[pile, parent[from_side]]
        children.taken.reshape(-1)[pile * parent.size + from_side] += 1
        keys = view.side_key.reshape(-1)
        children.key[from_side] += keys[at + size] - keys[at]
        children.kings[from_side] += tops[pile, parent[from_side]] == kinds
        from_hand = np.flatnonzero(source >= sides)
        kind = np.where(source[from_hand] == sides, old[from_hand], kinds - 1).astype(np.intp)
        children.hand.reshape(-1)[kind * parent.size + from_hand] -= 1
        children.key[from_hand] += self._card_key[kind]
        children.kings[from_hand] += kind == kinds - 1
        fresh = children.first < 0
        children.first[fresh] = (center * self.actions.num_sources + source + 1)[fresh]
        marks = children.game.astype(np.uint64) << np.uint64(40) | children.key >> np.uint64(24)
        _, rows = np.unique(marks, return_index=True)
        return children.take(rows)

    def _available(self, view: _View, nodes: _Nodes) -> Array:
        held = (nodes.hand[:-1] > 0)
        bits = np.zeros(nodes.game.size, np.int64)
        for rank in range(self.rules.ranks):
            bits |= held[rank].astype(np.int64) << rank
        for side in range(self.rules.side_piles):
            at = (side * view.below.shape[1] + nodes.taken[side].astype(np.intp)) * view.size + nodes.game
            bits |= view.below.reshape(-1)[at]
        return bits

    def _gap(self, view: _View, nodes: _Nodes) -> Array:
        """Return how many ranks below the pay-off card are nowhere, on the centre pile where they are fewest."""
        missing = self._between[nodes.height, view.payoff[nodes.game]] & ~self._available(view, nodes)
        return _POPCOUNT[missing].min(axis=0)

    def _value(self, view: _View, nodes: _Nodes) -> Array:
        w, rules = self.weights, self.rules
        game = nodes.game
        hand = nodes.hand.sum(axis=0, dtype=np.int64)
        value = -w.hand_play * hand
        value += w.side_play * nodes.taken.sum(axis=0, dtype=np.int64)
        value += (hand == 0) * (w.refilled_hand if rules.refill_mid_turn else w.empty_hand)
        at = (np.arange(rules.side_piles)[:, None] * view.sides.shape[1] + nodes.taken) * view.size + game
        value += w.empty_side * (view.sides.reshape(-1)[at] == 0).sum(axis=0)
        gaps = np.array(w.own_gap)
        value += gaps[np.minimum(self._gap(view, nodes), len(gaps) - 1)]
        missing = self._between[nodes.height, view.opponent_payoff[game]] & ~view.opponent_ranks[game]
        gaps = np.array(w.opponent_gap)
        value += gaps[np.minimum(_POPCOUNT[missing].min(axis=0), len(gaps) - 1)]
        value += w.king * nodes.kings
        return value

    # The discard

    def _discards(self, view: _View, games: Array, action_mask: Mask) -> Array:
        w, rules = self.weights, self.rules
        kinds = rules.kinds
        top = view.sides[:, 0, games].astype(np.int64)[None]
        card = np.arange(1, kinds + 1)[:, None, None]
        hand = view.hand[:, games].astype(np.int64)
        step = top - card
        score = np.where(step > 0, w.down - w.down_gap * step, w.bury + w.bury_gap * step)
        score[np.broadcast_to(step == 1, score.shape)] = w.step_down
        score[np.broadcast_to(step == 0, score.shape)] = w.same
        score = np.where(top == kinds, w.bury_king, score)
        score = np.where(top == 0, w.empty, score)
        # The ranks that the pay-off card waits for
        between = self._between[view.height[:, games], view.payoff[games]]
        least = _POPCOUNT[between].argmin(axis=0)
        needed = between[least, np.arange(games.size)]
        top_needed = (self._bits(top[0]) & needed) > 0
        score += w.bury_needed * (top_needed & (top[0] > 0))[None] * (step != 0)
        card_needed = (self._bits(np.broadcast_to(card[:, 0], hand.shape)) & needed) > 0
        keep = w.keep_needed * (card_needed & (hand == 1)) + w.duplicate * (hand > 1)
        keep[-1] += w.discard_king
        score += keep[:, None]
        first, last = self.actions.num_plays, self.actions.end_turn
        legal = action_mask[:, first:last].T
        score = np.where(legal, score.reshape(-1, games.size), np.iinfo(np.int64).min)
        return np.where(action_mask[:, last], last, first + score.argmax(axis=0))
