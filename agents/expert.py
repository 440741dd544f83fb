"""A rule-based policy that looks through its whole own turn, without guessing at hidden cards.

A pay-off card that fits is played. Else, of all positions that the turn's plays can lead to, the policy heads for the
best: one in which the pay-off card fits, with the fewest kings, or else the one that its :class:`Weights` value most.
Where no play is worth it, it discards.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from agents.ranks import rank_words
from spite_env import streams
from spite_env.acceleration import runs_compiled
from spite_env.actions import ActionTable
from spite_env.observation import ObservationTable
from spite_env.policies import Actions, Mask
from spite_env.rules import Rules, checked_integer, checked_number

Array = NDArray[Any]

#: Side-pile cards below the tops that the policy looks at; at most 15.
DEPTH = 7

#: Positions of a game from which the search goes on after every number of plays.
WIDTH = 256

#: What a position in which the pay-off card fits is worth, and what each king takes from that.
GOAL, GOAL_KING = 1 << 28, 1 << 16

#: The most that a weight may be, so that whatever they add up to stays far below GOAL.
LARGEST_WEIGHT = 100_000

# Sets of ranks are words with four bits a rank: as a hand has them, which counts its cards there (up to 15).
_LOW_BITS = np.uint64(0x1111_1111_1111)


@dataclass(frozen=True)
class Weights:
    """What the policy values, in arbitrary units, none beyond ``LARGEST_WEIGHT``; the defaults were found by duels.

    Raises:
        ValueError: a weight that can't be one; the message names it.

    Attributes:
        hand_card: A card left in the hand when the turn's plays end.
        short_stock: The share of the deck in the stock, or set aside, up to which the stock is short: completed piles
            feed it.
        short_stock_hand_card: What takes the place of ``hand_card`` then.
        empty_hand: No card left in the hand.
        refilled_hand: The same where the hand is then refilled within the turn.
        opponent_gap: That the opponent lacks 0, 1, 2, ... of the ranks below its pay-off card, counting its side piles
            alone, on the centre pile where it lacks fewest.
        king: A king played without reaching the pay-off card.
        most_kings: Kings that may be spent to reach a pay-off card that isn't the last.
        step_down: A discard on the next higher rank.
        same: A discard on the same rank.
        empty: A discard on an empty pile.
        down: A discard on any other higher rank, and how much less for each rank between.
        bury: A discard on a lower rank, and how much less for each rank between.
        bury_king: A discard on a king.
        bury_needed: What it costs besides to cover a rank that the pay-off card waits for.
        keep_needed: What it costs to discard the only hand card of such a rank.
        duplicate: A discard of which the hand has another.
        discard_king: A discard of a king.
    """

    hand_card: int = -40
    short_stock: float = 0.14
    short_stock_hand_card: int = -200
    empty_hand: int = 40
    refilled_hand: int = 300
    opponent_gap: tuple[int, ...] = (-480, -240, -120, -40, 0)
    king: int = -240
    most_kings: int = 2
    step_down: int = 100
    same: int = 90
    empty: int = 80
    down: tuple[int, int] = (60, -8)
    bury: tuple[int, int] = (-20, -4)
    bury_king: int = -300
    bury_needed: int = -100
    keep_needed: int = -30
    duplicate: int = 50
    discard_king: int = -500

    def __post_init__(self) -> None:
        checked_number("short_stock", self.short_stock, 0, 1)
        for field in dataclasses.fields(self):
            if field.name != "short_stock":
                weight = _checked_weight(field.name, getattr(self, field.name), field.default)
                object.__setattr__(self, field.name, weight)


def _checked_weight(name: str, value: Any, default: Any) -> Any:
    """Return a weight as a plain integer or a tuple of them, as the default is."""
    if not isinstance(default, tuple):
        return checked_integer(name, value, -LARGEST_WEIGHT, LARGEST_WEIGHT)
    if not isinstance(value, tuple) or not value or (name != "opponent_gap" and len(value) != len(default)):
        raise ValueError(f"{name}={value!r} is not allowed; it is a tuple like {default}")
    return tuple(checked_integer(name, number, -LARGEST_WEIGHT, LARGEST_WEIGHT) for number in value)


@dataclass
class _View:
    """What the movers of a batch of games see; in each array the games come last."""

    payoff: Array
    opponent_payoff: Array
    height: Array  #: of each centre pile
    hand: Array  #: cards of each kind
    sides: Array  #: cards of each side pile, top first; a 0 below the last one that is shown
    below: Array  #: the ranks from each of these cards on
    side_key: Array  #: a word for the cards from each of these on
    opponent_gap: Array  #: how many ranks the opponent lacks, by the height of a centre pile
    most_kings: Array  #: that may be played in this turn
    hand_card: Array  #: what a card left in the hand is worth

    @property
    def size(self) -> int:
        """Number of games."""
        return self.payoff.size


@dataclass
class _Nodes:
    """Positions within the turns of several games; in each array they come last, sorted by game."""

    game: Array
    first: Array  #: the turn's first play; -1: none
    kings: Array  #: played so far
    held: Array  #: cards in the hand
    hand: Array  #: cards of each rank in the hand, as a word
    wilds: Array  #: kings in the hand
    key: Array  #: a word that tells the positions of a game apart
    height: Array  #: of each centre pile
    at: Array  #: where the top of each side pile stands in the flat array ``sides``

    def take(self, rows: Array) -> _Nodes:
        return _Nodes(*(array.take(rows, axis=-1) for array in vars(self).values()))


class ExpertPolicy:
    """The rule-based expert. It is deterministic: equal observations get equal actions.

    Args:
        weights: What it values.

    Attributes:
        compiled: Whether it runs compiled; None: where Numba is installed. The actions are the same.
    """

    compiled: bool | None = None

    def __init__(self, weights: Weights | None = None) -> None:
        self.weights = Weights() if weights is None else weights

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games, see :class:`~spite_env.policies.Policy`."""
        self.rules = rules
        self.actions = ActionTable(rules)
        self.observation_table = ObservationTable(rules, "compact", min(DEPTH, rules.num_cards))
        self._rank_set, self._needed = (words.astype(np.uint64) for words in rank_words(rules))
        keys = streams.words(np.zeros(1, np.uint64), rules.kinds + 1 + rules.ranks)[0]
        self._card_key, self._height_key = keys[: rules.kinds + 1], keys[rules.kinds + 1 :]
        self._discard_value = self._discards()
        self._tables = self._compiled_tables()

    def _discards(self) -> Array:
        """Return what it is worth to lay a card on a top, int ``(kinds, kinds + 1)``; top 0 is an empty pile."""
        w, kinds = self.weights, self.rules.kinds
        card, top = np.arange(1, kinds + 1)[:, None], np.arange(kinds + 1)
        step = top - card
        value = np.where(step > 0, w.down[0] + w.down[1] * (step - 1), w.bury[0] - w.bury[1] * (step + 1))
        value[step == 1] = w.step_down
        value[step == 0] = w.same
        value[:, 0] = w.empty
        value[:, kinds] = w.bury_king
        value[-1] += w.discard_king
        return value

    def _compiled_tables(self) -> tuple[Array, ...]:
        from agents import kernels  # imports Numba

        w, rules = self.weights, self.rules
        weights = kernels.ExpertWeights(
            hand_card=w.hand_card,
            short_stock=math.floor(w.short_stock * rules.num_cards),
            short_stock_hand_card=w.short_stock_hand_card,
            empty_hand=w.refilled_hand if rules.refill_mid_turn else w.empty_hand,
            king=w.king,
            most_kings=w.most_kings,
            bury_needed=w.bury_needed,
            keep_needed=w.keep_needed,
            duplicate=w.duplicate,
            goal=GOAL,
            goal_king=GOAL_KING,
            width=WIDTH,
        )
        numbers = kernels.view_of(self.observation_table), np.array(weights)
        tables = (*rank_words(rules), self._discard_value, np.array(w.opponent_gap))
        return *numbers, *tables, self._card_key, self._height_key

    def act(self, observation: NDArray[np.uint8], action_mask: Mask, infosets: Any, indices: Actions) -> Actions:
        """Choose actions, see :class:`~spite_env.policies.Policy`."""
        if runs_compiled(self.compiled):
            from agents import kernels

            return kernels.run(kernels.expert, observation, self._tables)
        view = self._read(observation)
        chosen = self._plays(view)
        passing = np.flatnonzero(chosen < 0)
        if passing.size:
            chosen[passing] = self._discard(view, passing, action_mask[passing])
        return chosen

    def _read(self, observation: NDArray[np.uint8]) -> _View:
        w, rules, table = self.weights, self.rules, self.observation_table
        natural = np.ascontiguousarray(observation.T)

        def part(name: str) -> Array:
            return natural[table.slices[name]]

        def side_cards(owner: str) -> Array:
            return part(f"{owner}_side_cards").reshape(rules.side_piles, table.side_depth + 1, natural.shape[1])

        sides = side_cards("own")
        sides = np.concatenate((sides, np.zeros_like(sides[:, :1])), axis=1)
        below, key = self._rank_set[sides], self._card_key[sides]
        for place in reversed(range(table.side_depth + 1)):
            below[:, place] |= below[:, place + 1]
            key[:, place] += key[:, place + 1] * np.uint64(0x9E3779B97F4A7C15)
        payoff_size, hand = part("own_payoff_size")[0], part("own_hand")
        stock = part("stock_size")[0].astype(np.intp) + part("set_aside_size")[0]
        kings = hand[-1].astype(np.intp) + (sides == rules.kinds).sum(axis=(0, 1))
        opponent_payoff = part("opponent_payoff_top")[0]
        return _View(
            payoff=part("own_payoff_top")[0],
            opponent_payoff=opponent_payoff,
            height=part("center_height"),
            hand=hand,
            sides=sides,
            below=below,
            side_key=key ^ key >> np.uint64(31),
            opponent_gap=self._open_gap(side_cards("opponent"), opponent_payoff),
            most_kings=np.where(payoff_size == 1, kings, np.minimum(kings, w.most_kings)),
            hand_card=np.where(stock <= w.short_stock * rules.num_cards, w.short_stock_hand_card, w.hand_card),
        )

    def _open_gap(self, sides: Array, payoff: Array) -> Array:
        """Return how many ranks the side piles lack on the way to a pay-off card, int ``(heights, games)``.

        A card counts if it is on top once its rank is needed; a king on top stands for a rank that no other top has.
        """
        ranks, (piles, depth, games) = self.rules.ranks, sides.shape
        cards = np.concatenate((sides, np.zeros_like(sides[:, :1])), axis=1).reshape(-1)
        at = np.arange(piles)[:, None] * (depth + 1) * games + np.arange(games)
        at = np.repeat(at[None], ranks, axis=0)
        gap = np.zeros((ranks, games), np.intp)
        going = np.broadcast_to(payoff <= ranks, gap.shape)
        for played in range(ranks):
            need = ((np.arange(ranks) + played) % ranks + 1).astype(np.uint8)[:, None]
            going = going & (need != payoff)
            tops = cards[at]
            used = tops == need[:, None]
            used |= ~used.any(axis=1, keepdims=True) & (tops == self.rules.kinds)
            gap += going & ~used.any(axis=1)
            at += used * games
        return gap

    # The turn's plays

    def _plays(self, view: _View) -> Array:
        """Return each game's best play, int ``(games,)``; -1 where none is worth it."""
        fits = (view.height + np.uint8(1) == view.payoff) | (view.payoff == self.rules.kinds)
        # A king as pay-off card fits everywhere: better not where it opens the opponent's pay-off card.
        center = (2 * fits - (view.height + np.uint8(2) == view.opponent_payoff)).argmax(axis=0)
        chosen = np.where(fits.any(axis=0), self.actions.play(0, 0) + center * self.actions.num_sources, -1)
        root = self._root(view)
        worth, _ = self._evaluate(view, root)
        at_risk = view.opponent_gap[view.height, root.game].min(axis=0) <= 1
        nodes = self._children(view, root.take(np.flatnonzero(chosen < 0)))
        while nodes.game.size:
            value, gap = self._evaluate(view, nodes)
            # A king is for the pay-off card, or one of them to deny the opponent its own.
            kings, game = nodes.kings, nodes.game
            sensible = np.flatnonzero(
                (kings == 0) | (kings + gap <= view.most_kings[game]) | (at_risk[game] & (kings == 1))
            )
            nodes, value = nodes.take(sensible), value[sensible]
            if not nodes.game.size:
                break
            row, nth = _best_rows(nodes.game, value)
            row = row[value[row] > worth[nodes.game[row]]]
            game = nodes.game[row]
            worth[game], chosen[game] = value[row], nodes.first[row]
            # One that reaches the pay-off card can only be bettered by one that does it with fewer kings.
            going = (value < GOAL // 2) & (worth[nodes.game] < GOAL - GOAL_KING * nodes.kings - GOAL_KING // 2)
            nodes = self._children(view, nodes.take(np.flatnonzero(going & (nth < WIDTH))))
        return chosen

    def _root(self, view: _View) -> _Nodes:
        """Return the positions before the turn's plays."""
        size, rules = view.size, self.rules
        hand = np.zeros(size, np.uint64)
        for rank in range(rules.ranks):
            hand |= np.minimum(view.hand[rank], 15).astype(np.uint64) << np.uint64(4 * rank)
        return _Nodes(
            game=np.arange(size),
            first=np.full(size, -1),
            kings=np.zeros(size, np.intp),
            held=view.hand.sum(axis=0, dtype=np.intp),
            hand=hand,
            wilds=view.hand[-1],
            key=np.zeros(size, np.uint64),
            height=view.height,
            at=np.arange(rules.side_piles)[:, None] * view.sides.shape[1] * size + np.arange(size),
        )

    def _children(self, view: _View, nodes: _Nodes) -> _Nodes:
        """Return the positions one play further, each once."""
        rules, sides = self.rules, self.rules.side_piles
        center, source, parent = np.nonzero(self._legal(view, nodes))
        children, rows = nodes.take(parent), np.arange(parent.size)
        np.copyto(children.first, center * self.actions.num_sources + source + 1, where=children.first < 0)
        old = children.height[center, rows]
        new = (old + np.uint8(1)) % np.uint8(rules.ranks)
        children.height[center, rows] = new
        children.key += self._height_key[new] - self._height_key[old]

        from_side = np.flatnonzero(source < sides)
        pile = source[from_side]
        at = children.at[pile, from_side]
        children.at[pile, from_side] = at + view.size
        keys = view.side_key.reshape(-1)
        children.key[from_side] += keys[at + view.size] - keys[at]
        children.kings[from_side] += view.sides.reshape(-1)[at] == rules.kinds
        children.held -= source >= sides
        natural = np.flatnonzero(source == sides)
        children.hand[natural] -= np.uint64(1) << (4 * old[natural]).astype(np.uint64)
        children.key[natural] += self._card_key[old[natural] + 1]
        wild = np.flatnonzero(source > sides)
        children.wilds[wild] -= 1
        children.kings[wild] += 1
        children.key[wild] += self._card_key[-1]

        marks = children.game.astype(np.uint64) << np.uint64(40) | children.key >> np.uint64(24)
        order = marks.argsort(kind="stable")
        marks = marks[order]
        return children.take(order[np.diff(marks, prepend=~marks[:1]) != 0])

    def _legal(self, view: _View, nodes: _Nodes) -> Mask:
        """Return which plays from side piles and the hand are worth a look, bool ``(centers, sides + 2, nodes)``."""
        rules = self.rules
        tops = view.sides.reshape(-1)[nodes.at]
        may_king = nodes.kings < view.most_kings[nodes.game]
        legal = np.empty((rules.center_piles, rules.side_piles + 2, nodes.game.size), np.bool_)
        np.equal(tops, nodes.height[:, None] + np.uint8(1), out=legal[:, :-2])
        legal[:, :-2] |= (tops == rules.kinds) & may_king
        np.not_equal(nodes.hand >> (4 * nodes.height).astype(np.uint64) & np.uint64(15), 0, out=legal[:, -2])
        legal[:, -1] = (nodes.wilds > 0) & may_king
        for center in range(1, rules.center_piles):  # of equal piles the first is enough
            legal[center] &= (nodes.height[:center] != nodes.height[center]).all(axis=0)
        return legal

    def _evaluate(self, view: _View, nodes: _Nodes) -> tuple[Array, Array]:
        """Return what positions are worth, and how many ranks below the pay-off card are nowhere at hand."""
        w, payoff = self.weights, view.payoff[nodes.game]
        at_hand = nodes.hand | np.bitwise_or.reduce(view.below.reshape(-1)[nodes.at], axis=0)
        at_hand |= at_hand >> np.uint64(1)
        at_hand |= at_hand >> np.uint64(2)
        gap = _size(self._needed[nodes.height, payoff] & ~at_hand).min(axis=0)
        opponent_gap = view.opponent_gap[nodes.height, nodes.game].min(axis=0)
        goal = (nodes.height + np.uint8(1) == payoff).any(axis=0)
        value = view.hand_card[nodes.game] * nodes.held + np.array(w.opponent_gap).take(opponent_gap, mode="clip")
        value += (nodes.held == 0) * (w.refilled_hand if self.rules.refill_mid_turn else w.empty_hand)
        value += goal * GOAL + nodes.kings * np.where(goal, -GOAL_KING, w.king)
        return value, gap

    # The discard

    def _discard(self, view: _View, games: Array, action_mask: Mask) -> Array:
        """Return the best discard, or ``end_turn``, of some games, int ``(games,)``."""
        w, rules = self.weights, self.rules
        card = np.arange(1, rules.kinds + 1)[:, None, None]
        top = view.sides[:, 0, games]
        score = self._discard_value[:, top]
        # The ranks that the pay-off card waits for, where they are fewest.
        needed = self._needed[view.height[:, games], view.payoff[games]]
        needed = needed[_size(needed).argmin(axis=0), np.arange(games.size)]
        score += w.bury_needed * ((self._rank_set[top] & needed > 0) & (top != card))
        held, is_needed = view.hand[:, games], self._rank_set[card[:, 0]] & needed > 0
        score += (w.keep_needed * (is_needed & (held == 1)) + w.duplicate * (held > 1))[:, None]
        first, last = self.actions.num_plays, self.actions.end_turn
        score = np.where(action_mask[:, first:last].T, score.reshape(-1, games.size), np.iinfo(np.intp).min)
        return np.where(action_mask[:, last], last, first + score.argmax(axis=0))


def _size(ranks: Array) -> Array:
    """Return how many ranks are in sets of them."""
    return ((ranks & _LOW_BITS) * _LOW_BITS >> np.uint64(44) & np.uint64(15)).astype(np.intp)


def _best_rows(game: Array, value: Array) -> tuple[Array, Array]:
    """Return the first row of the highest value of each game, and each row's number within its game."""
    starts = np.flatnonzero(np.append(True, game[1:] != game[:-1]))
    row = np.arange(game.size)
    # Value and row in one number, the earlier rows higher.
    best = np.maximum.reduceat((value << 32) - row, starts)
    return -best & 0xFFFFFFFF, row - np.repeat(starts, np.diff(np.append(starts, game.size)))
