"""The policies that plan by rules, one game at a time: what ``playout`` and ``expert`` run where Numba is installed.

Each entry does what the policy's ``act`` does on NumPy's arrays, action for action; the tests compare them. What a
policy values stands there alone, and comes as numbers and tables.

``cells`` are a game's observation, in natural units; sets of ranks have four bits a rank, see
:func:`agents.ranks.rank_words`. As in :mod:`spite_env.kernels`, all that is compiled together stands in this file.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from spite_env.kernels import COMPILED, Cells, entry, inner
from spite_env.observation import ObservationTable
from spite_env.state import Bytes, Index

if COMPILED:
    from numba.np.unsafe.ndarray import to_fixed_tuple

Numbers = NDArray[np.int64]

_LOW_BITS = 0x1111_1111_1111
_NOTHING = -(2**62)


class View(NamedTuple):
    """The rules as plain numbers, and where an observation's slices begin.

    ``depths`` is the number of cards of each side pile that are shown one by one.
    """

    ranks: int
    kinds: int
    centers: int
    sides: int
    depths: int
    own_payoff_top: int
    opponent_payoff_top: int
    center_height: int
    own_side_cards: int
    opponent_side_cards: int
    own_payoff_size: int
    stock_size: int
    set_aside_size: int
    own_hand: int


def view_of(table: ObservationTable) -> Numbers:
    """Return the numbers of a compact table's :class:`View`."""
    rules = table.rules
    starts = {name: place.start for name, place in table.slices.items() if name in View._fields}
    sizes = (rules.ranks, rules.kinds, rules.center_piles, rules.side_piles, table.side_depth + 1)
    return np.array(View(*sizes, **starts))


def run(policy: Any, observation: Bytes, tables: tuple[Numbers, ...]) -> Index:
    """Return the actions, int ``(n,)``, of an entry below that is given its tables, for observations ``(n, features)``."""
    actions = np.empty(len(observation), np.intp)
    policy(np.require(observation.T, np.uint8, ["C", "W"]), *tables, actions)  # Numba compiles anew for any other array
    return actions


class PlayoutWeights(NamedTuple):
    """What ``playout`` values besides gaps and discards, see there."""

    hand_card: int
    side_card: int
    most_kings: int
    bury_needed: int
    keep_needed: int
    duplicate: int


_VIEW_SIZE, _PLAYOUT_SIZE = len(View._fields), len(PlayoutWeights._fields)


@inner
def _size(ranks: int) -> int:
    """Return how many ranks are in a set."""
    return ((ranks & _LOW_BITS) * _LOW_BITS >> 44) & 15


@inner
def _clipped(values: Numbers, place: int) -> Any:
    return values[min(place, values.size - 1)]


@inner
def _fitting_center(cells: Cells, view: View) -> int:
    """Return the first centre pile that the pay-off card fits on, or -1."""
    payoff = cells[view.own_payoff_top]
    for center in range(view.centers):
        if payoff == view.kinds or cells[view.center_height + center] + 1 == payoff:
            return center
    return -1


@inner
def _discard(cells: Cells, view: View, wanted: int, weights: Any, card_set: Numbers, values: Numbers) -> int:
    """Return the best discard, or ``end_turn`` where the hand is empty."""
    num_plays = view.centers * (view.sides + 3)
    chosen, best = num_plays + view.kinds * view.sides, _NOTHING
    for card in range(1, view.kinds + 1):
        held = cells[view.own_hand + card - 1]
        if held == 0:
            continue
        keep = weights.duplicate if held > 1 else weights.keep_needed if card_set[card] & wanted else 0
        for side in range(view.sides):
            top = cells[view.own_side_cards + side * view.depths]
            value = values[card - 1, top] + keep
            if top != card and card_set[top] & wanted:
                value += weights.bury_needed
            if value > best:
                chosen, best = num_plays + (card - 1) * view.sides + side, value
    return chosen


@inner
def _gaps(needed: Numbers, payoff: int, at_hand: int, worth: Numbers, to: Numbers) -> None:
    """Write what it is worth to a player to lack as many ranks below the pay-off card, by the height of a pile."""
    for height in range(to.size):
        to[height] = _clipped(worth, _size(needed[height, payoff] & ~at_hand))


@entry
def playout(
    natural: Bytes,
    view_numbers: Numbers,
    weight_numbers: Numbers,
    card_set: Numbers,
    needed: Numbers,
    discard_value: Numbers,
    own_gap_worth: Numbers,
    opponent_gap_worth: Numbers,
    actions: Index,
) -> None:
    """Write what :class:`~agents.playout.PlayoutPolicy` does in games, of which it sees ``(features, games)``."""
    view = View(*to_fixed_tuple(view_numbers, _VIEW_SIZE))
    weights = PlayoutWeights(*to_fixed_tuple(weight_numbers, _PLAYOUT_SIZE))
    own, opponent = np.empty(view.ranks, np.int64), np.empty(view.ranks, np.int64)
    num_sources = view.sides + 3
    for game in range(actions.size):
        cells = natural[:, game]
        center = _fitting_center(cells, view)
        if center >= 0:
            actions[game] = center * num_sources
            continue
        payoff, hand, kings = cells[view.own_payoff_top], view.own_hand - 1, cells[view.own_hand + view.ranks]
        held = on_sides = opponent_at_hand = 0
        for card in range(1, view.kinds):
            if cells[hand + card]:
                held |= card_set[card]
        for side in range(view.sides):
            on_sides |= card_set[cells[view.own_side_cards + side * view.depths]]
            opponent_at_hand |= card_set[cells[view.opponent_side_cards + side * view.depths]]
        at_hand = held | on_sides

        # The way to the pay-off card that takes the fewest kings, and then the fewest plays.
        wanted, fewest, least = 0, 16, 256
        for other in range(view.centers):
            lacking = needed[cells[view.center_height + other], payoff]
            gap = _size(lacking & ~at_hand)
            if gap < fewest:
                wanted, fewest = lacking, gap
            if gap * 16 + _size(lacking) < least:
                center, least = other, gap * 16 + _size(lacking)
        if cells[view.own_payoff_size] > 1:
            kings = min(kings, weights.most_kings)
        if fewest > kings:  # else the play that is worth most
            _gaps(needed, payoff, at_hand, own_gap_worth, own)
            _gaps(needed, cells[view.opponent_payoff_top], opponent_at_hand, opponent_gap_worth, opponent)
            center, best = -1, _standing(cells, view, -1, own, opponent)
            for other in range(view.centers):
                card = card_set[cells[view.center_height + other] + 1]
                if card & at_hand:
                    card_worth = weights.side_card if card & on_sides else weights.hand_card
                    value = _standing(cells, view, other, own, opponent) + card_worth
                    if value > best:
                        center, best = other, value
        if center < 0:
            actions[game] = _discard(cells, view, wanted, weights, card_set, discard_value)
        else:
            rank = cells[view.center_height + center] + 1
            source = view.sides + 1 if cells[hand + rank] else view.sides + 2
            for side in range(view.sides):
                if cells[view.own_side_cards + side * view.depths] == rank:
                    source = 1 + side
                    break
            actions[game] = center * num_sources + source


@inner
def _standing(cells: Cells, view: View, played: int, own: Numbers, opponent: Numbers) -> Any:
    """Return what the gaps of both players are worth once a card is on the centre pile ``played`` (-1: none)."""
    best, worst = _NOTHING, -_NOTHING
    for center in range(view.centers):
        height = cells[view.center_height + center]
        if center == played:
            height = (height + 1) % view.ranks
        best, worst = max(best, own[height]), min(worst, opponent[height])
    return best + worst
