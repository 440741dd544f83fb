"""A session in the terminal: boards and lists of moves go out, a line comes in for each decision or command."""

from __future__ import annotations

import re
from collections.abc import Sequence

from spite_env.actions import ActionTable
from spite_env.play.session import Session, parse_seed
from spite_env.render import ansi

HELP = """\
A move is its number in the list, its text (side2>center1, discard 7>side3) or that in short (s21, d73); its beginning
is enough where no other move begins so.
  hint [AGENT]  what an agent would do here
  undo          take back your last decision, unless a card has been revealed since
  new [SEED]    a new game (or match); one in progress is given up
  help          this text
  quit (or q)   leave; a game (or match) in progress is given up"""

_LEAVE = ("quit", "q")

_COLUMN, _COLUMNS = 26, 3

#: Moves that a message names.
_MOST_NAMED = 6


def run(session: Session, hint: str, games: int | None = None) -> None:
    """Let a person play until it leaves, or its input ends.

    Then, and also after an interrupt, the session is closed.

    Args:
        session: The table.
        hint: The agent that gives hints where no other one is asked for.
        games: Games (or matches) after which to stop; None goes on until the person leaves.
    """
    terminal = _Terminal(session, hint)
    left = games
    try:
        terminal.show()
        while True:
            while session.over and left is not None:
                left -= 1
                if not left:
                    return
                terminal.new("")
            if not terminal.obey(input("new [SEED], or quit> " if session.over else "> ")):
                return
    except EOFError:
        print()
    except KeyboardInterrupt:
        print()
        raise
    finally:
        session.close()
        terminal.tell()


def short(text: str) -> str:
    """Return the short form of an action's text: ``p0``, ``s21``, ``h0``, ``w2``, ``d73`` or ``e``."""
    source, _, target = text.partition(">")
    return source[0] + re.sub(r"[a-z_ ]", "", source + target)


def find_action(text: str, table: ActionTable, legal: Sequence[int]) -> int:
    """Return the legal action that a person means by a number in the list (from 1 on), a text, or part of one.

    Raises:
        ValueError: it means none of them, or several.
    """
    if text.isascii() and text.isdecimal():
        if not 1 <= int(text) <= len(legal):
            raise ValueError(f"there is no move {text}: the list goes from 1 to {len(legal)}")
        return legal[int(text) - 1]
    wanted = _squeezed(text)
    names = {action: (_squeezed(table.text(action)), short(table.text(action)).lower()) for action in range(table.n)}
    meant = [action for action in legal if wanted in names[action]]
    meant = meant or [action for action in legal if any(name.startswith(wanted) for name in names[action])]
    if len(meant) == 1:
        return meant[0]
    if meant:
        more = ", ..." if len(meant) > _MOST_NAMED else ""
        raise ValueError(f"{text!r} may mean {', '.join(map(table.text, meant[:_MOST_NAMED]))}{more}")
    if any(name.startswith(wanted) for each in names.values() for name in each):
        raise ValueError(f"{text!r} is not possible now; the list shows what is")
    raise ValueError(f"{text!r} is no move and no command; help lists both")


def _squeezed(text: str) -> str:
    return re.sub(r"[\s>]", "", text).lower()


class _Terminal:
    """What has been shown of a session, and the commands."""

    def __init__(self, session: Session, hint: str) -> None:
        self.session = session
        self.default_hint = hint
        self.told = 0  # entries of the session's log
        self.commands = {"hint": self.hint, "undo": self.undo, "new": self.new, "help": self.help, "?": self.help}

    def obey(self, line: str) -> bool:
        """Do what a line says; return whether to go on."""
        word, _, rest = line.strip().partition(" ")
        command = self.commands.get(word.lower())
        try:
            if command is not None:
                command(rest.strip())
            elif word and word.lower() not in _LEAVE:
                self.move(line.strip())
        except ValueError as error:
            print(error)
        return word.lower() not in _LEAVE

    def move(self, text: str) -> None:
        session = self.session
        if session.over:
            raise ValueError("the game is over; new begins another one, quit leaves")
        session.play(find_action(text, session.game.actions, session.legal_actions()))
        self.told += 1  # the person knows what it has done
        self.show()

    def undo(self, rest: str) -> None:
        self.session.undo()
        self.told -= 1
        self.show()

    def hint(self, agent: str) -> None:
        agent = agent or self.default_hint
        action = self.session.hint(agent)
        print(f"{agent} would play: {self.session.game.actions.text(action)}")

    def new(self, seed: str) -> None:
        wanted = parse_seed(seed)
        self.session.close()
        self.tell()
        self.session.new(wanted)
        self.told = 0
        self.show()

    def help(self, rest: str) -> None:
        print(HELP)

    def show(self) -> None:
        """Show what has happened, the board, and what can be done."""
        session = self.session
        self.tell()
        table = session.table()
        ansi.show(ansi.board(table))
        cells = [
            f"{number:3} {short(move.text):<4} {move.text}".ljust(_COLUMN) for number, move in enumerate(table.legal, 1)
        ]
        for start in range(0, len(cells), _COLUMNS):
            print("".join(cells[start : start + _COLUMNS]).rstrip())

    def tell(self) -> None:
        """Say what has happened since this was last asked for."""
        session = self.session
        entries = session.log[self.told :]
        self.told += len(entries)
        for player, text in entries:
            print(f"  {text}" if player is None else f"  {session.names[player]}: {text}")
        if session.over and entries:
            print(
                *filter(None, [f"  {session.fault}" if session.fault else "", f"  The seed was {session.seed}."]),
                sep="\n",
            )
