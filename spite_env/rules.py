"""What the game is: the numbers and the house rules of one variant of Spite & Malice.

The rules follow the texts of the G4A version of the game. Where those texts disagree or are silent, the default of a
field below is the decision taken, and its other values are the ways people play it instead.
"""

from __future__ import annotations

import operator
from dataclasses import asdict, dataclass, field, fields, replace
from functools import cached_property
from typing import Any

import numpy as np

RANK_CHARACTERS = "A23456789TJQ"
WILD_CHARACTER = "K"

#: Counts and pile sizes are stored and observed as uint8.
MAX_COUNT = 255


def _integer(default: int | None, least: int, most: int = MAX_COUNT, *, none: bool = False, doc: str) -> Any:
    return field(default=default, metadata={"least": least, "most": most, "none": none, "doc": doc})


def _word(default: str | int | bool, *choices: str | int | bool, doc: str) -> Any:
    return field(default=default, metadata={"choices": choices, "doc": doc})


@dataclass(frozen=True, kw_only=True)
class Rules:
    """One variant of the game; the default is the G4A game with two 52-card decks.

    A card is only its rank: suits matter to no rule. Kings (``wilds``) are wild on the centre piles, whatever the
    number of other ranks.

    Raises:
        ValueError: an unknown word, a number out of range, or a deck too small for the deal; the message names the
            field, the value and what is allowed.
    """

    ranks: int = _integer(12, 1, len(RANK_CHARACTERS), doc="ranks below the king; a centre pile is complete at as many")
    copies: int = _integer(8, 0, doc="cards of each of these ranks in the deck")
    wilds: int = _integer(8, 0, doc="kings in the deck")
    payoff_size: int = _integer(20, 1, doc="cards dealt to each pay-off pile")
    hand_size: int = _integer(5, 1, doc="cards that a hand is dealt and refilled to")
    side_piles: int = _integer(4, 1, doc="side piles of each player")
    center_piles: int = _integer(3, 1, doc="centre piles")
    refill_mid_turn: bool = _word(
        False, False, True, doc="whether a play that leaves the hand empty draws a new hand at once"
    )
    recycle: str = _word(
        "shuffle",
        "shuffle",
        "bottom",
        "set_aside",
        doc="a completed centre pile is shuffled into the stock, or shuffled and put under it, or lies aside openly "
        "until a refill needs more cards than the stock holds",
    )
    stock_end: str = _word(
        "empty",
        "empty",
        "short",
        doc="the game is a draw when a refill leaves the stock empty, or only when a refill is incomplete",
    )
    first_player: int | str = _word(
        0,
        0,
        1,
        "random",
        "higher_payoff",
        doc="who starts the (first) game; the higher face-up pay-off card starts (kings high, ties are dealt anew)",
    )
    match_points: int | None = _integer(
        None, 1, none=True, doc="games are played until a player has as many points; None: one game is the episode"
    )
    max_games: int = _integer(100, 1, 65_535, doc="games after which a match is truncated")
    max_steps: int = _integer(5000, 1, 2**31 - 1, doc="decisions after which a game is truncated")

    def __post_init__(self) -> None:
        for item in fields(self):
            object.__setattr__(self, item.name, _checked(item.name, getattr(self, item.name), item.metadata))
        dealt = 2 * (self.payoff_size + self.hand_size)
        if not dealt < self.num_cards <= MAX_COUNT:
            raise ValueError(
                f"a deck of {self.num_cards} cards (ranks={self.ranks} x copies={self.copies} + wilds={self.wilds}) is "
                f"impossible: payoff_size={self.payoff_size} and hand_size={self.hand_size} deal {dealt}, at least one "
                f"must be left for the stock, and at most {MAX_COUNT} are allowed"
            )
        if self.first_player == "higher_payoff" and sum(count > 0 for count in self.deck) < 2:
            raise ValueError(
                "first_player='higher_payoff' needs a deck with two kinds of cards or more: "
                f"with copies={self.copies}, ranks={self.ranks}, wilds={self.wilds} no two pay-off tops can differ"
            )
        most_points = MAX_COUNT + 1 - self.num_cards
        if self.match_points is not None and self.match_points > most_points:
            raise ValueError(
                f"match_points={self.match_points} is not allowed: with {self.num_cards} cards it is None or at most "
                f"{most_points}, so that no score can exceed {MAX_COUNT}"
            )

    @cached_property
    def deck(self) -> tuple[int, ...]:
        """Number of cards of each kind, aces first and kings last; length :attr:`kinds`."""
        return (self.copies,) * self.ranks + (self.wilds,)

    @property
    def kinds(self) -> int:
        """Kinds of cards, which are the ranks and the king."""
        return self.ranks + 1

    @property
    def num_cards(self) -> int:
        """Cards in the deck."""
        return self.ranks * self.copies + self.wilds

    @property
    def characters(self) -> str:
        """The kinds of cards as text, aces first and kings last, for example ``A23K``."""
        return RANK_CHARACTERS[: self.ranks] + WILD_CHARACTER

    def to_dict(self) -> dict[str, Any]:
        """Return every field by name, ready for JSON."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> Rules:
        """Build rules from fields by name; fields left out take their defaults.

        Raises:
            ValueError: an unknown field, or a value that :class:`Rules` refuses.
        """
        return cls().replace(**values)

    def replace(self, **changes: Any) -> Rules:
        """Return a copy with some fields changed.

        Raises:
            ValueError: an unknown field, or a value that :class:`Rules` refuses.
        """
        known = [item.name for item in fields(self)]
        for name in changes:
            if name not in known:
                raise ValueError(f"unknown rules field {name!r}; the fields are {', '.join(known)}")
        return replace(self, **changes)

    @classmethod
    def preset(cls, name: str) -> Rules:
        """Return a preset by its name.

        Raises:
            ValueError: an unknown name.
        """
        if name not in PRESETS:
            raise ValueError(f"unknown rules preset {name!r}; the presets are {', '.join(PRESETS)}")
        rules: Rules = getattr(cls, name)()
        return rules

    @staticmethod
    def describe() -> str:
        """Return the fields, their defaults and what the presets change, as a Markdown table."""
        presets = {name: Rules.preset(name).to_dict() for name in PRESETS[1:]}
        lines = [f"| field | default | {' | '.join(presets)} | allowed | meaning |", "|---" * (4 + len(presets)) + "|"]
        for item in fields(Rules):
            changed = (
                f"`{values[item.name]}`" if values[item.name] != item.default else "" for values in presets.values()
            )
            cells = [f"`{item.name}`", f"`{item.default}`", *changed, _allowed(item.metadata), item.metadata["doc"]]
            lines.append(f"| {' | '.join(cells)} |")
        return "\n".join(lines)

    @classmethod
    def g4a(cls) -> Rules:
        """Return the default: the G4A game, two decks, three centre piles, no refill within a turn."""
        return cls()

    @classmethod
    def classic(cls) -> Rules:
        """Return the game as most books of card games have it, played with the default deck."""
        return cls(
            center_piles=4,
            refill_mid_turn=True,
            recycle="set_aside",
            stock_end="short",
            first_player="higher_payoff",
        )

    @classmethod
    def skip_bo(cls) -> Rules:
        """Return the deck and the piles of Skip-Bo (points are counted as in the default game)."""
        return cls(
            copies=12,
            wilds=18,
            payoff_size=30,
            center_piles=4,
            refill_mid_turn=True,
            recycle="set_aside",
            stock_end="short",
        )

    @classmethod
    def mini(cls) -> Rules:
        """Return a game small enough to solve, or to debug by hand."""
        return cls(ranks=3, copies=4, wilds=2, payoff_size=2, hand_size=2, side_piles=1, center_piles=2)


#: The names that :meth:`Rules.preset` knows.
PRESETS = ("g4a", "classic", "skip_bo", "mini")


def checked_rules(rules: Rules | str | None) -> Rules:
    """Return rules, those of a preset for its name, and the default ones for None.

    Raises:
        ValueError: something else.
    """
    if rules is None:
        return Rules()
    if isinstance(rules, str):
        return Rules.preset(rules)
    if not isinstance(rules, Rules):
        raise ValueError(f"rules={rules!r} are not allowed; they are a spite_env.Rules, or a preset's name like 'mini'")
    return rules


def checked_integer(name: str, value: Any, least: int, most: int | None = None, or_none: str = "") -> int:
    """Return an integer (no bool) as a plain one.

    Raises:
        ValueError: no integer, or out of range; the message says what is allowed.
    """
    try:
        number = None if isinstance(value, (bool, np.bool_)) else operator.index(value)
    except TypeError:
        number = None
    if number is None or number < least or (most is not None and number > most):
        raise ValueError(f"{name}={value!r} is not allowed; it is {_range(least, most)}{or_none}")
    return number


def checked_number(name: str, value: Any, least: float, most: float | None = None) -> float:
    """Return a finite number (no bool) as it is.

    Raises:
        ValueError: something else, or out of range; the message says what is allowed.
    """
    known = isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)
    if not known or not least <= value <= (np.finfo(float).max if most is None else most):
        limit = "on, and finite" if most is None else f"to {most}"
        raise ValueError(f"{name}={value!r} is not allowed; it is a number from {least} {limit}")
    return value


def _range(least: int, most: int | None) -> str:
    return f"an integer of {least} or more" if most is None else f"an integer from {least} to {most}"


def _allowed(metadata: Any) -> str:
    if "choices" in metadata:
        return "one of " + ", ".join(map(repr, metadata["choices"]))
    return _range(metadata["least"], metadata["most"]) + _or_none(metadata)


def _or_none(metadata: Any) -> str:
    return ", or None" if metadata["none"] else ""


def _checked(name: str, value: Any, metadata: Any) -> Any:
    """Return a field's value in its plain Python type, or raise ValueError naming the field and what is allowed."""
    if "choices" not in metadata:
        if value is None and metadata["none"]:
            return None
        return checked_integer(name, value, metadata["least"], metadata["most"], _or_none(metadata))
    if isinstance(value, (str, int, np.integer, np.bool_)):
        for choice in metadata["choices"]:
            if value == choice and isinstance(value, (bool, np.bool_)) == isinstance(choice, bool):
                return choice
    raise ValueError(f"{name}={value!r} is not allowed; it is {_allowed(metadata)}")
