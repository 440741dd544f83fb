"""A table as a text.

.. code-block:: text

    ┌─ Spite & Malice ──────────────────────────────────────── player_0 to move ─┐
    │ player_1  pay-off [7] and 19 more                                          │
    │   hand    ## ## ## ## ##                                                   │
    │   side0   3 K [5]                                                          │
    │   side1   -                                                                │
    ├─ centre ───────────────────────────────────────────────────────────────────┤
    │   center0 needs 4   A 2 K=3                                                │
    │   center1 needs A                                                          │
    │   stock   49 cards                                                         │
    ├────────────────────────────────────────────────────────────────────────────┤
    │ player_0  pay-off [K] and 19 more                                          │
    │   hand    A 7 7 Q K                                                        │
    │   side0   -                                                                │
    │   side1   -                                                                │
    └────────────────────────────────────────────────────────────────────────────┘
      last: player_1: discard 5>side0

Cards in brackets are the ones that can be played from their pile; ``##`` is a card's back; ``K=3`` a king that stands
for a three. Piles run bottom to top. A pile that is too long for its line shows its top and how many cards it has.
"""

from __future__ import annotations

import sys
import textwrap
from collections import Counter
from collections.abc import Sequence

from spite_env.render.table import Player, Table, counted

#: Characters in a line, frame included.
WIDTH = 78

_LABEL = 10
_ASCII = str.maketrans("─│┌┐└┘├┤…", "-|++++++~")


def board(table: Table) -> str:
    """Return a table as a text of lines of at most 78 characters, without a line break at the end."""
    lines = [
        _rule("┌", "Spite & Malice", table.headline, "┐"),
        *_player(table, table.players[1 - table.seat]),
        _rule("├", "centre", "", "┤"),
        *_centre(table),
        _rule("├", "", "", "┤"),
        *_player(table, table.players[table.seat]),
        _rule("└", "", "", "┘"),
    ]
    if table.last_move is not None:
        lines.append(f"  last: {table.last_text}"[:WIDTH])
    return "\n".join(lines)


def show(text: str) -> None:
    """Print a board, with ASCII characters for the frame where the terminal has no others."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
    print(text, flush=True)


def _player(table: Table, player: Player) -> list[str]:
    first = f"pay-off [{player.payoff[-1]}] and {len(player.payoff) - 1} more" if player.payoff else "pay-off empty"
    if player.score is not None:
        first += f"   score {player.score} of {table.match_points}"
    lines = _entry(player.name, first, indent=1)
    lines += _entry("hand", " ".join(card or "##" for card in player.hand) or "-")
    for number, pile in enumerate(player.sides):
        lines += _entry(f"side{number}", _open_pile(pile))
    return lines


def _centre(table: Table) -> list[str]:
    lines = []
    for number, pile in enumerate(table.centers):
        need = f"needs {pile.needs}" if pile.needs else "complete"
        lines += _entry(f"center{number}", f"{need:<9} {' '.join(pile.texts())}".rstrip())
    lines += _entry("stock", counted(len(table.stock), "card"))
    if table.set_aside is not None:
        tally = " ".join(f"{count}x{card}" for card, count in Counter(table.set_aside).items())
        lines += _entry("aside", f"{counted(len(table.set_aside), 'card')}  {tally}".rstrip())
    return lines


def _open_pile(pile: Sequence[str]) -> str:
    """Return a side pile, its top in brackets, shortened at the bottom to what a line holds."""
    if not pile:
        return "-"
    whole = " ".join([*pile[:-1], f"[{pile[-1]}]"])
    count, room = f"({len(pile)}) … ", WIDTH - 4 - _LABEL
    return whole if len(whole) <= room else count + whole[len(count) - room :].lstrip()


def _entry(label: str, text: str, indent: int = 3) -> list[str]:
    """Return a labelled text as lines of the frame's width."""
    head = f"{' ' * (indent - 1)}{label:<{_LABEL - indent + 1}}"
    if not head.endswith(" "):
        head += " "
    room = WIDTH - 4
    wrapped = textwrap.wrap(text, room, initial_indent=head, subsequent_indent=" " * _LABEL)
    return [f"│ {line:<{room}} │" for line in wrapped]


def _rule(left: str, title: str, right_title: str, right: str) -> str:
    """Return a horizontal line of the frame, with its titles."""
    start = f"{left}─ {title} " if title else left
    end = f" {right_title} ─{right}" if right_title else right
    return start + "─" * (WIDTH - len(start) - len(end)) + end
