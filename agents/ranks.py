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
