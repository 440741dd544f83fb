"""Counter-based random numbers: every number is a pure function of what it is for.

A game's numbers depend on its seed, its episode, its number within a match, their purpose and how often that purpose
has occurred, and on nothing else. So moves never change the next deal, and neither the batch, the place in it, the
platform nor any global state changes a game.

The numbers are those of SplitMix64 (Steele, Lea and Flood, 2014, doi:10.1145/2660193.2660195), started from a key
into which the above are mixed one by one.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Words = NDArray[np.uint64]

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
_LOW_BYTE = np.uint64(0xFF)


class Purpose(enum.IntEnum):
    """What a game draws random numbers for."""

    DEAL = 0
    STARTER = 1
    SHUFFLE = 2
    HIDDEN_STOCK = 3
    HIDDEN_CARDS = 4


def mix(words: Words) -> Words:
    """Apply SplitMix64's finaliser in place."""
    words ^= words >> np.uint64(30)
    words *= np.uint64(0xBF58476D1CE4E5B9)
    words ^= words >> np.uint64(27)
    words *= np.uint64(0x94D049BB133111EB)
    words ^= words >> np.uint64(31)
    return words


def combine(keys: Words, value: int | Words) -> Words:
    """Mix a value (or one for each key) into keys: ``mix(mix(key + golden) + value * golden)``.

    Args:
        keys: uint64 ``(n,)``.
        value: an integer below 2**64, or uint64 ``(n,)``.

    Returns:
        uint64 ``(n,)``.
    """
    mixed = mix(keys + GOLDEN)
    mixed += np.multiply(np.atleast_1d(np.asarray(value, dtype=np.uint64)), GOLDEN)
    return mix(mixed)


def words(keys: Words, count: int) -> Words:
    """Return each key's first ``count`` random numbers, uint64 ``(n, count)``: ``mix(key + i * golden)``, i >= 1."""
    return mix(keys[:, None] + np.arange(1, count + 1, dtype=np.uint64) * GOLDEN)


def uniform(keys: Words) -> NDArray[np.float64]:
    """Return each key's first random number as a float64 in [0, 1), ``(n,)``."""
    return (words(keys, 1)[:, 0] >> np.uint64(11)).astype(np.float64) * 2.0**-53


def uniform_of_episode(seeds: Words, episodes: Words, purpose: int) -> NDArray[np.float64]:
    """Return a random number for each game, float64 ``(n,)``, which depends on seed, episode and purpose alone."""
    return uniform(combine(combine(seeds, purpose), episodes))


def shuffle(cards: NDArray[np.uint8], keys: Words, valid: NDArray[np.bool_] | None = None) -> NDArray[np.uint8]:
    """Return every row's cards in a random order.

    Each card rides in the low byte of a random number, and the numbers are sorted: every order of the 56 random bits
    above is equally likely.

    Args:
        cards: uint8 ``(n, m)`` (or ``(m,)``, the same for every key).
        keys: uint64 ``(n,)``.
        valid: bool ``(n, m)``; the other places are holes, which come last and hold no card. Default: no holes.

    Returns:
        uint8 ``(n, m)``.
    """
    riders = words(keys, cards.shape[-1])
    riders &= ~_LOW_BYTE
    riders |= cards
    if valid is not None:
        riders[~valid] = np.iinfo(np.uint64).max
    riders.sort(axis=1)
    return riders.astype(np.uint8)


def seeds_for(seed: int | Sequence[int] | NDArray[np.integer], num_games: int) -> Words:
    """Return one seed a game, uint64 ``(num_games,)``.

    From one integer, game 0 has that seed itself and game ``i`` has ``combine(seed, i)``; a sequence holds one seed a
    game.

    Raises:
        ValueError: not integers from 0 to 2**64 - 1, or not one for each game.
    """
    if isinstance(seed, np.ndarray) and seed.dtype == np.uint64:
        seeds = seed.astype(np.uint64)
    else:
        listed = [seed] if np.ndim(seed) == 0 else list(seed)  # type: ignore[arg-type]
        seeds = np.array([_checked(item) for item in listed], dtype=np.uint64)
    if isinstance(seed, (int, np.integer)):
        spread = combine(np.repeat(seeds, num_games), np.arange(num_games, dtype=np.uint64))
        spread[:1] = seeds
        return spread
    if seeds.shape != (num_games,):
        raise ValueError(f"seeds of shape {seeds.shape} do not fit {num_games} games: give one integer, or one a game")
    return seeds


def _checked(seed: object) -> int:
    try:
        number = -1 if isinstance(seed, (bool, np.bool_)) else operator.index(seed)  # type: ignore[arg-type]
    except TypeError:
        number = -1
    if not 0 <= number < 2**64:
        raise ValueError(f"seed {seed!r} is not allowed; a seed is an integer from 0 to 2**64 - 1")
    return number
