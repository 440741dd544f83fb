"""Head-to-head evaluation: duels over paired deals.

The unit of a duel is a pair: two games with the same deal and the same later shuffles, played with seats swapped. What
luck gives to a seat in one game it gives to the other policy in the second, so that a pair says more than two unrelated
games. All intervals are over pairs.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.game import Game
from spite_env.policies import Actions, Policy, PolicyError, decide, make_policy, policy_name
from spite_env.record import Recorder
from spite_env.rules import Rules, checked_integer, checked_rules
from spite_env.sequential import SequentialTest

#: Half the width of a 95 % interval, in standard errors of a normal distribution.
Z95 = 1.959964

#: Pairs played at once.
BATCH = 4096

#: What may happen when a policy misbehaves.
ON_ERROR = ("stop", "lose")

#: Messages about misbehaving policies that a result keeps.
MOST_FAULTS = 10

Interval = tuple[float, float]
Write = Callable[[dict[str, Any]], None]


@dataclass(frozen=True)
class Tally:
    """What some pairs of games came to, seen from the first policy; tallies of the same duel add up.

    Attributes:
        pairs: Numbers of pairs by the results of both games: ``pairs[a][b]``, where ``a`` is that of the game in which
            the first policy had the first turn, ``b`` that of the other; 0 is a loss, 1 neither, 2 a win.
        truncated: Games cut at their limit of decisions.
        forfeits: Games that each policy lost by misbehaving.
        points: Points of each policy.
        decisions: Decisions of both.
        seconds: Wall time.
        faults: What misbehaving policies did, :data:`MOST_FAULTS` messages at most.
    """

    pairs: tuple[tuple[int, ...], ...] = ((0, 0, 0),) * 3
    truncated: int = 0
    forfeits: tuple[int, int] = (0, 0)
    points: tuple[int, int] = (0, 0)
    decisions: int = 0
    seconds: float = 0.0
    faults: tuple[str, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            tuple(tuple(map(sum, zip(*rows, strict=True))) for rows in zip(self.pairs, other.pairs, strict=True)),
            self.truncated + other.truncated,
            (self.forfeits[0] + other.forfeits[0], self.forfeits[1] + other.forfeits[1]),
            (self.points[0] + other.points[0], self.points[1] + other.points[1]),
            self.decisions + other.decisions,
            self.seconds + other.seconds,
            (self.faults + other.faults)[:MOST_FAULTS],
        )

    def swapped(self) -> Tally:
        """Return the same, seen from the second policy."""
        pairs = tuple(tuple(self.pairs[2 - b][2 - a] for b in range(3)) for a in range(3))
        forfeits, points = self.forfeits[::-1], self.points[::-1]
        return Tally(pairs, self.truncated, forfeits, points, self.decisions, self.seconds, self.faults)

    def results(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return each pair's two results, from -1 to 1: of the games with the first policy's and the other's start."""
        grid = np.indices((3, 3)).reshape(2, -1) - 1
        started, other = np.repeat(grid, np.ravel(self.pairs), axis=1)
        return started, other

    def margins(self) -> NDArray[np.float64]:
        """Return each pair's mean result, float64 ``(pairs,)``."""
        started, other = self.results()
        return (started + other) / 2


