"""A table as boxes and texts at places, in units of a picture that is 400 wide: what SVG and pixels are made from.

The size of a drawing depends on the rules alone, so that every frame of a game has the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from spite_env.render.table import Card, Center, Player, Table
from spite_env.rules import WILD_CHARACTER

#: Units from the left to the right edge.
WIDTH = 400

# Wong's palette (Nature Methods 8, 441, 2011), which colour-blind readers tell apart.
BLACK, ORANGE, SKY, GREEN, YELLOW, BLUE, VERMILION, PURPLE = (
    "#000000",
    "#e69f00",
    "#56b4e9",
    "#009e73",
    "#f0e442",
    "#0072b2",
    "#d55e00",
    "#cc79a7",
)
WHITE, GREY, CLOTH = "#ffffff", "#5a6570", "#eef2f1"


class Look(NamedTuple):
    """How a box is painted; a dashed edge is a line of strokes and gaps of equal length."""

    fill: str | None
    edge: str | None = None
    edge_width: float = 1
    dashed: bool = False


#: The looks of boxes, by the class that they carry in SVG.
LOOKS = {
    "cloth": Look(CLOTH),
    "band": Look("#dfe7e5"),
    "empty": Look(None, "#9aa5ad", 1, dashed=True),
    "card": Look(WHITE, "#3c464e"),
    "wild": Look("#f7e4ee", "#8a3d66", 1.5),
    "back": Look(BLUE, "#004a75"),
    "back-inner": Look(None, SKY, 1),
    "source-mark": Look(None, GREEN, 2.5),
    "target-mark": Look(None, GREEN, 2, dashed=True),
    "chip-source": Look(GREEN),
    "chip-last": Look(VERMILION),
    "last-mark": Look(None, VERMILION, 2),
    "button": Look(WHITE, GREEN, 2),
}


@dataclass(frozen=True)
class Box:
    """A rectangle with round corners."""

    look: str
    x: float
    y: float
    width: float
    height: float
    radius: float = 0


@dataclass(frozen=True)
class Text:
    """A line of text; ``y`` is its baseline, ``x`` its start, middle or end."""

    text: str
    x: float
    y: float
    size: float
    color: str = BLACK
    anchor: str = "start"
    bold: bool = False


Shape: TypeAlias = Box | Text


@dataclass(frozen=True)
class Part:
    """What is drawn at a place.

    Attributes:
        place: The place, see :mod:`spite_env.render.table`; empty for decoration.
        marks: What is to be seen of it beside its cards: ``source`` and ``target`` of a legal play, ``last-source`` and
            ``last-target`` of the last move.
        title: What it shows, in words.
        shapes: Its boxes and texts, the lower ones first.
    """

    place: str
    marks: tuple[str, ...]
    title: str
    shapes: tuple[Shape, ...]


@dataclass(frozen=True)
class Drawing:
    """A picture in parts, the lower ones first; ``title`` says in words what it shows."""

    width: int
    height: int
    title: str
    parts: tuple[Part, ...]


CARD_WIDTH, CARD_HEIGHT = 42, 56
_COLUMN, _LEFT = 64, 11  # six columns: pay-off pile or stock, set-aside cards, and four piles
_PILES_IN_ROW, _HAND_IN_ROW = 4, 8
_STRIP, _STRIPS = 13, 5  # what is seen of the cards below a side pile's top
_LABEL = 13
_SIDE_ROW = _LABEL + _STRIPS * _STRIP + CARD_HEIGHT + 6
_CENTER_ROW = _LABEL + CARD_HEIGHT + 18
_HAND_ROW = CARD_HEIGHT + 8


def layout(table: Table) -> Drawing:
    """Return the drawing of a table."""
    return _Layout(table).drawing()


class _Layout:
    def __init__(self, table: Table) -> None:
        self.table = table
        plays = [move for move in table.legal if move.target.startswith("center") or move.target == "end_turn"]
        last = table.last_move
        self.marked = {
            "source": {move.source for move in plays},
            "target": {move.target for move in table.legal},
            "last-source": {last.source} if last else set(),
            "last-target": {last.target} if last else set(),
        }
        self.parts: list[Part] = []

    def drawing(self) -> Drawing:
        table = self.table
        own, other = table.players[table.seat], table.players[1 - table.seat]
        y = 30.0
        y = self.player(other, "opponent-", y)
        y = self.middle(y)
        y = self.player(own, "", y)
        y = self.hand(own, y)
        last = table.last_move
        told = f"last: {table.players[last.player].name}: {last.text}" if last else ""
        height = round(y + 20)
        frame = [Box("cloth", 0, 0, WIDTH, height, 8)]
        frame += [Text(table.headline, _LEFT, 21, 15, bold=True)]
        if told:
            frame += [Box("chip-last", _LEFT, height - 17, 4, 11), Text(told, _LEFT + 9, height - 7, 11, GREY)]
        title = ". ".join(filter(None, (table.headline, told)))
        return Drawing(WIDTH, height, title, (Part("", (), title, tuple(frame)), *self.parts))

    # Zones

    def player(self, player: Player, prefix: str, y: float) -> float:
        """Draw a player's name, pay-off pile, side piles and, of the one at the top, the hand; return where it ends."""
        rows = -(-len(player.sides) // _PILES_IN_ROW)
        height = 20 + rows * _SIDE_ROW
        shapes: list[Shape] = [Text(player.name, _LEFT, y + 14, 12, bold=True)]
        if player.score is not None:
            score = f"score {player.score} of {self.table.match_points}"
            shapes.append(Text(score, WIDTH - _LEFT, y + 14, 11, GREY, "end"))
        self.add("", shapes)
        if prefix:
            self.small_hand(player, y + 20)
        top = y + 20
        self.payoff(player, prefix, top)
        for number, pile in enumerate(player.sides):
            row, column = divmod(number, _PILES_IN_ROW)
            self.side(f"{prefix}side{number}", pile, _column(2 + column), top + row * _SIDE_ROW)
        return y + height

    def middle(self, y: float) -> float:
        """Draw stock, set-aside cards and centre piles; return where they end."""
        table = self.table
        rows = -(-len(table.centers) // _PILES_IN_ROW)
        height = rows * _CENTER_ROW + 8
        self.add("", [Box("band", 0, y, WIDTH, height)])
        top = y + 4
        self.pile_of_many("stock", table.stock[-1:], len(table.stock), _column(0), top)
        if table.set_aside is not None:
            tally = ", ".join(f"{count} x {card}" for card, count in Counter(table.set_aside).items())
            self.pile_of_many("aside", table.set_aside[-1:], len(table.set_aside), _column(1), top, tally)
        for number, center in enumerate(table.centers):
            row, column = divmod(number, _PILES_IN_ROW)
            self.center(number, center, _column(2 + column), top + row * _CENTER_ROW)
        return y + height + 4

    def hand(self, player: Player, y: float) -> float:
        """Draw the hand of the player at the bottom; return where it ends."""
        self.add("hand", [], title=f"hand: {_words(player.hand)}")
        for number, card in enumerate(player.hand):
            row, column = divmod(number, _HAND_IN_ROW)
            x, top = _LEFT + column * 47, y + 6 + row * _HAND_ROW
            place = f"hand-{card}"
            lifted = top - 5 if place in self.marked["source"] else top
            self.add(place, _face(card, x, lifted), f"hand: {card}", (x, lifted, CARD_WIDTH, CARD_HEIGHT))
        if "end_turn" in self.marked["source"]:
            box = (_LEFT, y + 6, 90, 30)
            shapes = [Box("button", *box, 6), Text("end turn", _LEFT + 45, y + 26, 13, anchor="middle", bold=True)]
            self.add("end_turn", shapes, "end turn")
        rows = -(-self.table.hand_size // _HAND_IN_ROW)
        return y + 6 + rows * _HAND_ROW

    # Piles

    def payoff(self, player: Player, prefix: str, y: float) -> None:
        x = _column(0)
        count = len(player.payoff)
        shapes = [_label("pay-off", x, y)]
        shapes += _face(player.payoff[-1], x, y + _LABEL, "back") if count else _gap(x, y + _LABEL)
        shapes.append(Text(f"{count} left", x + CARD_WIDTH / 2, y + _LABEL + CARD_HEIGHT + 13, 11, anchor="middle"))
        hidden = f", below it {_words(player.payoff[:-1])}" if any(player.payoff[:-1]) else ""
        title = f"pay-off pile of {player.name}: {count} cards, top {_words(player.payoff[-1:])}{hidden}"
        self.add(f"{prefix}payoff", shapes, title, (x, y + _LABEL, CARD_WIDTH, CARD_HEIGHT))

    def side(self, place: str, pile: Sequence[str], x: float, y: float) -> None:
        shapes = [_label(place.removeprefix("opponent-").replace("side", "side "), x, y)]
        y += _LABEL
        strips = pile[:-1][-_STRIPS:]
        below = len(pile) - 1 - len(strips)
        if below > 0:
            strips = strips[1:]
            shapes += [Box("card", x, y, CARD_WIDTH, CARD_HEIGHT, 5), Text(f"+{below + 1}", x + 5, y + 11, 10, GREY)]
            y += _STRIP
        for card in strips:
            shapes += [_blank(card, x, y), Text(card, x + 5, y + 11, 11, bold=True)]
            y += _STRIP
        shapes += _face(pile[-1], x, y) if pile else _gap(x, y)
        self.add(place, shapes, f"{place}: {_words(pile)}", (x, y, CARD_WIDTH, CARD_HEIGHT))

    def center(self, number: int, center: Center, x: float, y: float) -> None:
        shapes = [_label(f"centre {number}", x, y)]
        y += _LABEL
        if center.cards:
            shapes += _face(center.cards[-1], x, y, stands_for=center.ranks[-1])
        else:
            shapes += _gap(x, y)
        need = f"needs {center.needs}" if center.needs else "complete"
        shapes.append(Text(need, x + CARD_WIDTH / 2, y + CARD_HEIGHT + 13, 11, anchor="middle", bold=True))
        cards = [
            card if card == rank else f"{card}={rank}" for card, rank in zip(center.cards, center.ranks, strict=True)
        ]
        title = f"center{number} {need}: {_words(cards)}"
        self.add(f"center{number}", shapes, title, (x, y, CARD_WIDTH, CARD_HEIGHT))

    def pile_of_many(self, place: str, top: Sequence[Card], count: int, x: float, y: float, tally: str = "") -> None:
        shapes = [_label(place, x, y)]
        y += _LABEL
        shapes += _face(top[0], x, y) if top else _gap(x, y)
        shapes.append(Text(f"{count}", x + CARD_WIDTH / 2, y + CARD_HEIGHT + 13, 11, anchor="middle"))
        self.add(place, shapes, f"{place}: {count} cards {tally}".rstrip())

    def small_hand(self, player: Player, y: float) -> None:
        """Draw a hand in small below the pay-off pile."""
        y += _LABEL + CARD_HEIGHT + 20
        count = len(player.hand)
        step = min(15.0, 104 / max(count, 1))
        shapes: list[Shape] = []
        for number, card in enumerate(player.hand):
            x = _LEFT + number * step
            if card is None:
                shapes += [Box("back", x, y, 13, 18, 2)]
            else:
                shapes += [_blank(card, x, y, 13, 18), Text(card, x + 6.5, y + 13, 11, anchor="middle", bold=True)]
        shapes.append(Text(f"hand {count}", _LEFT, y + 30, 11))
        self.add("opponent-hand", shapes, f"hand of {player.name}: {_words(player.hand)}", (_LEFT, y, 90, 18))

    # Marks

    def add(
        self,
        place: str,
        shapes: list[Shape],
        title: str = "",
        card: tuple[float, float, float, float] | None = None,
    ) -> None:
        """Add a part, with the marks of its place around a card."""
        marks = tuple(mark for mark, places in self.marked.items() if place in places) if place else ()
        if card is not None:
            shapes = [*shapes, *_marks(marks, *card)]
        self.parts.append(Part(place, marks, title, tuple(shapes)))


def _marks(marks: Sequence[str], x: float, y: float, width: float, height: float) -> Iterator[Shape]:
    if "target" in marks:
        yield Box("target-mark", x - 3, y - 3, width + 6, height + 6, 7)
    if "source" in marks:
        yield Box("source-mark", x - 1, y - 1, width + 2, height + 2, 6)
    for mark, word in (("last-source", "from"), ("last-target", "to")):
        if mark in marks:
            yield Box("last-mark", x, y, width, height, 5)
            yield Box("chip-last", x + width / 2 - 14, y - 5, 28, 12, 4)
            yield Text(word, x + width / 2, y + 4, 10, WHITE, "middle", bold=True)


def _column(number: int) -> float:
    return _LEFT + number * _COLUMN


def _words(cards: Sequence[Card]) -> str:
    if not cards:
        return "none"
    return f"{len(cards)} face down" if None in cards else " ".join(map(str, cards))


def _label(text: str, x: float, y: float) -> Shape:
    return Text(text, x + CARD_WIDTH / 2, y + 9, 10, GREY, "middle")


def _gap(x: float, y: float) -> list[Shape]:
    return [Box("empty", x, y, CARD_WIDTH, CARD_HEIGHT, 5)]


def _blank(card: str, x: float, y: float, width: float = CARD_WIDTH, height: float = CARD_HEIGHT) -> Shape:
    return Box("wild" if card == WILD_CHARACTER else "card", x, y, width, height, 5 if width > 20 else 2)


def _face(card: Card, x: float, y: float, look: str = "", stands_for: str | None = None) -> list[Shape]:
    """Draw a card or its back; a king on a centre pile shows what it stands for."""
    if card is None:
        inner = Box("back-inner", x + 5, y + 5, CARD_WIDTH - 10, CARD_HEIGHT - 10, 3)
        return [Box("back", x, y, CARD_WIDTH, CARD_HEIGHT, 5), inner]
    shapes = [_blank(card, x, y), Text(card, x + 5, y + 12, 11, bold=True)]
    big = card
    if stands_for not in (None, card):
        big = f"={stands_for}"
    shapes.append(Text(big, x + CARD_WIDTH / 2, y + 39, 24, anchor="middle", bold=True))
    return shapes
