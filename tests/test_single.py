"""A batch of one plays as every game of a larger batch does, by its own code."""

from __future__ import annotations

import copy
import pickle
from itertools import count

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import ALL_PRESETS, SHORT_MATCH, Players, any_rules, check_bookkeeping, over, random_position, snapshot
from spite_env import Game, Rules


def compare(batch: Game, players: Players, most: int) -> None:
    """Walk a batch and as many single games through the same decisions."""
    games = range(batch.num_games)
    singles = [batch.copy([index]) for index in games]
    for step in count():
        if step == most or over(batch).all():
            break
        actions = players.choose(batch)
        going_on = np.flatnonzero(~over(batch)).tolist()
        batch.step(actions)
        for index in going_on:
            singles[index].step(actions[[index]])
            assert singles[index].legal_actions()[0].tolist() == batch.legal_actions()[index].tolist()
            assert bool(over(singles[index])[0]) == bool(over(batch)[index])
        if step % 10 == 0:
            for index in going_on:
                assert snapshot(singles[index], 0) == snapshot(batch, index)
    for index in games:
        check_bookkeeping(singles[index])
        assert snapshot(singles[index], 0) == snapshot(batch, index)


@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH, Rules(max_steps=9), Rules(recycle="bottom")], ids=str)
def test_single_games_equal_those_of_a_batch(rules: Rules) -> None:
    compare(Game(rules, 24, seed=3), Players(rules, 24, seed=4), most=700)


@given(any_rules(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_single_games_of_any_rules_equal_those_of_a_batch(rules: Rules, seed: int) -> None:
    compare(Game(rules, 4, seed), Players(rules, 4, seed), most=120)


@given(any_rules(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_single_games_from_any_position_equal_those_of_a_batch(rules: Rules, rng: object) -> None:
    positions = [random_position(rules, rng) for _ in range(4)]  # type: ignore[arg-type]
    compare(Game.from_positions(rules, positions, seed=1), Players(rules, 4, seed=2), most=60)


def test_copies_of_every_kind_can_be_played() -> None:
    game = Game(num_games=3, seed=1)
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(game, protocol=5, buffer_callback=buffers.append)
    copies = [
        pickle.loads(pickled, buffers=[bytes(buffer.raw()) for buffer in buffers]),
        copy.copy(game),
        copy.deepcopy(game),
        game.copy(),
    ]
    before = snapshot(game, 0)
    actions = game.legal_actions().argmax(axis=1)
    for copied in copies:
        copied.step(actions)
        assert snapshot(copied, 0) == snapshot(copies[0], 0) != before
    assert snapshot(game, 0) == before


def test_numpy_integers_are_integers() -> None:
    game = Game(Rules(ranks=np.int64(9)), np.int64(2), np.int64(7), side_depth=np.int64(1))
    assert snapshot(game, 1) == snapshot(Game(Rules(ranks=9), 2, 7, side_depth=1), 1)


@pytest.mark.soak
@pytest.mark.parametrize("rules", ALL_PRESETS, ids=str)
def test_many_single_games_equal_those_of_a_batch(rules: Rules) -> None:
    for seed in range(10):
        compare(Game(rules, 50, seed), Players(rules, 50, seed), most=2000)
