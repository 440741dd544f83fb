"""The compiled policies do what they do on NumPy's arrays, action for action."""

from __future__ import annotations

import random
import subprocess
import sys
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.expert import LARGEST_WEIGHT, ExpertPolicy, Weights
from agents.playout import PlayoutPolicy
from helpers import ALL_PRESETS, SHORT_MATCH, any_rules, lay, over, played_games, random_position
from spite_env import Game, Rules, acceleration
from spite_env.policies import decide

pytestmark = pytest.mark.skipif(not acceleration.kernels().COMPILED, reason="no Numba")

Planner = ExpertPolicy | PlayoutPolicy

#: None of the defaults, some of them senseless.
OTHER_WEIGHTS = Weights(
    hand_card=-7,
    short_stock=0.6,
    short_stock_hand_card=35,
    empty_hand=-90,
    refilled_hand=-55,
    opponent_gap=(-50, 100, -300),
    king=-20,
    most_kings=4,
    step_down=-11,
    same=13,
    empty=-30,
    down=(33, 7),
    bury=(44, 9),
    bury_king=50,
    bury_needed=60,
    keep_needed=70,
    duplicate=-80,
    discard_king=90,
)

#: As far as weights may go.
LARGEST_WEIGHTS = Weights(
    hand_card=LARGEST_WEIGHT,
    short_stock_hand_card=-LARGEST_WEIGHT,
    empty_hand=LARGEST_WEIGHT,
    opponent_gap=(LARGEST_WEIGHT, -LARGEST_WEIGHT),
    king=-LARGEST_WEIGHT,
    most_kings=LARGEST_WEIGHT,
    down=(LARGEST_WEIGHT, LARGEST_WEIGHT),
    bury=(-LARGEST_WEIGHT, -LARGEST_WEIGHT),
    discard_king=LARGEST_WEIGHT,
)

POLICIES: dict[str, Callable[[], Planner]] = {
    "expert": ExpertPolicy,
    "expert with other weights": lambda: ExpertPolicy(OTHER_WEIGHTS),
    "expert with the largest weights": lambda: ExpertPolicy(LARGEST_WEIGHTS),
    "playout": PlayoutPolicy,
}
EVERY_POLICY = pytest.mark.parametrize("make", POLICIES.values(), ids=POLICIES)
EVERY_VARIANT = pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=str)


def ways(make: Callable[[], Planner], rules: Rules) -> list[Planner]:
    """Return a policy that runs compiled, and one that doesn't."""
    both = [make(), make()]
    for policy, compiled in zip(both, (True, False), strict=True):
        policy.compiled = compiled
        policy.reset(rules, 1, 0)
    return both


def same_choices(game: Game, policies: list[Planner], games: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return what policies choose, which must be the same."""
    chosen, *others = (decide(policy, "it", game, games) for policy in policies)
    for other in others:
        np.testing.assert_array_equal(other, chosen)
    return chosen


@EVERY_POLICY
@EVERY_VARIANT
def test_choices_are_equal_in_whole_games(rules: Rules, make: Callable[[], Planner]) -> None:
    game, policies = Game(rules, 30, seed=2), ways(make, rules)
    for _ in range(150):
        live = np.flatnonzero(~over(game))
        game.step(same_choices(game, policies, live), live)


@EVERY_POLICY
@EVERY_VARIANT
def test_they_are_equal_in_games_of_others_in_any_selection(rules: Rules, make: Callable[[], Planner]) -> None:
    game, policies = played_games(rules, 300, seed=1, most=30 if rules.num_cards < 20 else 200), ways(make, rules)
    together = same_choices(game, policies, np.arange(300))
    some = np.random.default_rng(0).choice(300, 100, replace=False)
    np.testing.assert_array_equal(decide(policies[0], "it", game, some), together[some])
    for index in range(30):
        assert decide(policies[0], "it", game, np.array([index])) == together[index]


@EVERY_POLICY
@given(any_rules(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_they_are_equal_in_any_position_under_any_rules(make: Callable[[], Planner], rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    positions = [random_position(rules, rng) for _ in range(20)]
    same_choices(Game.from_positions(rules, positions), ways(make, rules), np.arange(20))


@EVERY_POLICY
@pytest.mark.parametrize("width", [3, 256])
@pytest.mark.parametrize("ranks", [2, 5, 12])
def test_they_are_equal_where_very_many_plays_are_possible(
    make: Callable[[], Planner], width: int, ranks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Large hands, many kings, and more positions than are kept."""
    monkeypatch.setattr("agents.expert.WIDTH", width)
    rules = Rules(ranks=ranks, copies=120 // ranks, wilds=20, payoff_size=3, hand_size=40, side_piles=6, center_piles=4)
    rng = random.Random(1)
    positions = [random_position(rules, rng) for _ in range(40)]
    same_choices(Game.from_positions(rules, positions), ways(make, rules), np.arange(40))


@EVERY_POLICY
def test_they_are_equal_where_a_hand_holds_more_cards_of_a_rank_than_are_counted(make: Callable[[], Planner]) -> None:
    rules = Rules(copies=20, wilds=3, payoff_size=2, hand_size=20)
    positions = [
        lay(rules, hand=card * held + "K" * kings, payoff=payoff, sides=["9"], opponent_payoff="Q")
        for card in "A2345"
        for held in range(14, 20)
        for kings in (0, 1)
        for payoff in "234567"
    ]
    same_choices(Game.from_positions(rules, positions), ways(make, rules), np.arange(len(positions)))


@EVERY_POLICY
def test_observations_may_be_stored_in_any_way_and_nothing_is_compiled_twice(make: Callable[[], Planner]) -> None:
    from agents import kernels  # imports Numba

    game, (policy, _) = played_games(Rules(), 50, seed=3, most=100), ways(make, Rules())
    observation, mask = game.observe(table=policy.observation_table), game.legal_actions()
    expected = policy.act(observation, mask, None, np.arange(50))
    row_by_row = np.ascontiguousarray(observation)
    row_by_row.flags.writeable = False
    for same in (row_by_row, np.repeat(observation, 2, axis=0)[::2]):
        np.testing.assert_array_equal(policy.act(same, mask, None, np.arange(50)), expected)
    assert max(len(entry.signatures) for entry in (kernels.expert, kernels.playout)) == 1


def test_the_agents_can_be_imported_without_numba() -> None:
    code = "import sys, agents.expert, agents.playout, agents.search; assert 'numba' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
