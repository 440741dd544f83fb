"""The judgement of game records: are they what the rules and chance can have made?

A record is replayed with the core itself, and whatever follows from its decisions is compared with what it says.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import position as positions_module
from spite_env.game import Game
from spite_env.position import Position
from spite_env.record import Event, Record, RecordError, Script, add_event, check_format, parse_line, show
from spite_env.rules import WILD_CHARACTER, Rules
from spite_env.state import Index

#: Records that :func:`verify_file` replays at once.
BATCH = 1000

#: Called before each step of a replay with the batch, the games in it that decide, and their actions.
Watch = Callable[[Game, Index, Index], None]

_RULES_KEYS = list(Rules().to_dict())


def verify(record: Record, *, check_seed: bool = False) -> None:
    """Judge a record: replay it, and compare everything that follows from it with what it says.

    What chance decided is taken from the record, and has to be possible.

    Args:
        record: The record, as :func:`~spite_env.record.read_records` yields it.
        check_seed: Whether its deal and its shuffles also have to be those of its seed.

    Raises:
        RecordError: something is wrong with it; the message names the first wrong event and what was expected.
    """
    (problem,) = _replayed([_checked(record)], check_seed)
    if problem is not None:
        raise problem


def replay(record: Record, watch: Watch) -> Game:
    """Judge a record as :func:`verify` does, and return its game as it ended, a batch of one.

    Args:
        record: The record. Of a match, it is one game, and the game returned knows of no match.
        watch: Sees it replayed.

    Raises:
        RecordError: something is wrong with the record.
    """
    case = _checked(record)
    played = _Replay(case.rules.replace(match_points=None), [case], check_seed=False)
    (problem,) = played.run(watch)
    if problem is not None:
        raise problem
    return played._game.copy()


def verify_file(path: str | os.PathLike[str], *, check_seed: bool = False) -> tuple[list[RecordError], int]:
    """Judge all records of a file, each by itself as :func:`verify` does, and matches as a whole.

    The records of a match have to follow each other from its first game on; the last ones may be missing.

    Args:
        path: The file.
        check_seed: As for :func:`verify`.

    Returns:
        What is wrong, one error for each wrong record, in their order; and the number of records.

    Raises:
        OSError: the file can't be read.
    """
    judge = Judge(check_seed=check_seed)
    problems: list[RecordError] = []
    with open(path, "rb") as file:
        while lines := list(islice(file, BATCH)):
            problems += judge([_tried(parse_line, number, line) for number, line in enumerate(lines, judge.count)])
    return problems, judge.count


class Judge:
    """Judges the records of a file in their order, some at a time: each by itself, and matches as a whole.

    Args:
        check_seed: As for :func:`verify`.
        one_variant: Whether all records have to have the rules of the first right one.

    Attributes:
        count: Records judged so far.
        rules: With ``one_variant``, the rules of the records; None as long as there is none.
    """

    def __init__(self, *, check_seed: bool = False, one_variant: bool = False) -> None:
        self.count = 0
        self.rules: Rules | None = None
        self._check_seed = check_seed
        self._one_variant = one_variant
        self._before: _Case | None = None
        self._right = True  # whether the record before is: a wrong one says nothing about the next one

    def __call__(self, records: Sequence[Any], watch: Watch | None = None) -> list[RecordError]:
        """Judge the next records; a `RecordError` among them stands for one that can't be read.

        Args:
            records: The records.
            watch: Sees them replayed. Its games are those of the records with the same rules whose outside, everything
                but the events and the result, is right.

        Returns:
            What is wrong, one error for each wrong record; the message names its place.
        """
        cases = [_tried(self._case, record) for record in records]
        problems = iter(_replayed([case for case in cases if isinstance(case, _Case)], self._check_seed, watch))
        placed = []
        for number, found in enumerate(cases, start=self.count):
            case, problem = (found, next(problems)) if isinstance(found, _Case) else (None, found)
            if self._right and case is not None and problem is None:
                problem = _tried(_check_sequence, self._before, case)
            self._before, self._right = case, problem is None
            if problem is not None:
                placed.append(_placed(problem, number, case))
        self.count += len(records)
        return placed

    def _case(self, record: Any) -> _Case:
        if isinstance(record, RecordError):
            raise record
        case = _checked(record)
        if self._one_variant:
            self.rules = self.rules or case.rules
            if difference := _difference(self.rules.to_dict(), case.rules.to_dict()):
                raise RecordError(f"rules: {difference} as in the records before it")
        return case


def _placed(problem: RecordError, number: int, case: _Case | None) -> RecordError:
    """Return a problem with the place of its record in a file."""
    seed = "" if case is None else f" (seed {case.seed})"
    return RecordError(f"record {number}{seed}: {problem}", record=number, event=problem.event)


def _tried(function: Callable[..., Any], *arguments: Any) -> Any:
    """Return what a function returns, or the `RecordError` that it raises."""
    try:
        return function(*arguments)
    except RecordError as error:
        return error


def _replayed(cases: Sequence[_Case], check_seed: bool, watch: Watch | None = None) -> list[RecordError | None]:
    """Replay records and return what is wrong with each. Those of the same rules play together."""
    problems: list[RecordError | None] = [None] * len(cases)
    groups: dict[Rules, list[int]] = {}
    for number, case in enumerate(cases):
        groups.setdefault(case.rules.replace(match_points=None), []).append(number)
    for rules, numbers in groups.items():
        replay = _Replay(rules, [cases[number] for number in numbers], check_seed)
        for number, problem in zip(numbers, replay.run(watch), strict=True):
            problems[number] = problem
    return problems


class _Replay:
    """Plays records of the same rules again, all at once. A match is played game by game."""

    def __init__(self, rules: Rules, cases: list[_Case], check_seed: bool) -> None:
        self._cases = cases
        self._check_seed = check_seed
        self._game = Game(rules, len(cases), [case.seed for case in cases])
        self._script = Script(self._game)
        self._cursors = [0] * len(cases)  # the next event of each record
        self._told: list[list[Event]] = [[] for _ in cases]  # what the core has told and is to be compared
        self._results: list[dict[str, Any] | None] = [None] * len(cases)
        self._problems: list[RecordError | None] = [None] * len(cases)
        if check_seed:
            episodes = np.array([case.episode for case in cases], np.uint64)
            self._game._revisit(episodes, [case.game for case in cases], [case.start.turn for case in cases])
            self._problems = [_tried(self._check_deal, g) for g in range(len(cases))]
        positions_module.place(self._game.state, np.arange(len(cases)), [case.start for case in cases])
        self._game.listener = self._hear

    def run(self, watch: Watch | None = None) -> list[RecordError | None]:
        """Return the first thing that is wrong with each record."""
        while live := [g for g, problem in enumerate(self._problems) if problem is None and self._results[g] is None]:
            mask = self._game.legal_actions()
            movers = self._game.current_player.tolist()
            actions: dict[int, int] = {}
            forfeits: list[int] = []
            for g in live:
                if self._is_forfeited(g):
                    forfeits.append(g)
                elif isinstance(found := _tried(self._action, g, movers[g], mask[g]), RecordError):
                    self._problems[g] = found
                else:
                    actions[g] = found
            if actions:
                games, chosen = np.array(list(actions)), np.array(list(actions.values()))
                if watch is not None:
                    watch(self._game, games, chosen)
                self._game.step(chosen, games)
            if forfeits:
                self._game.forfeit(forfeits)
            for g in (*actions, *forfeits):
                self._problems[g] = _tried(self._compare, g)
        return self._problems

    def _is_forfeited(self, g: int) -> bool:
        case = self._cases[g]
        return self._cursors[g] == len(case.events) and case.record["result"].get("outcome") == "forfeit"

    def _action(self, g: int, mover: int, legal: NDArray[np.bool_]) -> int:
        """Return the action of the next event, a decision of the mover."""
        events, index, table = self._cases[g].events, self._cursors[g], self._game.actions
        wanted = f"expected a decision (play, discard or end_turn) of player {mover}"
        if index == len(events):
            steps = self._game.state.steps[g]
            raise _wrong(index, f"is missing: the game is not over after {steps} decisions; {wanted}")
        event = events[index]
        text = _action_text(event)
        if text is None:
            raise _wrong(index, f"is {show(event)}, {wanted}")
        if not _same(event.get("player"), mover):
            raise _wrong(index, f"'player' is {show(event.get('player'))}, {wanted}")
        try:
            action = table.parse(text)
        except ValueError as error:
            raise _wrong(index, str(error)) from None
        if not legal[action]:
            listed = ", ".join(table.text(number) for number in np.flatnonzero(legal).tolist())
            raise _wrong(index, f"{text!r} is not legal for player {mover}; expected one of {listed}")
        return action

    def _compare(self, g: int) -> None:
        """Compare what the core has told with the record."""
        case, told, self._told[g] = self._cases[g], self._told[g], []
        for event in told:
            index = self._cursors[g]
            if index == len(case.events):
                raise _wrong(index, f"is missing, expected {show(event)}")
            found = case.events[index]
            usual = found == event and [*map(type, found.values())] == [*map(type, event.values())]  # quick to see
            if not usual and (difference := _difference(event, found)):
                raise _wrong(index, difference)
            self._cursors[g] += 1
        result = self._results[g]
        if result is None:
            return
        if (index := self._cursors[g]) < len(case.events):
            raise _wrong(index, f"is {show(case.events[index])}, expected none: the game has ended ({show(result)})")
        if difference := _difference(result, case.record["result"]):
            raise RecordError(f"the result: {difference}")

    def _hear(self, kind: str, games: Index, **details: Any) -> None:
        if kind == "end":
            for g, result in self._script.results(games, **details):
                self._results[g] = result
            return
        for g, event in self._script.events(kind, games, details):
            if "stock" in event:
                self._go_on_with_recorded_stock(g, event)
            add_event(self._told[g], event)

    def _go_on_with_recorded_stock(self, g: int, event: Event) -> None:
        """Replace the stock by the recorded one, if chance can have made that; else state what chance can make."""
        if self._check_seed:
            return
        stock, rules = event["stock"], self._game.rules
        if event["type"] == "return" or rules.recycle == "bottom":
            shuffled = len(event["cards"])
        else:
            shuffled = len(stock) if rules.recycle == "shuffle" else 0
        possible = _AnyOrder(stock[:shuffled], stock[shuffled:])
        index, events = self._cursors[g] + len(self._told[g]), self._cases[g].events
        recorded = events[index] if index < len(events) else None
        if type(recorded) is dict and possible.includes(recorded.get("stock")):
            event["stock"] = list(recorded["stock"])
            positions_module.arrange_stock(self._game.state, g, event["stock"])
        else:
            event["stock"] = possible

    def _check_deal(self, g: int) -> None:
        """Compare the record's deal with that of its seed, which the game holds now."""
        record, dealt = self._cases[g].record, self._game.position(g)
        if "deal" in record:
            deal = record["deal"]
            hands = [sorted(hand, key=self._game.rules.characters.index) for hand in deal["hands"]]
            given = {"turn": record["first_player"], "payoff": deal["payoff"], "hands": hands, "stock": deal["stock"]}
            if difference := _difference({name: dealt[name] for name in given}, given):
                raise RecordError(f"the deal is not that of the seed: {difference}")


