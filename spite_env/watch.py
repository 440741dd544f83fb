"""The command ``spite-env watch``: a game step by step in the terminal, or as a page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence

from spite_env import terminal
from spite_env.files import whole_file
from spite_env.record import RecordError
from spite_env.render.ansi import WIDTH, board, show
from spite_env.render.table import counted
from spite_env.replay import EVALUATOR, Frame, RecordFile, Replay, of_policies, of_record
from spite_env.rules import Rules

#: Decisions a second: by default, least and most.
SPEED, SLOWEST, FASTEST = 2.0, 0.125, 64.0

#: Decisions that are evaluated at once for a page, and for a recorded game on a screen.
PAGE_AT_ONCE, SCREEN_AT_ONCE = 64, 16

#: Actions that are listed of an evaluation.
MOST_CHOICES = 6

_BAR, _SIDE = 20, 46  # characters of a bar, and those that a screen needs beside the board

#: Makes the replay of a game of this number, evaluating so many decisions at once.
Open = Callable[[int, int], Replay]


def watch(
    what: Sequence[str],
    rules: Rules | None = None,
    *,
    seed: int | None = None,
    game: int | None = None,
    html: str | None = None,
    perspective: str = "mover",
    speed: float = SPEED,
    evaluator: str = "rollouts",
) -> None:
    """Show two policies play, or recorded games.

    On a terminal this obeys keys; elsewhere it prints every position.

    Args:
        what: The names of two policies, or that of a file of records.
        rules: The variant, for policies; default ``Rules()``.
        seed: That of the game, for policies; default 0.
        game: The number of the record, for a file; default 0.
        html: A file to write the game to as a page, instead of showing it here.
        perspective: Whose eyes it is seen with, see :meth:`~spite_env.replay.Frame.table`.
        speed: Decisions a second.
        evaluator: A policy that tells what it thinks of every decision; ``"rollouts"`` are those of greedy,
            ``"none"`` is none.

    Raises:
        ValueError: an argument that is not allowed, or goes only with the other kind of games.
        RecordError: a record can't be read, or is wrong.
        PolicyError: a policy misbehaves.
        OSError: a file can't be read or written.
    """
    asked = {"rollouts": EVALUATOR, "none": None}.get(evaluator, evaluator)
    if not SLOWEST <= speed <= FASTEST:
        raise ValueError(f"speed={speed!r} is not allowed; it is from {SLOWEST:g} to {FASTEST:g} decisions a second")
    if len(what) == 2:
        if game is not None:
            raise ValueError("a number of a game is for a file of records; two policies play the game of a seed")

        def opened(number: int, at_once: int) -> Replay:
            first, second = what
            return of_policies(first, second, rules, seed=seed or 0, evaluator=asked, at_once=at_once)

        count = 1
    elif len(what) == 1:
        if rules is not None or seed is not None:
            raise ValueError("rules and a seed are for two policies; a file of records has its own")
        if not os.path.exists(what[0]):
            raise FileNotFoundError(f"there is no file {what[0]!r}; watch takes a file of records, or two policies")
        records = RecordFile(what[0])

        def opened(number: int, at_once: int) -> Replay:
            return of_record(records[number], evaluator=asked, at_once=at_once)

        count = len(records)
    else:
        raise ValueError(f"watch takes two policies or one file of records, not {counted(len(what), 'name')}")
    number = game or 0
    if html is not None:
        if len(what) == 1 and os.path.exists(html) and os.path.samefile(what[0], html):
            raise ValueError(f"the page can't be written to {html!r}: that is the file of records itself")
        _write_page(html, opened, number, perspective)
    elif terminal.is_terminal():
        at_once = 1 if len(what) == 2 else SCREEN_AT_ONCE
        _Screen(lambda number: opened(number, at_once), number, count, perspective, speed).run()
    else:
        _print_all(opened(number, PAGE_AT_ONCE), perspective)


def _write_page(path: str, opened: Open, number: int, perspective: str) -> None:
    from spite_env.render.page import page

    with whole_file(path) as file:
        replay = opened(number, PAGE_AT_ONCE)
        for made, _ in enumerate(replay, 1):
            if sys.stderr.isatty():
                print(f"{made} positions", end="\r", file=sys.stderr, flush=True)
        file.write(page(replay, perspective).encode())
    print(f"{path}: {counted(len(replay.frames), 'position')}")


def _print_all(replay: Replay, perspective: str) -> None:
    try:
        for frame in replay:
            show(
                "\n".join([*_board(frame, replay, perspective), *_opinions(frame, replay), *_chance(frame, replay), ""])
            )
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Screen:
    """A replay on a terminal, and the keys that move it."""

    def __init__(
        self, opened: Callable[[int], Replay], number: int, count: int, perspective: str, speed: float
    ) -> None:
        self._opened = opened
        self._count = count
        self._perspective = perspective
        self._speed = speed
        self._note = ""  # what went wrong with the last key
        self._open(number)

    def _open(self, number: int) -> None:
        self._replay = self._opened(number)
        self._number, self._at, self._playing = number, 0, True

    def run(self) -> None:
        """Show the game until a key ends it."""
        try:
            with terminal.keys() as keys, terminal.screen():
                while True:
                    terminal.draw(self._lines())
                    key = keys.read(1 / self._speed if self._playing else 1.0)
                    if key in ("q", "escape", "end of input"):
                        return
                    self._obey(key)
        except KeyboardInterrupt:
            return

    def _obey(self, key: str) -> None:
        """Do what a key says; no key lets the game go on, if it does."""
        if key:
            self._note = ""
        if key in ("left", "right", "home", "end"):
            self._playing = False
            self._go({"left": self._at - 1, "right": self._at + 1, "home": 0, "end": sys.maxsize}[key])
        elif key == " ":
            self._playing = not self._playing
        elif key in ("+", "="):
            self._speed = min(FASTEST, self._speed * 2)
        elif key == "-":
            self._speed = max(SLOWEST, self._speed / 2)
        elif key in ("n", "p"):
            other = self._number + (1 if key == "n" else -1)
            if 0 <= other < self._count:
                try:
                    self._open(other)
                except RecordError as error:
                    self._note = f"game {other}: {error}"
        elif key == "" and self._playing:
            self._go(self._at + 1)

    def _go(self, number: int) -> None:
        self._at = self._replay.reach(number)
        if self._at < number:
            self._playing = False

    def _lines(self) -> list[str]:
        """Return the board with what was thought beside or below it, as far as there is room, and the keys."""
        replay, frame = self._replay, self._replay.frames[self._at]
        columns, rows = terminal.size()
        lines, told = _board(frame, replay, self._perspective), _opinions(frame, replay)
        foot = [*_chance(frame, replay), self._note or self._status()]
        if columns >= WIDTH + 2 + _SIDE:
            lines += [""] * (len(told) - len(lines))
            told += [""] * (len(lines) - len(told))
            lines = [f"{line:<{WIDTH}}  {words}" for line, words in zip(lines, told, strict=True)]
        else:
            lines += told
        return [*lines[: max(0, rows - len(foot))], *foot][-rows:]

    def _status(self) -> str:
        which = f"game {self._number} of {self._count}  " if self._count > 1 else ""
        going = f"{self._speed:g} a second" if self._playing else "paused"
        other = "  n/p game" if self._count > 1 else ""
        return f"{which}{self._at}  {going}  | space go/pause  left/right home/end step  +/- speed{other}  q quit"


def _board(frame: Frame, replay: Replay, perspective: str) -> list[str]:
    return board(frame.table(perspective, replay.players)).splitlines()


def _opinions(frame: Frame, replay: Replay) -> list[str]:
    """Return what is thought of the decision that follows, in lines."""
    lines = []
    for opinion in frame.opinions(replay.players, MOST_CHOICES):
        mover = replay.players[frame.game.state.player[0]]
        lines.append(
            opinion.who + ("" if opinion.value is None else f": {mover} wins with {_chance_of(opinion.value)}")
        )
        for choice in opinion.choices:
            share = "" if choice.probability is None else f"{choice.probability:4.0%} {_bar(choice.probability)}"
            worth = "" if choice.value is None else f" {_chance_of(choice.value)}"
            lines.append(f"{'>' if choice.taken else ' '} {choice.text:<18}{share}{worth}")
    return lines


def _chance_of(value: float) -> str:
    return f"{(1 + value) / 2:4.0%}"


def _chance(frame: Frame, replay: Replay) -> list[str]:
    """Return player 0's win chance in a line, if it is known."""
    if frame.chance is None:
        return []
    return [f"win chance  {replay.players[0]} {frame.chance:4.0%} {_bar(frame.chance)} {replay.players[1]}"]


def _bar(share: float) -> str:
    filled = round(_BAR * share)
    return "=" * filled + "." * (_BAR - filled)
