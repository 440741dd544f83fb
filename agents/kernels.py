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

from spite_env.kernels import COMPILED, Cells, entry, inlined
from spite_env.observation import ObservationTable
from spite_env.state import Bytes, Index
from spite_env.streams import GOLDEN, Words

if COMPILED:
    from numba.np.unsafe.ndarray import to_fixed_tuple

Numbers = NDArray[np.int64]

_LOW_BITS = 0x1111_1111_1111
_NOTHING = -(2**62)
_BLOCK = 64  # games


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
    """Return the actions, int ``(n,)``, that an entry below chooses by its tables for ``(n, features)``."""
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


@inlined
def _size(ranks: int) -> int:
    """Return how many ranks are in a set."""
    return ((ranks & _LOW_BITS) * _LOW_BITS >> 44) & 15


@inlined
def _raised(height: int, view: View) -> int:
    """Return the height of a centre pile after a play: a completed one is cleared."""
    return height + 1 if height + 1 < view.ranks else 0


@inlined
def _clipped(values: Numbers, place: int) -> Any:
    return values[min(place, values.size - 1)]


@inlined
def _look(natural: Bytes, first: int, seen: Bytes) -> None:
    """Copy what the policies read of some games, game by game: so it lies close together in a processor's cache."""
    for feature in range(seen.shape[1]):
        for place in range(min(seen.shape[0], natural.shape[1] - first)):
            seen[place, feature] = natural[feature, first + place]


@inlined
def _fitting_center(cells: Cells, view: View, spared: int) -> int:
    """Return the first centre pile that takes the pay-off card, rather one that doesn't open ``spared``; or -1."""
    payoff, fitting = cells[view.own_payoff_top], -1
    for center in range(view.centers):
        height = cells[view.center_height + center]
        if payoff == view.kinds or height + 1 == payoff:
            if height + 2 != spared:
                return center
            if fitting < 0:
                fitting = center
    return fitting


@inlined
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


@inlined
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
    seen = np.empty((_BLOCK, view.own_hand + view.kinds), np.uint8)
    for game in range(actions.size):
        if game % _BLOCK == 0:
            _look(natural, game, seen)
        cells = seen[game % _BLOCK]
        center = _fitting_center(cells, view, 0)
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


@inlined
def _standing(cells: Cells, view: View, played: int, own: Numbers, opponent: Numbers) -> Any:
    """Return what the gaps of both players are worth once a card is on the centre pile ``played`` (-1: none)."""
    best, worst = _NOTHING, -_NOTHING
    for center in range(view.centers):
        height = cells[view.center_height + center]
        if center == played:
            height = _raised(height, view)
        best, worst = max(best, own[height]), min(worst, opponent[height])
    return best + worst


class ExpertWeights(NamedTuple):
    """What ``expert`` values besides the opponent's gap and discards, and the bounds of its search, see there."""

    hand_card: int
    short_stock: int
    short_stock_hand_card: int
    empty_hand: int
    king: int
    most_kings: int
    bury_needed: int
    keep_needed: int
    duplicate: int
    goal: int
    goal_king: int
    width: int


class _Tables(NamedTuple):
    """What the search of a turn is given, and what it works out of a game's observation."""

    card_set: Numbers
    needed: Numbers
    card_key: Words
    height_key: Words
    opponent_gap_worth: Numbers
    below: Numbers  #: the ranks from each card of each side pile on
    side_key: Words  #: a word for the cards from each of these on
    opponent_gap: Numbers  #: how many ranks the opponent lacks, by the height of a centre pile; -1: not counted yet
    opponent_piles: Words  #: the opponent's side piles, see ``_open_gap``
    piles: Words  #: room for them


_EXPERT_SIZE = len(ExpertWeights._fields)

# What a position within a turn holds, one row of numbers: then follow the heights of the centre piles, and how many
# cards are gone from each side pile.
_FIRST, _KINGS, _HELD, _HAND, _WILDS, _VALUE, _HEIGHTS = range(7)

