"""The numbering of actions and their text forms.

By rank, so equal cards are one action. With ``C`` centre piles, ``S`` side piles and ``R`` kinds of cards:

====================================  ==============================================================================
``center * (S + 3) + source``         a play: source 0 is the pay-off top, ``1..S`` the top of side pile ``0..S-1``,
                                      ``S + 1`` the hand card of the needed rank, ``S + 2`` a king from the hand
``C * (S + 3) + rank * S + side``     a discard of a hand card (rank 0 is the ace, ``R - 1`` the king)
``C * (S + 3) + R * S``               ``end_turn``
====================================  ==============================================================================
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from spite_env.rules import Rules, checked_integer


class ActionTable:
    """The actions of a variant of the game.

    Attributes:
        n: Number of actions; the last one is ``end_turn``.
        num_plays: Number of plays to the centre, which come first.
        num_sources: Places that a play may come from.
        end_turn: The action ``end_turn``.
    """

    def __init__(self, rules: Rules) -> None:
        self.rules = rules
        self.num_sources = rules.side_piles + 3
        self.num_plays = rules.center_piles * self.num_sources
        self.end_turn = self.num_plays + rules.kinds * rules.side_piles
        self.n = self.end_turn + 1
        self._texts = tuple(self._all_texts())
        self._numbers = {text: number for number, text in enumerate(self._texts)}

    def _all_texts(self) -> Iterator[str]:
        sides = range(self.rules.side_piles)
        for center in range(self.rules.center_piles):
            for source in ("payoff", *(f"side{side}" for side in sides), "hand", "wild"):
                yield f"{source}>center{center}"
        for card in self.rules.characters:
            for side in sides:
                yield f"discard {card}>side{side}"
        yield "end_turn"

    def play(self, center: int, source: int) -> int:
        """Return the action that plays from a source (see the module's table) to a centre pile."""
        return center * self.num_sources + source

    def discard(self, rank: int, side: int) -> int:
        """Return the action that discards a card (rank 0 is the ace) on a side pile."""
        return self.num_plays + rank * self.rules.side_piles + side

    def text(self, index: int) -> str:
        """Return an action's text, such as ``side2>center1`` or ``discard 7>side3``.

        Raises:
            ValueError: no such action.
        """
        return self._texts[checked_integer("action", index, 0, self.n - 1)]

    def parse(self, text: str) -> int:
        """Return the action of a text.

        Raises:
            ValueError: not the text of an action.
        """
        if text not in self._numbers:
            raise ValueError(
                f"{text!r} is no action; the forms are payoff>center0, side0>center0, hand>center0, wild>center0, "
                f"discard A>side0, end_turn, with center piles 0 to {self.rules.center_piles - 1}, side piles 0 to "
                f"{self.rules.side_piles - 1} and the cards {self.rules.characters}"
            )
        return self._numbers[text]

    def describe(self) -> str:
        """Return the numbering as a Markdown table: the plays to each centre pile, the discards of each card."""
        plays = range(0, self.num_plays, self.num_sources)
        discards = range(self.num_plays, self.end_turn, self.rules.side_piles)
        lines = ["| actions | texts |", "|---|---|"]
        for first, end in pairwise([*plays, *discards, self.end_turn, self.n]):
            texts = ", ".join(f"`{text}`" for text in self._texts[first:end])
            lines.append(f"| {first}:{end} | {texts} |")
        return "\n".join(lines)
