"""The core's two hot paths once more, for a batch of one: plain Python on the bytes of the state.

A NumPy call costs as much for one game as for a hundred, so what is fast for thousands of games is slow for one. Only
what happens at almost every decision is here: which actions are legal, a play, a discard, a draw. The rest (dealing,
recycling, returning set-aside cards, ending) is the core's. The tests compare both, game by game.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from spite_env.state import NO_WINNER

if TYPE_CHECKING:
    from spite_env.game import Game


def legal_actions(game: Game) -> NDArray[np.bool_]:
    """Return the legal actions of the only game, bool ``(n, 1)``."""
    rules, state = game.rules, game.state
    if state.over[0]:
        return np.zeros((game.actions.n, 1), np.bool_)
    player, kinds, piles = int(state.player[0]), rules.kinds, 1 + rules.side_piles
    tops = state.pile_top[player].tobytes()
    held = [count > 0 for count in state.hand[player].tobytes()]
    flags: list[bool] = []
    for size in state.center_size.tobytes():
        flags += [top in (size + 1, kinds) for top in tops]
        flags += (held[size], held[-1])
    for card in held:
        flags += [card] * (piles - 1)
    flags.append(not any(held))
    return np.array(flags, np.bool_)[:, None]


def step(game: Game, action: int) -> None:
    """Make a legal decision in the only game."""
    rules, state = game.rules, game.state
    row = state.first_rows
    cells = state.flat_cells.data
    player, kinds, piles = cells[row["player"]], rules.kinds, 1 + rules.side_piles
    hand, hand_size = row["hand"] + player * kinds - 1, row["hand_size"] + player
    hidden, seen, places = row["hidden"] - 1, row["seen"] - 1, rules.num_cards + 1
    steps = int(state.steps[0]) + 1
    state.steps[0] = steps
    if action < game.actions.num_plays:
        center, source = divmod(action, game.actions.num_sources)
        height = cells[row["center_size"] + center]
        pile = player * piles + source
        if source < piles:
            card = cells[row["pile_top"] + pile]
            size = cells[row["pile_size"] + pile] - 1
            cells[row["pile_size"] + pile] = size
            top = cells[row["pile"] + pile * places + size]
            cells[row["pile_top"] + pile] = top
            if source == 0 and size:
                cells[hidden + top] -= 1
                cells[seen + top] += 1
                cells[seen + kinds + top] += 1
            elif source:
                cells[row["side_tally"] + (player * (piles - 1) + source - 1) * kinds + card - 1] -= 1
        else:
            card = height + 1 if source == piles else kinds
            cells[hand + card] -= 1
            cells[hand_size] -= 1
            cells[hidden + card] -= 1
        cells[row["center_size"] + center] = height + 1
        cells[row["center_wild"] + center * rules.ranks + height] = card == kinds
        if not cells[row["pile_size"] + player * piles]:
            game._end(game._all, player)
        else:
            if height + 1 == rules.ranks:
                game._recycle(game._all, np.array([center]))
            if rules.refill_mid_turn and not cells[hand_size]:
                _refill(game, cells, player)
    else:
        if action != game.actions.end_turn:
            rank, side = divmod(action - game.actions.num_plays, piles - 1)
            card, pile = rank + 1, player * piles + 1 + side
            size = cells[row["pile_size"] + pile] + 1
            cells[hand + card] -= 1
            cells[hand_size] -= 1
            cells[hidden + card] -= 1
            cells[row["pile_size"] + pile] = size
            cells[row["pile_top"] + pile] = card
            cells[row["pile"] + pile * places + size] = card
            cells[row["side_tally"] + (player * (piles - 1) + side) * kinds + rank] += 1
        cells[row["player"]] = 1 - player
        _refill(game, cells, 1 - player)
    if steps >= rules.max_steps and not state.over[0] and state.steps[0]:
        game._end(game._all, NO_WINNER, truncated=True)


def _refill(game: Game, cells: memoryview, player: int) -> None:
    """Refill a hand; then the stock check."""
    rules, row = game.rules, game.state.first_rows
    hand, hand_size, stock_size = row["hand"] + player * rules.kinds - 1, row["hand_size"] + player, row["stock_size"]
    lack = rules.hand_size - cells[hand_size]
    if lack > cells[stock_size] and cells[row["set_aside_size"]]:
        game._return(game._all)
    stock = cells[stock_size]
    drawn = min(lack, stock)
    for place in range(stock - 1, stock - 1 - drawn, -1):
        cells[hand + cells[row["stock"] + place]] += 1
    cells[stock_size] = stock - drawn
    cells[hand_size] += drawn
    empty = rules.stock_end == "empty" and stock == drawn and not cells[row["set_aside_size"]]
    if drawn < lack or empty:
        game._end(game._all, NO_WINNER)
