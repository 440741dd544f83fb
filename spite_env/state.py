"""The storage of the games: one array a field, with the game as the last axis.

Games last ("field-major") makes the inner loop of every NumPy operation run over all games, and a row of one field is
contiguous in memory.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from itertools import accumulate
from math import prod
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from spite_env.rules import Rules

#: The winner of a game that nobody has won.
NO_WINNER = -1

Index = NDArray[np.intp]
Bytes = NDArray[np.uint8]


def byte_fields(rules: Rules) -> dict[str, tuple[int, ...]]:
    """Return the shapes, without the axis of games, of the fields that are stored as uint8.

    A card is stored as its rank, 1 (ace) to ``rules.kinds`` (king); 0 is no card. Pile 0 of a player is the pay-off
    pile, pile ``1 + s`` the side pile ``s``. Cards of a pile stand bottom to top from place 1 on, so that the card at
    place ``size`` is its top, and none (place 0) if the pile is empty. What stands above a size means nothing.
    """
    kinds, piles, cards = rules.kinds, 1 + rules.side_piles, rules.num_cards
    return {
        "scores": (2,),
        "starter": (),
        "player": (),
        "hand": (2, kinds),
        "hand_size": (2,),
        "pile_size": (2, piles),
        "pile_top": (2, piles),
        "side_tally": (2, rules.side_piles, kinds),
        "center_size": (rules.center_piles,),
        "center_wild": (rules.center_piles, rules.ranks),
        "set_aside": (kinds,),
        "set_aside_size": (),
        "stock_size": (),
        "hidden": (kinds,),
        "seen": (2, kinds),
        "stock": (cards,),
        "pile": (2, piles, cards + 1),
    }


WIDE_FIELDS: dict[str, tuple[tuple[int, ...], DTypeLike]] = {
    "seed": ((), np.uint64),
    "episode": ((), np.uint64),
    "key": ((), np.uint64),
    "game_number": ((), np.uint16),
    "shuffles": ((), np.uint32),
    "steps": ((), np.int32),
    "points": ((2,), np.int16),
    "winner": ((), np.int8),
    "terminated": ((), np.bool_),
    "truncated": ((), np.bool_),
    "over": ((), np.bool_),
}


@functools.cache
def first_rows(rules: Rules) -> dict[str, int]:
    """Return the row at which each byte field begins in ``State.cells``."""
    shapes = byte_fields(rules)
    return dict(zip(shapes, accumulate(map(prod, shapes.values()), initial=0), strict=False))


class State:
    """The fields of ``num_games`` games, each an array of shape ``(*shape, num_games)``.

    Attributes:
        cells: uint8 ``(rows, num_games)``; all byte fields, one after the other. The named fields are views of it.
        padded_cells: The same with what pads each row to ``stride`` cells; C-contiguous.
        flat_cells: The same as one array, in which ``stride`` cells lie between the rows.
        flat: Each byte field's part of ``flat_cells``, from its first cell on.
        first_rows: Each byte field's first row in ``cells``.
    """

    player: Bytes  #: whose turn it is
    hand: Bytes  #: cards of each kind in each hand
    hand_size: Bytes
    pile: Bytes  #: the cards of each pay-off pile and side pile
    pile_size: Bytes
    pile_top: Bytes  #: the top card of each of these piles
    side_tally: Bytes  #: cards of each kind in each side pile
    center_size: Bytes
    center_wild: Bytes  #: 1 where the card at that height of a centre pile is a king
    set_aside: Bytes  #: cards of each kind that lie aside
    set_aside_size: Bytes
    stock: Bytes  #: bottom to top, from place 0 on
    stock_size: Bytes
    hidden: Bytes  #: cards of each kind that are not on the table for both to see
    seen: Bytes  #: cards of each kind that each player has seen, see :mod:`spite_env.information`
    starter: Bytes  #: who had the game's first turn
    scores: Bytes  #: points in the earlier games of the match
    seed: NDArray[np.uint64]
    episode: NDArray[np.uint64]  #: resets without a seed since the seed was given
    key: NDArray[np.uint64]  #: what the game's random numbers start from
    game_number: NDArray[np.uint16]  #: number of the game within its match
    shuffles: NDArray[np.uint32]  #: recycled piles and returns of set-aside cards so far
    steps: NDArray[np.int32]  #: decisions of this game so far
    points: NDArray[np.int16]  #: of the ended episode
    winner: NDArray[np.int8]  #: -1 is none
    terminated: NDArray[np.bool_]
    truncated: NDArray[np.bool_]
    over: NDArray[np.bool_]  #: waits for a reset

    def __init__(self, rules: Rules, num_games: int) -> None:
        self.rules = rules
        self.num_games = num_games
        # Rows a multiple of 512 bytes apart share few sets of a processor's caches, and throw each other out.
        self.stride = num_games + 64 * (num_games % 512 == 0)
        self.first_rows = first_rows(rules)
        shapes = byte_fields(rules)
        rows = np.zeros((sum(map(prod, shapes.values())), self.stride), np.uint8)
        self.padded_cells = rows
        self.flat_cells = rows.reshape(-1)
        self.cells = rows[:, :num_games]
        self.flat = {}
        for name, shape in shapes.items():
            first = self.first_rows[name]
            self.flat[name] = self.flat_cells[first * self.stride :]
            setattr(self, name, self.cells[first : first + prod(shape)].reshape(*shape, num_games))
        for name, (shape, dtype) in WIDE_FIELDS.items():
            setattr(self, name, np.zeros((*shape, num_games), dtype))

    @property
    def nbytes(self) -> int:
        """Bytes that the games take, all fields together."""
        return self.padded_cells.nbytes + sum(getattr(self, name).nbytes for name in WIDE_FIELDS)

    @staticmethod
    def row(rules: Rules, field: str, *index: Any) -> Index:
        """Return the rows in ``cells`` of a byte field, indexed like the field without its axis of games."""
        shape = byte_fields(rules)[field]
        rows: Index = first_rows(rules)[field] + np.arange(prod(shape)).reshape(shape)[index]
        return rows

    def clear_table(self, games: Index) -> None:
        """Take all cards off the table, and the turn from its player."""
        self.cells[self.first_rows["player"] : self.first_rows["stock"], games] = 0

    def take(self, games: Index) -> State:
        """Return an independent copy of some games, in the order asked for."""
        state = State(self.rules, games.size)
        np.take(self.cells, games, axis=1, out=state.cells, mode="clip")
        for name in WIDE_FIELDS:
            np.take(getattr(self, name), games, axis=-1, out=getattr(state, name), mode="clip")
        return state

    @classmethod
    def stacked(cls, states: Sequence[State]) -> State:
        """Return an independent copy of several states of the same rules as one, in their order."""
        cells = np.concatenate([state.cells for state in states], axis=1)
        wide = {name: np.concatenate([getattr(state, name) for state in states], axis=-1) for name in WIDE_FIELDS}
        return cls._restored(states[0].rules, cells, wide)

    @classmethod
    def _restored(cls, rules: Rules, cells: Bytes, wide: dict[str, NDArray[Any]]) -> State:
        state = cls(rules, cells.shape[1])
        state.cells[:] = cells
        for name, array in wide.items():
            getattr(state, name)[:] = array
        return state

    def __reduce__(self) -> tuple[Any, ...]:
        return State._restored, (self.rules, self.cells, {name: getattr(self, name) for name in WIDE_FIELDS})

    def __deepcopy__(self, memo: dict[int, Any]) -> State:
        return self.take(np.arange(self.num_games))
