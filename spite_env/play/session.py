"""One person at a table with a policy: what may be done there and when, whatever the table looks like.

**Taking back.** A person may take back decisions, latest first, as far as nothing has been learnt since. Plays from the
hand and from side piles teach nothing (side piles lie openly), nor does the recycling of a centre pile (nobody sees the
stock). Everything else does, and can't be taken back: a play from the pay-off pile, which uncovers a card; a play that
draws a new hand; whatever ends the turn, since the opponent answers it; and whatever ends a game.

So decisions wait, and are made on a copy of the game, until one of them reveals something. Only then are they made in
the game itself, which deals, shuffles and records.
"""

from __future__ import annotations

import copy
import secrets
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from spite_env import streams
from spite_env.game import Game
from spite_env.policies import Policy, decide, make_policy, policy_name
from spite_env.record import Record, Recorder
from spite_env.render.table import Table, counted, describe
from spite_env.rules import Rules, checked_integer, checked_rules

#: What records and boards call the person.
PERSON = "human"

#: Points that win a match.
MATCH_POINTS = 50

_ONLY_GAME = np.zeros(1, np.intp)


def outcome(result: dict[str, Any], names: Sequence[str]) -> str:
    """Return the result in a record of a game in words."""
    if result["winner"] is None:
        return "a draw" if result["outcome"] == "draw" else "cut at the limit"
    won = f"{names[result['winner']]} wins {counted(max(result['points']), 'point')}"
    return f"{names[result['by']]} gives up: {won}" if result["outcome"] == "forfeit" else won


def match_rules(rules: Rules) -> Rules:
    """Return rules for matches; the points that win one are those of the rules, or :data:`MATCH_POINTS`."""
    return rules if rules.match_points is not None else rules.replace(match_points=MATCH_POINTS)


def parse_seed(text: str) -> int | None:
    """Return the seed that a person has typed; None for an empty text.

    Raises:
        ValueError: no seed.
    """
    text = text.strip()
    if not text:
        return None
    if not (text.isascii() and text.isdecimal() and len(text) <= 20 and int(text) < 2**64):
        raise ValueError(f"seed {text[:40]!r} is not allowed; a seed is an integer from 0 to 2**64 - 1")
    return int(text)