@dataclass(frozen=True)
class _AnyOrder:
    """A stock after a shuffle: some cards in any order, and others above them as they lie."""

    shuffled: list[str]
    above: list[str]

    def includes(self, stock: Any) -> bool:
        return (
            type(stock) is list
            and all(type(card) is str for card in stock)
            and stock[len(self.shuffled) :] == self.above
            and sorted(stock[: len(self.shuffled)]) == sorted(self.shuffled)
        )

    def __repr__(self) -> str:
        below = f"{' '.join(sorted(self.shuffled))} in any order" if self.shuffled else ""
        return f"{below}{' under ' if below and self.above else ''}{' '.join(self.above)}" or "no card"


def _action_text(event: Any) -> str | None:
    """Return an event's action in the words of the action table, which need not know it; None for no decision."""
    if type(event) is not dict:
        return None
    kind, card = event.get("type"), event.get("card")
    if kind == "play":
        source = event.get("source")
        source = "wild" if source == "hand" and card == WILD_CHARACTER else _word(source).replace(":", "")
        return f"{source}>center{_word(event.get('center'))}"
    if kind == "discard":
        return f"discard {_word(card)}>side{_word(event.get('side'))}"
    return "end_turn" if kind == "end_turn" else None


def _word(value: Any) -> str:
    return str(value) if type(value) in (str, int) else show(value)


