"""Game records: one JSON object a game, enough to replay and to judge the game without this library.

.. code-block:: python

    {"format": "spite-and-malice-record/1",
     "rules": {"ranks": 12, ...},          # every field of Rules
     "seed": 7,                            # and "episode": n for the n-th reset without a seed, n > 0
     "players": ["greedy", "random"],      # players[p] played seat p
     "match": {"id": "7:0", "game": 0, "scores": [0, 0]},    # only in a match: one record a game, scores before it
     "first_player": 0,
     "deal": {"payoff": [[..], [..]], "hands": [[..], [..]], "stock": [..]},
     "events": [
      {"type": "play", "player": 0, "source": "payoff", "card": "K", "center": 1},    # or "side:2" or "hand"
      {"type": "recycle", "player": 0, "center": 1, "cards": [..], "stock": [..]},    # the whole new stock
      {"type": "discard", "player": 0, "card": "7", "side": 3},
      {"type": "end_turn", "player": 0},
      {"type": "return", "player": 1, "cards": [..], "stock": [..]},                  # set-aside cards, the new stock
      {"type": "draw", "player": 1, "cards": [..]}],                                  # in the order drawn
     "result": {"outcome": "win", "winner": 0, "points": [12, 0]}}  # or "draw", "truncated", "forfeit" with "by": 1

A game that started from a position has ``"position"`` (see :mod:`spite_env.position`) instead of ``"deal"`` and
``"first_player"``. All piles run bottom to top. A file of records holds one a line (``.jsonl``).

To record, attach a :class:`Recorder` to a game; to judge, see :mod:`spite_env.verify`.
"""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import position as positions_module
from spite_env.game import Game
from spite_env.state import Index

FORMAT = "spite-and-malice-record/1"

Record = dict[str, Any]
Event = dict[str, Any]

#: Characters of a value that a message shows.
MOST_SHOWN = 2000


class RecordError(ValueError):
    """A record that can't be read, or tells of what can't have happened.

    Attributes:
        record: The record's place in its file, from 0 on; None outside a file.
        event: The place of the first wrong event, from 0 on; None where no event is wrong, but something else.
    """

    def __init__(self, message: str, *, record: int | None = None, event: int | None = None) -> None:
        super().__init__(message)
        self.record = record
        self.event = event


# What the core tells, in the words of a record


class Script:
    """Puts what a game's listener is told into the words of a record."""

    def __init__(self, game: Game) -> None:
        self._state = game.state
        self._rules = game.rules
        self._sources = ["payoff", *(f"side:{side}" for side in range(game.rules.side_piles)), "hand", "hand"]

    def events(self, kind: str, games: Index, details: dict[str, NDArray[Any]]) -> Iterator[tuple[int, Event]]:
        """Yield each game's number and its event."""
        columns = dict(self._column(kind, name, values) for name, values in details.items())
        if kind in ("recycle", "return"):
            stock, size = self._state.stock, self._state.stock_size
            columns["stock"] = [self._text(stock[: size[game], game]) for game in games.tolist()]
        for game, *values in zip(games.tolist(), *columns.values(), strict=True):
            yield game, {"type": kind, **dict(zip(columns, values, strict=True))}

    def results(
        self, games: Index, winner: NDArray[Any], points: NDArray[Any], truncated: bool, forfeit: bool
    ) -> Iterator[tuple[int, dict[str, Any]]]:
        """Yield each game's number and its result."""
        for game, won_by, gained in zip(games.tolist(), winner.tolist(), points.T.tolist(), strict=True):
            outcome = "forfeit" if forfeit else "truncated" if truncated else "win" if won_by >= 0 else "draw"
            result = {"outcome": outcome, "winner": won_by if won_by >= 0 else None, "points": gained}
            yield game, result | ({"by": 1 - won_by} if forfeit else {})

    def _column(self, kind: str, name: str, values: NDArray[Any]) -> tuple[str, list[Any]]:
        if name == "source":
            return name, [self._sources[source] for source in values.tolist()]
        if name == "card":
            cards = self._text(values)
            return ("cards", [[card] for card in cards]) if kind == "draw" else (name, cards)
        if name == "cards":
            return name, [self._text(row) for row in values]
        if name == "tally":
            return "cards", [self._text(positions_module.untally(counts)) for counts in values.T]
        return name, values.tolist()

    def _text(self, cards: NDArray[Any]) -> list[str]:
        return positions_module.text(self._rules, cards)


