"""A rule-based policy that looks through its whole own turn, without guessing at hidden cards.

A pay-off card that fits is played. Else, of all positions that the turn's plays can lead to, the policy heads for the
best: one in which the pay-off card fits, with the fewest kings, or else the one that its :class:`Weights` value most.
Where no play is worth it, it discards.
"""

from __future__ import annotations

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

#: Positions of a game from which the search goes on after every number of plays.
WIDTH = 256

#: What a position in which the pay-off card fits is worth, and what each king takes from that.
GOAL, GOAL_KING = 1 << 28, 1 << 16

# Sets of ranks are words with four bits a rank, so that they can be told from hands, which count cards in these bits.
_LOW_BITS = np.uint64(0x1111_1111_1111)
_WORD = np.uint64


def _word(number: Array) -> NDArray[np.uint64]:
    return number.astype(np.uint64)


@dataclass(frozen=True)
class Weights:
    """What the policy values, in arbitrary units; the defaults were found by duels.

    Attributes:
        hand_card: A card left in the hand at the turn's end.
        empty_hand: No card left in the hand.
        refilled_hand: The same where the hand is refilled within the turn.
        opponent_gap: That the opponent lacks 0, 1, 2, ... of the ranks below its pay-off card, counting its side piles
            alone, on the centre pile where it lacks fewest.
        king: A king played without reaching the pay-off card.
        most_kings: Kings that may be spent to reach a pay-off card that isn't the last.
    """

    hand_card: int = -40
    empty_hand: int = 40
    refilled_hand: int = 300
    opponent_gap: tuple[int, ...] = (-480, -240, -120, -40, 0)
    king: int = -240
    most_kings: int = 2
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
    duplicate: int = 50


@dataclass
class _View:
    """What the movers of a batch of games see; in each array the games come last."""

    payoff: Array
    payoff_size: Array
    height: Array  #: of each centre pile
    hand: Array  #: cards of each kind
    sides: Array  #: cards of each side pile, top first; a 0 below the last one that is shown
    below: Array  #: the ranks from each of these cards on
    side_key: Array  #: a word for the cards from each of these on
    opponent_gap: Array  #: how many ranks the opponent lacks, by the height of a centre pile
    opponent_payoff: Array


@dataclass
class _Nodes:
    """Positions within the turns of several games; in each array they come last."""

    facts: Array  #: rows: game, first play of the turn (-1: none), kings played, cards in hand, kings in hand
    words: Array  #: rows: what tells the positions of a game apart, cards of each rank in hand
    height: Array  #: of each centre pile
    at: Array  #: where the top of each side pile is in the flat array ``sides``

    def take(self, rows: Array) -> _Nodes:
        return _Nodes(*(array.take(rows, axis=-1) for array in vars(self).values()))

    @property
    def game(self) -> Array:
        return self.facts[0]


