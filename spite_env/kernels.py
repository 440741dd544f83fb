"""The core one game at a time: what NumPy does operation by operation over all games, as loops over games.

Where Numba is installed (the extra ``fast``), these functions are compiled, and :class:`~spite_env.game.Game` runs its
batches with them: one pass of machine code instead of a hundred over NumPy's arrays. Where it is not, a batch of one
still makes its decisions here, in plain Python on the bytes of its state, because a NumPy call costs as much for one
game as for a hundred. The tests compare all of this with the core, game by game.

A game's ``cells`` are its column of ``State.cells``. Functions for many games are given the games ``games`` of a
batch, int ``(k,)``, and the batch's cells ``all_cells``, which are ``State.padded_cells``.

Numba keeps what it has compiled in ``__pycache__``, or in its own cache where that can't be written to, as long as this
file stays the same: so all that is compiled together stands in it.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spite_env.rules import Rules
from spite_env.state import NO_WINNER, Bytes, Index, byte_fields, first_rows
from spite_env.streams import GOLDEN, Purpose, Words

if TYPE_CHECKING:
    from spite_env.game import Game
    from spite_env.observation import ObservationTable

#: The cells of one game, and a mask: what indexing by an integer reads and writes.
Cells: TypeAlias = Any

try:
    import numba
    from numba.np.unsafe.ndarray import to_fixed_tuple

    COMPILED = not numba.config.DISABLE_JIT
except Exception:  # not installed, or not in order: the core does without
    COMPILED = False


def inner(function: Any) -> Any:
    """Compile a function for others that call it."""
    return numba.njit(error_model="numpy")(function) if COMPILED else function


def inlined(function: Any) -> Any:
    """Compile a function into others that call it: handing over a layout would take longer than what it does."""
    return numba.njit(error_model="numpy", forceinline=True)(function) if COMPILED else function


def entry(function: Any) -> Any:
    """Compile a function that Python calls."""
    if not COMPILED:
        return function
    try:
        return numba.njit(error_model="numpy", cache=True)(function)
    except RuntimeError:  # no folder for the cache can be written to
        return numba.njit(error_model="numpy")(function)


#: What a move leads to.
_GOES_ON, COMPLETES_PILE, WINS, ENDS_TURN = range(4)

#: How a step leaves a game, if not won, or that it was not allowed; otherwise it is the winner.
ILLEGAL, GOES_ON, TRUNCATED = -4, -3, -2

#: The numbers of rules that name who starts, besides player 0 and 1.
_RANDOM, _HIGHER_PAYOFF = 2, 3
BY_RULES = {"random": _RANDOM, "higher_payoff": _HIGHER_PAYOFF}

_DEAL, _STARTER, _SHUFFLE = (np.uint64(purpose) for purpose in (Purpose.DEAL, Purpose.STARTER, Purpose.SHUFFLE))
_LOW_BYTE = np.uint64(0xFF)
_BUCKETS, _BUCKET_SHIFT = 128, np.uint64(57)
_BLOCK = 512  # games


class Layout(NamedTuple):
    """The rules as plain numbers, and the first row of each field in the cells of a game."""

    ranks: int
    kinds: int
    centers: int
    sides: int
    places: int
    hand_limit: int
    copies: int
    wilds: int
    payoff_size: int
    max_steps: int
    refills_mid_turn: bool
    sets_aside: bool
    puts_under: bool
    ends_when_empty: bool
    starter: int
    player: int
    hand: int
    hand_size: int
    pile_size: int
    pile_top: int
    side_tally: int
    center_size: int
    center_wild: int
    set_aside: int
    set_aside_size: int
    stock_size: int
    hidden: int
    seen: int
    stock: int
    pile: int


@functools.cache
def layout_of(rules: Rules) -> Layout:
    """Return the layout of a variant."""
    return Layout(
        ranks=rules.ranks,
        kinds=rules.kinds,
        centers=rules.center_piles,
        sides=rules.side_piles,
        places=byte_fields(rules)["pile"][-1],
        hand_limit=rules.hand_size,
        copies=rules.copies,
        wilds=rules.wilds,
        payoff_size=rules.payoff_size,
        max_steps=rules.max_steps,
        refills_mid_turn=rules.refill_mid_turn,
        sets_aside=rules.recycle == "set_aside",
        puts_under=rules.recycle == "bottom",
        ends_when_empty=rules.stock_end == "empty",
        **{name: row for name, row in first_rows(rules).items() if name in Layout._fields},
    )


@functools.cache
def layout_numbers(rules: Rules) -> NDArray[np.int64]:
    """Return the layout of a variant as the array that compiled functions are given."""
    return np.array(layout_of(rules))


class Plan(NamedTuple):
    """An observation table as plain numbers: places in natural units.

    Attributes:
        one_hot: Whether that is the encoding.
        kinds: Kinds of cards.
        depths: Cards of each side pile that are shown one by one.
        own_turn: Where the numbers begin.
        own_hand: Where the tallies begin.
        unseen: Where the cards begin that the viewer can't see.
        side_size: Where the sizes of all side piles begin, the viewer's first.
        side_cards: Where their cards begin.
        side_rest: Where the tallies of the rest of them begin.
    """

    one_hot: int
    kinds: int
    depths: int
    own_turn: int
    own_hand: int
    unseen: int
    side_size: int
    side_cards: int
    side_rest: int


def plan_of(table: ObservationTable) -> tuple[NDArray[np.int64], Index, Index, Index]:
    """Return what :func:`observe` has to know of a table.

    Returns:
        The numbers of its :class:`Plan`; the row of cells that each feature shows or starts from, by viewer; the row of
        place 0 of each side pile, by viewer; for each binary digit, whose it is, and which bit.
    """
    at = {name: place.start for name, place in table._natural.items()}
    plan = Plan(
        one_hot=table.encoding == "onehot",
        kinds=table.rules.kinds,
        depths=table.side_depth + 1,
        own_turn=at["own_turn"],
        own_hand=at["own_hand"],
        unseen=at["unseen"],
        side_size=at["own_side_size"],
        side_cards=at["own_side_cards"],
        side_rest=at["own_side_rest"],
    )
    return (
        np.array(plan),
        np.stack(table._sources),
        np.stack(table._first_places)[:, :, 0] + first_rows(table.rules)["pile"],
        np.stack((table._digit_place, table._digit_bit)),
    )


_LAYOUT_SIZE, _PLAN_SIZE = len(Layout._fields), len(Plan._fields)


@inlined
def _unpacked(layout: NDArray[np.int64]) -> Layout:
    """Return a layout from its numbers: an array is quick to hand over, a tuple of so many is not."""
    return Layout(*to_fixed_tuple(layout, _LAYOUT_SIZE))


@inlined
def _num_actions(layout: Layout) -> int:
    return layout.centers * (layout.sides + 3) + layout.kinds * layout.sides + 1


def write_legal(cells: Cells, layout: Layout, mask: Cells) -> None:
    """Write which actions are legal in a game that goes on."""
    kinds, piles = layout.kinds, layout.sides + 1
    player = cells[layout.player]
    hand = layout.hand + player * kinds
    tops = layout.pile_top + player * piles
    action = 0
    for center in range(layout.centers):
        height = cells[layout.center_size + center]
        for pile in range(piles):
            top = cells[tops + pile]
            mask[action] = top == height + 1 or top == kinds
            action += 1
        mask[action] = cells[hand + height] > 0
        mask[action + 1] = cells[hand + kinds - 1] > 0
        action += 2
    for card in range(kinds):
        held = cells[hand + card] > 0
        for _ in range(layout.sides):
            mask[action] = held
            action += 1
    mask[action] = cells[layout.hand_size + player] == 0


def move(cells: Cells, layout: Layout, action: int) -> int:
    """Move the card of a legal action, or none, and pass the turn where that ends it; return what it leads to."""
    kinds, sides = layout.kinds, layout.sides
    piles, num_plays = sides + 1, layout.centers * (sides + 3)
    player = cells[layout.player]
    hand = layout.hand + player * kinds - 1
    if action < num_plays:
        center = action // (sides + 3)
        source = action - center * (sides + 3)
        height = cells[layout.center_size + center]
        if source < piles:
            pile = player * piles + source
            card = cells[layout.pile_top + pile]
            size = cells[layout.pile_size + pile] - 1
            top = cells[layout.pile + pile * layout.places + size]
            cells[layout.pile_size + pile] = size
            cells[layout.pile_top + pile] = top
            if source > 0:
                cells[layout.side_tally + (player * sides + source - 1) * kinds + card - 1] -= 1
            elif size > 0:
                cells[layout.hidden + top - 1] -= 1
                cells[layout.seen + top - 1] += 1
                cells[layout.seen + kinds + top - 1] += 1
        else:
            card = height + 1 if source == piles else kinds
            cells[hand + card] -= 1
            cells[layout.hand_size + player] -= 1
            cells[layout.hidden + card - 1] -= 1
        cells[layout.center_size + center] = height + 1
        cells[layout.center_wild + center * layout.ranks + height] = card == kinds
        if cells[layout.pile_size + player * piles] == 0:
            return WINS
        return COMPLETES_PILE if height + 1 == layout.ranks else _GOES_ON
    rank = (action - num_plays) // sides
    if rank < kinds:
        side = action - num_plays - rank * sides
        pile = player * piles + 1 + side
        size = cells[layout.pile_size + pile] + 1
        cells[hand + rank + 1] -= 1
        cells[layout.hand_size + player] -= 1
        cells[layout.hidden + rank] -= 1
        cells[layout.pile_size + pile] = size
        cells[layout.pile_top + pile] = rank + 1
        cells[layout.pile + pile * layout.places + size] = rank + 1
        cells[layout.side_tally + (player * sides + side) * kinds + rank] += 1
    cells[layout.player] = 1 - player
    return ENDS_TURN


def refills(cells: Cells, layout: Layout, outcome: int) -> bool:
    """Return whether a hand is refilled after a move, which is then that of the player to move."""
    if outcome == ENDS_TURN:
        return True
    return layout.refills_mid_turn and outcome != WINS and cells[layout.hand_size + cells[layout.player]] == 0


def must_return(cells: Cells, layout: Layout) -> bool:
    """Return whether the set-aside cards go under the stock before a refill."""
    lack = layout.hand_limit - cells[layout.hand_size + cells[layout.player]]
    return cells[layout.set_aside_size] > 0 and lack > cells[layout.stock_size]


def draw(cells: Cells, layout: Layout) -> bool:
    """Refill the mover's hand; return whether the stock check then ends the game."""
    player = cells[layout.player]
    hand = layout.hand + player * layout.kinds - 1
    lack = layout.hand_limit - cells[layout.hand_size + player]
    stock = cells[layout.stock_size]
    left = max(stock - lack, 0)
    for place in range(left, stock):
        cells[hand + cells[layout.stock + place]] += 1
    cells[layout.stock_size] = left
    cells[layout.hand_size + player] += stock - left
    if lack > stock:
        return True
    return layout.ends_when_empty and left == 0 and cells[layout.set_aside_size] == 0


