"""A policy that plays nothing but its pay-off card, and so runs the stock out."""

from spite_env.actions import ActionTable
from spite_env.policies import PriorityPolicy


class HoarderPolicy(PriorityPolicy):
    """The pay-off top on the lowest centre pile that takes it; else a uniformly random discard or ``end_turn``."""

    def plays(self, table: ActionTable) -> list[int]:
        """Return the plays that are considered, best first."""
        return [table.play(center, 0) for center in range(table.rules.center_piles)]
