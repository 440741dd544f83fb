"""Ratings of policies from their duels, on the scale of Elo."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from spite_env.arena import Z95, Interval, Tally

try:
    import choix
except ImportError as error:
    raise ImportError("ratings need choix: pip install 'spite_env[arena]'") from error

#: Rating points for a factor of e in the odds.
ELO = 400 / math.log(10)

#: The pair that each duel gets on top, by its results: both games lost, or both won.
PRIOR = np.array([0.5, 0, 0, 0, 0, 0, 0, 0, 0.5])


@dataclass(frozen=True)
class Rating:
    """A policy's rating: 400 points more are odds of 10 : 1. The mean of all rated policies is 0.

    Attributes:
        name: The policy.
        rating: Its rating.
        interval: The rating's 95 % interval.
    """

    name: str
    rating: float
    interval: Interval


def rate(
    names: Sequence[str], tallies: Mapping[tuple[str, str], Tally], *, seed: int = 0, resamples: int = 200
) -> list[Rating]:
    """Rate policies that have all met, and return their ratings, the best first.

    It is the maximum-likelihood fit of the model of Bradley and Terry (Rank analysis of incomplete block designs,
    Biometrika 39, 1952, 324-345), by choix. A draw, or a truncated game, counts as half a win for each side. The
    intervals are those of a normal distribution, with the deviation that the ratings have in a bootstrap over the
    duels' pairs. Each duel gets one pair on top, of which each side wins half, so that ratings stay finite where one
    side won everything, and intervals stay open where nothing varied.

    Args:
        names: The policies, two or more.
        tallies: The pairs that each two of them have played, by their names in either order.
        seed: Determines the bootstrap.
        resamples: Its number of repetitions.
    """
    rng = np.random.default_rng(seed)
    place = {name: number for number, name in enumerate(names)}
    played = {cell: np.ravel(tally.pairs) for cell, tally in tallies.items()}
    drawn = {
        cell: rng.multinomial(pairs.sum(), (pairs + PRIOR) / (pairs + PRIOR).sum(), resamples)
        for cell, pairs in played.items()
    }
    samples = [_fit(place, {cell: pairs[number] for cell, pairs in drawn.items()}) for number in range(resamples)]
    fitted, half = _fit(place, played).tolist(), (Z95 * np.std(samples, axis=0, ddof=1)).tolist()
    ratings = [Rating(name, fitted[i], (fitted[i] - half[i], fitted[i] + half[i])) for name, i in place.items()]
    return sorted(ratings, key=lambda rating: -rating.rating)


def _fit(place: Mapping[str, int], counts: Mapping[tuple[str, str], NDArray[np.int64]]) -> NDArray[np.float64]:
    """Return ratings from each two policies' numbers of pairs by their results, a raveled ``Tally.pairs`` each."""
    value = np.add.outer([0, 0.5, 1], [0, 0.5, 1]).ravel()
    won = np.zeros((len(place), len(place)))
    for (first, second), pairs in counts.items():
        won[place[first], place[second]] = (pairs + PRIOR) @ value
        won[place[second], place[first]] = (pairs + PRIOR) @ (2 - value)
    strengths: NDArray[np.float64] = choix.ilsr_pairwise_dense(won, max_iter=10_000)
    return ELO * strengths
