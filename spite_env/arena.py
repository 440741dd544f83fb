"""Head-to-head evaluation: duels over paired deals.

The unit of a duel is a pair: two games with the same deal and the same later shuffles, played with seats swapped. What
luck gives to a seat in one game it gives to the other policy in the second, so that a pair says more than two unrelated
games. All intervals are over pairs.
"""

from __future__ import annotations

import copy
import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.game import Game
from spite_env.policies import Policy, make_policy, move, policy_name
from spite_env.record import Recorder
from spite_env.rules import Rules, checked_integer, checked_rules

#: Half the width of a 95 % interval, in standard errors of a normal distribution.
Z95 = 1.959964

#: Pairs played at once.
BATCH = 2048

Interval = tuple[float, float]


@dataclass(frozen=True)
class DuelResult:
    """The result of a duel, from the view of its first policy.

    Attributes:
        players: The names of both policies.
        rules: Every field of the rules.
        seed: The seed of pair 0.
        games: Games played (two a pair); with ``match_points`` a game is a match.
        wins: Games that the first policy won.
        draws: Games without a winner that ended by the rules.
        truncated: Games cut at their limit of decisions.
        losses: Games that the second policy won.
        points: Points of each policy.
        margin: (wins - losses) / games, from -1 to 1; 0 is even.
        margin_interval: Its 95 % interval over pairs, see :func:`margin_interval`.
        win_share: wins / (wins + losses); None if there are neither.
        win_share_interval: Its 95 % interval over pairs, see :func:`share_interval`.
        mean_length: Decisions a game, of both players.
        seconds: Wall time.
    """

    players: tuple[str, str]
    rules: dict[str, Any]
    seed: int
    games: int
    wins: int
    draws: int
    truncated: int
    losses: int
    points: tuple[int, int]
    margin: float
    margin_interval: Interval
    win_share: float | None
    win_share_interval: Interval | None
    mean_length: float
    seconds: float

    @property
    def decisions_per_second(self) -> float:
        """Decisions of both players for each second of wall time."""
        return self.games * self.mean_length / self.seconds

    def to_dict(self) -> dict[str, Any]:
        """Return everything by name, ready for JSON."""
        return {**asdict(self), "decisions_per_second": self.decisions_per_second}


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
    record: Callable[[dict[str, Any]], None] | None = None,
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

    Raises:
        ValueError: an odd or impossible number of games, an unknown policy, an impossible seed, or an illegal action
            (the message names the policy).
    """
    rules = checked_rules(rules)
    games = checked_integer("games", games, 2)
    if games % 2:
        raise ValueError(f"games={games} is not allowed; games are played in pairs, so it is an even number")
    seed = checked_integer("seed", seed, 0, 2**64 - 1)
    names = names if names is not None else (policy_name(first), policy_name(second))
    policies = [make_policy(policy) for policy in (first, second)]
    if policies[0] is policies[1]:
        policies[1] = copy.deepcopy(policies[0])
    pair_seeds = streams.seeds_for(seed, games // 2)

    started = time.perf_counter()
    for side, policy in enumerate(policies):
        policy.reset(rules, games, int(streams.combine(pair_seeds[:1], 2**32 + side)[0]))
    parts = []
    for start in range(0, games, 2 * BATCH):
        seeds = np.repeat(pair_seeds, 2)[start : start + 2 * BATCH]
        game = Game(rules, seeds.size, seeds, encoding=encoding, side_depth=side_depth)
        if record is not None:
            Recorder(game, [names, names[::-1]] * (seeds.size // 2), record)
        parts.append(_play(game, policies, names, start))
    outcome, points, truncated, length = (np.concatenate(part, axis=-1) for part in zip(*parts, strict=True))
    seconds = time.perf_counter() - started

    wins, losses = (outcome > 0).reshape(-1, 2).sum(axis=1), (outcome < 0).reshape(-1, 2).sum(axis=1)
    return DuelResult(
        players=names,
        rules=rules.to_dict(),
        seed=seed,
        games=games,
        wins=int(wins.sum()),
        draws=int(((outcome == 0) & ~truncated).sum()),
        truncated=int(truncated.sum()),
        losses=int(losses.sum()),
        points=(int(points[0].sum()), int(points[1].sum())),
        margin=float((wins - losses).sum() / games),
        margin_interval=margin_interval((wins - losses) / 2),
        win_share=float(wins.sum() / (wins + losses).sum()) if (wins + losses).any() else None,
        win_share_interval=share_interval(wins, wins + losses),
        mean_length=float(length.mean()),
        seconds=seconds,
    )


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


def _play(
    game: Game, policies: list[Policy], names: tuple[str, str], start: int
) -> tuple[NDArray[np.int8], NDArray[np.int64], NDArray[np.bool_], NDArray[np.int64]]:
    """Play the games from number ``start`` on to their end; the first policy has seat 0 in the even ones.

    Returns:
        Outcomes (1 the first policy won, -1 the second), points ``(2, games)`` by policy, truncations, and decisions.
    """
    first_seat = np.arange(game.num_games) % 2
    decisions = np.zeros(game.num_games, np.int64)
    live = np.arange(game.num_games)
    while live.size:
        side = game.current_player[live] ^ first_seat[live]
        for number, policy in enumerate(policies):
            games = live[side == number]
            if games.size:
                move(policy, names[number], game, games, start)
        decisions[live] += 1
        live = live[~(game.terminated | game.truncated)[live]]
    winner, points = game.winner, game.points.T.astype(np.int64)
    outcome = np.where(winner < 0, 0, np.where(winner == first_seat, 1, -1)).astype(np.int8)
    by_policy = np.where(first_seat == 0, points, points[::-1])
    return outcome, by_policy, game.truncated, decisions
