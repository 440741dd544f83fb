"""Games to look at, forward and back: recorded ones, and ones that two policies play meanwhile."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import NamedTuple

import numpy as np

from spite_env import streams
from spite_env.arena import Pairing, Side
from spite_env.game import Game
from spite_env.policies import Evaluation, Policy, Values, evaluation_of, make_policy, policy_name
from spite_env.record import Record, RecordError, parse_line
from spite_env.render.table import Table, Viewer, describe, printable, shown_name
from spite_env.rules import Rules, checked_integer, checked_rules
from spite_env.state import NO_WINNER
from spite_env.verify import replay

#: The policy that estimates win chances where no other one is named: rollouts of greedy.
EVALUATOR = "spite_env.rollouts:Rollouts"

#: Probabilities below are not worth showing.
LEAST_SHOWN = 0.005

#: Whose eyes a replay may be seen with, see :meth:`Frame.table`, and the viewers that are meant.
PERSPECTIVES: dict[str, Viewer] = {"0": 0, "1": 1, "mover": None, "all": "all"}

_ONE = np.zeros(1, np.intp)  # the only game of a batch


@dataclass(frozen=True)
class Ply:
    """A decision in a game.

    Attributes:
        player: Who makes it.
        action: Its number; None is a forfeit.
        text: Its text.
        card: The card that it moves; empty where there is none.
        evaluation: What the player thinks of it, if it tells.
    """

    player: int
    action: int | None
    text: str
    card: str
    evaluation: Evaluation | None = None


class Choice(NamedTuple):
    """An action that somebody thinks of.

    Attributes:
        text: Its text.
        probability: Its probability, or None.
        value: Its value for the player to move, from -1 to 1, or None.
        taken: Whether it is what the player did.
    """

    text: str
    probability: float | None
    value: float | None
    taken: bool


class Opinion(NamedTuple):
    """What somebody thinks of a decision.

    Attributes:
        who: The name of the player, or ``evaluator``.
        about: How it was come by, in a few words.
        value: The value of the position for the player to move, from -1 to 1, or None.
        choices: The actions it tells most of, the best first.
    """

    who: str
    about: str
    value: float | None
    choices: list[Choice]


@dataclass(frozen=True)
class Frame:
    """A game between two decisions.

    Attributes:
        game: The game, a batch of one.
        last: The decision that led here; None after a deal.
        next: The decision that follows; None at the end.
        evaluation: What the evaluator thinks of the decision that follows, if there is one and it tells.
    """

    game: Game
    last: Ply | None
    next: Ply | None
    evaluation: Evaluation | None = None

    def table(self, perspective: str, names: Sequence[str]) -> Table:
        """Return what there is to see.

        Args:
            perspective: ``"0"`` or ``"1"``: what that player sees, from its seat; ``"mover"``: what the player to move
                sees, always from seat 0; ``"all"``: everything, from seat 0.
            names: The players' names.

        Raises:
            ValueError: another perspective.
        """
        if perspective not in PERSPECTIVES:
            raise ValueError(f"perspective={perspective!r} is not allowed; it is one of {', '.join(PERSPECTIVES)}")
        last_move = None if self.last is None else (self.last.player, self.last.action)
        viewer = PERSPECTIVES[perspective]
        return describe(self.game, viewer=viewer, seat=int(viewer == 1), last_move=last_move, names=names)

    def opinions(self, names: Sequence[str], most: int) -> list[Opinion]:
        """Return what the player to move and the evaluator think of the decision that follows, if they tell.

        Args:
            names: The players' names.
            most: Actions in an opinion, at most; what the player did is among them.
        """
        own = self.next.evaluation if self.next else None
        told = [(names[self.game.state.player[0]], own), ("evaluator", self.evaluation)]
        return [
            Opinion(who, evaluation.about, _first(evaluation.value), self._choices(evaluation, most))
            for who, evaluation in told
            if evaluation is not None
        ]

    def _choices(self, evaluation: Evaluation, most: int) -> list[Choice]:
        table = self.game.actions
        shares, values = (
            np.full(table.n, np.nan) if told is None else told[0]
            for told in (evaluation.probabilities, evaluation.action_values)
        )
        taken = self.next.action if self.next else None
        known = (shares >= LEAST_SHOWN) | ~np.isnan(values)
        shown = np.lexsort((-values, -shares, ~known))[: min(most, known.sum())].tolist()
        if shown and taken is not None and taken not in shown:
            shown[-1] = taken
        return [
            Choice(table.text(action), _number(shares[action]), _number(values[action]), action == taken)
            for action in shown
        ]

    @property
    def chance(self) -> float | None:
        """The chance of player 0 to win, a draw counting half: the result of an ended game, else the evaluator's value.

        None if that isn't known. Where there is no evaluator, it is the value that the player to move tells.
        """
        state = self.game.state
        if state.over[0]:
            winner = int(state.winner[0])
            return 0.5 if winner == NO_WINNER else float(winner == 0)
        told = self.evaluation or (self.next.evaluation if self.next else None)
        value = None if told is None else _first(told.value)
        if value is None:
            return None
        return (1 + (value if state.player[0] == 0 else -value)) / 2


class Replay:
    """The frames of a game, which come into being as they are asked for.

    Args:
        rules: The variant.
        players: The names of players 0 and 1, of which ``players`` holds what is shown.
        about: Where the game comes from, in a few words.
        frames: The frames, from the first one on.

    Attributes:
        frames: Those that are there by now, one at least.
    """

    def __init__(self, rules: Rules, players: Sequence[str], about: str, frames: Iterator[Frame]) -> None:
        self.rules = rules
        first, second = map(shown_name, players)
        if first == second:
            first, second = shown_name(f"{first} (0)"), shown_name(f"{second} (1)")
        self.players = first, second
        self.about = printable(about)
        self._coming = frames
        self.frames = [next(frames)]

    def __iter__(self) -> Iterator[Frame]:
        number = 0
        while self.reach(number) == number:
            yield self.frames[number]
            number += 1

    def reach(self, number: int) -> int:
        """Have the frames up to a number made; return that number, or that of the last one if there are fewer."""
        while len(self.frames) <= number and (frame := next(self._coming, None)) is not None:
            self.frames.append(frame)
        return max(0, min(number, len(self.frames) - 1))


def of_policies(
    first: str | Policy,
    second: str | Policy,
    rules: Rules | str | None = None,
    *,
    seed: int = 0,
    evaluator: str | Policy | None = EVALUATOR,
    at_once: int = 1,
) -> Replay:
    """Return the first game (or match) of a duel of two policies, played as its frames are asked for.

    Args:
        first: The policy in seat 0, or its name.
        second: That in seat 1.
        rules: The variant, or the name of a preset; default ``Rules()``.
        seed: That of the duel, see :func:`spite_env.arena.duel`.
        evaluator: A policy that tells what it thinks of every decision, or its name.
            It is asked about each as about a game of its own.
        at_once: Decisions that are made and evaluated at once; many together take less time.

    Raises:
        ValueError: an unknown policy, or another argument that is not allowed.
        PolicyError: a policy can't begin. If one misbehaves later, asking for frames raises this.
    """
    rules, seed = checked_rules(rules), checked_integer("seed", seed, 0, 2**64 - 1)
    names = policy_name(first), policy_name(second)
    sides = Pairing((first, second), names, rules, seed).sides(1)
    game = Game(rules, 1, seed)

    def frames() -> Iterator[Frame]:
        last = None
        while not game.state.over[0]:
            side = sides[game.state.player[0]]
            (action,) = side.decide(game, _ONE, 0).tolist()
            before, number = game.copy(), game.state.game_number[0]
            ply = _ply(before, action, evaluation_of(side.policy, side.name, game.legal_actions()))
            yield Frame(before, last, ply)
            game.step([action])
            last = ply
            if game.state.game_number[0] > number and not game.state.over[0]:  # the next game of the match is dealt
                ended = before.copy()
                ended.rules = rules.replace(match_points=None)
                ended.step([action])
                yield Frame(ended, last, None)
                last = None
        yield Frame(game, last, None)

    return Replay(rules, names, f"seed {seed}", _evaluated(frames(), evaluator, rules, seed, at_once))


def of_record(record: Record, *, evaluator: str | Policy | None = EVALUATOR, at_once: int = 1) -> Replay:
    """Return a recorded game. It is judged at once, and evaluated as its frames are asked for.

    Args:
        record: The record.
        evaluator: As for :func:`of_policies`.
        at_once: Likewise.

    Raises:
        RecordError: something is wrong with the record, see :func:`spite_env.verify.verify`.
        ValueError: an unknown policy.
    """
    moments: list[tuple[Game, int | None]] = []
    end = replay(record, lambda game, games, actions: moments.append((game.copy(), int(actions[0]))))
    if record["result"]["outcome"] == "forfeit":
        before = end.copy()
        before._clear_result(_ONE)
        moments.append((before, None))

    def frames() -> Iterator[Frame]:
        last = None
        for game, action in moments:
            ply = _ply(game, action)
            yield Frame(game, last, ply)
            last = ply
        yield Frame(end, last, None)

    seed, match = record["seed"], record.get("match")
    about = f"seed {seed}"
    if match is not None:
        about += f", game {match['game']} of match {match['id']} at {match['scores'][0]} : {match['scores'][1]}"
    return Replay(end.rules, record["players"], about, _evaluated(frames(), evaluator, end.rules, seed, at_once))


def _evaluated(
    frames: Iterator[Frame], evaluator: str | Policy | None, rules: Rules, seed: int, at_once: int
) -> Iterator[Frame]:
    """Return frames with what an evaluator tells of those in which there is something to decide."""
    at_once = checked_integer("at_once", at_once, 1)
    if evaluator is None:
        return frames
    side = Side(copy.deepcopy(make_policy(evaluator)), policy_name(evaluator))  # it may also be one of the players
    (own,) = streams.combine(streams.seeds_for(seed, 1), 2**32 + 2).tolist()  # the players have 2**32 and 2**32 + 1
    side.reset(rules, 1, own)
    if not hasattr(side.policy, "evaluation"):
        raise ValueError(
            f"policy {side.name!r} doesn't tell what it thinks; it would keep that in an attribute 'evaluation'"
        )

    def with_evaluations() -> Iterator[Frame]:
        asked = 0
        while some := list(islice(frames, at_once)):
            open_games = [frame.game for frame in some if frame.next is not None]
            told: list[Evaluation | None] = []
            if open_games:
                games = Game.stacked(open_games)
                side.reset(rules, asked + games.num_games, own)
                side.decide(games, np.arange(games.num_games), asked)
                whole = evaluation_of(side.policy, side.name, games.legal_actions())
                told = [whole and whole.of([number]) for number in range(games.num_games)]
                asked += games.num_games
            for frame in some:
                yield frame if frame.next is None else replace(frame, evaluation=told.pop(0))

    return with_evaluations()


class RecordFile:
    """The records of a file, read one by one.

    Args:
        path: The file.

    Raises:
        OSError: it can't be read.
        RecordError: it holds no record.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = path
        with open(path, "rb") as file:
            self._starts = [0]
            for line in file:
                self._starts.append(self._starts[-1] + len(line))
        self._starts.pop()
        if not self._starts:
            raise RecordError(f"{os.fspath(path)!r} holds no record")

    def __len__(self) -> int:
        return len(self._starts)

    def __getitem__(self, number: int) -> Record:
        """Return a record, from 0 on.

        Raises:
            RecordError: there is none of that number, or it can't be read.
        """
        if not 0 <= number < len(self):
            raise RecordError(
                f"there is no game {number}; the games of {os.fspath(self._path)!r} are 0 to {len(self) - 1}"
            )
        with open(self._path, "rb") as file:
            file.seek(self._starts[number])
            return parse_line(number, file.readline())


def _ply(game: Game, action: int | None, evaluation: Evaluation | None = None) -> Ply:
    player = int(game.state.player[0])
    if action is None:
        return Ply(player, None, "forfeits", "")
    return Ply(player, action, game.actions.text(action), _card(game, player, action), evaluation)


def _card(game: Game, player: int, action: int) -> str:
    """Return the card that an action moves; none for ``end_turn``."""
    table, s, characters = game.actions, game.state, game.rules.characters
    if action == table.end_turn:
        return ""
    if action >= table.num_plays:
        return characters[(action - table.num_plays) // game.rules.side_piles]
    center, source = divmod(action, table.num_sources)
    if source <= game.rules.side_piles:
        return characters[s.pile_top[player, source, 0] - 1]
    return characters[s.center_size[center, 0]] if source == table.num_sources - 2 else characters[-1]


def _first(values: Values | None) -> float | None:
    return None if values is None else _number(values[0])


def _number(value: float) -> float | None:
    """Return a number, and None in place of one that isn't known."""
    return None if math.isnan(value) else float(value)
