"""Tournaments: each policy against each other one, in as many processes as there are, interrupted or not."""

from __future__ import annotations

import concurrent.futures
import hashlib
import importlib
import itertools
import json
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from spite_env.arena import DuelResult, Pairing, Tally, checked_games
from spite_env.policies import Policy, PolicyError, make_policy, policy_name
from spite_env.ratings import Rating, rate
from spite_env.rules import Rules, checked_integer, checked_rules

FORMAT = "spite-and-malice-tournament/1"

#: Parts that each two policies' games are played and written in.
PARTS = 4

Key = tuple[str, str, int, int]


@dataclass(frozen=True)
class TournamentResult:
    """The result of a tournament.

    Attributes:
        names: The policies, the best first.
        rules: The variant.
        seed: The tournament's seed.
        ratings: Their ratings, the best first.
        tallies: What each two policies' games came to, by their names in alphabetical order.
        seconds: Wall time, without what an earlier run had played.
    """

    names: tuple[str, ...]
    rules: Rules
    seed: int
    ratings: tuple[Rating, ...]
    tallies: Mapping[tuple[str, str], Tally]
    seconds: float

    def duel(self, first: str, second: str) -> DuelResult:
        """Return how the first policy did against the second."""
        cell = _cell(first, second)
        tally = self.tallies[cell]
        tally = tally if cell[0] == first else tally.swapped()
        return DuelResult.of((first, second), self.rules, cell_seed(self.seed, first, second), tally)

    def duels(self) -> list[DuelResult]:
        """Return the duel of each two policies, seen from the better one."""
        return [self.duel(first, second) for first, second in itertools.combinations(self.names, 2)]

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        return {
            "names": self.names,
            "rules": self.rules.to_dict(),
            "seed": self.seed,
            "ratings": [asdict(rating) for rating in self.ratings],
            "duels": [duel.to_dict() for duel in self.duels()],
            "seconds": self.seconds,
        }


@dataclass(frozen=True)
class _Part:
    """Some pairs of a duel, for one process to play."""

    pairing: Pairing
    start: int
    end: int

    @property
    def key(self) -> Key:
        return (*self.pairing.names, self.start, self.end)


