"""One game as a text, drawn from a player's seat: it shows nothing that this player can't see.

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
from typing import Any

from spite_env.game import Game
from spite_env.rules import Rules
from spite_env.state import NO_WINNER

#: Characters in a line, frame included.
WIDTH = 78

_LABEL = 10
_ASCII = str.maketrans("─│┌┐└┘├┤…", "-|++++++~")


def board(
    game: Game,
    index: int = 0,
    viewer: int | None = None,
    *,
    last_move: str | None = None,
    names: Sequence[str] = ("player_0", "player_1"),
) -> str:
    """Return one game as a text of lines of at most 78 characters, without a line break at the end.

    Args:
        game: The batch that holds the game.
        index: The game's place in the batch.
        viewer: From whose seat it is seen, 0 or 1: this hand is shown, the other one from the back. None is the player
            to move (in an ended game, the last one who was).
        last_move: What to show as the last move.
        names: The players' names; of long ones the beginning is shown.

    Raises:
        ValueError: no such game or viewer.
    """
    if viewer is not None and (isinstance(viewer, bool) or viewer not in (0, 1)):
        raise ValueError(f"viewer={viewer!r} is not allowed; it is 0, 1 or None (the player to move)")
    names = [name[:24] for name in names]
    position = game.position(index)
    seat = position["turn"] if viewer is None else viewer
    lines = [
        _rule("┌", "Spite & Malice", _headline(game, index, position["turn"], names), "┐"),
        *_player(game.rules, position, 1 - seat, names, hidden=True),
        _rule("├", "centre", "", "┤"),
        *_centre(game.rules, position),
        _rule("├", "", "", "┤"),
        *_player(game.rules, position, seat, names, hidden=False),
        _rule("└", "", "", "┘"),
    ]
    if last_move is not None:
        lines.append(f"  last: {last_move}"[:WIDTH])
    return "\n".join(lines)


def show(text: str) -> None:
    """Print a board, with ASCII characters for the frame where the terminal has no others."""
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        text = text.translate(_ASCII)
    print(text, flush=True)


def _headline(game: Game, index: int, turn: int, names: Sequence[str]) -> str:
    if not game.state.over[index]:  # terminated and truncated may still be those of the game before an autoreset
        return f"{names[turn]} to move"
    if game.truncated[index]:
        return "cut at the limit"
    winner, points = int(game.winner[index]), game.points[index].tolist()
    if winner == NO_WINNER:
        return "a draw"
    if game.rules.match_points is not None:
        return f"{names[winner]} wins the match"
    return f"{names[winner]} wins {points[winner]} {'point' if points[winner] == 1 else 'points'}"


def _player(rules: Rules, position: dict[str, Any], player: int, names: Sequence[str], *, hidden: bool) -> list[str]:
    payoff, hand = position["payoff"][player], position["hands"][player]
    first = f"pay-off [{payoff[-1]}] and {len(payoff) - 1} more" if payoff else "pay-off empty"
    if rules.match_points is not None:
        first += f"   score {position['scores'][player]} of {rules.match_points}"
    shown = " ".join("##" if hidden else card for card in hand)
    lines = _entry(names[player], first, indent=1)
    lines += _entry("hand", shown or "-")
    for number, pile in enumerate(position["sides"][player]):
        lines += _entry(f"side{number}", _open_pile(pile))
    return lines


def _centre(rules: Rules, position: dict[str, Any]) -> list[str]:
    lines = []
    for number, pile in enumerate(position["centers"]):
        cards = [
            f"{card}={rank}" if card == rules.characters[-1] else card
            for card, rank in zip(pile, rules.characters, strict=False)
        ]
        need = f"needs {rules.characters[len(pile)]}" if len(pile) < rules.ranks else "complete"
        lines += _entry(f"center{number}", f"{need:<9} {' '.join(cards)}".rstrip())
    stock, aside = len(position["stock"]), position["set_aside"]
    lines += _entry("stock", f"{stock} {'card' if stock == 1 else 'cards'}")
    if rules.recycle == "set_aside":
        tally = " ".join(f"{count}x{card}" for card, count in Counter(aside).items())
        lines += _entry("aside", f"{len(aside)} {'card' if len(aside) == 1 else 'cards'}  {tally}".rstrip())
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