@dataclass(frozen=True)
class DuelResult:
    """The result of a duel, from the view of its first policy.

    A starter is who had the first turn of a game, or of a match. In each pair, each policy is the starter once.

    Attributes:
        players: The names of both policies.
        rules: Every field of the rules.
        seed: The seed of pair 0.
        games: Games played (two a pair); with ``match_points`` a game is a match.
        wins: Games that the first policy won, forfeits of the second included.
        draws: Games without a winner that ended by the rules.
        truncated: Games cut at their limit of decisions.
        losses: Games that the second policy won, forfeits of the first included.
        forfeits: Games that each policy lost by misbehaving.
        points: Points of each policy.
        margin: (wins - losses) / games, from -1 to 1; 0 is even.
        margin_interval: Its 95 % interval over pairs, see :func:`margin_interval`.
        win_share: wins / (wins + losses); None if there are neither.
        win_share_interval: Its 95 % interval over pairs, see :func:`share_interval`.
        starter_margin: The same margin of the starters, whoever they were.
        starter_margin_interval: Its 95 % interval over pairs.
        starter_share: The starters' wins / (wins + losses); None if there are neither.
        starter_share_interval: Its 95 % interval over pairs.
        variance_ratio: The variance of a pair's margin, divided by what it would be if the two games had different
            deals: at 0.8 pairs need four fifths of the games, above 1 they need more. None if nothing varied.
        mean_length: Decisions a game, of both players.
        seconds: Wall time.
        test: The sequential test that said when to stop; None if the number of games was fixed. The intervals don't
            account for such stopping.
        verdict: That test's verdict: ``"first"`` or ``"second"`` is better, both are ``"equal"`` within the margin,
            or it is ``"open"`` after all games. None without a test.
        faults: What misbehaving policies did, :data:`MOST_FAULTS` messages at most.
        pairs: Numbers of pairs by their results, see :class:`Tally`.
    """

    players: tuple[str, str]
    rules: dict[str, Any]
    seed: int
    games: int
    wins: int
    draws: int
    truncated: int
    losses: int
    forfeits: tuple[int, int]
    points: tuple[int, int]
    margin: float
    margin_interval: Interval
    win_share: float | None
    win_share_interval: Interval | None
    starter_margin: float
    starter_margin_interval: Interval
    starter_share: float | None
    starter_share_interval: Interval | None
    variance_ratio: float | None
    mean_length: float
    seconds: float
    test: SequentialTest | None
    verdict: str | None
    faults: tuple[str, ...]
    pairs: tuple[tuple[int, ...], ...]

    @classmethod
    def of(
        cls,
        players: tuple[str, str],
        rules: Rules,
        seed: int,
        tally: Tally,
        test: SequentialTest | None = None,
        verdict: str | None = None,
    ) -> DuelResult:
        """Return the result that a tally amounts to."""
        started, other = tally.results()
        count = 2 * started.size
        wins, losses, starter_wins = (
            np.add(*games, dtype=np.int64)
            for games in ((started > 0, other > 0), (started < 0, other < 0), (started > 0, other < 0))
        )
        apart = (started.var() + other.var()) / 4
        return cls(
            players=players,
            rules=rules.to_dict(),
            seed=seed,
            games=count,
            wins=int(wins.sum()),
            draws=count - int((wins + losses).sum()) - tally.truncated,
            truncated=tally.truncated,
            losses=int(losses.sum()),
            forfeits=tally.forfeits,
            points=tally.points,
            margin=float((wins - losses).sum() / count),
            margin_interval=margin_interval((started + other) / 2),
            win_share=_share(wins, wins + losses),
            win_share_interval=share_interval(wins, wins + losses),
            starter_margin=float((started - other).sum() / count),
            starter_margin_interval=margin_interval((started - other) / 2),
            starter_share=_share(starter_wins, wins + losses),
            starter_share_interval=share_interval(starter_wins, wins + losses),
            variance_ratio=float(((started + other) / 2).var() / apart) if apart else None,
            mean_length=tally.decisions / count,
            seconds=tally.seconds,
            test=test,
            verdict=verdict,
            faults=tally.faults,
            pairs=tally.pairs,
        )

    @property
    def decisions_per_second(self) -> float:
        """Decisions of both players for each second of wall time."""
        return self.games * self.mean_length / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        return {**asdict(self), "decisions_per_second": self.decisions_per_second}


