"""Game records as arrays, for imitation and offline reinforcement learning.

.. code-block:: python

    from spite_env import dataset

    data = dataset.from_records("games.jsonl", encoding="compact", reward="margin")
    data["observation"], data["action_mask"], data["action"], data["return"]
    data.save("games.npz")  # and dataset.load("games.npz")

Every decision of both players is a row. The rows stand in the order of the records, and of the decisions in each:

===============  =================  =======================================================================
``observation``  uint8 (n, f)       what the mover saw, see :mod:`spite_env.observation`
``action_mask``  bool (n, actions)  its legal actions
``action``       int64 (n,)         what it did, see :mod:`spite_env.actions`
``player``       int8 (n,)          its seat
``game``         int64 (n,)         the record, from 0 on
``episode``      int64 (n,)         the episode, from 0 on: the game, or the match that it belongs to
``return``       float32 (n,)       its own reward at the end of the episode, discounted from there
``terminated``   bool (n,)          whether this was its last decision of an episode that ended by the rules
``truncated``    bool (n,)          whether this was its last decision of an episode that was cut
===============  =================  =======================================================================

An episode is what it is for the environments: one game, or with ``match_points`` a whole match, whose result is the
return of every decision in its games. A match whose last games are missing counts as truncated, with a return of 0. A
forfeit ends the episode, and is no decision.

All rewards come at an episode's end. To a player's decision follows its own next one, which in the order of
``np.lexsort((data["player"], data["episode"]))`` is the next row, unless ``terminated`` or ``truncated`` is set.

A file is an ``.npz`` archive without pickles. It holds the columns by these names, ``players`` (the names in seats 0
and 1 of every record) and what they mean: ``format``, ``rules`` (as JSON), ``encoding``, ``side_depth``, ``reward``,
``gamma``, and the layout of an observation as ``slice_names`` and ``slice_places``, int64 ``(slices, 2)``.
"""

from __future__ import annotations

import functools
import json
import os
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any, BinaryIO, cast

import numpy as np
from numpy.typing import NDArray

from spite_env.actions import ActionTable
from spite_env.files import whole_file
from spite_env.game import Game
from spite_env.observation import ObservationTable
from spite_env.record import Record, read_records
from spite_env.rewards import check_reward, rewards_of
from spite_env.rules import Rules, checked_number
from spite_env.state import NO_WINNER, Index
from spite_env.verify import Judge

FORMAT = "spite-and-malice-dataset/1"

#: Records that are replayed at once.
BATCH = 250

#: The columns that a replay shows, decision by decision.
_REPLAYED = ("observation", "action_mask", "action", "player", "game")


