"""A table as boxes and texts, in units of a picture that is 400 wide: what SVG and pixels are made from.

The size of a drawing depends on the rules alone, so that all frames of a game have the same.

The colours are those of Wong's palette (Nature Methods 8, 441, 2011), which colour-blind readers tell apart, and no
state is told by colour alone: a card that can be played has a solid edge (a hand card also stands higher), a pile that
can be played to a dashed one, kings a K, and the last move the words "from" and "to".
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from spite_env.render.table import Card, Center, Player, Table, counted
from spite_env.rules import WILD_CHARACTER

#: Units from the left to the right edge.
WIDTH = 400

BLACK, WHITE, GREY = "#000000", "#ffffff", "#505a63"
_SKY, _GREEN, _BLUE, _VERMILION = "#56b4e9", "#009e73", "#0072b2", "#d55e00"


class Look(NamedTuple):
    """How a box is painted: its fill, its edge, and whether the edge is dashed."""

    fill: str | None
    edge: str | None = None
    edge_width: float = 1
    dashed: bool = False


#: The looks of boxes, by name; an SVG carries the name as a class.
LOOKS = {
    "cloth": Look("#eef2f1"),
    "centre": Look("#dce5e3"),
    "mover": Look(_GREEN),
    "gap": Look(None, "#87929a", 1, dashed=True),
    "card": Look(WHITE, "#3c464e"),
    "king": Look("#f7e1ec", "#8a3d66", 1.5),
    "back": Look(_BLUE, "#004a75"),
    "back-pattern": Look(None, _SKY),
    "source-edge": Look(None, _GREEN, 2.5),
    "target-edge": Look(None, _GREEN, 2, dashed=True),
    "discard-edge": Look(None, _GREEN, 1, dashed=True),
    "last-edge": Look(None, _VERMILION, 2),
    "last-label": Look(_VERMILION),
    "button": Look(WHITE, _GREEN, 2.5),
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
    """A line of text; ``y`` is its baseline, and ``x`` its start, middle or end."""

    text: str
    x: float
    y: float
    size: float = 11
    color: str = BLACK
    anchor: str = "start"
    bold: bool = False


Shape: TypeAlias = Box | Text


@dataclass(frozen=True)
class Part:
    """What is drawn at one place.

    Attributes:
        place: The place, see :mod:`spite_env.render.table`; empty for decoration.
        marks: ``source`` and ``target`` of a legal action, ``last-source`` and ``last-target`` of the last move. Only
            plays have sources: every hand card can be discarded.
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


_MARGIN = 12
_CARD = (42, 56)
_COLUMN = 65  # column 0 holds the pay-off pile or the stock, column 1 what is set aside, columns 2 to 5 piles
_PILES_IN_ROW = 4
_HAND_IN_ROW, _HAND_STEP, _LIFT = 8, 47, 5
_LABEL = 17  # above each pile
_STRIP, _MOST_STRIPS = 13, 5  # what shows of the cards below a side pile's top
_TITLE, _NAME, _FOOTER = 32, 20, 22
_SIDE_ROW = _LABEL + _MOST_STRIPS * _STRIP + _CARD[1] + 8
_CENTER_ROW = _LABEL + _CARD[1] + 23
_HAND_ROW = _CARD[1] + 10


def layout(table: Table) -> Drawing:
    """Return the drawing of a table."""
    return _Layout(table).drawing