@dataclass(frozen=True)
class Pairing:
    """Two policies and how they meet; what there is to say about a duel before its number of games.

    Attributes:
        policies: Both policies, or their names.
        names: What they are called.
        rules: The variant.
        seed: Pair 0 has this seed, pair ``i`` a mix of it and ``i``.
        encoding: The encoding of the observations that the policies get.
        side_depth: Side-pile cards that these show below the tops.
        on_error: What happens when a policy misbehaves, see :func:`duel`.
        time_limit: Seconds for a decision; None is no limit.
    """

    policies: tuple[str | Policy, str | Policy]
    names: tuple[str, str]
    rules: Rules
    seed: int = 0
    encoding: str = "onehot"
    side_depth: int = 3
    on_error: str = "stop"
    time_limit: float | None = None

    def __post_init__(self) -> None:
        if self.on_error not in ON_ERROR:
            allowed = ", ".join(map(repr, ON_ERROR))
            raise ValueError(f"on_error={self.on_error!r} is not allowed; it is one of {allowed}")
        if self.time_limit is not None and not self.time_limit > 0:
            raise ValueError(f"time_limit={self.time_limit!r} is not allowed; it is None, or seconds above 0")

    def play(self, first: int, ends: Iterable[int], most: int, record: Write | None = None) -> Iterator[Tally]:
        """Play pairs from number ``first`` on, and yield the tally of those up to each of ``ends``, ``most`` at most.

        Raises:
            ValueError: an unknown policy.
            PolicyError: a policy misbehaves, and that isn't to be a loss.
        """
        sides = self.sides(2 * most)
        seeds = streams.seeds_for(self.seed, most)
        for end in ends:
            tally = Tally()
            for start in range(first, end, BATCH):
                tally += self._play_batch(sides, seeds[start : min(end, start + BATCH)], start, record)
            yield tally
            first = end

    def sides(self, num_games: int) -> list[Side]:
        """Return both policies, ready for new games.

        Raises:
            ValueError: an unknown policy.
            PolicyError: a policy can't begin.
        """
        policies = [make_policy(policy) for policy in self.policies]
        if policies[0] is policies[1]:
            policies[1] = copy.deepcopy(policies[0])
        sides, key = [], streams.seeds_for(self.seed, 1)
        for number, (policy, name) in enumerate(zip(policies, self.names, strict=True)):
            sides.append(Side(policy, name, self.on_error, self.time_limit))
            sides[-1].reset(self.rules, num_games, int(streams.combine(key, 2**32 + number)[0]))
        return sides

    def _play_batch(self, sides: list[Side], seeds: streams.Words, start: int, record: Write | None) -> Tally:
        """Play the pairs from number ``start`` on; the first policy has seat 0 in the even games."""
        started = time.perf_counter()
        game = Game(self.rules, 2 * seeds.size, np.repeat(seeds, 2), encoding=self.encoding, side_depth=self.side_depth)
        if record is not None:
            Recorder(game, [self.names, self.names[::-1]] * seeds.size, record)
        seat = np.arange(game.num_games) % 2  # of the first policy
        is_starter = game.current_player == seat
        forfeited = np.zeros((2, game.num_games), np.bool_)
        decisions = 0
        live = np.arange(game.num_games)
        while live.size:
            to_move = game.state.player[live] ^ seat[live]
            actions = np.empty(live.size, np.intp)
            for number, side in enumerate(sides):
                mine = np.flatnonzero(to_move == number)
                if mine.size:
                    actions[mine] = side.decide(game, live[mine], 2 * start)
            lost = actions == FORFEIT
            if lost.any():
                forfeited[to_move[lost], live[lost]] = True
                game.forfeit(live[lost])
                live, actions = live[~lost], actions[~lost]
            game._step(live, actions)
            decisions += live.size
            live = live[~game.state.over[live]]

        result = np.where(game.winner < 0, 1, 2 * (game.winner == seat)).reshape(-1, 2)
        result = np.where(is_starter.reshape(-1, 2)[:, :1], result, result[:, ::-1])
        points = game.points.astype(np.int64)
        points = np.where(seat[:, None] == 0, points, points[:, ::-1]).sum(axis=0)
        return Tally(
            pairs=tuple(map(tuple, np.bincount(result @ [3, 1], minlength=9).reshape(3, 3).tolist())),
            truncated=int(game.truncated.sum()),
            forfeits=(int(forfeited[0].sum()), int(forfeited[1].sum())),
            points=(int(points[0]), int(points[1])),
            decisions=decisions,
            seconds=time.perf_counter() - started,
            faults=tuple(fault for side in sides for fault in side.take_faults()),
        )


#: Stands for the action of a policy that has lost the game by misbehaving.
FORFEIT = -1


class Side:
    """A policy, and what becomes of it when it misbehaves.

    Attributes:
        policy: The policy.
        name: What a message calls it.
    """

    def __init__(self, policy: Policy, name: str, on_error: str = "stop", time_limit: float | None = None) -> None:
        self.policy = policy
        self.name = name
        self.on_error = on_error
        self.time_limit = math.inf if time_limit is None else time_limit
        self.faults: list[str] = []

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Begin new games; raise `PolicyError` if the policy can't."""
        try:
            self.policy.reset(rules, num_games, seed)
        except Exception as error:
            raise PolicyError(f"policy {self.name!r} could not begin: {_told(error)}") from error

    def decide(self, game: Game, games: Actions, first: int) -> Actions:
        """Return the policy's actions in some games, and `FORFEIT` in those that it has lost by misbehaving."""
        started = time.perf_counter()
        try:
            actions = decide(self.policy, self.name, game, games, first)
            seconds = (time.perf_counter() - started) / games.size
            if seconds > self.time_limit:
                raise PolicyError(
                    f"policy {self.name!r} took {seconds:.3g} s for a decision, in game {games[0] + first} and "
                    f"{games.size - 1} others at once; the limit is {self.time_limit:g} s"
                )
            return actions
        except PolicyError as error:
            fault = error
        except Exception as error:
            where = f"in game {games[0] + first} or the {games.size - 1} others that it was asked about"
            fault = PolicyError(f"policy {self.name!r} failed {where}: {_told(error)}")
            fault.__cause__ = error
        if self.on_error == "stop":
            raise fault
        self.faults.append(str(fault))
        return np.full(games.size, FORFEIT) if fault.playable is None else fault.playable

    def take_faults(self) -> list[str]:
        """Return what went wrong since the last call."""
        faults, self.faults = self.faults, []
        return faults


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