@dataclass(frozen=True, eq=False)
class Dataset:
    """The decisions of game records, one a row; the module explains the columns.

    Attributes:
        columns: The columns by name; ``data["action"]`` is short for ``data.columns["action"]``.
        players: Who had seats 0 and 1 in each record, str ``(records, 2)``.
        rules: The variant.
        encoding: How the observations are encoded.
        side_depth: Cards below the top of each side pile that they show.
        reward: The kind of reward, see :mod:`spite_env.rewards`.
        gamma: The discount for each later decision of the same player.
    """

    columns: dict[str, NDArray[Any]]
    players: NDArray[np.str_]
    rules: Rules
    encoding: str
    side_depth: int
    reward: str
    gamma: float

    def __getitem__(self, name: str) -> NDArray[Any]:
        return self.columns[name]

    @property
    def num_rows(self) -> int:
        """Number of decisions."""
        return len(self.columns["action"])

    @functools.cached_property
    def observation_table(self) -> ObservationTable:
        """The layout of the observations."""
        return ObservationTable(self.rules, self.encoding, self.side_depth)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything to a file.

        Raises:
            ValueError: the name doesn't end in ``.npz``.
            OSError: the file can't be written. An old file of that name is then as it was.
        """
        path = os.path.realpath(path)
        if not path.endswith(".npz"):
            raise ValueError(f"{path!r} is not allowed for a dataset; its name ends in .npz")
        arrays: dict[str, Any] = {**self.columns, "players": self.players, **self._description()}
        with whole_file(path) as file:
            np.savez_compressed(file, **arrays)

    def _description(self) -> dict[str, NDArray[Any]]:
        """Return what the columns mean, as arrays."""
        places = self.observation_table.slices
        values: dict[str, Any] = {
            "format": FORMAT,
            "rules": json.dumps(self.rules.to_dict()),
            "encoding": self.encoding,
            "side_depth": self.side_depth,
            "reward": self.reward,
            "gamma": self.gamma,
            "slice_names": list(places),
            "slice_places": [[place.start, place.stop] for place in places.values()],
        }
        return {name: np.array(value) for name, value in values.items()}


def from_records(
    records: str | os.PathLike[str] | Iterable[Record],
    *,
    encoding: str = "onehot",
    side_depth: int = 3,
    reward: str = "win",
    gamma: float = 1.0,
    player: str | None = None,
    winners: bool = False,
) -> Dataset:
    """Replay records and return their decisions.

    What chance decided is taken from the records, which are judged as :func:`spite_env.verify.verify_file` does.

    Args:
        records: A file of records, or the records themselves, all of the same rules.
        encoding: How to encode the observations, see :class:`~spite_env.observation.ObservationTable`. With the default
            rules a ``"compact"`` row takes a third of the memory of a ``"onehot"`` one.
        side_depth: Cards below the top of each side pile to show.
        reward: ``"win"``, ``"points"`` or ``"margin"``, see :mod:`spite_env.rewards`.
        gamma: The discount: a return is the reward times ``gamma`` to the number of later decisions of the same player
            in the episode.
        player: Keep only the decisions of the player of this name.
        winners: Keep only the decisions of those who won the episode.

    Raises:
        RecordError: a record is wrong, or of other rules than the first one; the message names it.
        ValueError: no record, an argument that is not allowed, or a player of whom there is no record.
        OSError: the file can't be read.
    """
    check_reward(reward)
    checked_number("gamma", gamma, 0, 1)
    stream = iter(read_records(records) if isinstance(records, (str, os.PathLike)) else records)
    judge = Judge(one_variant=True)
    parts: list[dict[str, NDArray[Any]]] = []
    names: list[list[str]] = []
    episodes: list[int] = []  # of each record
    results: list[tuple[int, list[int], bool]] = []  # of each episode
    while batch := list(islice(stream, BATCH)):
        parts.append(_decisions(judge, batch, encoding, side_depth, player))
        for record in batch:
            if record.get("match", {"game": 0})["game"] == 0:
                results.append((NO_WINNER, [0, 0], True))
            results[-1] = _result_so_far(record)
            episodes.append(len(results) - 1)
            names.append(record["players"])
    if judge.rules is None:
        raise ValueError("there is no record")
    players = np.array(names)
    if player is not None and player not in players:
        raise ValueError(f"player={player!r} is in no record; the players are {', '.join(sorted(set(players.flat)))}")

    columns = {name: np.concatenate([part.pop(name) for part in parts]) for name in list(parts[0])}
    winner, points, cut = (np.array(values) for values in zip(*results, strict=True))
    earned = rewards_of(winner, points, judge.rules, reward)
    episode, seat = np.array(episodes)[columns["game"]], columns["player"]
    left = _decisions_left(episode, seat)
    columns["episode"] = episode
    columns["return"] = (earned[episode, seat] * gamma**left).astype(np.float32)
    columns["terminated"] = (left == 0) & ~cut[episode]
    columns["truncated"] = (left == 0) & cut[episode]
    if winners:
        won = winner[episode] == seat
        columns = {name: column[won] for name, column in columns.items()}
    return Dataset(columns, players, judge.rules, encoding, side_depth, reward, gamma)


def load(path: str | os.PathLike[str]) -> Dataset:
    """Read a file that :meth:`Dataset.save` has written.

    Raises:
        ValueError: the file is damaged or holds something else, such as observations that another version lays out.
        OSError: it can't be read.
    """
    with open(path, "rb") as file:
        try:
            return _read(file)
        except Exception as error:  # of all the kinds that a damaged archive gives rise to
            raise ValueError(f"{os.fspath(path)!r} is no dataset, or a damaged one: {error}") from error


def _decisions(
    judge: Judge, records: list[Record], encoding: str, side_depth: int, player: str | None
) -> dict[str, NDArray[Any]]:
    """Return what the next records show of each decision (of one player, if named), in their order."""
    first = judge.count
    steps: list[tuple[NDArray[Any], ...]] = []

    @functools.cache
    def table_of(rules: Rules) -> ObservationTable:
        return ObservationTable(rules, encoding, side_depth)

    def watch(game: Game, games: Index, actions: Index) -> None:
        seen = table_of(game.rules).encode(game.state, None, games)
        movers = game.state.player[games].astype(np.int8)
        steps.append((seen, game.legal_actions(games), actions, movers, first + games))

    if problems := judge(records, watch):
        raise problems[0]
    none = _no_rows(table_of(cast(Rules, judge.rules)))
    steps.insert(0, tuple(none[name] for name in _REPLAYED))
    columns = dict(zip(_REPLAYED, map(np.concatenate, zip(*steps, strict=True)), strict=True))
    order = np.argsort(columns["game"], kind="stable")
    if player is not None:
        movers = np.array([record["players"] for record in records])[columns["game"] - first, columns["player"]]
        order = order[movers[order] == player]
    return {name: column[order] for name, column in columns.items()}


def _result_so_far(record: Record) -> tuple[int, list[int], bool]:
    """Return an episode's winner, its points, and whether it was cut, if this is its last record."""
    result, target = record["result"], record["rules"]["match_points"]
    winner = NO_WINNER if result["winner"] is None else result["winner"]
    if target is None or result["outcome"] == "forfeit":
        return winner, result["points"], result["outcome"] == "truncated"
    scores = [before + gained for before, gained in zip(record["match"]["scores"], result["points"], strict=True)]
    decided = max(scores) >= target
    return winner if decided else NO_WINNER, scores, not decided


