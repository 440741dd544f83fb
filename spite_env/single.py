"""The rules of a decision once more, for one game at a time.

NumPy is fast over many games and slow for one: a call costs as much for one game as for a hundred. So a batch of one
makes its decisions here, in plain Python on the bytes of its state. Where Numba is installed (the extra ``fast``),
:mod:`spite_env.compiled` compiles these same functions, and runs them over batches of any size.

Only what happens at almost every decision is here: which actions are legal, a play, a discard, a draw. The rest is the
core's. The tests compare both, game by game.
"""

from __future__ import annotations

import functools
from collections.abc import MutableSequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from spite_env.rules import Rules
from spite_env.state import NO_WINNER, byte_fields, first_rows

if TYPE_CHECKING:
    from spite_env.game import Game

#: The cells of one game: a column of :attr:`State.cells`.
Cells: TypeAlias = MutableSequence[int]

#: What a move leads to.
GOES_ON, COMPLETES_PILE, WINS, ENDS_TURN = range(4)


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


def legal_actions(game: Game) -> NDArray[np.bool_]:
    """Return the legal actions of the only game, bool ``(n, 1)``."""
    mask = np.zeros((game.actions.n, 1), np.bool_)
    if not game.state.over[0]:
        write_legal(game.state.flat_cells.data, game._layout, mask.view(np.uint8).reshape(-1).data)
    return mask


def step(game: Game, action: int) -> None:
    """Make a legal decision in the only game."""
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


def write_legal(cells: Cells, layout: Layout, mask: MutableSequence[int]) -> None:
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
        return COMPLETES_PILE if height + 1 == layout.ranks else GOES_ON
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
