"""The core compiled: what NumPy does operation by operation over all games, as one loop of machine code over games.

:class:`~spite_env.game.Game` uses this module where Numba is installed, and does the same without it; the tests compare
both. Moves and draws are those of :mod:`spite_env.single`. The functions work on the games ``games`` of a batch, int
``(k,)``, whose cells are ``all_cells``, :attr:`State.cells`.

Numba keeps what it has compiled in ``__pycache__``, or in its own cache where that can't be written to.
"""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from spite_env import single, streams
from spite_env.observation import Plan
from spite_env.single import COMPLETES_PILE, WINS, Cells, Layout
from spite_env.state import NO_WINNER, Bytes, Index
from spite_env.streams import GOLDEN, Purpose, Words

jit = numba.njit(cache=True, error_model="numpy")

#: How a step leaves a game that nobody has won; otherwise it is the winner.
GOES_ON, TRUNCATED = -3, -2

#: The numbers of rules that name who starts, besides player 0 and 1.
_RANDOM, _HIGHER_PAYOFF = 2, 3
BY_RULES = {"random": _RANDOM, "higher_payoff": _HIGHER_PAYOFF}

_DEAL, _STARTER, _SHUFFLE = (np.uint64(purpose) for purpose in (Purpose.DEAL, Purpose.STARTER, Purpose.SHUFFLE))
_BLOCK = 256  # games
_LOW_BYTE = np.uint64(0xFF)
_BUCKETS, _BUCKET_SHIFT = 128, np.uint64(57)

_write_legal, _move, _refills, _must_return, _draw = map(
    jit, (single.write_legal, single.move, single.refills, single.must_return, single.draw)
)
_mix = jit(streams.mix)


@jit
def _combine(key: Any, value: Any) -> Any:
    """Do what :func:`streams.combine` does, for one key."""
    return _mix(_mix(key + GOLDEN) + np.uint64(value) * GOLDEN)


@jit
def _shuffle(cards: Bytes, count: int, key: Any, shuffled: Cells) -> None:
    """Write cards in a random order, as :func:`streams.shuffle` does: sorted by random numbers that they ride on."""
    riders = np.empty(count, np.uint64)
    ends = np.zeros(_BUCKETS + 1, np.int64)
    for place in range(count):
        key += GOLDEN
        riders[place] = _mix(key) & ~_LOW_BYTE | np.uint64(cards[place])
        ends[(riders[place] >> _BUCKET_SHIFT) + np.uint64(1)] += 1
    for bucket in range(_BUCKETS):
        ends[bucket + 1] += ends[bucket]
    ordered = np.empty(count, np.uint64)
    for rider in riders:
        bucket = rider >> _BUCKET_SHIFT
        place = ends[bucket]
        ends[bucket] += 1
        ordered[place] = rider
    for place in range(1, count):  # buckets hold a card or two: hardly anything is left to sort
        rider = ordered[place]
        while place > 0 and ordered[place - 1] > rider:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = rider
    for place in range(count):
        shuffled[place] = ordered[place] & _LOW_BYTE


@jit
def _hide(cells: Cells, layout: Layout, tally: Bytes) -> None:
    """Do what :meth:`Game._hide` does."""
    for kind in range(layout.kinds):
        copies = layout.copies if kind < layout.ranks else layout.wilds
        for player in range(2):
            known = copies - cells[layout.hidden + kind] + cells[layout.hand + player * layout.kinds + kind]
            row = layout.seen + player * layout.kinds + kind
            cells[row] = max(cells[row], known)
        cells[layout.hidden + kind] += tally[kind]


@jit
def _put_under_stock(cells: Cells, layout: Layout, cards: Bytes, count: int) -> None:
    size = cells[layout.stock_size]
    for place in range(size - 1, -1, -1):
        cells[layout.stock + place + count] = cells[layout.stock + place]
    for place in range(count):
        cells[layout.stock + place] = cards[place]
    cells[layout.stock_size] = size + count