class _Layout:
    def __init__(self, table: Table) -> None:
        self.table = table
        last = table.last_move
        self.places = {
            "source": {move.source for move in table.legal if not move.text.startswith("discard")},
            "target": {move.target for move in table.legal},
            "last-source": {last.source} if last else set(),
            "last-target": {last.target} if last else set(),
        }
        self.parts: list[Part] = []
        own, other = table.players[table.seat], table.players[1 - table.seat]
        centre = self.player_zone(other, "opponent-", _TITLE)
        below = self.centre_zone(centre)
        end = self.hand_zone(own, self.player_zone(own, "", below))
        bar = (below, end) if table.turn == table.seat else (_TITLE, centre)
        self.drawing = self.framed(round(end) + _FOOTER, *bar)

    def framed(self, height: int, start: float, end: float) -> Drawing:
        """Return the drawing, with headline, last move, and a bar beside the player to move."""
        told = f"last: {self.table.last_text}" if self.table.last_move else ""
        title = ". ".join(filter(None, (self.table.headline, told)))
        frame: list[Shape] = [
            Box("cloth", 0, 0, WIDTH, height, 8),
            Text(self.table.headline, _MARGIN, 21, 15, bold=True),
            Text(told, _MARGIN, height - 9, color=GREY),
        ]
        if not self.table.over:
            frame.append(Box("mover", 0, start + 4, 5, end - start - 8, 2))
        return Drawing(WIDTH, height, title, (Part("", (), "", tuple(frame)), *self.parts))

    # The zones, from top to bottom; each returns where it ends

    def player_zone(self, player: Player, prefix: str, y: float) -> float:
        """Draw a player's name, pay-off pile and side piles, and the hand of the one at the top."""
        end = y + _NAME + -(-len(player.sides) // _PILES_IN_ROW) * _SIDE_ROW
        name: list[Shape] = [Text(player.name, _MARGIN, y + 14, 12, bold=True)]
        if player.score is not None:
            score = f"score {player.score} of {self.table.match_points}"
            name.append(Text(score, WIDTH - _MARGIN, y + 14, anchor="end"))
        self.add("", "", name)
        y += _NAME
        self.payoff(player, prefix, y)
        if prefix:
            self.small_hand(player, prefix, y + _LABEL + _CARD[1] + 26)
        for number, pile in enumerate(player.sides):
            self.side(f"{prefix}side{number}", number, pile, *_slot(number, y, _SIDE_ROW))
        return end

    def centre_zone(self, y: float) -> float:
        """Draw stock, set-aside cards and centre piles."""
        table = self.table
        height = -(-len(table.centers) // _PILES_IN_ROW) * _CENTER_ROW + 6
        self.add("", "", [Box("centre", 0, y, WIDTH, height)])
        self.counted_pile("stock", table.stock, _column(0), y + 4)
        if table.set_aside is not None:
            self.counted_pile("aside", table.set_aside, _column(1), y + 4)
        for number, pile in enumerate(table.centers):
            self.center(number, pile, *_slot(number, y + 4, _CENTER_ROW))
        return y + height + 2

    def hand_zone(self, player: Player, y: float) -> float:
        """Draw the hand of the player at the bottom."""
        y += _LIFT
        slots = [
            (_MARGIN + number % _HAND_IN_ROW * _HAND_STEP, y + number // _HAND_IN_ROW * _HAND_ROW)
            for number in range(self.table.hand_size)
        ]
        for card, (x, top) in zip(player.hand, slots, strict=False):
            place = f"hand-{card}"
            lifted = top - _LIFT * (place in self.places["source"])
            self.add(place, f"hand: {card}", _face(card, x, lifted), (x, lifted, *_CARD))
        free = slots[len(player.hand) :]
        if free and "hand" in self.places["last-source"]:
            self.add("hand", "where the last card was", _gap(*free[0]), (*free[0], *_CARD))
        if "end_turn" in self.places["source"]:
            x, top = slots[0]
            word = Text("end turn", x + 46, top + 33, 14, anchor="middle", bold=True)
            self.add("end_turn", "end the turn", [Box("button", x, top + 10, 92, 36, 8), word])
        return y + -(-len(slots) // _HAND_IN_ROW) * _HAND_ROW

    # The piles

    def payoff(self, player: Player, prefix: str, y: float) -> None:
        x, count = _column(0), len(player.payoff)
        shapes = [_label("pay-off", x, y), _below(f"{count} left", x, y)]
        shapes += _top(player.payoff, x, y + _LABEL)
        title = f"pay-off of {player.name}: {counted(count, 'card')}, {_words(player.payoff)}"
        self.add(f"{prefix}payoff", title, shapes, (x, y + _LABEL, *_CARD))

    def side(self, place: str, number: int, pile: Sequence[str], x: float, y: float) -> None:
        """Draw a side pile: its top, and the upper edges of the cards below it as far as there is room."""
        shapes = [_label(f"side {number}", x, y)]
        y += _LABEL
        below = [(card, BLACK) for card in pile[:-1]]
        if len(below) > _MOST_STRIPS:
            left_out = len(below) - _MOST_STRIPS + 1
            below = [(f"+{left_out}", GREY), *below[left_out:]]
        for card, color in below:
            shapes += [_blank(card, x, y), Text(card, x + 5, y + 11, color=color, bold=True)]
            y += _STRIP
        shapes += _top(pile, x, y)
        self.add(place, f"{place}: {_words(pile)}", shapes, (x, y, *_CARD))

    def center(self, number: int, pile: Center, x: float, y: float) -> None:
        need = f"needs {pile.needs}" if pile.needs else "complete"
        shapes = [_label(f"centre {number}", x, y), _below(need, x, y, bold=True)]
        y += _LABEL
        shapes += _face(pile.cards[-1], x, y, pile.ranks[-1]) if pile.cards else _gap(x, y)
        self.add(f"center{number}", f"center{number} {need}: {_words(pile.texts())}", shapes, (x, y, *_CARD))

    def counted_pile(self, name: str, cards: Sequence[Card], x: float, y: float) -> None:
        count = counted(len(cards), "card")
        shapes = [_label(name, x, y), _below(count, x, y), *_top(cards, x, y + _LABEL)]
        self.add(name, f"{name}: {count}, {_words(cards)}", shapes)

    def small_hand(self, player: Player, prefix: str, y: float) -> None:
        """Draw the hand of the player at the top in small, below the pay-off pile."""
        count = len(player.hand)
        step, width, height = min(16.0, 100 / max(count, 1)), 14, 19
        shapes: list[Shape] = []
        for number, card in enumerate(player.hand):
            x = _MARGIN + number * step
            shapes.append(_blank(card, x, y, width, height))
            if card is not None:
                shapes.append(Text(card, x + width / 2, y + 14, anchor="middle", bold=True))
        shapes.append(Text(f"hand {count}", _MARGIN, y + height + 12))
        title = f"hand of {player.name}: {counted(count, 'card')}, {_words(player.hand)}"
        self.add(f"{prefix}hand", title, shapes, (_MARGIN - 2, y - 2, 112, height + 4))

    def add(
        self, place: str, title: str, shapes: Sequence[Shape], area: tuple[float, float, float, float] | None = None
    ) -> None:
        """Add a part, with the marks of its place around an area."""
        marks = tuple(mark for mark, places in self.places.items() if place and place in places)
        edges = _edges(place, marks, *area) if area else ()
        self.parts.append(Part(place, marks, title, (*shapes, *edges)))


def _edges(place: str, marks: Sequence[str], x: float, y: float, width: float, height: float) -> Iterator[Shape]:
    """Draw what marks say around an area; its edges lie beside one another."""
    for mark, word in (("last-source", "from"), ("last-target", "to")):
        if mark in marks:
            yield Box("last-edge", x, y, width, height, 5)
            yield Box("last-label", x + width - 29, y + height - 13, 29, 13, 4)
            yield Text(word, x + width - 14.5, y + height - 3, 10, WHITE, "middle", bold=True)
    if "source" in marks:
        yield Box("source-edge", x - 2, y - 2, width + 4, height + 4, 6)
    if "target" in marks:
        look = "discard-edge" if "side" in place else "target-edge"
        yield Box(look, x - 5, y - 5, width + 10, height + 10, 8)


def _column(number: int) -> float:
    return _MARGIN + number * _COLUMN


def _slot(number: int, y: float, row_height: float) -> tuple[float, float]:
    """Return where a pile stands among its like, whose first row starts at ``y``."""
    row, column = divmod(number, _PILES_IN_ROW)
    return _column(2 + column), y + row * row_height


def _label(text: str, x: float, y: float) -> Shape:
    return Text(text, x + _CARD[0] / 2, y + 10, 10, GREY, "middle")


def _below(text: str, x: float, y: float, *, bold: bool = False) -> Shape:
    return Text(text, x + _CARD[0] / 2, y + _LABEL + _CARD[1] + 16, anchor="middle", bold=bold)


def _gap(x: float, y: float) -> list[Shape]:
    return [Box("gap", x, y, *_CARD, 5)]


def _top(pile: Sequence[Card], x: float, y: float) -> list[Shape]:
    return _face(pile[-1], x, y) if pile else _gap(x, y)


def _blank(card: Card, x: float, y: float, width: float = _CARD[0], height: float = _CARD[1]) -> Shape:
    look = "back" if card is None else "king" if card == WILD_CHARACTER else "card"
    return Box(look, x, y, width, height, 5 if width == _CARD[0] else 2)


def _face(card: Card, x: float, y: float, rank: str | None = None) -> list[Shape]:
    """Draw a card, or its back; a king that stands for a rank shows it."""
    shapes = [_blank(card, x, y)]
    if card is None:
        return [*shapes, Box("back-pattern", x + 5, y + 5, _CARD[0] - 10, _CARD[1] - 10, 3)]
    large = card if rank in (None, card) else f"={rank}"
    shapes.append(Text(card, x + 5, y + 12, bold=True))
    shapes.append(Text(large, x + _CARD[0] / 2, y + 38, 24, anchor="middle", bold=True))
    return shapes


def _words(cards: Sequence[Card]) -> str:
    """Return cards in words, bottom to top, those that are face down as a count."""
    hidden = cards.count(None)
    shown = " ".join(card for card in cards if card is not None)
    return ", ".join(filter(None, (f"{hidden} face down" if hidden else "", shown))) or "none"