class ExpertPolicy:
    """The rule-based expert. It is deterministic: equal observations get equal actions.

    Args:
        weights: What it values.
    """

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = Weights() if weights is None else weights

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        self.rules = rules
        self.actions = ActionTable(rules)
        self.observation_table = ObservationTable(rules, "compact", min(DEPTH, rules.num_cards))
        # Which ranks a pile of some height still needs before some card fits, if need be after its completion.
        height, card = np.arange(rules.ranks)[:, None], np.arange(rules.kinds + 1)
        rank = np.arange(1, rules.kinds)[:, None, None]
        needed = np.where(height < card, (rank > height) & (rank < card), (rank > height) | (rank < card))
        needed &= (card > 0) & (card < rules.kinds)
        self._rank_set = np.array([0, *(0xF << 4 * rank for rank in range(rules.ranks)), 0], np.uint64)
        self._needed = np.bitwise_or.reduce(np.where(needed, self._rank_set[rank], _WORD(0)), axis=0)
        random = np.random.default_rng(0)
        self._card_key = random.integers(1 << 64, size=rules.kinds + 1, dtype=np.uint64)
        self._height_key = random.integers(1 << 64, size=rules.ranks, dtype=np.uint64)

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        view = self._read(observation)
        chosen = self._best_plays(view)
        passing = np.flatnonzero(chosen < 0)
        if passing.size:
            chosen[passing] = self._discards(view, passing, action_mask[passing])
        return chosen

    def _read(self, observation: NDArray[np.uint8]) -> _View:
        rules, natural = self.rules, np.ascontiguousarray(observation.T)
        depth = self.observation_table.side_depth + 1

        def part(name: str) -> Array:
            return natural[self.observation_table.slices[name]]

        def side_cards(owner: str) -> Array:
            return part(f"{owner}_side_cards").reshape(rules.side_piles, depth, natural.shape[1])

        sides = side_cards("own")
        sides = np.concatenate((sides, np.zeros_like(sides[:, :1])), axis=1)
        below, key = self._rank_set[sides], self._card_key[sides]
        for place in reversed(range(sides.shape[1] - 1)):
            below[:, place] |= below[:, place + 1]
            key[:, place] += key[:, place + 1] * _WORD(0x9E3779B97F4A7C15)
        opponent = np.bitwise_or.reduce(self._rank_set[side_cards("opponent")], axis=(0, 1))
        opponent_payoff = part("opponent_payoff_top")[0]
        return _View(
            payoff=part("own_payoff_top")[0],
            payoff_size=part("own_payoff_size")[0],
            height=part("center_height"),
            hand=part("own_hand"),
            sides=sides,
            below=below,
            side_key=key ^ key >> _WORD(31),
            opponent_gap=_size(self._needed[:, opponent_payoff] & ~opponent),
            opponent_payoff=opponent_payoff,
        )

    # The turn's plays

    def _best_plays(self, view: _View) -> Array:
        """Return each game's best play, -1 where none is worth it."""
        rules, size = self.rules, view.payoff.size
        fits = (view.height + 1 == view.payoff) | (view.payoff == rules.kinds)
        # A king as pay-off card fits everywhere: best where it doesn't open the opponent's pay-off card.
        center = (2 * fits - (view.height + 2 == view.opponent_payoff)).argmax(axis=0)
        first = np.where(fits.any(axis=0), self.actions.play(0, 0) + center * self.actions.num_sources, -1)

        hand = np.minimum(view.hand[:-1], 15)
        packed = np.zeros(size, np.uint64)
        for rank in range(rules.ranks):
            packed |= hand[rank].astype(np.uint64) << _WORD(4 * rank)
        held = view.hand.sum(axis=0, dtype=np.intp)
        side = np.arange(rules.side_piles)[:, None]
        game = np.arange(size)
        root = _Nodes(
            facts=np.stack((game, first, np.zeros_like(game), held, view.hand[-1])),
            words=np.stack((np.zeros_like(packed), packed)),
            height=view.height,
            at=side * view.sides.shape[1] * size + game,
        )
        _, value = self._evaluate(view, root)
        value[first >= 0] = 2 * GOAL
        kings = view.hand[-1] + (view.sides == rules.kinds).sum(axis=(0, 1))
        most = np.where(view.payoff_size == 1, kings, np.minimum(kings, self.weights.most_kings))
        denying = view.opponent_gap[view.height, game].min(axis=0) <= 1
        nodes = root.take(np.flatnonzero(first < 0))
        while nodes.game.size:
            nodes = self._children(view, nodes, most)
            if not nodes.game.size:
                break
            gap, found = self._evaluate(view, nodes)
            game, used = nodes.game, nodes.facts[2]
            keep = (used == 0) | (used + gap <= most[game]) | (denying[game] & (used == 1))
            nodes, found, game = nodes.take(np.flatnonzero(keep)), found[keep], game[keep]
            if not game.size:
                break
            starts = np.flatnonzero(np.append(True, game[1:] != game[:-1]))
            count = game.size
            place = np.arange(count)
            top = np.maximum.reduceat((found << 32) - place, starts)
            row = -top & 0xFFFFFFFF
            games = game[row]
            better = found[row] > value[games]
            row, games = row[better], games[better]
            value[games] = found[row]
            first[games] = nodes.facts[1, row]
            nth = place - np.repeat(starts, np.diff(np.append(starts, count)))
            # A goal can only be bettered by one with fewer kings.
            beaten = GOAL - GOAL_KING * nodes.facts[2] <= value[game] + GOAL_KING // 2
            going = (found < GOAL // 2) & ~beaten & (nth < WIDTH)
            nodes = nodes.take(np.flatnonzero(going))
        return first

    def _children(self, view: _View, nodes: _Nodes, most_kings: Array) -> _Nodes:
        """Return the positions one play further, each once, sorted by game."""
        rules, size = self.rules, view.payoff.size
        sides, count = rules.side_piles, nodes.game.size
        tops = view.sides.reshape(-1)[nodes.at]
        may_king = nodes.facts[2] < most_kings[nodes.game]
        hand = nodes.words[1]
        legal = np.empty((rules.center_piles, sides + 2, count), np.bool_)
        np.equal(tops, nodes.height[:, None] + np.uint8(1), out=legal[:, :sides])
        legal[:, :sides] |= (tops == rules.kinds) & may_king
        np.not_equal(hand >> _word(4 * nodes.height) & _WORD(15), 0, out=legal[:, sides])
        legal[:, sides + 1] = nodes.facts[4] > 0
        legal[:, sides + 1] &= may_king
        for later in range(1, rules.center_piles):  # equal piles need only one play
            legal[later] &= (nodes.height[:later] != nodes.height[later]).all(axis=0)
        center, source, parent = np.nonzero(legal)

        children = nodes.take(parent)
        height_at = center * parent.size + np.arange(parent.size)
        height = children.height.reshape(-1)
        old = height[height_at]
        new = (old + np.uint8(1)) % np.uint8(rules.ranks)
        height[height_at] = new
        key, hand = children.words
        key += self._height_key[new] - self._height_key[old]
        is_side = source < sides
        from_side = np.flatnonzero(is_side)
        pile = source[from_side]
        at = nodes.at[pile, parent[from_side]]
        children.at[pile, from_side] += size
        keys = view.side_key.reshape(-1)
        key[from_side] += keys[at + size] - keys[at]
        children.facts[2, from_side] += view.sides.reshape(-1)[at] == rules.kinds
        from_hand = np.flatnonzero(source == sides)
        hand[from_hand] -= _WORD(1) << _word(4 * old[from_hand])
        key[from_hand] += self._card_key[old[from_hand]]
        wild = np.flatnonzero(source > sides)
        key[wild] += self._card_key[-1]
        children.facts[2, wild] += 1
        children.facts[4, wild] -= 1
        children.facts[3] -= ~is_side
        fresh = children.facts[1] < 0
        np.copyto(children.facts[1], center * self.actions.num_sources + source + 1, where=fresh)
        marks = children.game.astype(np.uint64) << _WORD(40) | key >> _WORD(24)
        order = marks.argsort(kind="stable")
        marks = marks[order]
        return children.take(order[np.append(True, marks[1:] != marks[:-1])[: marks.size]])

    def _evaluate(self, view: _View, nodes: _Nodes) -> tuple[Array, Array]:
        """Return how many ranks below the pay-off card are nowhere at hand, and what positions are worth."""
        w = self.weights
        game, kings, held = nodes.facts[[0, 2, 3]]
        at_hand = nodes.words[1] | np.bitwise_or.reduce(view.below.reshape(-1)[nodes.at], axis=0)
        at_hand |= at_hand >> _WORD(1)
        at_hand |= at_hand >> _WORD(2)
        payoff = view.payoff[game]
        gap = _size(self._needed[nodes.height, payoff] & ~at_hand).min(axis=0)
        opponent_gap = view.opponent_gap[nodes.height, game].min(axis=0)
        refilled = w.refilled_hand if self.rules.refill_mid_turn else w.empty_hand
        value = w.hand_card * held + (held == 0) * refilled
        value += np.array(w.opponent_gap).take(opponent_gap, mode="clip")
        goal = (nodes.height + np.uint8(1) == payoff).any(axis=0)
        value += goal * GOAL + kings * np.where(goal, -GOAL_KING, w.king)
        return gap, value

    # The discard

    def _discards(self, view: _View, games: Array, action_mask: Mask) -> Array:
        w, rules = self.weights, self.rules
        top = view.sides[:, 0, games].astype(np.intp)
        card = np.arange(1, rules.kinds + 1)[:, None, None]
        hand = view.hand[:, games]
        step = top - card
        score = np.where(step > 0, w.down - w.down_gap * step, w.bury + w.bury_gap * step)
        score[step == 1] = w.step_down
        score[step == 0] = w.same
        score = np.where(top == rules.kinds, w.bury_king, score)
        score = np.where(top == 0, w.empty, score)
        # The ranks that the pay-off card waits for, where they are fewest.
        needed = self._needed[view.height[:, games], view.payoff[games]]
        needed = needed[_size(needed).argmin(axis=0), np.arange(games.size)]
        score += w.bury_needed * ((self._rank_set[top] & needed) > 0) * (step != 0)
        keep = w.keep_needed * (((self._rank_set[card[:, 0]] & needed) > 0) & (hand == 1)) + w.duplicate * (hand > 1)
        keep[-1] += w.discard_king
        score += keep[:, None]
        first, last = self.actions.num_plays, self.actions.end_turn
        score = np.where(action_mask[:, first:last].T, score.reshape(-1, games.size), np.iinfo(np.intp).min)
        return np.where(action_mask[:, last], last, first + score.argmax(axis=0))


def _size(ranks: Array) -> Array:
    """Return how many ranks are in sets of them."""
    return ((ranks & _LOW_BITS) * _LOW_BITS >> _WORD(44) & _WORD(15)).astype(np.intp)
