"""Positions: the whole state of one game as a JSON-able dict, in and out.

.. code-block:: python

    {"payoff": [["7", "A"], ["K"]],  # each player's pay-off pile
     "hands": [["A", "5", "K"], []],
     "sides": [[["2"], [], [], []], [[], [], [], []]],
     "centers": [["A", "K"], [], []],
     "stock": ["3", "9"],
     "set_aside": [],
     "turn": 0,
     "scores": [0, 0]}

Cards are the characters ``A 2..9 T J Q K``. Every pile runs bottom to top: the last pay-off card is the face-up one,
the last stock card is drawn next. Hands and set-aside cards come back sorted. A game started from a position goes on in
mid-turn, with neither a draw nor a check first.

``set_aside`` and ``scores`` may be left out. So may ``stock``: every card that is not named is then shuffled into it.
With a ``stock``, cards that are not named are out of the game.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.rules import Rules, checked_integer
from spite_env.state import Index, State
from spite_env.streams import Purpose

_KEYS = ("payoff", "hands", "sides", "centers", "stock", "set_aside", "turn", "scores")
_OPTIONAL = ("stock", "set_aside", "scores")

Cards = NDArray[np.uint8]


@dataclass(frozen=True)
class Position:
    """A checked position; cards are stored as in :class:`~spite_env.state.State`."""

    payoff: list[Cards]
    hands: list[Cards]
    sides: list[list[Cards]]
    centers: list[Cards]
    stock: Cards | None
    set_aside: Cards
    turn: int
    scores: list[int]

    def in_play(self) -> Cards:
        """Return all cards but those of the stock."""
        sides = [pile for piles in self.sides for pile in piles]
        return np.concatenate([*self.payoff, *self.hands, *sides, *self.centers, self.set_aside])


def in_options(options: Mapping[str, Any] | None) -> list[Any] | None:
    """Return the position in the options of an environment's reset, in a list; None where there is none.

    Raises:
        ValueError: an unknown option.
    """
    if options is not None and not isinstance(options, Mapping):
        raise ValueError(f"options={options!r} are not allowed; they are a dictionary, or None")
    for key in options or ():
        # PettingZoo's API test resets with {"options": 1}, so that key has to pass.
        if key not in ("position", "options"):
            raise ValueError(f"unknown option {key!r}; the only one is 'position'")
    return [options["position"]] if options and "position" in options else None


def parse(rules: Rules, positions: Sequence[Mapping[str, Any]], count: int) -> list[Position]:
    """Check positions.

    Raises:
        ValueError: not ``count`` of them, or an impossible one; the message says which and why.
    """
    if isinstance(positions, (Mapping, str)) or len(positions) != count:
        raise ValueError(f"positions must be a list of {count}, one for each game, got {positions!r}")
    parsed = []
    for number, position in enumerate(positions):
        try:
            parsed.append(_Parser(rules).parse(position))
        except ValueError as error:
            raise ValueError(f"position {number}: {error}" if count > 1 else f"position: {error}") from None
    return parsed


def place(state: State, games: Index, positions: list[Position]) -> None:
    """Set games to positions. Their random numbers must have been started before."""
    rules = state.rules
    for game, position in zip(games.tolist(), positions, strict=True):
        state.cells[:, game] = 0
        state.player[game] = state.starter[game] = position.turn
        state.scores[:, game] = position.scores
        for player in (0, 1):
            state.hand[player, :, game] = tally(rules, position.hands[player])
            state.hand_size[player, game] = position.hands[player].size
            for pile, cards in enumerate([position.payoff[player], *position.sides[player]]):
                state.pile[player, pile, 1 : cards.size + 1, game] = cards
                state.pile_size[player, pile, game] = cards.size
                state.pile_top[player, pile, game] = cards[-1] if cards.size else 0
            for side, cards in enumerate(position.sides[player]):
                state.side_tally[player, side, :, game] = tally(rules, cards)
        for center, cards in enumerate(position.centers):
            state.center_size[center, game] = cards.size
            state.center_wild[center, : cards.size, game] = cards == rules.kinds
        state.set_aside[:, game] = tally(rules, position.set_aside)
        state.set_aside_size[game] = position.set_aside.size
        stock = position.stock
        if stock is None:
            unnamed = np.array(rules.deck) - tally(rules, position.in_play())
            cards = np.repeat(np.arange(1, rules.kinds + 1, dtype=np.uint8), unnamed)
            stock = streams.shuffle(cards, streams.combine(state.key[[game]], Purpose.HIDDEN_STOCK))[0]
        state.stock[: stock.size, game] = stock
        state.stock_size[game] = stock.size
        hidden = [*(pile[:-1] for pile in position.payoff), *position.hands, stock]
        state.hidden[:, game] = tally(rules, np.concatenate(hidden))


def arrange_stock(state: State, game: int, cards: Sequence[str]) -> None:
    """Put the stock of one game into a given order, bottom to top; for tools.

    Raises:
        ValueError: not the cards that the stock holds.
    """
    stock = state.stock[: state.stock_size[game], game]
    if sorted(cards) != sorted(text(state.rules, stock)):
        raise ValueError(f"{cards!r} are not the cards of the stock, which are {text(state.rules, np.sort(stock))!r}")
    stock[:] = [state.rules.characters.index(card) + 1 for card in cards]


def read(state: State, game: int) -> dict[str, Any]:
    """Return the whole state of one game as a position.

    Raises:
        ValueError: no such game.
    """
    game = checked_integer("game", game, 0, state.num_games - 1)
    rules, piles = state.rules, range(1, 1 + state.rules.side_piles)
    heights = np.arange(1, rules.ranks + 1, dtype=np.uint8)

    def pile(player: int, number: int) -> list[str]:
        return text(rules, state.pile[player, number, 1 : 1 + state.pile_size[player, number, game], game])

    def center(number: int) -> list[str]:
        cards = np.where(state.center_wild[number, :, game], rules.kinds, heights)
        return text(rules, cards[: state.center_size[number, game]])

    return {
        "payoff": [pile(player, 0) for player in (0, 1)],
        "hands": [text(rules, untally(state.hand[player, :, game])) for player in (0, 1)],
        "sides": [[pile(player, number) for number in piles] for player in (0, 1)],
        "centers": [center(number) for number in range(rules.center_piles)],
        "stock": text(rules, state.stock[: state.stock_size[game], game]),
        "set_aside": text(rules, untally(state.set_aside[:, game])),
        "turn": int(state.player[game]),
        "scores": state.scores[:, game].tolist(),
    }


def text(rules: Rules, cards: NDArray[Any]) -> list[str]:
    """Return cards as characters."""
    characters = rules.characters
    return [characters[card - 1] for card in cards.tolist()]


def tally(rules: Rules, cards: Cards) -> NDArray[np.intp]:
    """Count the cards of each kind."""
    return np.bincount(cards, minlength=rules.kinds + 1)[1:]


def untally(counts: NDArray[Any]) -> Cards:
    """Return the sorted cards of a count by kind."""
    return np.repeat(np.arange(1, counts.size + 1, dtype=np.uint8), counts)


class _Parser:
    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def parse(self, position: Mapping[str, Any]) -> Position:
        rules = self.rules
        if not isinstance(position, Mapping):
            raise ValueError(f"{position!r} is no dict")
        for key in position:
            if key not in _KEYS:
                raise ValueError(f"unknown key {key!r}; the keys are {', '.join(_KEYS)}")
        for key in _KEYS:
            if key not in position and key not in _OPTIONAL:
                raise ValueError(f"the key {key!r} is missing")
        parsed = Position(
            payoff=self._piles("payoff", position["payoff"], 2),
            hands=self._piles("hands", position["hands"], 2),
            sides=[
                self._piles(f"sides of player {player}", piles, rules.side_piles)
                for player, piles in enumerate(self._sequence("sides", position["sides"], 2))
            ],
            centers=self._piles("centers", position["centers"], rules.center_piles),
            stock=self._cards("stock", position["stock"]) if "stock" in position else None,
            set_aside=self._cards("set_aside", position.get("set_aside", [])),
            turn=self._turn(position["turn"]),
            scores=self._scores(position.get("scores", [0, 0])),
        )
        for player in (0, 1):
            if not parsed.payoff[player].size:
                raise ValueError(f"the pay-off pile of player {player} is empty; it holds at least one card")
            if parsed.hands[player].size > rules.hand_size:
                raise ValueError(
                    f"the hand of player {player} holds {parsed.hands[player].size} cards; "
                    f"at most hand_size={rules.hand_size} are allowed"
                )
        for center, cards in enumerate(parsed.centers):
            self._check_center(center, cards)
        if parsed.set_aside.size and rules.recycle != "set_aside":
            raise ValueError(f"cards are set aside only with recycle='set_aside', not with {rules.recycle!r}")
        cards = parsed.in_play() if parsed.stock is None else np.concatenate([parsed.in_play(), parsed.stock])
        for card, named, held in zip(rules.characters, tally(rules, cards), rules.deck, strict=True):
            if named > held:
                raise ValueError(f"{named} cards {card!r} are named; the deck has {held}")
        return parsed

    def _check_center(self, center: int, cards: Cards) -> None:
        rules = self.rules
        if cards.size >= rules.ranks:
            raise ValueError(
                f"centre pile {center} has {cards.size} cards; it is complete at {rules.ranks}, and a complete pile is "
                "taken away"
            )
        wrong = np.flatnonzero((cards != rules.kinds) & (cards != np.arange(1, cards.size + 1)))
        if wrong.size:
            place = int(wrong[0])
            card, wanted, wild = (rules.characters[kind] for kind in (int(cards[place]) - 1, place, -1))
            raise ValueError(
                f"centre pile {center} is out of order: {card!r} at place {place}, where {wanted!r} or {wild!r} belongs"
            )

    def _piles(self, name: str, value: Any, count: int) -> list[Cards]:
        return [self._cards(f"{name} {number}", pile) for number, pile in enumerate(self._sequence(name, value, count))]

    def _sequence(self, name: str, value: Any, count: int) -> list[Any]:
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence) or len(value) != count:
            raise ValueError(f"{name} must be a list of {count}, got {value!r}")
        return list(value)

    def _cards(self, name: str, value: Any) -> Cards:
        if isinstance(value, (str, Mapping)) or not isinstance(value, Sequence):
            raise ValueError(f"{name} must be a list of cards, got {value!r}")
        for card in value:
            if not (isinstance(card, str) and len(card) == 1 and card in self.rules.characters):
                raise ValueError(f"{card!r} in {name} is no card; the cards are {' '.join(self.rules.characters)}")
        return np.array([self.rules.characters.index(card) + 1 for card in value], np.uint8)

    def _turn(self, value: Any) -> int:
        if isinstance(value, (bool, float)) or value not in (0, 1):
            raise ValueError(f"turn={value!r} is not allowed; it is 0 or 1")
        return int(value)

    def _scores(self, value: Any) -> list[int]:
        scores = self._sequence("scores", value, 2)
        most = 0 if self.rules.match_points is None else self.rules.match_points - 1
        for score in scores:
            if isinstance(score, bool) or not isinstance(score, (int, np.integer)) or not 0 <= score <= most:
                only = "; without match_points there are no scores" if most == 0 else ""
                raise ValueError(f"scores={value!r} is not allowed; each is an integer from 0 to {most}{only}")
        return [int(score) for score in scores]