@jit
def _recycle(cells: Cells, layout: Layout, center: int, key: Any) -> None:
    """Do what :meth:`Game._recycle` does."""
    ranks, stock = layout.ranks, np.int64(cells[layout.stock_size])
    cards = np.empty(ranks + stock, np.uint8)
    tally = np.zeros(layout.kinds, np.uint8)
    for height in range(ranks):
        wild = layout.center_wild + center * ranks + height
        cards[height] = layout.kinds if cells[wild] else height + 1
        cells[wild] = 0
        tally[cards[height] - 1] += 1
    cells[layout.center_size + center] = 0
    if layout.sets_aside:
        for kind in range(layout.kinds):
            cells[layout.set_aside + kind] += tally[kind]
        cells[layout.set_aside_size] += ranks
        return
    _hide(cells, layout, tally)
    if layout.puts_under:
        _shuffle(cards, ranks, key, cards)
        _put_under_stock(cells, layout, cards, ranks)
        return
    for place in range(stock):
        cards[ranks + place] = cells[layout.stock + place]
    _shuffle(cards, ranks + stock, key, cells[layout.stock :])
    cells[layout.stock_size] = stock + ranks


@jit
def _return(cells: Cells, layout: Layout, key: Any) -> None:
    """Do what :meth:`Game._return` does."""
    count = np.int64(cells[layout.set_aside_size])
    cards, tally = np.empty(count, np.uint8), np.empty(layout.kinds, np.uint8)
    place = 0
    for kind in range(layout.kinds):
        tally[kind] = cells[layout.set_aside + kind]
        cells[layout.set_aside + kind] = 0
        for _ in range(tally[kind]):
            cards[place] = kind + 1
            place += 1
    cells[layout.set_aside_size] = 0
    _shuffle(cards, count, key, cards)
    _put_under_stock(cells, layout, cards, count)
    _hide(cells, layout, tally)


@jit
def legal_actions(all_cells: Bytes, over: NDArray[np.bool_], layout: Layout, games: Index, mask: Bytes) -> None:
    """Write the legal actions of games, uint8 ``(n, k)``.

    For one game this is what :func:`spite_env.single.write_legal` does; row by row, a processor does it for many games
    in one instruction.
    """
    kinds, piles, count = layout.kinds, layout.sides + 1, games.size
    follow, end_turn = _follow(games), mask.shape[0] - 1
    mover, height = np.empty(count, np.uint8), np.empty(count, np.uint8)
    tops, held = np.empty((piles, count), np.uint8), np.empty((kinds, count), np.uint8)
    own = all_cells[layout.player]
    _select(own, own, games, follow, mover, mover)
    for pile in range(piles):
        row = layout.pile_top + pile
        _select(all_cells[row], all_cells[row + piles], games, follow, mover, tops[pile])
    for place in range(count):
        mask[end_turn, place] = 1
    for kind in range(kinds):
        row = layout.hand + kind
        _select(all_cells[row], all_cells[row + kinds], games, follow, mover, held[kind])
        for place in range(count):
            held[kind, place] = held[kind, place] > 0
            mask[end_turn, place] &= ~held[kind, place]
    for center in range(layout.centers):
        own = all_cells[layout.center_size + center]
        _select(own, own, games, follow, mover, height)
        action = center * (piles + 2)
        for pile in range(piles):
            for place in range(count):
                top = tops[pile, place]
                mask[action + pile, place] = (top == np.uint8(height[place] + 1)) | (top == np.uint8(kinds))
        for place in range(count):
            mask[action + piles, place] = held[height[place], place]
            mask[action + piles + 1, place] = held[kinds - 1, place]
    action = layout.centers * (piles + 2)
    for kind in range(kinds):
        for _ in range(layout.sides):
            for place in range(count):
                mask[action, place] = held[kind, place]
            action += 1
    for place in range(count):
        if over[games[place]]:
            for action in range(end_turn + 1):
                mask[action, place] = 0


@jit
def _follow(games: Index) -> bool:
    """Return whether the games stand one after the other, so that their cells can be copied as one piece."""
    for place in range(games.size):
        if games[place] != games[0] + place:
            return False
    return True


