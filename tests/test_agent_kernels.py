"""The compiled policies do what they do on NumPy's arrays, action for action."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers import ALL_PRESETS, SHORT_MATCH, any_rules, over, played_games, random_position
from spite_env import Game, Policy, Rules, acceleration
from spite_env.policies import decide, make_policy

pytestmark = pytest.mark.skipif(not acceleration.kernels().COMPILED, reason="no Numba")

EVERY_POLICY = pytest.mark.parametrize("name", ["expert", "playout"])


def ready(name: str, rules: Rules, compiled: bool | None) -> Policy:
    policy = make_policy(name)
    policy.compiled = compiled  # type: ignore[attr-defined]
    policy.reset(rules, 1, 0)
    return policy


def same_choices(game: Game, *ways: Policy) -> NDArray[np.intp]:
    """Return what policies choose in the games that go on, which must be the same."""
    live = np.flatnonzero(~over(game))
    chosen, *others = (decide(policy, type(policy).__name__, game, live) for policy in ways)
    for other in others:
        np.testing.assert_array_equal(other, chosen)
    return chosen


@EVERY_POLICY
@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=str)
def test_choices_are_equal_in_positions_of_all_kinds_of_games(rules: Rules, name: str) -> None:
    ways = [ready(name, rules, compiled) for compiled in (True, False)]
    same_choices(played_games(rules, 500, seed=1, most=30 if rules.num_cards < 20 else 200), *ways)
    game = Game(rules, 40, seed=2)
    while not over(game).all():
        live = np.flatnonzero(~over(game))
        game.step(same_choices(game, *ways), live)


@EVERY_POLICY
@given(any_rules(), st.integers(0, 2**32))
@settings(max_examples=60)
def test_they_are_equal_in_any_position_under_any_rules(name: str, rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    positions = [random_position(rules, rng) for _ in range(20)]
    same_choices(Game.from_positions(rules, positions), *(ready(name, rules, compiled) for compiled in (True, False)))