_LOW_24 = np.uint64(0xFFFFFF)
_CARD, _TOP = np.uint64(4), np.uint64(15)


@inlined
def _side_card(cells: Cells, view: View, first: int, side: int, place: int) -> Any:
    return cells[first + side * view.depths + place] if place < view.depths else np.uint8(0)


@inlined
def _open_gap(piles: Words, tops: int, view: View, payoff: int, height: int, most: int) -> int:
    """Do what ``ExpertPolicy._open_gap`` does, for one height, and count up to ``most``.

    ``piles`` are words with four bits a card, the top in the lowest; they are used up. ``tops`` is a bit for each top.
    """
    gap, need = 0, height + 1
    while need != payoff and gap < most:
        card = need if tops >> need & 1 else view.kinds
        if tops >> card & 1:
            tops = 0
            for side in range(view.sides):
                if piles[side] & _TOP == card:
                    piles[side] >>= _CARD
                tops |= 1 << int(piles[side] & _TOP)
        else:
            gap += 1
        need = need + 1 if need < view.ranks else 1
    return gap


@inlined
def _least_opponent_gap(node: Numbers, cells: Cells, view: View, tables: _Tables) -> Any:
    """Return how many ranks the opponent lacks on the centre pile where it lacks fewest."""
    payoff = cells[view.opponent_payoff_top]
    most = max(tables.opponent_gap_worth.size - 1, 2)  # so that a gap of 1 is told from a wider one
    least = most
    for center in range(view.centers):
        height = node[_HEIGHTS + center]
        if tables.opponent_gap[height] < 0:
            tops = 0
            for side in range(view.sides):
                tables.piles[side] = tables.opponent_piles[side]
                tops |= 1 << int(tables.piles[side] & _TOP)
            count = most if payoff < view.kinds else 0
            tables.opponent_gap[height] = _open_gap(tables.piles, tops, view, payoff, height, count)
        least = min(least, tables.opponent_gap[height])
    return least


@inlined
def _start(cells: Cells, view: View, root: Numbers, tables: _Tables) -> None:
    """Write the position before the turn's plays, and what is to know of the game's side piles."""
    root[:] = 0
    root[_FIRST] = -1
    for kind in range(view.kinds):
        held = int(cells[view.own_hand + kind])
        root[_HELD] += held
        if kind < view.ranks:
            root[_HAND] |= min(held, 15) << 4 * kind
        else:
            root[_WILDS] = held
    for center in range(view.centers):
        root[_HEIGHTS + center] = cells[view.center_height + center]
    for side in range(view.sides):
        below, key = 0, np.uint64(0)
        for place in range(view.depths, -1, -1):
            card = _side_card(cells, view, view.own_side_cards, side, place)
            below |= tables.card_set[card]
            key = key * GOLDEN + tables.card_key[card]
            tables.below[side, place] = below
            tables.side_key[side, place] = key ^ key >> np.uint64(31)
        pile = np.uint64(0)
        for place in range(view.depths - 1, -1, -1):
            pile = pile << _CARD | np.uint64(cells[view.opponent_side_cards + side * view.depths + place])
        tables.opponent_piles[side] = pile
    tables.opponent_gap[:] = -1


@inlined
def _evaluate(node: Numbers, cells: Cells, view: View, weights: ExpertWeights, tables: _Tables, hand_card: int) -> Any:
    """Write what a position is worth, and return how many ranks below the pay-off card are nowhere at hand."""
    payoff, at_hand, gap, goal = cells[view.own_payoff_top], node[_HAND], view.ranks, False
    for side in range(view.sides):
        at_hand |= tables.below[side, node[_HEIGHTS + view.centers + side]]
    at_hand |= at_hand >> 1
    at_hand |= at_hand >> 2
    for center in range(view.centers):
        height = node[_HEIGHTS + center]
        goal |= height + 1 == payoff
        gap = min(gap, _size(tables.needed[height, payoff] & ~at_hand))
    value = hand_card * node[_HELD]
    value += _clipped(tables.opponent_gap_worth, _least_opponent_gap(node, cells, view, tables))
    value += weights.empty_hand if node[_HELD] == 0 else 0
    value += weights.goal - weights.goal_king * node[_KINGS] if goal else weights.king * node[_KINGS]
    node[_VALUE] = value
    return gap


