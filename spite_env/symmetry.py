"""Symmetries: piles of one kind can change places, and the game stays the same.

The centre piles are alike, and so are the side piles of a player. One decision therefore stands for many, up to
``3! * 4! * 4! = 3456`` with the default rules, which a network need not see one by one:

.. code-block:: python

    symmetry = Symmetry(rules)
    orders = symmetry.random(len(actions), rng)
    observation, action_mask, actions = symmetry.apply(observation, action_mask, actions, **orders)

An order says which pile comes to each place, as in ``numpy.take``: with ``(2, 0, 1)`` pile 2 comes to place 0.
``numpy.argsort(order)`` (of the last axis) is the order that undoes it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from spite_env.actions import ActionTable
from spite_env.observation import ObservationTable
from spite_env.rules import Rules, checked_rules
from spite_env.state import Index

#: The piles that can change places, and how the names of the slices begin that show them one by one.
_SLICES = {"centers": "center_", "own_sides": "own_side_", "opponent_sides": "opponent_side_"}


class Symmetry:
    """Puts piles into other orders in observations, action masks and actions alike.

    Args:
        rules: The variant, or the name of a preset; default ``Rules()``.
        encoding: How the observations are encoded, see :class:`~spite_env.observation.ObservationTable`.
        side_depth: Cards below the top of each side pile that they show.

    Attributes:
        piles: The number of piles that change places, by name: ``centers``, ``own_sides``, ``opponent_sides``.

    Raises:
        ValueError: an argument that is not allowed.
    """

    def __init__(self, rules: Rules | str | None = None, encoding: str = "onehot", side_depth: int = 3) -> None:
        rules = checked_rules(rules)
        self._observation = ObservationTable(rules, encoding, side_depth)
        places = self._observation.slices.items()
        self._slices = [(name, place) for row, place in places for name in _SLICES if row.startswith(_SLICES[name])]
        self._actions = ActionTable(rules)
        self.piles = dict(zip(_SLICES, (rules.center_piles, rules.side_piles, rules.side_piles), strict=True))
        centers, sides, ranks = range(rules.center_piles), range(rules.side_piles), range(rules.kinds)
        table = self._actions
        of_center = [[table.play(center, source) for source in range(table.num_sources)] for center in centers]
        of_side = [
            [table.play(center, 1 + side) for center in centers] + [table.discard(rank, side) for rank in ranks]
            for side in sides
        ]
        self._actions_of = {"centers": np.array(of_center), "own_sides": np.array(of_side)}

    def random(self, n: int, rng: np.random.Generator) -> dict[str, Index]:
        """Return ``n`` orders of each kind of pile, all equally likely, as :meth:`apply` takes them."""
        return {name: rng.random((n, count)).argsort(axis=1) for name, count in self.piles.items()}

    def apply(
        self,
        observation: NDArray[Any],
        action_mask: NDArray[Any],
        actions: ArrayLike,
        *,
        centers: ArrayLike | None = None,
        own_sides: ArrayLike | None = None,
        opponent_sides: ArrayLike | None = None,
    ) -> tuple[NDArray[Any], NDArray[Any], Index]:
        """Return what would have been seen, legal and done, had the piles stood in other orders.

        Args:
            observation: ``(n, features)``, of the player whose piles are its own.
            action_mask: ``(n, actions)``; or anything else with a value for each action, such as probabilities.
            actions: Integers ``(n,)``.
            centers: The order of the centre piles, ``(n, piles)`` or ``(piles,)`` for all rows; None leaves them.
            own_sides: That of the viewer's side piles.
            opponent_sides: That of the opponent's side piles.

        Returns:
            New arrays of the same shapes and types; the actions are int64.

        Raises:
            ValueError: a wrong shape, an action that does not exist, or an order that is none.
        """
        observation, action_mask, chosen = map(np.asarray, (observation, action_mask, actions))
        n, features, count = chosen.size, self._observation.n, self._actions.n
        for name, array, shape in (
            ("actions", chosen, (n,)),
            ("observation", observation, (n, features)),
            ("action_mask", action_mask, (n, count)),
        ):
            if array.shape != shape:
                raise ValueError(f"{name} of shape {array.shape} is not allowed; with {n} actions it is {shape}")
        if chosen.dtype.kind not in "iu" or ((chosen < 0) | (chosen >= count)).any():
            raise ValueError(f"actions={actions!r} are not allowed; they are integers from 0 to {count - 1}")
        orders = {
            name: self._checked_order(name, order, n)
            for name, order in zip(_SLICES, (centers, own_sides, opponent_sides), strict=True)
        }
        seen, mask, done = np.array(observation, order="C"), np.array(action_mask, order="C"), chosen.astype(np.int64)
        for name, place in self._slices:
            seen[:, place] = _reordered(seen[:, place], orders[name])
        for name, of_pile in self._actions_of.items():
            places = of_pile.ravel()
            mask[:, places] = _reordered(mask[:, places], orders[name])
            done = self._moved(done, of_pile, orders[name])
        return seen, mask, done

    def _moved(self, actions: Index, of_pile: Index, order: Index) -> Index:
        """Return what actions become, of which those in row ``i`` of ``of_pile`` are about pile ``i``."""
        places = np.full(self._actions.n, -1)
        places[of_pile.ravel()] = np.arange(of_pile.size)
        pile, which = np.divmod(places[actions], of_pile.shape[1])
        new_pile = order.argsort(axis=1)[np.arange(len(actions)), pile]
        return np.where(pile < 0, actions, of_pile[new_pile, which])

    def _checked_order(self, name: str, order: ArrayLike | None, n: int) -> Index:
        """Return an order for each row, int ``(n, piles)``."""
        same = np.arange(self.piles[name])
        given = same if order is None else np.asarray(order)
        if given.shape not in (same.shape, (n, *same.shape)) or not (np.sort(given, axis=-1) == same).all():
            raise ValueError(
                f"{name}={order!r} is no order of {same.size} piles; it holds each of 0 to {same.size - 1} once, "
                f"for all rows or for each of {n}"
            )
        return np.broadcast_to(given.astype(np.intp), (n, same.size))


def _reordered(values: NDArray[Any], order: Index) -> NDArray[Any]:
    """Put into another order what stands pile by pile in every row of ``values``."""
    n, piles = order.shape
    blocks = np.ascontiguousarray(values).reshape(n * piles, values.shape[1] // piles)
    return blocks.take((order + piles * np.arange(n)[:, None]).ravel(), axis=0).reshape(values.shape)