def tournament(
    policies: Sequence[str | Policy],
    rules: Rules | str | None = None,
    *,
    games: int | Mapping[str, int] = 1000,
    seed: int = 0,
    names: Sequence[str] | None = None,
    encoding: str = "onehot",
    side_depth: int = 3,
    on_error: str = "stop",
    time_limit: float | None = None,
    file: str | os.PathLike[str] | None = None,
    workers: int = 1,
    ray: str | None = None,
    parts: int = PARTS,
    progress: Callable[[int, int], object] | None = None,
) -> TournamentResult:
    """Play each two of some policies against each other, and rate them all.

    Each two policies' games depend on their names and on the seed, not on who else takes part, in which order they are
    named, or on who plays them where: they are those of ``duel(*sorted names, seed=cell_seed(...))``.

    Args:
        policies: Two or more policies, or their names.
        rules: The variant, or the name of a preset; default ``Rules()``.
        games: Games of each two policies, an even number. Or such numbers by the policies' names: two policies play the
            smaller one of theirs.
        seed: Determines everything, the policies' random choices included.
        names: What the policies are called; default: their names, or the names of their classes. All different.
        encoding: The encoding of the observations that the policies get.
        side_depth: Side-pile cards that these show below the tops.
        on_error: What happens when a policy misbehaves, see :func:`~spite_env.arena.duel`.
        time_limit: Seconds for a decision, see there.
        file: Where to write what has been played, a part a line. If it is there already, the tournament goes on from
            it; policies may have joined or left since. Policies are told apart by name alone: one that has changed
            needs another name, or another file.
        workers: Processes. They are spawned, so a script that asks for several does so under
            ``if __name__ == "__main__"``, and policies that are no names must be picklable.
        ray: The address of a Ray cluster to play on instead, where the library and the policies must be installed;
            ``"local"`` starts one on this machine.
        parts: Parts that each two policies' games are split into. Few play faster, many share out and resume better.
        progress: Called with the numbers of pairs that have been played and that there are, after each part.

    Raises:
        ValueError: an argument out of range, or a file that holds something else, which stays as it was.
        PolicyError: a policy misbehaves (the message names it), unless that is to be a loss; or it can't begin at all.
        ImportError: a library that is asked for is not installed; the message says how to install it.
    """
    started = time.perf_counter()
    rules, seed = checked_rules(rules), checked_integer("seed", seed, 0, 2**64 - 1)
    parts, workers = checked_integer("parts", parts, 1), checked_integer("workers", workers, 1)
    if isinstance(policies, str):
        raise ValueError(f"policies={policies!r} is not allowed; it is a list of two or more")
    names = [policy_name(policy) for policy in policies] if names is None else list(names)
    if len(names) != len(policies) or len(names) < 2 or len(set(names)) < len(names):
        raise ValueError(f"names={names!r} are not allowed; they are two or more, all different, one for each policy")
    by_name = dict(zip(names, policies, strict=True))
    for policy in policies:
        make_policy(policy)  # so that an unknown name is found before anything is played
    numbers = {name: checked_games(games.get(name) if isinstance(games, Mapping) else games) for name in names}
    common = Pairing(("", ""), ("", ""), rules, 0, encoding, side_depth, on_error, time_limit)

    wanted: dict[Key, _Part] = {}
    for cell in sorted(itertools.starmap(_cell, itertools.combinations(names, 2))):
        first, second = cell
        players = (by_name[first], by_name[second])
        pairing = replace(common, policies=players, names=cell, seed=cell_seed(seed, first, second))
        for part in _split(pairing, min(numbers[first], numbers[second]) // 2, parts):
            wanted[part.key] = part

    settings = {"format": FORMAT, "rules": rules.to_dict(), "seed": seed}
    settings |= {name: getattr(common, name) for name in ("encoding", "side_depth", "on_error", "time_limit")}
    with _results_file(file, settings) as (known, write):
        played = {key: known[key] for key in wanted if key in known}
        missing = [part for key, part in wanted.items() if key not in played]
        count, total = (sum(end - start for *_, start, end in keys) for keys in (played, wanted))
        for part, tally in _on_ray(missing, ray) if ray is not None else _in_processes(missing, workers):
            write(part.key, tally)
            played[part.key] = tally
            count += part.end - part.start
            if progress is not None:
                progress(count, total)

    tallies: dict[tuple[str, str], Tally] = {}
    for key in wanted:
        tallies[key[:2]] = tallies.get(key[:2], Tally()) + played[key]
    ratings = tuple(rate(sorted(names), tallies, seed=seed))
    ordered = tuple(rating.name for rating in ratings)
    return TournamentResult(ordered, rules, seed, ratings, tallies, time.perf_counter() - started)


def _cell(first: str, second: str) -> tuple[str, str]:
    return (first, second) if first < second else (second, first)


def cell_seed(seed: int, first: str, second: str) -> int:
    """Return the seed of two policies' duel in a tournament."""
    words = json.dumps([seed, *_cell(first, second)]).encode()
    return int.from_bytes(hashlib.blake2b(words, digest_size=8).digest(), "big")


# Who plays


def _split(pairing: Pairing, pairs: int, parts: int) -> Iterator[_Part]:
    size = math.ceil(pairs / parts)
    for start in range(0, pairs, size):
        yield _Part(pairing, start, min(start + size, pairs))


def _play(part: _Part) -> Tally:
    [tally] = part.pairing.play(part.start, [part.end], part.end)
    return tally


def _in_processes(parts: Sequence[_Part], workers: int) -> Iterator[tuple[_Part, Tally]]:
    if workers == 1 or len(parts) < 2:
        for part in parts:
            yield part, _play(part)
        return
    with concurrent.futures.ProcessPoolExecutor(workers, multiprocessing.get_context("spawn")) as pool:
        playing = {pool.submit(_play, part): part for part in parts}
        try:
            for done in concurrent.futures.as_completed(playing):
                yield playing[done], done.result()
        finally:
            pool.shutdown(wait=False, cancel_futures=True)


def _on_ray(parts: Iterable[_Part], address: str) -> Iterator[tuple[_Part, Tally]]:
    try:
        ray: Any = importlib.import_module("ray")
    except ImportError as error:
        raise ImportError("a cluster needs Ray: pip install 'spite_env[rllib]'") from error
    own = not ray.is_initialized()
    if own:
        ray.init(address=address)
    try:
        play = ray.remote(_play)
        playing = {play.remote(part): part for part in parts}
        while playing:
            [done], _ = ray.wait(list(playing))
            yield playing.pop(done), ray.get(done)
    except PolicyError as error:
        raise getattr(error, "cause", error) from None  # without Ray's wrapping
    finally:
        if own:
            ray.shutdown()


# What has been played


@contextmanager
def _results_file(
    path: str | os.PathLike[str] | None, settings: dict[str, Any]
) -> Iterator[tuple[dict[Key, Tally], Callable[[Key, Tally], None]]]:
    """Open a file of results: what it holds so far, and a function that adds to it.

    Raises:
        ValueError: the file holds something else.
    """
    if path is None:
        yield {}, lambda key, tally: None
        return
    path = Path(path)
    played, whole = _read_results(path, settings) if path.exists() and path.stat().st_size else ({}, 0)
    with path.open("ab") as file:
        file.truncate(whole)  # a line that an interrupted run could not finish

        def write_line(content: dict[str, Any]) -> None:
            file.write(json.dumps(content, allow_nan=False).encode() + b"\n")
            file.flush()
            os.fsync(file.fileno())

        if not whole:
            write_line(settings)
        yield played, lambda key, tally: write_line({"part": key, **asdict(tally)})


def _read_results(path: Path, settings: dict[str, Any]) -> tuple[dict[Key, Tally], int]:
    """Return the parts in a file, and how many of its bytes are whole lines."""
    content = path.read_bytes()
    whole = content.rfind(b"\n") + 1
    played: dict[Key, Tally] = {}
    try:
        header, *lines = map(json.loads, content[:whole].splitlines())
        if header["format"] != FORMAT:
            raise ValueError(f"format {header['format']!r}")
        for line in lines:
            first, second, start, end = line.pop("part")
            played[first, second, start, end] = _tally(line, end - start)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise ValueError(f"{path} is no file of a tournament's results: {error}") from error
    different = [name for name, value in settings.items() if header.get(name) != value]
    if different:
        raise ValueError(
            f"{path} is of a tournament with another {' and '.join(different)}; go on with the same, or in another file"
        )
    return played, whole


def _tally(line: dict[str, Any], count: int) -> Tally:
    """Return the tally in a line, which is of ``count`` pairs."""
    tally = Tally(**{name: _tuples(value) for name, value in line.items()})
    pairs = np.array(tally.pairs)
    if pairs.shape != (3, 3) or pairs.dtype.kind != "i" or (pairs < 0).any() or pairs.sum() != count:
        raise ValueError(f"pairs={line['pairs']!r}; they are 3 x 3 numbers that add up to {count}")
    Tally() + tally  # raises where another value is of a wrong kind
    return tally


def _tuples(value: Any) -> Any:
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
