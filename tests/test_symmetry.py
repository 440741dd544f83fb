"""Symmetries: against the core, which plays positions with piles in another order."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import ALL_PRESETS, SHORT_MATCH, Players, Position, any_rules, over, played_games, random_position
from spite_env import Game, Rules
from spite_env.symmetry import Symmetry

ENCODINGS = ("onehot", "compact")


def reorder(position: Position, orders: dict[str, Any], row: int) -> Position:
    """Return a position with piles in other orders, from the mover's side."""
    mover = position["turn"]
    sides: list[Any] = [None, None]
    for player, name in ((mover, "own_sides"), (1 - mover, "opponent_sides")):
        sides[player] = [position["sides"][player][place] for place in orders[name][row]]
    return {**position, "sides": sides, "centers": [position["centers"][place] for place in orders["centers"][row]]}


def check(game: Game, seed: int) -> None:
    """Compare games that go on with twins whose piles stand in another order, before and after a decision."""
    rules, table = game.rules, game.observation
    n, rng = game.num_games, np.random.default_rng(seed)
    symmetry = Symmetry(rules, table.encoding, table.side_depth)
    orders = symmetry.random(n, rng)
    before = [game.position(i) for i in range(n)]
    moved = [reorder(position, orders, i) for i, position in enumerate(before)]
    options: dict[str, Any] = {"encoding": table.encoding, "side_depth": table.side_depth}
    game = Game.from_positions(rules, before, seed, **options)  # as the twins: the first decision, with new streams
    twins = Game.from_positions(rules, moved, seed, **options)
    actions = Players(rules, n, seed).choose(game)
    seen, mask = game.observe(), game.legal_actions()
    kept = [array.copy() for array in (seen, mask, actions)]

    new_seen, new_mask, new_actions = symmetry.apply(seen, mask, actions, **orders)
    np.testing.assert_array_equal(new_seen, twins.observe())
    np.testing.assert_array_equal(new_mask, twins.legal_actions())
    assert (new_seen.dtype, new_mask.dtype) == (np.uint8, np.bool_)
    for array, old in zip((seen, mask, actions), kept, strict=True):
        np.testing.assert_array_equal(array, old)

    undone = symmetry.apply(
        new_seen, new_mask, new_actions, **{name: order.argsort(axis=1) for name, order in orders.items()}
    )
    for array, old in zip(undone, kept, strict=True):
        np.testing.assert_array_equal(array, old)

    game.step(actions)
    twins.step(new_actions)
    for i in range(n):
        after = game.position(i)
        if game.state.game_number[i] == 0 or over(game)[i]:  # else the next game of a match has been dealt
            mover = before[i]["turn"]
            names = ("own_sides", "opponent_sides")
            by_view = dict(zip(names, names if after["turn"] == mover else names[::-1], strict=True))
            after = reorder(after, orders | {name: orders[other] for name, other in by_view.items()}, i)
        assert twins.position(i) == after
    np.testing.assert_array_equal(over(twins), over(game))
    np.testing.assert_array_equal(twins.winner, game.winner)


@pytest.mark.parametrize("encoding", ENCODINGS)
@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH])
def test_games_of_the_presets(rules: Rules, encoding: str) -> None:
    check(played_games(rules, 60, seed=1, most=200, encoding=encoding), seed=2)


@given(rules=any_rules(), seed=st.integers(0, 2**32), side_depth=st.integers(0, 4), encoding=st.sampled_from(ENCODINGS))
@settings(max_examples=30)
def test_any_position_of_any_rules(rules: Rules, seed: int, side_depth: int, encoding: str) -> None:
    rng = random.Random(seed)
    positions = [random_position(rules, rng) for _ in range(5)]
    check(Game.from_positions(rules, positions, seed, encoding=encoding, side_depth=side_depth), seed)


def test_one_order_for_all_rows_and_none() -> None:
    game = played_games(Rules.classic(), 20, seed=3, most=150)
    symmetry, n = Symmetry("classic"), game.num_games
    seen, mask, actions = game.observe(), game.legal_actions(), Players(game.rules, n, 1).choose(game)
    for array, same in zip(symmetry.apply(seen, mask, actions), (seen, mask, actions), strict=True):
        np.testing.assert_array_equal(array, same)
    order = [2, 0, 3, 1]
    for name in symmetry.piles:
        once = symmetry.apply(seen, mask, actions, **{name: order})
        each = symmetry.apply(seen, mask, actions, **{name: np.tile(order, (n, 1))})
        for array, same in zip(once, each, strict=True):
            np.testing.assert_array_equal(array, same)