def duel(
    first: str | Policy,
    second: str | Policy,
    rules: Rules | str | None = None,
    *,
    games: int = 1000,
    seed: int = 0,
    names: tuple[str, str] | None = None,
    encoding: str = "onehot",
    side_depth: int = 3,
    record: Write | None = None,
    until_decided: SequentialTest | None = None,
    on_error: str = "stop",
    time_limit: float | None = None,
) -> DuelResult:
    """Play two policies against each other.

    Args:
        first: A policy, or the name of one.
        second: Likewise.
        rules: The variant, or the name of a preset; default ``Rules()``.
        games: Games to play; an even number. In games ``2 * i`` and ``2 * i + 1``, those of pair ``i``, the first
            policy has seat 0 and seat 1.
        seed: Pair 0 has this seed, pair ``i`` a mix of it and ``i``. It determines everything, the policies' random
            choices included.
        names: What the policies are called; default: their names, or the names of their classes.
        encoding: The encoding of the observations that the policies get.
        side_depth: Side-pile cards that these show below the tops.
        record: Called with the record of every game, in order.
        until_decided: A test that stops the duel as soon as it is decided; ``games`` are then the most to play.
        on_error: What happens when a policy raises an exception, returns an illegal action or no integers, or takes too
            long. ``"stop"`` raises an error, with ``"lose"`` it forfeits the games in which it did that: the one with
            the illegal action, or all that it was asked about at once.
        time_limit: Seconds for a decision, on average over the games that the policy was asked about at once; None is
            no limit. It is judged when the policy has answered: one that never does is not interrupted.

    Raises:
        ValueError: an odd or impossible number of games, an unknown policy, or another argument out of range.
        PolicyError: a policy misbehaves (the message names it), unless that is to be a loss; or it can't begin at all.
    """
    games = checked_games(games)
    seed = checked_integer("seed", seed, 0, 2**64 - 1)
    names = names if names is not None else (policy_name(first), policy_name(second))
    rules = checked_rules(rules)
    pairing = Pairing((first, second), names, rules, seed, encoding, side_depth, on_error, time_limit)
    most = games // 2
    ends = [most] if until_decided is None else until_decided.looks(most)
    total, verdict = Tally(), None
    for tally in pairing.play(0, ends, most, record):
        total += tally
        if until_decided is not None:
            verdict = until_decided.verdict(total.margins())
            if verdict is not None:
                break
            verdict = "open"
    return DuelResult.of(names, rules, seed, total, until_decided, verdict)


def checked_games(games: Any) -> int:
    """Return a number of games that come in pairs.

    Raises:
        ValueError: no even number of 2 or more.
    """
    games = checked_integer("games", games, 2)
    if games % 2:
        raise ValueError(f"games={games} is not allowed; games are played in pairs, so it is an even number")
    return games


def margin_interval(margins: NDArray[np.float64]) -> Interval:
    """Return the 95 % interval of the mean of independent values from -1 to 1.

    It is the normal approximation; where all values are the same, the exact bounds on what was not seen.
    """
    mean = float(margins.mean())
    spread = float(margins.std(ddof=1)) if margins.size > 1 else 0.0
    if spread == 0:
        unseen = _most_unseen(margins.size)
        return mean - unseen * (1 + mean), mean + unseen * (1 - mean)
    half = Z95 * spread / math.sqrt(margins.size)
    return max(-1.0, mean - half), min(1.0, mean + half)


def share_interval(numerators: NDArray[Any], denominators: NDArray[Any]) -> Interval | None:
    """Return the 95 % interval of the share sum(numerators) / sum(denominators) over independent pairs of both.

    It is the normal approximation of a ratio estimator (Cochran, Sampling Techniques, 1977, section 6.4); where every
    pair has the same share, the exact bounds on what was not seen. None where the denominators sum to 0.
    """
    total = float(denominators.sum())
    if total == 0:
        return None
    share = float(numerators.sum()) / total
    residual = numerators - share * denominators
    count = numerators.size
    if not residual.any():
        unseen = _most_unseen(int((denominators > 0).sum()))
        return share * (1 - unseen), share + unseen * (1 - share)
    half = Z95 * math.sqrt(count / (count - 1) * float((residual**2).sum())) / total
    return max(0.0, share - half), min(1.0, share + half)


def _most_unseen(trials: int) -> float:
    """Return the probability of an event that goes unseen in as many trials with a probability of 2.5 %."""
    return float(1 - 0.025 ** (1 / trials))


def _share(numerators: NDArray[Any], denominators: NDArray[Any]) -> float | None:
    total = int(denominators.sum())
    return int(numerators.sum()) / total if total else None