class Session:
    """A person's games against one policy: single games, or matches if the rules have ``match_points``.

    The games themselves can't be had from here before they end; ``game`` is for what the seat may see of them.

    Args:
        opponent: The policy, or its name (see :func:`~spite_env.policies.make_policy`).
        rules: The variant, or the name of a preset.
        seat: The person's seat, 0 or 1.
        seed: Determines the first game (or match), the opponent's random choices included; None takes a random one.
        write: Called with the record of each game as soon as it ends.
        watch: Called before each decision of the opponent, when there is something new to see.

    Attributes:
        game: The table as it stands, a batch of one; for looking at it from ``seat``.
        records: The records of the ended games of this match, or of this one game.
        fault: What the opponent did that it must not do, and lost the game by; None if nothing.

    Raises:
        ValueError: an unknown policy or variant, or a number out of range.
    """

    def __init__(
        self,
        opponent: str | Policy,
        rules: Rules | str | None = None,
        *,
        seat: int = 0,
        seed: int | None = None,
        write: Callable[[Record], object] | None = None,
        watch: Callable[[Session], object] | None = None,
    ) -> None:
        self.rules = checked_rules(rules)
        self.seat = checked_integer("seat", seat, 0, 1)
        self.opponent = policy_name(opponent)
        self.names = (PERSON, self.opponent) if seat == 0 else (self.opponent, PERSON)
        self._policy = _own(opponent)
        self._write = write
        self._watch = watch
        self._deal(seed)

    # What there is to see

    @property
    def over(self) -> bool:
        """Whether the game (or the match) has ended."""
        return bool(self.game.state.over[0])

    @property
    def seed(self) -> int | None:
        """The seed once the game (or the match) is over; before, None: it would give the deal away."""
        return self._seed if self.over else None

    @property
    def log(self) -> list[tuple[int | None, str]]:
        """What has happened in this game or match, oldest first: player and action, or None and a game's outcome."""
        return self._log + [(self.seat, self.game.actions.text(action)) for action in self._waiting]

    @property
    def last_decision(self) -> tuple[int, int | None] | None:
        """The last decision on the table: player and action, or None and a forfeit; None on a new table."""
        log = self.log
        if self.over:
            by = self.records[-1]["result"].get("by")
            if by is not None:
                return by, None
            log = log[:-1]  # without the outcome
        player, text = log[-1] if log else (None, "")
        return None if player is None else (player, self.game.actions.parse(text))

    def table(self) -> Table:
        """Return the table as the person sees it."""
        return describe(self.game, viewer=self.seat, last_move=self.last_decision, names=self.names)

    @property
    def can_undo(self) -> bool:
        """Whether the last decision can be taken back."""
        return bool(self._waiting)

    def legal_actions(self) -> list[int]:
        """Return the person's legal actions, in order; none where the person is not to move."""
        if self.game.current_player[0] != self.seat:
            return []
        legal: list[int] = np.flatnonzero(self.game.legal_actions()[0]).tolist()
        return legal

    # What a person can do

    def play(self, action: int) -> None:
        """Make a decision; if it ends the turn, the opponent makes all of its own.

        Raises:
            ValueError: the game is over, or the action is not legal; nothing is changed then.
        """
        self._check_going_on("play")
        after, revealed = self._tried(action)
        self._waiting.append(action)
        if revealed:
            self._settle()
        else:
            self.game = after

    def undo(self) -> None:
        """Take back the last decision.

        Raises:
            ValueError: something has been revealed since, or there is none.
        """
        if not self._waiting:
            raise ValueError(
                "nothing can be taken back: since your last decision a card has been revealed, the turn has passed, or "
                "a game has begun or ended"
            )
        self._waiting.pop()
        self.game = self._game.copy()
        for action in self._waiting:
            self.game.step([action])

    def hint(self, agent: str | Policy) -> int:
        """Return what an agent would do here, knowing what the person knows.

        The same agent gives the same hint at the same place.

        Raises:
            ValueError: an unknown agent, one that fails here, or the game is over.
        """
        self._check_going_on("give a hint")
        policy, game = _own(agent), self.game.copy()
        try:
            # Not from the deal's seed: what an agent does with that must not show.
            policy.reset(self.rules, 1, int(game.state.steps[0]))
            return int(decide(policy, policy_name(agent), game, _ONLY_GAME)[0])
        except Exception as error:
            raise ValueError(f"{policy_name(agent)!r} has no hint here: {error or type(error).__name__}") from error

    def new(self, seed: int | None = None) -> None:
        """Leave the table and begin a new game (or match).

        Raises:
            ValueError: an impossible seed; nothing is changed then.
        """
        if seed is not None:
            streams.seeds_for(seed, 1)  # refuses what is none
        self.close()
        self._deal(seed)

    def close(self) -> None:
        """Leave the table: a game (or match) in which the person has decided something is given up, which loses it.

        One in which the person has not is dropped, and leaves no record.
        """
        if (self._touched or self._waiting) and not self.over:
            self._settle()
            if not self.over:
                self._game.forfeit(_ONLY_GAME)
                self.game = self._game.copy()
        self._recorder.close()
        self._write_records()

    # How it works

    def _deal(self, seed: int | None) -> None:
        self._seed = secrets.randbits(53) if seed is None else seed  # exact in JSON wherever it is read
        self._game = Game(self.rules, seed=self._seed)
        self.records: list[Record] = []
        self._unwritten: list[Record] = []
        self.fault: str | None = None
        self._waiting: list[int] = []
        self._log: list[tuple[int | None, str]] = []
        self._touched = False
        self._recorder = Recorder(self._game, self.names, self._ended)
        own_seed = streams.combine(self._game.state.seed, 2**32 + 1 - self.seat)
        self._policy.reset(self.rules, 1, int(own_seed[0]))
        self._settle()

    def _check_going_on(self, purpose: str) -> None:
        if self.over:
            raise ValueError(f"the game is over: there is nothing to {purpose}")

    def _tried(self, action: int) -> tuple[Game, bool]:
        """Return the table after a decision, and whether the decision revealed anything."""
        after, revealed = self.game.copy(), False

        def hear(kind: str, games: Any, **details: Any) -> None:
            nonlocal revealed
            revealed |= not (kind == "recycle" or (kind == "play" and details["source"][0] != 0))

        after.listener = hear
        after.step([action])
        after.listener = None
        return after, revealed

    def _settle(self) -> None:
        """Make the decisions that wait in the game itself, and those of the opponent, until the person is to move."""
        while self._waiting:
            self._touched = True
            self._make(self._waiting.pop(0))
        self.game = self._game.copy()
        while not self.over and self.game.current_player[0] != self.seat:
            if self._watch is not None:
                self._watch(self)
            try:
                action = int(decide(self._policy, self.opponent, self._game, _ONLY_GAME)[0])
            except Exception as error:
                self.fault = str(error) or type(error).__name__
                self._game.forfeit(_ONLY_GAME)
            else:
                self._make(action)
            self.game = self._game.copy()

    def _make(self, action: int) -> None:
        self._log.append((int(self._game.current_player[0]), self._game.actions.text(action)))
        self._game.step([action])

    def _ended(self, record: Record) -> None:
        self.records.append(record)
        self._log.append((None, outcome(record["result"], self.names)))
        self._unwritten.append(record)
        if self._game.state.over[0]:
            self._write_records()

    def _write_records(self) -> None:
        """Write those of a match together: a record tells the seed, which gives all games of the match away."""
        while self._unwritten:
            record = self._unwritten.pop(0)
            if self._write is not None:
                self._write(record)


def _own(policy: str | Policy) -> Policy:
    """Return a policy that nobody else uses: a name may stand for an object of which there is only one."""
    return copy.deepcopy(make_policy(policy))