def test_by_hand() -> None:
    symmetry, table = Symmetry(), Game().actions
    mask = np.zeros((1, table.n), bool)
    mask[0, table.parse("side1>center0")] = True
    for text, expected in (("side1>center0", "side3>center1"), ("hand>center2", "hand>center0"), ("end_turn",) * 2):
        _, new_mask, (action,) = symmetry.apply(
            np.zeros((1, Game().observation.n), np.uint8),
            mask,
            [table.parse(text)],
            centers=[2, 0, 1],
            own_sides=[2, 3, 0, 1],
            opponent_sides=[3, 2, 1, 0],
        )
        assert table.text(int(action)) == expected
        assert np.flatnonzero(new_mask).tolist() == [table.parse("side3>center1")]


def test_values_of_actions_follow_them() -> None:
    """What stands in place of a mask, such as probabilities, keeps its type."""
    symmetry, rng = Symmetry("mini"), np.random.default_rng(1)
    game = Game("mini", 50)
    actions = game.legal_actions().argmax(axis=1)
    seen = game.observe().astype(np.float32)
    values = rng.random((50, game.actions.n), np.float32)
    new_seen, new_values, new_actions = symmetry.apply(seen, values, actions, **symmetry.random(50, rng))
    assert (new_seen.dtype, new_values.dtype) == (np.float32, np.float32)
    rows = np.arange(50)
    np.testing.assert_array_equal(new_values[rows, new_actions], values[rows, actions])
    np.testing.assert_array_equal(np.sort(new_values), np.sort(values))


def test_no_row_at_all() -> None:
    symmetry, game = Symmetry("mini"), Game("mini")
    orders = symmetry.random(0, np.random.default_rng(0))
    seen, mask, actions = symmetry.apply(game.observe(indices=[]), game.legal_actions([]), np.zeros(0, int), **orders)
    assert (seen.shape, mask.shape, actions.shape) == ((0, game.observation.n), (0, game.actions.n), (0,))


def test_all_orders_are_drawn_equally() -> None:
    orders = Symmetry().random(6000, np.random.default_rng(0))
    assert {name: order.shape for name, order in orders.items()} == {
        "centers": (6000, 3),
        "own_sides": (6000, 4),
        "opponent_sides": (6000, 4),
    }
    _, counts = np.unique(orders["centers"], axis=0, return_counts=True)
    assert len(counts) == 6
    assert abs(counts - 1000).max() < 150  # five standard deviations
    assert (orders["own_sides"] != orders["opponent_sides"]).any()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"centers": [0, 1, 1]}, r"centers=\[0, 1, 1\] is no order of 3 piles"),
        ({"centers": [0, 1]}, "it holds each of 0 to 2 once"),
        ({"own_sides": [[0, 1, 2, 3]] * 3}, "for all rows or for each of 2"),
        ({"opponent_sides": [0, 1, 2, 3.5]}, "opponent_sides="),
        ({"observation": np.zeros((2, 5), np.uint8)}, r"observation of shape \(2, 5\) .* it is \(2, 767\)"),
        ({"action_mask": np.zeros((3, 74), bool)}, r"action_mask of shape \(3, 74\) .* it is \(2, 74\)"),
        ({"actions": [0, 74]}, r"actions=\[0, 74\] are not allowed; they are integers from 0 to 73"),
        ({"actions": [0, -1]}, "integers from 0 to 73"),
        ({"actions": [0.0, 1.0]}, "integers from 0 to 73"),
        ({"actions": [[0, 1]]}, "actions of shape"),
    ],
)
def test_wrong_arguments_are_refused(change: dict[str, Any], message: str) -> None:
    arguments: dict[str, Any] = {
        "observation": np.zeros((2, 767), np.uint8),
        "action_mask": np.zeros((2, 74), bool),
        "actions": [0, 1],
    }
    with pytest.raises(ValueError, match=message):
        Symmetry().apply(**arguments | change)