# The outside of a record


@dataclass(frozen=True)
class _Case:
    """A record whose outside, everything but its events and its result, is as it has to be."""

    record: Record
    rules: Rules
    start: Position
    seed: int
    episode: int
    game: int  #: its number within its match
    events: list[Any]


def _checked(record: Any) -> _Case:
    """Check what can be checked without playing."""
    try:
        return _checked_outside(record)
    except RecursionError:
        raise RecordError("it is nested too deeply") from None


def _checked_outside(record: Any) -> _Case:
    check_format(record)
    rules = _checked_rules(record.get("rules"))
    match = [] if rules.match_points is None else ["match"]
    start = ["position"] if "position" in record else ["first_player", "deal"]
    _check_keys("", record, ["format", "rules", "seed", "players", *match, *start, "events", "result"], ["episode"])
    seed = _checked_integer("seed", record["seed"], 0, 2**64 - 1)
    episode = _checked_integer("episode", record.get("episode", 0), int("episode" in record), 2**64 - 1)
    _check_list("players", record["players"], str, 2)
    if type(record["events"]) is not list:
        raise RecordError(f"events is {show(record['events'])}, expected a list")
    if type(record["result"]) is not dict:
        raise RecordError(f"the result is {show(record['result'])}, expected an object")
    game, scores = _checked_match(rules, record["match"]) if match else (0, [0, 0])
    if "position" in record:
        position = _checked_position(record["position"], game, scores)
    else:
        position = _checked_deal(rules, record["deal"], record["first_player"], game, scores)
    try:
        (parsed,) = positions_module.parse(rules, [position], 1)
    except ValueError as error:
        raise RecordError(f"{start[-1]}: {str(error).removeprefix('position: ')}") from None
    return _Case(record, rules, parsed, seed, episode, game, record["events"])