def legal_actions_alone(game: Game) -> NDArray[np.bool_]:
    """Return the legal actions of the only game of a batch, bool ``(n, 1)``, found in plain Python."""
    mask = np.zeros((game.actions.n, 1), np.bool_)
    if not game.state.over[0]:
        write_legal(game.state.flat_cells.data, game._layout, mask.view(np.uint8).reshape(-1).data)
    return mask


def step_alone(game: Game, action: int) -> None:
    """Make a legal decision in the only game of a batch, in plain Python."""
    state, layout = game.state, game._layout
    cells = state.flat_cells.data
    steps = int(state.steps[0]) + 1
    state.steps[0] = steps
    outcome = move(cells, layout, action)
    if outcome == WINS:
        game._end(game._all, cells[layout.player])
    elif outcome == COMPLETES_PILE:
        game._recycle(game._all, np.array([action // (layout.sides + 3)]))
    if refills(cells, layout, outcome):
        if must_return(cells, layout):
            game._return(game._all)
        if draw(cells, layout):
            game._end(game._all, NO_WINNER)
    if steps >= layout.max_steps and not state.over[0] and state.steps[0]:
        game._end(game._all, NO_WINNER, truncated=True)


_write_legal, _move, _refills, _must_return, _draw = map(inlined, (write_legal, move, refills, must_return, draw))


@inner
def _mix(word: Any) -> Any:
    """Do what :func:`streams.mix` does, for one number."""
    word = (word ^ (word >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    word = (word ^ (word >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return word ^ (word >> np.uint64(31))


@inner
def _combine(key: Any, value: Any) -> Any:
    """Do what :func:`streams.combine` does, for one key."""
    return _mix(_mix(key + GOLDEN) + np.uint64(value) * GOLDEN)


@inner
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
        place = ends[rider >> _BUCKET_SHIFT]
        ends[rider >> _BUCKET_SHIFT] += 1
        ordered[place] = rider
    for place in range(1, count):  # buckets hold a card or two: hardly anything is left to sort
        rider = ordered[place]
        while place > 0 and ordered[place - 1] > rider:
            ordered[place] = ordered[place - 1]
            place -= 1
        ordered[place] = rider
    for place in range(count):
        shuffled[place] = ordered[place] & _LOW_BYTE


@inner
def _hide(cells: Cells, layout: Layout, tally: Bytes) -> None:
    """Do what :meth:`Game._hide` does."""
    for kind in range(layout.kinds):
        copies = layout.copies if kind < layout.ranks else layout.wilds
        for player in range(2):
            known = copies - cells[layout.hidden + kind] + cells[layout.hand + player * layout.kinds + kind]
            row = layout.seen + player * layout.kinds + kind
            cells[row] = max(cells[row], known)
        cells[layout.hidden + kind] += tally[kind]


@inner
def _put_under_stock(cells: Cells, layout: Layout, cards: Bytes, count: int) -> None:
    size = cells[layout.stock_size]
    for place in range(size - 1, -1, -1):
        cells[layout.stock + place + count] = cells[layout.stock + place]
    for place in range(count):
        cells[layout.stock + place] = cards[place]
    cells[layout.stock_size] = size + count


@inner
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


@inner
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


@entry
def legal_actions(
    all_cells: Bytes, over: NDArray[np.bool_], numbers: NDArray[np.int64], games: Index, mask: Bytes
) -> None:
    """Write the legal actions of games, uint8 ``(n, k)``.

    For one game this is what :func:`write_legal` does; row by row, a processor does it for many games in one
    instruction.
    """
    layout = _unpacked(numbers)
    kinds, piles, count = layout.kinds, layout.sides + 1, games.size
    if count == 0:
        return
    follow, end_turn = _follow(games), mask.shape[0] - 1
    mover, heights = np.empty(count, np.uint8), np.empty((layout.centers, count), np.uint8)
    tops, held = np.empty((piles, count), np.uint8), np.empty((kinds, count), np.uint8)
    for place in range(count):
        mover[place] = all_cells[layout.player, games[place]]
    for pile in range(piles):
        row = layout.pile_top + pile
        _select(all_cells, (row, row + piles), games, follow, mover, tops, pile)
    for place in range(count):
        mask[end_turn, place] = 1
    for kind in range(kinds):
        row = layout.hand + kind
        _select(all_cells, (row, row + kinds), games, follow, mover, held, kind)
        for place in range(count):
            held[kind, place] = held[kind, place] > 0
            mask[end_turn, place] &= ~held[kind, place]
    for center in range(layout.centers):
        row = layout.center_size + center
        _select(all_cells, (row, row), games, follow, mover, heights, center)
        action = center * (piles + 2)
        for pile in range(piles):
            for place in range(count):
                top = tops[pile, place]
                mask[action + pile, place] = (top == np.uint8(heights[center, place] + 1)) | (top == np.uint8(kinds))
        for place in range(count):
            mask[action + piles, place] = held[heights[center, place], place]
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


@entry
def first_illegal(mask: Bytes, columns: Index, actions: Index) -> int:
    """Return the place of the first action that its column of a mask, uint8 ``(n, k)``, doesn't allow, or -1."""
    for place in range(actions.size):
        action = actions[place]
        if action < 0 or action >= mask.shape[0] or mask[action, columns[place]] == 0:
            return place
    return -1


@inner
def _follow(games: Index) -> bool:
    """Return whether the games stand one after the other, so that their cells can be copied as one piece."""
    for place in range(games.size):  # noqa: SIM110 (Numba compiles no generators)
        if games[place] != games[0] + place:
            return False
    return True


@inner
def _select(
    all_cells: Bytes, rows: tuple[int, int], games: Index, follow: bool, player: Bytes, to: Bytes, row: int
) -> None:
    """Copy some games' cells to a row: those in player 0's row, or in player 1's."""
    first, second = rows
    if follow:
        start = np.uintp(games[0])  # unsigned: an index that can't count from the end is one check less
        for place in range(games.size):
            game = start + np.uintp(place)
            zero, one = all_cells[first, game], all_cells[second, game]  # both loaded: no branch
            to[row, place] = one if player[place] else zero
    else:
        for place in range(games.size):
            zero, one = all_cells[first, games[place]], all_cells[second, games[place]]
            to[row, place] = one if player[place] else zero


@inlined
def _step(
    all_cells: Bytes,
    steps: NDArray[np.int32],
    keys: Words,
    shuffles: NDArray[np.uint32],
    layout: Layout,
    game: int,
    action: int,
) -> int:
    """Make a legal decision in a game, and return how that leaves it."""
    cells = all_cells[:, game]
    steps[game] += 1
    left = TRUNCATED if steps[game] >= layout.max_steps else GOES_ON
    outcome = _move(cells, layout, action)
    if outcome == WINS:
        left = cells[layout.player]
    elif outcome == COMPLETES_PILE:
        key = _shuffle_key(keys, shuffles, game) if not layout.sets_aside else np.uint64(0)
        _recycle(cells, layout, action // (layout.sides + 3), key)
    if _refills(cells, layout, outcome):
        if _must_return(cells, layout):
            _return(cells, layout, _shuffle_key(keys, shuffles, game))
        if _draw(cells, layout):
            left = NO_WINNER
    return left


@entry
def step(
    all_cells: Bytes,
    steps: NDArray[np.int32],
    keys: Words,
    shuffles: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    games: Index,
    actions: Index,
    outcomes: NDArray[np.int8],
) -> bool:
    """Make legal decisions, and write how they leave the games; return whether any has ended."""
    layout = _unpacked(numbers)
    ended = False
    for place in range(games.size):
        outcome = _step(all_cells, steps, keys, shuffles, layout, games[place], actions[place])
        outcomes[place] = outcome
        ended |= outcome != GOES_ON
    return ended


@entry
def step_if_legal(
    all_cells: Bytes,
    over: NDArray[np.bool_],
    steps: NDArray[np.int32],
    keys: Words,
    shuffles: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    game: int,
    action: int,
) -> int:
    """Make a decision in a game, and return how that leaves it; ``ILLEGAL`` is nothing done."""
    layout = _unpacked(numbers)
    mask = np.empty(_num_actions(layout), np.uint8)
    _write_legal(all_cells[:, game], layout, mask)
    if over[game] or not mask[action]:
        return ILLEGAL
    return _step(all_cells, steps, keys, shuffles, layout, game, action)


@entry
def play_on(
    all_cells: Bytes,
    steps: NDArray[np.int32],
    keys: Words,
    shuffles: NDArray[np.uint32],
    numbers: NDArray[np.int64],
    games: Index,
    seats: Index,
    plays: Index,
    first: int,
    seeds: Words,
    decisions: Words,
    outcomes: NDArray[np.int8],
    last_actions: Index,
) -> bool:
    """Make the decisions of a :class:`~spite_env.policies.PriorityPolicy` until ``seats`` are to move, or a game ends.

    ``seeds``, ``decisions`` and ``last_actions`` are those of all games, ``seats`` are those of ``games``.
    """
    layout = _unpacked(numbers)
    num_actions = _num_actions(layout)
    mask = np.empty(num_actions, np.uint8)
    ended = False
    for place in range(games.size):
        game, outcome = games[place], GOES_ON
        cells = all_cells[:, game]
        while outcome == GOES_ON and cells[layout.player] != seats[place]:
            _write_legal(cells, layout, mask)
            uniform = (_mix(_combine(seeds[game], decisions[game]) + GOLDEN) >> np.uint64(11)) * 2.0**-53
            decisions[game] += np.uint64(1)
            action = -1
            for play in plays:
                if mask[play]:
                    action = play
                    break
            if action < 0:
                count = 0
                for other in range(first, num_actions):
                    count += mask[other]
                left = int(uniform * count)
                action = first
                while mask[action] == 0 or left > 0:
                    left -= mask[action]
                    action += 1
            last_actions[game] = action
            outcome = _step(all_cells, steps, keys, shuffles, layout, game, action)
        outcomes[place] = outcome
        ended |= outcome != GOES_ON
    return ended


@inner
def _shuffle_key(keys: Words, shuffles: NDArray[np.uint32], game: int) -> Any:
    """Do what :meth:`Game._shuffle_keys` does."""
    occurrence = shuffles[game]
    shuffles[game] += 1
    return _combine(_combine(keys[game], _SHUFFLE), occurrence)


@entry
def start_streams(
    seeds: Words,
    episodes: Words,
    game_numbers: NDArray[np.uint16],
    keys: Words,
    shuffles: NDArray[np.uint32],
    games: Index,
) -> None:
    """Do what ``Game._start_streams`` does."""
    for game in games:
        keys[game] = _combine(_combine(seeds[game], episodes[game]), game_numbers[game])
        shuffles[game] = 0


@entry
def deal(
    all_cells: Bytes,
    keys: Words,
    numbers: NDArray[np.int64],
    games: Index,
    starters: NDArray[np.int8],
    by_rules: int,
) -> None:
    """Deal games. ``starters`` says who starts; where that is negative, ``by_rules`` does."""
    layout = _unpacked(numbers)
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


@entry
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


@entry
def observe(
    all_cells: Bytes,
    numbers: NDArray[np.int64],
    sources: Index,
    side_rows: Index,
    digits: Index,
    viewer: int,
    viewers: Bytes,
    games: Index,
    encoded: Bytes,
) -> None:
    """Write the views of games, uint8 ``(features, k)``, in blocks that stay in a processor's cache.

    The viewer is ``viewer``; if that is negative, the mover; if it is 2, each game has its own in ``viewers``.
    """
    plan = Plan(*to_fixed_tuple(numbers, _PLAN_SIZE))
    natural = np.empty((sources.shape[1], min(_BLOCK, games.size)), np.uint8)
    seats = np.empty(natural.shape[1], np.uint8)
    for start in range(0, games.size, _BLOCK):
        block = games[start : start + _BLOCK]
        for place in range(block.size):
            if viewer == 2:
                seats[place] = viewers[start + place]
            else:
                seats[place] = all_cells[sources[0, plan.own_turn], block[place]] if viewer < 0 else viewer
        _observe_block(all_cells, plan, sources, side_rows, seats, block, natural)
        if plan.one_hot:
            _write_one_hot(natural, block.size, plan, digits, encoded, start)
        else:
            _copy_rows(natural, 0, block.size, encoded, 0, start)


@entry
def look(
    all_cells: Bytes,
    over: NDArray[np.bool_],
    layout_numbers: NDArray[np.int64],
    numbers: NDArray[np.int64],
    sources: Index,
    side_rows: Index,
    digits: Index,
    game: int,
    viewer: int,
    encoded: Bytes,
    mask: Bytes,
) -> None:
    """Write a player's view of a game, uint8 ``(features,)``, and its legal actions, uint8 ``(n,)``."""
    layout = _unpacked(layout_numbers)
    viewers = np.full(1, viewer, np.uint8)
    observe(all_cells, numbers, sources, side_rows, digits, viewer, viewers, np.full(1, game), encoded.reshape(-1, 1))
    if over[game] or all_cells[layout.player, game] != viewer:
        mask[:] = 0
    else:
        _write_legal(all_cells[:, game], layout, mask)


@inner
def _observe_block(
    all_cells: Bytes, plan: Plan, sources: Index, side_rows: Index, viewers: Bytes, games: Index, natural: Bytes
) -> None:
    """Write the views of games in natural units."""
    kinds, count, follow = plan.kinds, games.size, _follow(games)
    for feature in range(natural.shape[0]):
        if count == 1:  # to start a loop over games would take longer than what it does
            natural[feature, 0] = all_cells[sources[viewers[0], feature], games[0]]
        else:
            _select(all_cells, (sources[0, feature], sources[1, feature]), games, follow, viewers, natural, feature)
    for place in range(count):
        natural[plan.own_turn, place] = natural[plan.own_turn, place] == viewers[place]
    for kind in range(kinds):
        for place in range(count):
            natural[plan.unseen + kind, place] -= natural[plan.own_hand + kind, place]
    for pile in range(side_rows.shape[1]):
        sizes, first, second = plan.side_size + pile, side_rows[0, pile], side_rows[1, pile]
        cards, rest = plan.side_cards + pile * plan.depths, plan.side_rest + pile * kinds - 1
        for depth in range(plan.depths):
            for place in range(count):
                below = max(np.int64(natural[sizes, place]) - depth, 0)
                row = (second if viewers[place] else first) + below
                card = all_cells[np.uintp(row), np.uintp(games[place])]
                natural[cards + depth, place] = card
                natural[np.uintp(rest + card), np.uintp(place)] -= card > 0  # without a branch


@inner
def _write_one_hot(natural: Bytes, count: int, plan: Plan, digits: Index, encoded: Bytes, start: int) -> None:
    """Write cards as flags, numbers as binary digits, and tallies as they are."""
    kinds, cards = plan.kinds, plan.own_turn
    feature = cards * kinds
    if count == 1:
        for flag in range(feature):
            encoded[flag, start] = 0
        for card in range(cards):
            if natural[card, 0] > 0:
                encoded[card * kinds + natural[card, 0] - 1, start] = 1
    else:
        for flag in range(feature):
            card, kind = flag // kinds, np.uint8(flag % kinds + 1)
            for place in range(count):
                encoded[flag, np.uintp(start + place)] = natural[card, place] == kind
    for digit in range(digits.shape[1]):
        row, bit = cards + digits[0, digit], np.uint8(digits[1, digit])
        for place in range(count):
            encoded[feature, np.uintp(start + place)] = (natural[row, place] >> bit) & np.uint8(1)
        feature += 1
    _copy_rows(natural, plan.own_hand, count, encoded, feature, start)


@inner
def _copy_rows(natural: Bytes, first: int, count: int, encoded: Bytes, feature: int, start: int) -> None:
    """Copy all rows from ``first`` on to the features from ``feature`` on."""
    for row in range(first, natural.shape[0]):
        for place in range(count):
            encoded[feature + row - first, np.uintp(start + place)] = natural[row, place]
