"""What a player sees: one table of named slices, from which the space, the encoder and the documentation come.

An observation is made from the viewer's side: "own" is the viewer's, "opponent" the other player's. It shows every
public fact, but of the order of side-pile cards only what lies within ``side_depth`` of the top: the cards below are
counted by rank. Nothing in it depends on a card that the viewer can't see.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from typing import Any, Literal

import numpy as np
from gymnasium.spaces import Box
from numpy.typing import NDArray

from spite_env.acceleration import kernels
from spite_env.rules import MAX_COUNT, Rules, checked_integer
from spite_env.state import Bytes, Index, State, byte_fields

_NO_VIEWERS = np.empty(0, np.uint8)

Kind = Literal["card", "number", "tally"]

#: How each kind of slice is written in each encoding.
ENCODINGS: dict[str, dict[Kind, str]] = {
    "compact": {
        "card": "the rank, 1 (ace) to kinds (king); 0: no card",
        "number": "the number",
        "tally": "a count for each rank or place",
    },
    "onehot": {
        "card": "one flag for each rank, ace to king; all 0: no card",
        "number": "binary digits, lowest first",
        "tally": "a count for each rank or place",
    },
}


@dataclass(frozen=True)
class Slice:
    """One named part of an observation.

    Attributes:
        name: Its name; ``own_`` is the viewer's, ``opponent_`` the other player's.
        kind: How it is encoded, see :data:`ENCODINGS`.
        shape: Its shape in natural units, flattened row by row in the observation.
        high: The largest value in natural units (the smallest is 0).
        meaning: What it says.
        field: The field of :class:`~spite_env.state.State` that it shows, or starts from.
        part: The first and last (exclusive) place that it takes of that field, or of the player's share of it.
    """

    name: str
    kind: Kind
    shape: tuple[int, ...]
    high: int
    meaning: str
    field: str
    part: tuple[int, int | None] = (0, None)

    @property
    def size(self) -> int:
        """Values in natural units."""
        return prod(self.shape)

    def width(self, encoding: str, kinds: int) -> int:
        """Features in an encoding."""
        if encoding == "onehot" and self.kind == "card":
            return self.size * kinds
        if encoding == "onehot" and self.kind == "number":
            return self.size * self.high.bit_length()
        return self.size


def observation_slices(rules: Rules, side_depth: int) -> tuple[Slice, ...]:
    """Return the table of slices; those of one kind stand together."""
    kinds, sides, centers, cards = rules.kinds, rules.side_piles, rules.center_piles, rules.num_cards
    shown = (sides, side_depth + 1)
    most, hand = max(rules.deck), rules.hand_size
    payoff, side = (0, 1), (1, None)
    return (
        Slice("own_payoff_top", "card", (1,), kinds, "face-up pay-off card", "pile_top", payoff),
        Slice("opponent_payoff_top", "card", (1,), kinds, "face-up pay-off card", "pile_top", payoff),
        Slice("center_height", "card", (centers,), kinds, "rank that each centre pile has reached", "center_size"),
        Slice("own_side_cards", "card", shown, kinds, "top cards of each side pile, top first", "pile_top", side),
        Slice("opponent_side_cards", "card", shown, kinds, "top cards of each side pile, top first", "pile_top", side),
        Slice("own_turn", "number", (1,), 1, "1 if the viewer is to move, or was when the game ended", "player"),
        Slice("own_payoff_size", "number", (1,), cards, "cards left in the pay-off pile", "pile_size", payoff),
        Slice("opponent_payoff_size", "number", (1,), cards, "cards left in the pay-off pile", "pile_size", payoff),
        Slice("own_hand_size", "number", (1,), hand, "cards in hand", "hand_size"),
        Slice("opponent_hand_size", "number", (1,), hand, "cards in hand", "hand_size"),
        Slice("own_side_size", "number", (sides,), cards, "cards in each side pile", "pile_size", side),
        Slice("opponent_side_size", "number", (sides,), cards, "cards in each side pile", "pile_size", side),
        Slice("stock_size", "number", (1,), cards, "cards in the stock", "stock_size"),
        Slice("set_aside_size", "number", (1,), cards, "cards that lie aside", "set_aside_size"),
        Slice("own_score", "number", (1,), MAX_COUNT, "points in the match's earlier games", "scores"),
        Slice("opponent_score", "number", (1,), MAX_COUNT, "points in the match's earlier games", "scores"),
        Slice("own_hand", "tally", (kinds,), min(most, hand), "cards of each rank in the hand", "hand"),
        Slice("own_side_rest", "tally", (sides, kinds), most, "cards of each rank below those shown", "side_tally"),
        Slice(
            "opponent_side_rest", "tally", (sides, kinds), most, "cards of each rank below those shown", "side_tally"
        ),
        Slice("center_wild", "tally", (centers, rules.ranks), 1, "1 where the card is a king", "center_wild"),
        Slice("set_aside", "tally", (kinds,), most, "cards of each rank that lie aside", "set_aside"),
        Slice("unseen", "tally", (kinds,), most, "cards of each rank in the game that the viewer can't see", "hidden"),
    )


class ObservationTable:
    """The layout of an observation, and its encoder.

    Args:
        rules: The variant.
        encoding: ``"onehot"`` (flags and small counts, what a plain network learns from) or ``"compact"`` (natural
            units, for storage and for networks that embed ranks).
        side_depth: Cards below the top of each side pile that are shown one by one.

    Attributes:
        table: The :class:`Slice` rows.
        slices: Each slice's place in an observation, by name.
        n: Number of features.
        high: The largest value of each feature, uint8 ``(n,)``; the smallest is 0.

    Raises:
        ValueError: an unknown encoding or an impossible depth.
    """

    def __init__(self, rules: Rules, encoding: str = "onehot", side_depth: int = 3) -> None:
        if encoding not in ENCODINGS:
            raise ValueError(f"encoding={encoding!r} is not allowed; it is one of {', '.join(map(repr, ENCODINGS))}")
        side_depth = checked_integer("side_depth", side_depth, 0, rules.num_cards)
        self.rules = rules
        self.encoding = encoding
        self.side_depth = side_depth
        self.table = observation_slices(rules, side_depth)
        self.slices = self._places(encoding)
        self.n = self.slices[self.table[-1].name].stop
        self.high = np.ones(self.n, np.uint8)
        for row in self.table:
            if encoding == "compact" or row.kind == "tally":
                self.high[self.slices[row.name]] = row.high

        self._natural = self._places("compact")
        self._sources = [np.concatenate([self._cells_of(row, viewer) for row in self.table]) for viewer in (0, 1)]
        self._both_sides = {
            what: slice(self._natural[f"own_{what}"].start, self._natural[f"opponent_{what}"].stop)
            for what in ("side_size", "side_cards", "side_rest")
        }
        self._ranks = np.arange(1, rules.kinds + 1, dtype=np.uint8)[:, None]
        self._depths = np.arange(side_depth + 1)[:, None]
        piles = np.arange(2 * (1 + rules.side_piles)).reshape(2, -1)[:, 1:]
        firsts = piles * byte_fields(rules)["pile"][-1]
        self._first_places = [firsts[order].reshape(-1, 1) for order in ([0, 1], [1, 0])]
        numbers = [row for row in self.table if row.kind == "number"]
        bits = [(row.high.bit_length(), row.size) for row in numbers]
        self._digit_bit = np.concatenate([np.tile(np.arange(width), size) for width, size in bits]).astype(np.uint8)
        self._digit_place = np.repeat(np.arange(sum(size for _, size in bits)), np.repeat(*np.array(bits).T))

    @property
    def space(self) -> Box:
        """The Gymnasium space of one observation, uint8 ``(n,)``."""
        return Box(np.zeros(self.n, np.uint8), self.high, dtype=np.uint8)

    def describe(self) -> str:
        """Return the layout as a Markdown table."""
        lines = ["| features | slice | shape | kind | up to | meaning |", "|---|---|---|---|---|---|"]
        for row in self.table:
            place = self.slices[row.name]
            shape = " x ".join(map(str, row.shape))
            lines.append(
                f"| {place.start}:{place.stop} | `{row.name}` | {shape} | {row.kind} | {row.high} | {row.meaning} |"
            )
        return "\n".join(lines)

    def encode(
        self,
        state: State,
        viewer: int | Bytes | None = None,
        games: Index | None = None,
        compiled: bool = False,
    ) -> Bytes:
        """Return a player's view of all games (or of some), uint8 ``(games, n)``.

        The viewer is player 0 or 1, one of them for each game (uint8), or None, which is the mover.
        """
        if compiled:
            return self._encode_compiled(state, viewer, np.arange(state.num_games) if games is None else games)
        natural = self._encode_natural(state, viewer, games)
        if self.encoding == "compact":
            return natural.T
        kinds = self.rules.kinds
        cards, numbers, tallies = _split(natural, self._natural)
        encoded = np.empty((self.n, natural.shape[1]), np.uint8)
        flags, digits, counts = _split(encoded, self.slices)
        np.equal(cards[:, None], self._ranks, out=flags.reshape(len(cards), kinds, -1).view(np.bool_))
        np.right_shift(numbers[self._digit_place], self._digit_bit[:, None], out=digits)
        digits &= 1
        counts[:] = tallies
        return encoded.T

    @functools.cached_property
    def _plan(self) -> Any:
        return kernels().plan_of(self)

    def _encode_compiled(self, state: State, viewer: int | Bytes | None, games: Index) -> Bytes:
        encoded = np.empty((self.n, games.size), np.uint8)
        if viewer is None or isinstance(viewer, int):
            whose = (-1 if viewer is None else viewer, _NO_VIEWERS)
        else:
            whose = (2, viewer)
        kernels().observe(state.padded_cells, *self._plan, *whose, games, encoded)
        return encoded.T

    def _encode_natural(self, state: State, viewer: int | Bytes | None, games: Index | None) -> Bytes:
        """Return the features in natural units, uint8 ``(features, games)``."""
        cells = state.cells if games is None else state.cells[:, games]
        mover = state.player[slice(None) if games is None else games]
        if isinstance(viewer, int):
            natural = cells[self._sources[viewer]]
            first_places = self._first_places[viewer]
        else:
            viewer = mover if viewer is None else viewer
            natural = cells[self._sources[0]]
            natural ^= (natural ^ cells[self._sources[1]]) & (np.uint8(0) - viewer)
            first_places = np.where(viewer == 0, *self._first_places)
        natural[self._natural["own_turn"]] = mover == viewer
        # What the cells hold in these places is only the start of what the slices show.
        places, sides, ranks = self._natural, self._both_sides, self._ranks
        natural[places["unseen"]] -= natural[places["own_hand"]]
        columns = np.arange(state.num_games) if games is None else games
        place = np.maximum(natural[sides["side_size"]][:, None].astype(np.intp) - self._depths, 0)
        place += first_places[:, None]
        place *= state.stride
        place += columns
        window = state.flat["pile"][place]  # by side pile and depth, the viewer's piles first
        natural[sides["side_cards"]] = window.reshape(self._depths.size * 2 * self.rules.side_piles, mover.size)
        rest = natural[sides["side_rest"]].reshape(2 * self.rules.side_piles, self.rules.kinds, mover.size)
        rest -= (window[:, :, None] == ranks).view(np.uint8).sum(axis=1, dtype=np.uint8)
        return natural

    def _places(self, encoding: str) -> dict[str, slice]:
        stops = np.cumsum([row.width(encoding, self.rules.kinds) for row in self.table]).tolist()
        return {row.name: slice(*ends) for row, ends in zip(self.table, pairwise([0, *stops]), strict=True)}

    def _cells_of(self, row: Slice, viewer: int) -> NDArray[np.intp]:
        """Return the rows of ``State.cells`` that a slice shows, or starts from."""
        cells = State.row(self.rules, row.field)
        if row.name.startswith(("own_", "opponent_")) and row.field != "player":
            cells = cells[viewer if row.name.startswith("own_") else 1 - viewer]
        cells = np.atleast_1d(cells)[slice(*row.part)]
        return np.repeat(cells, row.size // cells.size)


def _split(features: Bytes, places: dict[str, slice]) -> tuple[Bytes, Bytes, Bytes]:
    """Split features into the cards, the numbers and the tallies."""
    numbers, tallies = places["own_turn"].start, places["own_hand"].start
    return features[:numbers], features[numbers:tallies], features[tallies:]
