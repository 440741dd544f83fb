"""Which ranks are in the way of a card, for the policies that plan by rules."""

import numpy as np
from numpy.typing import NDArray

from spite_env.rules import Rules


def lacking_ranks(rules: Rules) -> NDArray[np.bool_]:
    """Return which ranks a centre pile of some height lacks below a card.

    Where it has passed the card, these are the ranks up to its completion and those from the ace on; below a king, and
    below no card (0), it lacks none.

    Returns:
        bool ``(ranks, ranks, kinds + 1)`` by lacking rank (from the ace on), height and card.
    """
    height, card = np.arange(rules.ranks)[:, None], np.arange(rules.kinds + 1)
    rank = np.arange(1, rules.kinds)[:, None, None]
    lacking = np.where(height < card, (rank > height) & (rank < card), (rank > height) | (rank < card))
    return lacking & (card > 0) & (card < rules.kinds)


def rank_words(rules: Rules) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return sets of ranks as words with four bits a rank; king and no card are in no set.

    Returns:
        The set of a card, int64 ``(kinds + 1,)``; the ranks that a centre pile of some height lacks below a card, see
        :func:`lacking_ranks`, int64 ``(ranks, kinds + 1)``.
    """
    words = np.int64(0xF) << 4 * np.arange(rules.ranks)
    return np.array([0, *words, 0]), (lacking_ranks(rules) * words[:, None, None]).sum(axis=0)
