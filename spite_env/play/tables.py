"""The tables of the page: sessions with addresses, and all that a page may know of them."""

from __future__ import annotations

import secrets
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import Any

from spite_env.play.session import Session, match_rules, outcome, parse_seed
from spite_env.policies import policy_names
from spite_env.record import Record
from spite_env.render import svg
from spite_env.rules import Rules

#: Tables that are kept; a further one closes the one that has been left alone longest.
MOST_TABLES = 32

#: Entries of a session's log that a page gets.
MOST_LOG = 100

_PICTURE_WIDTH = 400

View = dict[str, Any]

#: What to play: ``opponent``, ``seat``, ``match`` (whether it is one) and ``seed``, a text; all may be left out.
Choice = Mapping[str, Any]


class Table:
    """A session as a page sees it, for one request at a time.

    Args:
        tables: Where it stands.
        choice: What to play.

    Attributes:
        lock: To be held by whoever uses the table.
        revision: Changes so far. It only grows, also when something is taken back.
        records: The records of the games (or matches) that are over.
    """

    def __init__(self, tables: Tables, choice: Choice) -> None:
        self.lock = threading.Lock()
        self.revision = 0
        self.records: list[Record] = []
        self._tables = tables
        self._unsaved: list[Record] = []
        self._notice: str | None = None
        self._frames: list[str] = []
        self._session = tables.session(choice, self._watch)
        self._changed()

    def view(self) -> View:
        """Return what the page may know, ready for JSON; ``frames`` are pictures of the way here from the last view."""
        session, scene = self._session, self._session.table()
        frames, self._frames = self._frames, []
        moves = [{name: getattr(move, name) for name in ("action", "text", "source", "target")} for move in scene.legal]
        return {
            "revision": self.revision,
            "opponent": session.opponent,
            "seat": session.seat,
            "match": session.rules.match_points is not None,
            "headline": scene.headline,
            "picture": svg(scene, _PICTURE_WIDTH),
            "frames": frames,
            "moves": moves,
            "log": [[None if who is None else session.names[who], text] for who, text in session.log[-MOST_LOG:]],
            "results": [outcome(record["result"], session.names) for record in session.records],
            "can_undo": session.can_undo,
            "over": session.over,
            "seed": None if session.seed is None else str(session.seed),  # too large for a number in JavaScript
            "records": len(self.records),
            "notice": self._notice or session.fault,
        }

    def play(self, action: int) -> None:
        """Make a decision, see :meth:`Session.play`."""
        self._session.play(action)
        self._changed()

    def undo(self) -> None:
        """Take back the last decision, see :meth:`Session.undo`."""
        self._session.undo()
        self._changed()

    def hint(self, agent: str | None = None) -> str:
        """Return the text of what an agent would do, see :meth:`Session.hint`."""
        agent = self._tables.hint if agent is None else self._tables.known(agent)
        return self._session.game.actions.text(self._session.hint(agent))

    def new(self, choice: Choice) -> None:
        """Give up what is in progress, and begin another game (or match).

        Raises:
            ValueError: an impossible choice; nothing is changed then.
        """
        session = self._tables.session(choice, self._watch)
        self.close()
        self._session = session
        self._changed()

    def close(self) -> None:
        """Give up what is in progress."""
        if not self._session.over:
            self._session.close()
            self._changed(closed=True)

    def _changed(self, *, closed: bool = False) -> None:
        self.revision += 1
        if closed or self._session.over:  # not before: a record tells the seed, which gives all games of a match away
            self.records += self._session.records
            self._unsaved += self._session.records
        try:
            self._tables.save(self._unsaved)
        except OSError as error:
            self._notice = f"the record can't be saved, but downloaded: {error}"

    def _watch(self, session: Session) -> None:
        self._frames.append(svg(session.table(), _PICTURE_WIDTH))


class Tables:
    """All tables, by the random names in their addresses.

    Args:
        against: The opponent where a page names none.
        rules: The variant; where they say how many points win a match, a match is played unless a page wants none.
        seat: The person's seat where a page names none.
        seed: Determines the first game (or match); all others are random where a page names no seed.
        write: Called with the record of each game that is over, those of a match together.
        hint: The agent that gives hints where a page names none.
    """

    def __init__(
        self,
        against: str,
        rules: Rules,
        *,
        seat: int = 0,
        seed: int | None = None,
        write: Callable[[Record], object] | None = None,
        hint: str = "greedy",
    ) -> None:
        self.hint = hint
        self.against = against
        self.agents = list(dict.fromkeys((against, hint, *policy_names())))
        self._rules = rules
        self._seat = seat
        self._first_seed = seed
        self._write = write
        self._tables: OrderedDict[str, Table] = OrderedDict()
        self._lock = threading.Lock()
        self._writing = threading.Lock()

    def open(self, choice: Choice) -> tuple[str, Table]:
        """Open a table, and return its name and the table.

        Raises:
            ValueError: an impossible choice.
        """
        table, name = Table(self, choice), secrets.token_urlsafe(16)
        left: list[Table] = []
        with self._lock:
            self._tables[name] = table
            while len(self._tables) > MOST_TABLES:
                left.append(self._tables.popitem(last=False)[1])
        _close(left)
        return name, table

    def find(self, name: str) -> Table | None:
        """Return the table of a name, or None."""
        with self._lock:
            if name in self._tables:
                self._tables.move_to_end(name)
            return self._tables.get(name)

    def close(self) -> None:
        """Close all tables, and give up what is in progress there."""
        with self._lock:
            left = list(self._tables.values())
            self._tables.clear()
        _close(left)

    def session(self, choice: Choice, watch: Callable[[Session], object]) -> Session:
        """Return a new session.

        Raises:
            ValueError: an impossible choice.
        """
        seed = parse_seed(choice.get("seed", ""))
        if seed is None:
            seed, self._first_seed = self._first_seed, None
        is_match = choice.get("match", self._rules.match_points is not None)
        rules = match_rules(self._rules) if is_match else self._rules.replace(match_points=None)
        opponent = self.known(choice.get("opponent", self.against))
        return Session(opponent, rules, seat=choice.get("seat", self._seat), seed=seed, watch=watch)

    def known(self, agent: str) -> str:
        """Return the name of an agent that a page may ask for: a name can stand for any code on this machine.

        Raises:
            ValueError: another one.
        """
        if agent not in self.agents:
            raise ValueError(f"unknown agent {agent[:100]!r}; the known ones are {', '.join(self.agents)}")
        return agent

    def save(self, records: list[Record]) -> None:
        """Write records, and take those that are written off the list."""
        with self._writing:
            while records and self._write is not None:
                self._write(records[0])
                del records[0]


def _close(tables: list[Table]) -> None:
    for table in tables:
        with table.lock:
            table.close()