@jit
def _select(first: Bytes, second: Bytes, games: Index, follow: bool, player: Bytes, selected: Bytes) -> None:
    """Copy some games' cells of player 0's row, or of player 1's."""
    count = games.size
    if follow:
        first, second = first[games[0] :], second[games[0] :]
        for place in range(count):
            zero, one = first[place], second[place]  # both loaded: no branch
            selected[place] = one if player[place] else zero
    else:
        for place in range(count):
            zero, one = first[games[place]], second[games[place]]
            selected[place] = one if player[place] else zero


@jit
def step(
    all_cells: Bytes,
    steps: NDArray[np.int32],
    keys: Words,
    shuffles: NDArray[np.uint32],
    layout: Layout,
    games: Index,
    actions: Index,
    outcomes: NDArray[np.int8],
) -> bool:
    """Make legal decisions, and write how they leave the games; return whether any has ended."""
    ended = False
    for place in range(games.size):
        game, action = games[place], actions[place]
        cells = all_cells[:, game]
        steps[game] += 1
        outcomes[place] = TRUNCATED if steps[game] >= layout.max_steps else GOES_ON
        outcome = _move(cells, layout, action)
        if outcome == WINS:
            outcomes[place] = cells[layout.player]
        elif outcome == COMPLETES_PILE:
            _recycle(cells, layout, action // (layout.sides + 3), _shuffle_key(keys, shuffles, game, layout.sets_aside))
        if _refills(cells, layout, outcome):
            if _must_return(cells, layout):
                _return(cells, layout, _shuffle_key(keys, shuffles, game, False))
            if _draw(cells, layout):
                outcomes[place] = NO_WINNER
        ended |= outcomes[place] != GOES_ON
    return ended


@jit
def _shuffle_key(keys: Words, shuffles: NDArray[np.uint32], game: int, skip: bool) -> Any:
    """Do what :meth:`Game._shuffle_keys` does."""
    occurrence = shuffles[game]
    if not skip:
        shuffles[game] += 1
    return _combine(_combine(keys[game], _SHUFFLE), occurrence)


@jit
def deal(
    all_cells: Bytes,
    keys: Words,
    layout: Layout,
    games: Index,
    starters: NDArray[np.int8],
    by_rules: int,
) -> None:
    """Deal games. ``starters`` says who starts; where that is negative, ``by_rules`` does."""
    kinds, payoff, hand = layout.kinds, layout.payoff_size, layout.hand_limit
    num_cards = layout.ranks * layout.copies + layout.wilds
    deck, cards = np.empty(num_cards, np.uint8), np.empty(num_cards, np.uint8)
    for place in range(num_cards):
        deck[place] = kinds if place >= layout.ranks * layout.copies else place // layout.copies + 1
    for place in range(games.size):
        game = games[place]
        cells = all_cells[:, game]
        key = _combine(keys[game], _DEAL)
        _shuffle(deck, num_cards, _combine(key, 0), cards)
        starter = starters[place]
        if starter < 0 and by_rules == _HIGHER_PAYOFF:
            attempt = 0
            while cards[payoff - 1] == cards[2 * payoff - 1]:
                attempt += 1
                _shuffle(deck, num_cards, _combine(key, attempt), cards)
            starter = cards[2 * payoff - 1] > cards[payoff - 1]
        elif starter < 0 and by_rules == _RANDOM:
            starter = _mix(_combine(keys[game], _STARTER) + GOLDEN) >> np.uint64(63)
        elif starter < 0:
            starter = by_rules

        for row in range(layout.player, layout.stock):
            cells[row] = 0
        cells[layout.starter] = starter
        cells[layout.player] = starter
        for kind in range(kinds):
            cells[layout.hidden + kind] = layout.copies if kind < layout.ranks else layout.wilds
        for player in range(2):
            pile = player * (layout.sides + 1)
            for card in range(payoff):
                cells[layout.pile + pile * layout.places + 1 + card] = cards[player * payoff + card]
            top = cards[(player + 1) * payoff - 1]
            cells[layout.pile_size + pile] = payoff
            cells[layout.pile_top + pile] = top
            cells[layout.hidden + top - 1] -= 1
            cells[layout.hand_size + player] = hand
            for card in range(hand):
                cells[layout.hand + player * kinds + cards[2 * payoff + player * hand + card] - 1] += 1
        stock = num_cards - 2 * (payoff + hand)
        for card in range(stock):
            cells[layout.stock + card] = cards[2 * (payoff + hand) + card]
        cells[layout.stock_size] = stock


@jit
def random_legal_actions(mask: Bytes, uniform: NDArray[np.float64]) -> Index:
    """Do what :func:`spite_env.policies.random_legal_actions` does, for a mask uint8 ``(n, k)``."""
    num_actions, games = mask.shape
    passed, wanted = np.zeros(games, np.uint16), np.empty(games, np.uint16)
    chosen = np.zeros(games, np.uint16)
    for action in range(num_actions):
        for place in range(games):
            passed[place] += mask[action, place]
    for place in range(games):
        wanted[place] = np.uint16(uniform[place] * passed[place])
        passed[place] = 0
    for action in range(num_actions):
        for place in range(games):
            passed[place] += mask[action, place]
            chosen[place] += passed[place] <= wanted[place]
    return chosen.astype(np.intp)


@jit
def observe(all_cells: Bytes, plan: Plan, kinds: int, viewers: Bytes, games: Index, encoded: Bytes) -> None:
    """Write the views of games, uint8 ``(features, k)``, in blocks that stay in a processor's cache."""
    natural = np.empty((plan.sources.shape[1], _BLOCK), np.uint8)
    for start in range(0, games.size, _BLOCK):
        block = games[start : start + _BLOCK]
        seen = natural[:, : block.size]
        _observe_block(all_cells, plan, kinds, viewers[start:], block, seen)
        if plan.one_hot:
            _write_one_hot(seen, plan, kinds, encoded[:, start:])
        else:
            _copy_rows(seen, encoded[:, start:])


@jit
def _observe_block(all_cells: Bytes, plan: Plan, kinds: int, viewers: Bytes, games: Index, natural: Bytes) -> None:
    """Write the views of games in natural units."""
    count, follow = games.size, _follow(games)
    for feature in range(natural.shape[0]):
        first, second = all_cells[plan.sources[0, feature]], all_cells[plan.sources[1, feature]]
        _select(first, second, games, follow, viewers, natural[feature])
    for place in range(count):
        natural[plan.own_turn, place] = natural[plan.own_turn, place] == viewers[place]
    for kind in range(kinds):
        for place in range(count):
            natural[plan.unseen + kind, place] -= natural[plan.own_hand + kind, place]
    for pile in range(plan.side_rows.shape[1]):
        for place in range(count):
            size, row = np.int64(natural[plan.side_size + pile, place]), plan.side_rows[viewers[place], pile]
            for depth in range(plan.depths):
                card = all_cells[row + max(size - depth, 0), games[place]]
                natural[plan.side_cards + pile * plan.depths + depth, place] = card
                natural[plan.side_rest + pile * kinds + card - 1, place] -= card > 0  # without a branch


@jit
def _write_one_hot(natural: Bytes, plan: Plan, kinds: int, encoded: Bytes) -> None:
    """Write cards as flags, numbers as binary digits, and tallies as they are."""
    count, cards, feature = natural.shape[1], plan.own_turn, 0
    for card in range(cards):
        for kind in range(1, kinds + 1):
            for place in range(count):
                encoded[feature, place] = natural[card, place] == np.uint8(kind)
            feature += 1
    for digit in range(plan.digit_places.size):
        row, bit = cards + plan.digit_places[digit], plan.digit_bits[digit]
        for place in range(count):
            encoded[feature, place] = (natural[row, place] >> bit) & np.uint8(1)
        feature += 1
    _copy_rows(natural[plan.own_hand :], encoded[feature:])


@jit
def _copy_rows(rows: Bytes, copied: Bytes) -> None:
    for row in range(rows.shape[0]):
        for place in range(rows.shape[1]):
            copied[row, place] = rows[row, place]