@inlined
def _key_after(key: Any, node: Numbers, center: int, source: int, view: View, tables: _Tables) -> Any:
    """Return the word for the position after a play."""
    height = node[_HEIGHTS + center]
    key += tables.height_key[_raised(height, view)] - tables.height_key[height]
    if source < view.sides:
        place = node[_HEIGHTS + view.centers + source]
        return key + tables.side_key[source, place + 1] - tables.side_key[source, place]
    return key + tables.card_key[height + 1 if source == view.sides else view.kinds]


@inlined
def _play(node: Numbers, cells: Cells, view: View, center: int, source: int) -> None:
    """Make a play."""
    height = node[_HEIGHTS + center]
    node[_HEIGHTS + center] = _raised(height, view)
    if node[_FIRST] < 0:
        node[_FIRST] = center * (view.sides + 3) + source + 1
    if source < view.sides:
        place = _HEIGHTS + view.centers + source
        node[_KINGS] += _side_card(cells, view, view.own_side_cards, source, node[place]) == view.kinds
        node[place] += 1
        return
    node[_HELD] -= 1
    if source == view.sides:
        node[_HAND] -= 1 << 4 * height
    else:
        node[_WILDS] -= 1
        node[_KINGS] += 1


@inlined
def _plays(node: Numbers, cells: Cells, view: View, most_kings: int, center: int, source: int) -> bool:
    """Return whether a play is legal and worth a look."""
    height = node[_HEIGHTS + center]
    if source == view.sides:
        return node[_HAND] >> 4 * height & 15 > 0
    if source < view.sides:
        top = _side_card(cells, view, view.own_side_cards, source, node[_HEIGHTS + view.centers + source])
        if top != view.kinds:
            return top == height + 1
    elif node[_WILDS] == 0:
        return False
    return node[_KINGS] < most_kings


@inlined
def _may_better(node: Numbers, worth: int, weights: ExpertWeights) -> bool:
    """Return whether to go on from a position: one that reaches the pay-off card is only bettered by fewer kings."""
    if node[_VALUE] >= weights.goal // 2:
        return False
    return worth < weights.goal - weights.goal_king * node[_KINGS] - weights.goal_king // 2


@inlined
def _is_repeated(node: Numbers, center: int) -> bool:
    """Return whether an earlier centre pile is as high."""
    for other in range(center):  # noqa: SIM110 (Numba compiles no generators)
        if node[_HEIGHTS + other] == node[_HEIGHTS + center]:
            return True
    return False