def _checked_rules(values: Any) -> Rules:
    _check_keys("rules: ", values, _RULES_KEYS)
    try:
        rules = Rules.from_dict(values)
    except ValueError as error:
        raise RecordError(f"rules: {error}") from None
    if difference := _difference(rules.to_dict(), values):
        raise RecordError(f"rules: {difference}")
    return rules


def _checked_match(rules: Rules, match: Any) -> tuple[int, list[int]]:
    """Return a game's number within its match, and the scores before it."""
    _check_keys("match: ", match, ["id", "game", "scores"])
    if type(match["id"]) not in (str, int):
        raise RecordError(f"match: id={show(match['id'])} is not allowed; it is a string or an integer")
    game = _checked_integer("match: game", match["game"], 0, rules.max_games - 1)
    _check_list("match: scores", match["scores"], int, 2)
    return game, match["scores"]


def _checked_position(position: Any, game: int, scores: list[int]) -> Any:
    """Check what is stricter in a record than in other positions."""
    if game > 0:
        raise RecordError(f"match: game={game} starts from a position, which only game 0 can")
    if type(position) is not dict or "stock" not in position:
        raise RecordError(f"position is {show(position)}, expected an object with a 'stock'")
    if not _same(position.get("scores", [0, 0]), scores):
        raise RecordError(f"position: scores={show(position.get('scores'))}, expected {scores}")
    return position


def _checked_deal(rules: Rules, deal: Any, starter: Any, game: int, scores: list[int]) -> dict[str, Any]:
    """Return a deal as a position."""
    _check_keys("deal: ", deal, ["payoff", "hands", "stock"])
    for name, size in (("payoff", rules.payoff_size), ("hands", rules.hand_size)):
        _check_list(f"deal: {name}", deal[name], list, 2)
        for player, cards in enumerate(deal[name]):
            _check_list(f"deal: {name} {player}", cards, str, size)
    _check_list("deal: stock", deal["stock"], str, rules.num_cards - 2 * (rules.payoff_size + rules.hand_size))
    _checked_integer("first_player", starter, 0, 1)
    if game == 0:
        allowed = _starters(rules, *(cards[-1] for cards in deal["payoff"]))
        if starter not in allowed:
            raise RecordError(
                f"first_player={starter}, but with the rule first_player={rules.first_player!r} and these pay-off tops "
                + (f"player {allowed[0]} starts" if allowed else "the cards are dealt anew")
            )
        if scores != [0, 0]:
            raise RecordError(f"match: scores={scores}, expected [0, 0] before game 0")
    empty: list[str] = []
    piles = {"sides": [[empty] * rules.side_piles] * 2, "centers": [empty] * rules.center_piles}
    return {**deal, **piles, "turn": starter, "scores": scores}


