"""The table of one game as plain data, seen from a seat: what every drawing of a game is made from.

:func:`describe` reads a :class:`Table` off a game. It holds nothing that its viewer can't see: a card is its character
(``A 2..9 T J Q K``), or None if the viewer sees its back. Every pile runs bottom to top. ``dataclasses.asdict(table)``
is ready for JSON.

A *place* names what a card can leave or reach: ``payoff``, ``side2``, ``hand-7`` (every seven in the hand), ``center0``
and ``end_turn``. They are those of the player who sits at the bottom (:attr:`Table.seat`); the other player's begin
with ``opponent-``. A hand as a whole is the place ``hand``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from spite_env.rules import Rules, checked_integer
from spite_env.state import NO_WINNER

if TYPE_CHECKING:
    from spite_env.game import Game

Card: TypeAlias = str | None

#: 0 or 1, None (the player to move) or ``"all"``, see :func:`describe`.
Viewer: TypeAlias = int | str | None

#: A decision, as the player who made it and the action; the action None is a forfeit.
Decision: TypeAlias = tuple[int, int | None]

#: Characters of a player's name that are shown.
NAME_LENGTH = 24


@dataclass(frozen=True)
class Move:
    """A decision that was made or can be made.

    Attributes:
        player: Who makes it.
        action: Its number in the :class:`~spite_env.actions.ActionTable`; None is a forfeit.
        text: Its text, such as ``side2>center1``.
        source: The place that the card leaves; empty for a forfeit. A card that has been played has left the ``hand``,
            one that can be played will leave ``hand-7``.
        target: The place that the card reaches; empty for a forfeit.
    """

    player: int
    action: int | None
    text: str
    source: str
    target: str


@dataclass(frozen=True)
class Center:
    """A centre pile.

    Attributes:
        cards: Its cards.
        ranks: What each of them stands for: a king for the rank of its height, any other card for itself.
        needs: The rank that comes next; None if the pile is complete (and the game over).
    """

    cards: tuple[str, ...]
    ranks: tuple[str, ...]
    needs: str | None

    def texts(self) -> list[str]:
        """Return the cards as texts; ``K=3`` is a king that stands for a three."""
        return [card if card == rank else f"{card}={rank}" for card, rank in zip(self.cards, self.ranks, strict=True)]


@dataclass(frozen=True)
class Player:
    """What lies before one player.

    Attributes:
        name: The name shown.
        payoff: The pay-off pile; only its top is face up.
        hand: The hand, sorted.
        sides: The side piles.
        score: Points in the earlier games of the match; None without a match.
    """

    name: str
    payoff: tuple[Card, ...]
    hand: tuple[Card, ...]
    sides: tuple[tuple[str, ...], ...]
    score: int | None


@dataclass(frozen=True)
class Table:
    """One game as its viewer sees it.

    Attributes:
        players: Player 0 and player 1.
        centers: The centre piles.
        stock: The stock; the last card is drawn next.
        set_aside: The cards set aside, sorted; None if the rules set none aside.
        seat: The player who sits at the bottom.
        turn: The player to move; in an ended game the last one who could.
        over: Whether the game has ended.
        winner: The winner of an ended game, or None.
        headline: Whose turn it is, or how the game ended.
        last_move: The decision that led here, if it is known.
        legal: What the player to move can do; empty for a viewer who is not to move.
        hand_size: Cards in a full hand.
        match_points: Points that win the match, or None.
    """

    players: tuple[Player, Player]
    centers: tuple[Center, ...]
    stock: tuple[Card, ...]
    set_aside: tuple[str, ...] | None
    seat: int
    turn: int
    over: bool
    winner: int | None
    headline: str
    last_move: Move | None
    legal: tuple[Move, ...]
    hand_size: int
    match_points: int | None

    @property
    def last_text(self) -> str:
        """The last move with the name of who made it; empty if it is not known."""
        move = self.last_move
        return f"{self.players[move.player].name}: {move.text}" if move else ""


def describe(
    game: Game,
    index: int = 0,
    viewer: Viewer = None,
    *,
    last_move: Decision | None = None,
    names: Sequence[str] = ("player_0", "player_1"),
) -> Table:
    """Return one game as its viewer sees it.

    Args:
        game: The batch that holds the game.
        index: The game's place in the batch.
        viewer: 0 or 1 for a seat; None for that of the player to move (in an ended game, of the last one who was);
            ``"all"``, for debugging, is the same with every card face up.
        last_move: The last decision, as the player who made it and the action (None for a forfeit).
        names: The players' names; of long ones the beginning is shown.

    Raises:
        ValueError: no such game, viewer or decision.
    """
    if isinstance(viewer, (bool, float)) or viewer not in (0, 1, None, "all"):
        raise ValueError(f"viewer={viewer!r} is not allowed; it is 0, 1, 'all' or None (the player to move)")
    position = game.position(index)
    rules, turn = game.rules, position["turn"]
    everything = viewer == "all"
    seat = turn if viewer is None or everything else int(viewer)
    names = ["".join(c if c.isprintable() else "?" for c in name[:NAME_LENGTH]) for name in names]

    def hidden(cards: list[str]) -> tuple[Card, ...]:
        return tuple(cards) if everything else (None,) * len(cards)

    players = [
        Player(
            name=names[player],
            payoff=(*hidden(payoff[:-1]), *payoff[-1:]),
            hand=tuple(hand) if player == seat else hidden(hand),
            sides=tuple(map(tuple, sides)),
            score=None if rules.match_points is None else score,
        )
        for player, (payoff, hand, sides, score) in enumerate(
            zip(position["payoff"], position["hands"], position["sides"], position["scores"], strict=True)
        )
    ]
    heights = [len(pile) for pile in position["centers"]]
    legal = np.flatnonzero(game.legal_actions([index])[0]).tolist() if turn == seat else []
    over = bool(game.state.over[index])
    winner = int(game.winner[index])
    return Table(
        players=(players[0], players[1]),
        centers=tuple(_center(rules, pile) for pile in position["centers"]),
        stock=hidden(position["stock"]),
        set_aside=tuple(position["set_aside"]) if rules.recycle == "set_aside" else None,
        seat=seat,
        turn=turn,
        over=over,
        winner=winner if over and winner != NO_WINNER else None,
        headline=_headline(game, index, turn, names),
        last_move=None if last_move is None else _made(game, last_move, seat),
        legal=tuple(_move(game, turn, action, seat, heights) for action in legal),
        hand_size=rules.hand_size,
        match_points=rules.match_points,
    )


def counted(number: int, noun: str) -> str:
    """Return a number and its noun, such as ``1 card`` and ``2 cards``."""
    return f"{number} {noun if number == 1 else noun + 's'}"


def _center(rules: Rules, pile: Sequence[str]) -> Center:
    height = len(pile)
    return Center(
        cards=tuple(pile),
        ranks=tuple(rules.characters[:height]),
        needs=rules.characters[height] if height < rules.ranks else None,
    )


def _made(game: Game, decision: Decision, seat: int) -> Move:
    """Return the last decision as a move; what it left in a hand is not known any more."""
    try:
        player, action = decision
    except (TypeError, ValueError):
        raise ValueError(
            f"last_move={decision!r} is not allowed; it is (player, action), or (player, None) for a forfeit"
        ) from None
    player = checked_integer("the player of last_move", player, 0, 1)
    if action is None:
        return Move(player, None, "forfeits", "", "")
    action = checked_integer("the action of last_move", action, 0, game.actions.n - 1)
    return _move(game, player, action, seat, None)


def _move(game: Game, player: int, action: int, seat: int, heights: Sequence[int] | None) -> Move:
    """Return an action as a move, with the card that would leave the hand where the heights of the centre are given."""
    table, characters = game.actions, game.rules.characters
    text = table.text(action)
    prefix = "" if player == seat else "opponent-"
    if action == table.end_turn:
        return Move(player, action, text, prefix + text, prefix + text)
    source, target = text.split(">")
    if action >= table.num_plays:
        source, target = f"hand-{source[-1]}", prefix + target
    elif source == "wild":
        source = f"hand-{characters[-1]}"
    elif source == "hand" and heights is not None:
        source = f"hand-{characters[heights[action // table.num_sources]]}"
    if heights is None and source.startswith("hand"):
        source = "hand"
    return Move(player, action, text, prefix + source, target)


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
    return f"{names[winner]} wins {counted(points[winner], 'point')}"