def _decisions_left(episode: Index, player: Index) -> Index:
    """Return how many more decisions each row's player makes in its episode, int ``(n,)``."""
    key = 2 * episode + player
    order = np.argsort(key, kind="stable")
    ends = np.cumsum(np.bincount(key))
    left = np.empty_like(key)
    left[order] = ends[key[order]] - 1 - np.arange(key.size)
    return left


def _no_rows(table: ObservationTable) -> dict[str, NDArray[Any]]:
    """Return the columns of a dataset without rows, which have the types and the shapes of all others."""
    features, actions = table.n, ActionTable(table.rules).n
    return {
        "observation": np.empty((0, features), np.uint8),
        "action_mask": np.empty((0, actions), np.bool_),
        "action": np.empty(0, np.int64),
        "player": np.empty(0, np.int8),
        "game": np.empty(0, np.int64),
        "episode": np.empty(0, np.int64),
        "return": np.empty(0, np.float32),
        "terminated": np.empty(0, np.bool_),
        "truncated": np.empty(0, np.bool_),
    }


def _read(file: BinaryIO) -> Dataset:
    if not zipfile.is_zipfile(file):
        raise ValueError("it is no whole .npz archive")
    file.seek(0)
    with np.load(file, allow_pickle=False) as archive:
        if str(archive["format"]) != FORMAT:
            raise ValueError(f"format {str(archive['format'])!r} is unknown; expected {FORMAT!r}")
        rules = Rules.from_dict(json.loads(str(archive["rules"])))
        encoding, side_depth = str(archive["encoding"]), int(archive["side_depth"])
        none = _no_rows(ObservationTable(rules, encoding, side_depth))
        data = Dataset(
            {name: archive[name] for name in none},
            archive["players"],
            rules,
            encoding,
            side_depth,
            check_reward(str(archive["reward"])),
            float(archive["gamma"]),
        )
        for name, expected in data._description().items():
            if name.startswith("slice") and not np.array_equal(archive[name], expected):
                raise ValueError(f"{name} are {archive[name].tolist()}; in this version they are {expected.tolist()}")
    for name, expected in none.items():
        column = data[name]
        if (column.dtype, column.shape) != (expected.dtype, (data.num_rows, *expected.shape[1:])):
            raise ValueError(f"{name} is {column.dtype} of shape {column.shape}")
    return data