@inlined
def _sort(words: Words, count: int) -> None:
    """Sort the first words (by Shell's method: there are rarely more than a few)."""
    gap = count
    while gap > 1:
        gap = max(5 * gap // 11, 1)
        for place in range(gap, count):
            word = words[place]
            while place >= gap and words[place - gap] > word:
                words[place] = words[place - gap]
                place -= gap
            words[place] = word


@inlined
def _best_play(
    cells: Cells,
    view: View,
    weights: ExpertWeights,
    tables: _Tables,
    nodes: NDArray[np.int64],
    keys: Words,
    marks: Words,
) -> int:
    """Do what ``ExpertPolicy._plays`` does where the pay-off card doesn't fit."""
    most_kings = int(cells[view.own_hand + view.ranks])
    for place in range(view.own_side_cards, view.own_side_cards + view.sides * view.depths):
        most_kings += cells[place] == view.kinds
    if cells[view.own_payoff_size] > 1:
        most_kings = min(most_kings, weights.most_kings)
    stock = int(cells[view.stock_size]) + int(cells[view.set_aside_size])
    hand_card = weights.short_stock_hand_card if stock <= weights.short_stock else weights.hand_card

    root = nodes[0, 0]
    keys[0, 0] = 0
    _start(cells, view, root, tables)
    _evaluate(root, cells, view, weights, tables, hand_card)
    at_risk = _least_opponent_gap(root, cells, view, tables) <= 1
    chosen, best, count, now = -1, root[_VALUE], 1, 0
    while count > 0:
        # A mark is 40 bits of the position's key, by which they are sorted, and 24 that tell how it came about.
        found, worth = 0, best
        for row in range(count):
            node = nodes[now, row]
            if _may_better(node, worth, weights):
                for center in range(view.centers):
                    if _is_repeated(node, center):
                        continue
                    for source in range(view.sides + 2):
                        if _plays(node, cells, view, most_kings, center, source):
                            key = _key_after(keys[now, row], node, center, source, view, tables)
                            way = (center * (view.sides + 2) + source) * weights.width + row
                            marks[found] = key & ~_LOW_24 | np.uint64(way)
                            found += 1
        _sort(marks, found)
        before, now, count = now, 1 - now, 0
        for number in range(found):
            if number > 0 and marks[number] ^ marks[number - 1] <= _LOW_24:
                continue  # the same position
            way = int(marks[number] & _LOW_24)
            row, play = way % weights.width, way // weights.width
            center, source = play // (view.sides + 2), play % (view.sides + 2)
            node, parent = nodes[now, count], nodes[before, row]
            for field in range(node.size):
                node[field] = parent[field]
            keys[now, count] = _key_after(keys[before, row], node, center, source, view, tables)
            _play(node, cells, view, center, source)
            gap = _evaluate(node, cells, view, weights, tables, hand_card)
            # A king is for the pay-off card, or one of them to deny the opponent its own.
            kings = node[_KINGS]
            if kings > 0 and kings + gap > most_kings and not (at_risk and kings == 1):
                continue
            if node[_VALUE] > best:
                chosen, best = node[_FIRST], node[_VALUE]
            count = min(count + 1, weights.width)
    return chosen


@entry
def expert(
    natural: Bytes,
    view_numbers: Numbers,
    weight_numbers: Numbers,
    card_set: Numbers,
    needed: Numbers,
    discard_value: Numbers,
    opponent_gap_worth: Numbers,
    card_key: Words,
    height_key: Words,
    actions: Index,
) -> None:
    """Write what :class:`~agents.expert.ExpertPolicy` does in games, of which it sees ``(features, games)``."""
    view = View(*to_fixed_tuple(view_numbers, _VIEW_SIZE))
    weights = ExpertWeights(*to_fixed_tuple(weight_numbers, _EXPERT_SIZE))
    tables = _Tables(
        card_set,
        needed,
        card_key,
        height_key,
        opponent_gap_worth,
        np.empty((view.sides, view.depths + 1), np.int64),
        np.empty((view.sides, view.depths + 1), np.uint64),
        np.empty(view.ranks, np.int64),
        np.empty(view.sides, np.uint64),
        np.empty(view.sides, np.uint64),
    )
    nodes = np.empty((2, weights.width + 1, _HEIGHTS + view.centers + view.sides), np.int64)
    keys = np.empty((2, weights.width + 1), np.uint64)
    marks = np.empty(weights.width * min(view.centers, view.ranks) * (view.sides + 2), np.uint64)
    seen = np.empty((_BLOCK, view.own_hand + view.kinds), np.uint8)
    for game in range(actions.size):
        if game % _BLOCK == 0:
            _look(natural, game, seen)
        cells = seen[game % _BLOCK]
        center = _fitting_center(cells, view, cells[view.opponent_payoff_top])
        action = center * (view.sides + 3)
        if center < 0:
            action = _best_play(cells, view, weights, tables, nodes, keys, marks)
        if action < 0:
            # The ranks that the pay-off card waits for, where they are fewest.
            wanted, fewest = 0, 16
            for center in range(view.centers):
                lacking = needed[cells[view.center_height + center], cells[view.own_payoff_top]]
                if _size(lacking) < fewest:
                    wanted, fewest = lacking, _size(lacking)
            action = _discard(cells, view, wanted, weights, card_set, discard_value)
        actions[game] = action
