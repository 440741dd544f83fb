"""Checks of what callers hand to a batch: integers of the right shape and range, or an error that names what is not."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from spite_env.rules import Rules
from spite_env.state import Bytes, Index


def checked_games(indices: ArrayLike, num_games: int, *, repeats: bool = False) -> Index:
    """Return numbers of games, int ``(k,)``.

    Raises:
        ValueError: no such game, or one that is named twice without ``repeats``.
    """
    given = np.asarray(indices)
    if given.size == 0:
        given = given.astype(np.intp)
    if given.ndim != 1 or given.dtype.kind not in "iu":
        raise ValueError(
            f"indices must be integers of shape (k,), got {given.dtype} of shape {given.shape}: {indices!r}"
        )
    games = given.astype(np.intp)
    wrong = games.view(np.uintp) >= num_games  # negative ones too
    if np.count_nonzero(wrong):
        raise ValueError(f"game {given[wrong][0]} does not exist; games are 0 to {num_games - 1}")
    if not repeats:
        ordered = np.sort(games)
        twice = ordered[1:] == ordered[:-1]
        if twice.any():
            raise ValueError(f"game {ordered[1:][twice][0]} is named twice in indices")
    return games


def checked_actions(actions: ArrayLike, count: int) -> Index:
    """Return integers, int ``(count,)``, which may be no actions.

    Raises:
        ValueError: another shape or type.
    """
    chosen = np.asarray(actions)
    if chosen.size == 0:
        chosen = chosen.astype(np.intp)
    if chosen.dtype.kind not in "iu" or chosen.shape != (count,):
        raise ValueError(
            f"actions must be integers of shape ({count},), got {chosen.dtype} of shape {chosen.shape}: {actions!r}"
        )
    return chosen.astype(np.intp)


def checked_viewers(viewer: ArrayLike | None, count: int) -> int | Bytes | None:
    """Return a player, one for each game, uint8 ``(count,)``, or None.

    Raises:
        ValueError: something else.
    """
    if viewer is None or (type(viewer) is int and viewer in (0, 1)):
        return viewer
    seats = np.asarray(viewer)
    if seats.dtype.kind not in "iu" or seats.shape not in ((), (count,)) or np.any(seats.astype(np.uintp) > 1):
        raise ValueError(f"viewer={viewer!r} is not allowed; it is 0, 1, one of these for each game, or None")
    return int(seats) if seats.ndim == 0 else seats.astype(np.uint8)


def checked_payoff_sizes(sizes: ArrayLike, count: int, rules: Rules) -> Index:
    """Return sizes of pay-off piles, int ``(count,)``.

    Raises:
        ValueError: a size that the rules don't allow, another shape or type, or a match.
    """
    if rules.match_points is not None:
        raise ValueError("payoff_sizes need single games: rules.match_points must be None")
    given, most = np.asarray(sizes), rules.payoff_size
    if given.dtype.kind not in "iu" or given.shape not in ((), (count,)):
        raise ValueError(f"payoff_sizes must be integers, one or {count}, got {given.dtype} of shape {given.shape}")
    wrong = (given < 1) | (given > most)
    if wrong.any():
        raise ValueError(f"payoff_sizes={given[wrong][0]} is not allowed; a size is from 1 to {most}")
    return np.broadcast_to(given.astype(np.intp), (count,))