def _starters(rules: Rules, first_top: str, second_top: str) -> list[int]:
    """Return who may start the first game of an episode."""
    if rules.first_player == "random":
        return [0, 1]
    if rules.first_player == "higher_payoff":
        first, second = rules.characters.find(first_top), rules.characters.find(second_top)
        return [] if first == second else [int(second > first)]
    return [int(rules.first_player)]


def _check_sequence(before: _Case | None, case: _Case) -> None:
    """Check that a later game of a match goes on from the record before it."""
    if case.game == 0:
        return
    match = case.record["match"]
    earlier = before.record.get("match") if before is not None else None
    if before is None or earlier is None or (earlier["id"], before.game) != (match["id"], case.game - 1):
        raise RecordError(f"match: game {case.game} of {match['id']!r} does not stand right after game {case.game - 1}")
    result = before.record["result"]
    if result["outcome"] == "forfeit":
        raise RecordError(f"match: {match['id']!r} goes on after a forfeit, which ends it")
    scores = [score + points for score, points in zip(earlier["scores"], result["points"], strict=True)]
    expected = _common(before) | {"match": {**earlier, "game": case.game, "scores": scores}}
    expected["first_player"] = 1 - before.start.turn
    found = _common(case) | {"match": match, "first_player": case.start.turn}
    if difference := _difference(expected, found):
        raise RecordError(f"after game {before.game} of the match, {difference}")


def _common(case: _Case) -> dict[str, Any]:
    """Return what is the same in all records of a match."""
    return {"episode": case.episode, **{name: case.record[name] for name in ("rules", "seed", "players")}}


# Helpers


def _check_keys(where: str, value: Any, required: list[str], optional: Sequence[str] = ()) -> None:
    if type(value) is not dict:
        raise RecordError(f"{where}{show(value)} is no object")
    for name in required:
        if name not in value:
            raise RecordError(f"{where}the key {name!r} is missing")
    for name in value:
        if name not in required and name not in optional:
            raise RecordError(f"{where}unknown key {show(name)}")


def _check_list(name: str, value: Any, kind: type, length: int) -> None:
    if type(value) is not list or len(value) != length or any(type(item) is not kind for item in value):
        what = {str: "strings", int: "integers", list: "lists"}[kind]
        raise RecordError(f"{name} is {show(value)}, expected a list of {length} {what}")


def _checked_integer(name: str, value: Any, least: int, most: int) -> int:
    if type(value) is not int or not least <= value <= most:
        raise RecordError(f"{name}={show(value)} is not allowed; it is an integer from {least} to {most}")
    return value


def _wrong(event: int, message: str) -> RecordError:
    return RecordError(f"event {event}: {message}", event=event)


def _difference(expected: dict[str, Any], found: Any) -> str | None:
    """Say where an object is not as expected; None if it is."""
    if type(found) is not dict or not _same(found.get("type"), expected.get("type")):
        return f"is {show(found)}, expected {show(expected)}"
    for name, value in expected.items():
        if name not in found:
            return f"has no {name!r}, expected {show(value)}"
        if not _same(found[name], value):
            return f"{name!r} is {show(found[name])}, expected {show(value)}"
    for name in found:
        if name not in expected:
            return f"has an unknown key {show(name)}, expected {show(list(expected))}"
    return None


def _same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal and of the same types: 1, 1.0 and true are not the same."""
    if type(one) is not type(other) or one != other:
        return False
    if type(one) is list:
        return set(map(type, one)) == {str} or all(map(_same, one, other))
    if type(one) is dict:
        return all(_same(value, other[name]) for name, value in one.items())
    return True