def add_event(events: list[Event], event: Event) -> None:
    """Add an event, where the core tells of draws card by card."""
    if event["type"] == "draw" and events and events[-1]["type"] == "draw":
        events[-1]["cards"] += event["cards"]
    else:
        events.append(event)


# Recording


@dataclass
class _Episode:
    """What has been recorded of one game, or of one match, and not yet been handed out."""

    records: deque[Record] = field(default_factory=deque)
    ended: bool = False


class Recorder:
    """Records every game that a batch plays.

    It listens to ``game`` from now on and calls ``write`` with each finished record: of the first episode of every game
    of the batch in the order of the games, then of the second one, and so on; the games of a match come together.
    What is reset before its end leaves no record, and finished games of a match that is reset are kept.

    Args:
        game: A batch in which every game is new, or has ended; in its episodes it may deal and end as it likes.
        players: The names of the players of seats 0 and 1, or one such pair for each game of the batch.
        write: Takes a record; such as that of :func:`record_writer`, or the ``append`` of a list.

    Another listener of the game goes on hearing everything. Copies and pickles of the game are not recorded. A recorder
    is a context manager that calls :meth:`close`.

    Raises:
        ValueError: impossible players, or a game that is under way: start it from its position instead.
    """

    def __init__(
        self,
        game: Game,
        players: Sequence[str] | Sequence[Sequence[str]],
        write: Callable[[Record], object],
    ) -> None:
        state = game.state
        under_way = ~state.over & ((state.steps > 0) | (state.game_number > 0))
        if under_way.any():
            raise ValueError(
                f"game {np.flatnonzero(under_way)[0]} is under way: a record starts with its game (or its match). "
                "Reset it, or make a new batch with Game.from_positions"
            )
        self._game = game
        self._players = _pairs(players, game.num_games)
        self._write = write
        self._script = Script(game)
        self._open: list[Record] = [{}] * game.num_games  # without their results
        self._episodes = [deque([_Episode(ended=over)]) for over in state.over.tolist()]
        self._next = 0  # the game whose episode is handed out next
        as_dealt = game.copy()
        as_dealt._revisit(state.episode, state.game_number, state.starter)
        for index in np.flatnonzero(~state.over).tolist():
            self._start(index, dealt=game.position(index) == as_dealt.position(index))
        self._closed = False
        self._other_listener = game.listener
        game.listener = self._hear

    def __enter__(self) -> Recorder:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Stop recording, and hand out the finished records that wait for the end of others."""
        if self._game.listener == self._hear:
            self._game.listener = self._other_listener
        self._closed = True
        for episodes in self._episodes:
            for episode in episodes:
                episode.ended = True
        while any(self._episodes):
            if self._episodes[self._next]:
                self._hand_out()
            else:
                self._pass_on()

    def _hear(self, kind: str, games: Index, **details: Any) -> None:
        if self._other_listener is not None:
            self._other_listener(kind, games, **details)
        if self._closed:
            return
        if kind in ("deal", "position"):
            for index in games.tolist():
                if self._game.state.game_number[index] == 0:
                    if self._episodes[index]:
                        self._episodes[index][-1].ended = True
                    self._episodes[index].append(_Episode())
                self._start(index, dealt=kind == "deal")
            self._hand_out()
        elif kind == "end":
            for index, result in self._script.results(games, **details):
                episode = self._episodes[index][-1]
                episode.records.append({**self._open[index], "result": result})
                episode.ended = bool(self._game.state.over[index])
            self._hand_out()
        else:
            for index, event in self._script.events(kind, games, details):
                add_event(self._open[index]["events"], event)

    def _start(self, index: int, *, dealt: bool) -> None:
        """Begin the record of a game that has just been dealt, or set to a position."""
        state, position = self._game.state, self._game.position(index)
        seed, episode, number = int(state.seed[index]), int(state.episode[index]), int(state.game_number[index])
        record = {"format": FORMAT, "rules": self._game.rules.to_dict(), "seed": seed}
        if episode > 0:
            record["episode"] = episode
        record["players"] = list(self._players[index])
        if self._game.rules.match_points is not None:
            record["match"] = {"id": f"{seed}:{episode}", "game": number, "scores": position["scores"]}
        if dealt:
            record["first_player"] = position["turn"]
            record["deal"] = {name: position[name] for name in ("payoff", "hands", "stock")}
        else:
            record["position"] = position
        self._open[index] = {**record, "events": []}

    def _hand_out(self) -> None:
        """Hand out what has been finished, as far as the order allows."""
        while episodes := self._episodes[self._next]:
            while records := episodes[0].records:
                self._write(records[0])
                records.popleft()
            if not episodes[0].ended:
                break
            episodes.popleft()
            self._pass_on()

    def _pass_on(self) -> None:
        self._next = (self._next + 1) % self._game.num_games


def _pairs(players: Sequence[Any], count: int) -> list[tuple[str, str]]:
    pairs = [players] * count if all(isinstance(player, str) for player in players) else list(players)
    for pair in pairs:
        if not isinstance(pair, (list, tuple)) or len(pair) != 2 or not all(isinstance(name, str) for name in pair):
            raise ValueError(f"players={players!r} are not allowed; they are two names, or one pair of names a game")
    if len(pairs) != count:
        raise ValueError(f"{len(pairs)} pairs of players do not fit {count} games")
    return [(first, second) for first, second in pairs]


# Files


@contextmanager
def record_writer(path: str | os.PathLike[str], *, append: bool = False) -> Iterator[Callable[[Record], None]]:
    """Open a file for records, one a line; the context is a function that writes a record, at once.

    What an old file held is there until the first record is written, or until the context ends without an error; with
    ``append`` it stays, and the records come after it.

    Raises:
        OSError: the file can't be written.
        RecordError: it is to be appended to, and its last line is not whole.
    """
    if append and not _is_whole(path):
        raise RecordError(f"{os.fspath(path)!r} is cut, its last line is not whole: nothing can be appended to it")
    with open(path, "a", encoding="ascii", newline="\n", buffering=1) as file:
        replaced = append or not os.path.isfile(path)  # a pipe or a device has nothing to replace

        def replace() -> None:
            nonlocal replaced
            if not replaced:
                file.truncate(0)
                replaced = True

        def write(record: Record) -> None:
            line = json.dumps(record, separators=(",", ":"), allow_nan=False) + "\n"
            replace()
            file.write(line)

        yield write
        replace()


def _is_whole(path: str | os.PathLike[str]) -> bool:
    """Whether a file ends with a line break, is empty, or is none."""
    if not os.path.isfile(path):
        return True
    with open(path, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(size - 1, 0))
        return file.read() in (b"", b"\n")


def write_records(path: str | os.PathLike[str], records: Iterable[Record]) -> int:
    """Write records to a file and return how many; see :func:`record_writer`."""
    count = 0
    with record_writer(path) as write:
        for record in records:
            write(record)
            count += 1
    return count


def read_records(path: str | os.PathLike[str]) -> Iterator[Record]:
    """Yield the records of a file, without judging what they tell.

    Raises:
        OSError: the file can't be read.
        RecordError: a line that is no JSON object, or of another format; the message names the line, counted from 1.
    """
    with open(path, "rb") as file:
        for number, line in enumerate(file):
            yield parse_line(number, line)


def parse_line(number: int, line: bytes) -> Record:
    """Return the record in a line; raise `RecordError` where it holds none."""
    try:
        record: Record = json.loads(line.decode(), object_pairs_hook=_unique, parse_constant=_refuse_constant)
        check_format(record)
        return record
    except RecordError as error:
        problem = str(error)
    except RecursionError:
        problem = "it is nested too deeply"
    except ValueError as error:
        cut = "" if line.endswith(b"\n") else "the file is cut, its last line is not whole: "
        what = f"{error.msg} at character {error.pos}" if isinstance(error, json.JSONDecodeError) else str(error)
        problem = f"{cut}invalid JSON: {what}"
    raise RecordError(f"line {number + 1}: {problem}", record=number)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the key {next(name for name in names if names.count(name) > 1)!r} stands there twice")
    return made


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is no JSON")


def check_format(record: Any) -> None:
    """Raise `RecordError` for anything but a JSON object of this format."""
    if type(record) is not dict:
        raise RecordError(f"{show(record)} is no record, which is a JSON object")
    if record.get("format") != FORMAT:
        raise RecordError(f"format {show(record.get('format'))} is unknown; expected {FORMAT!r}")


def show(value: Any) -> str:
    """Return a value for a message, cut where it is long."""
    try:
        text = ascii(value)
    except RecursionError:
        return "something nested too deeply"
    return text if len(text) <= MOST_SHOWN else f"{text[:MOST_SHOWN]}..."
