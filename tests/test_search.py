"""The search, and the policy that plays its rollouts."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.search import SearchPolicy
from helpers import ALL_PRESETS, SHORT_MATCH, any_rules, over, played_games, random_position, start
from spite_env import Game, Rules
from spite_env.arena import duel
from spite_env.information import InformationSets
from spite_env.policies import decide, make_policy
from spite_env.rules import PRESETS

VARIANTS = {**dict(zip(PRESETS, ALL_PRESETS, strict=True)), "match": SHORT_MATCH}
EVERY_VARIANT = pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)


#: Rollouts that take little time, with Numba and without.
CHEAP = {"prior": "playout", "rollout": "playout"}


def ready(rules: Rules, num_games: int, seed: int = 0, **arguments: Any) -> SearchPolicy:
    """Return a search whose rollouts decide, few though they are."""
    policy = SearchPolicy(**{"rollouts": 32, "confidence": 0, **CHEAP, **arguments})
    policy.reset(rules, num_games, seed)
    return policy


def choices(policy: SearchPolicy, game: Game, games: list[int] | None = None) -> NDArray[np.intp]:
    return decide(policy, "search", game, np.arange(game.num_games) if games is None else np.array(games))


@EVERY_VARIANT
def test_it_plays_every_variant_legally(rules: Rules) -> None:
    """Short games, so that some end, and matches go on."""
    rules = rules.replace(payoff_size=min(rules.payoff_size, 2))
    game = Game(rules, 6, seed=1)
    policy = ready(rules, 6, rollouts=8)
    for _ in range(10):
        (live,) = np.nonzero(~over(game))
        if live.size:
            game.step(choices(policy, game, live.tolist()), live)
    assert game.state.steps.max() > 3


@settings(max_examples=10)
@given(any_rules(), st.integers(0, 2**32))
def test_it_is_legal_under_any_rules(rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    game = Game.from_positions(rules, [random_position(rules, rng) for _ in range(8)])
    choices(ready(rules, 8, rollouts=8), game)


@EVERY_VARIANT
@pytest.mark.parametrize("policies", [{"prior": "expert", "rollout": "expert"}, CHEAP], ids=["default", "cheap"])
def test_hidden_cards_and_shuffles_to_come_change_no_decision(rules: Rules, policies: dict[str, str]) -> None:
    game = played_games(rules, 20, seed=2, most=20 if rules.ranks == 3 else 100)
    other = InformationSets(game, np.arange(20)).sample(1, np.random.default_rng(0))
    assert any(game.position(number) != other.position(number) for number in range(20))
    first, second = choices(ready(rules, 20, **policies), game), choices(ready(rules, 20, **policies), other)
    np.testing.assert_array_equal(first, second)


def test_a_decision_depends_on_the_seed_and_the_game_alone() -> None:
    game = played_games(Rules(), 12, seed=3, most=100)
    whole, portions = ready(Rules(), 12), ready(Rules(), 12)
    first, second = choices(whole, game), choices(whole, game)
    assert (first != second).any(), "every decision draws worlds of its own"
    for expected in (first, second):
        for part in ([5], [11, 0, 3], [1, 2, 4, 6, 7, 8, 9, 10]):
            np.testing.assert_array_equal(choices(portions, game, part), expected[part])
    whole.reset(Rules(), 12, 0)
    np.testing.assert_array_equal(choices(whole, game), first)
    whole.reset(Rules(), 12, 1)
    assert (choices(whole, game) != first).any()


@pytest.mark.parametrize("prior", ["hoarder", "playout"])
def test_it_finds_a_win_within_its_turn(prior: str) -> None:
    """Four and five and six from hand and side piles, then the last pay-off card."""
    layout = {"payoff": "7", "hand": "4TJQ", "sides": ["6", "5"], "centers": ["A23", "A"]}
    game = start(Rules(), **layout, opponent_payoff="2222222Q")
    policy = ready(Rules(), 1, rollouts=256, prior=prior)
    for _ in range(4):
        game.step(choices(policy, game))
    assert game.winner[0] == 0


def test_it_keeps_the_opponent_from_winning() -> None:
    """The opponent's last card is a five, and the only play would be a four."""
    game = start(Rules(), payoff="TTTT9", hand="4QQQQ", centers=["A23"], opponent_payoff="5")
    assert "hand>center0" in {game.actions.text(action) for action in np.flatnonzero(game.legal_actions()[0])}
    action = int(choices(ready(Rules(), 1, rollouts=256, prior="greedy"), game)[0])
    assert game.actions.text(action) != "hand>center0"


def test_the_more_confident_it_must_be_the_more_often_the_move_of_the_prior_stands() -> None:
    game = played_games(Rules(), 24, seed=6, most=100)
    prior = playouts(game)
    changed = [(choices(ready(Rules(), 24, rollouts=256, confidence=c), game) != prior).sum() for c in (0.0, 1.0, 9.0)]
    assert changed[0] > changed[1] > changed[2]


def test_few_rollouts_seldom_overrule_the_prior() -> None:
    game = played_games(Rules(), 200, seed=5, most=100)
    prior = playouts(game)
    searches = [ready(Rules(), 200, rollouts=rollouts, confidence=1) for rollouts in (1, 16, 256)]
    shares = [np.mean(choices(search, game) != prior) for search in searches]
    assert shares[0] < 0.03
    assert shares[1] < 0.06
    assert shares[2] > 0.1


def test_moves_of_equal_worth_leave_the_move_to_the_prior(monkeypatch: pytest.MonkeyPatch) -> None:
    game = played_games(Rules(), 50, seed=5, most=100)
    noise = np.random.default_rng(0)
    monkeypatch.setattr(SearchPolicy, "_play_out", lambda _, rows, *__: 0.3 + 1e-16 * noise.random(rows.num_games))
    assert choices(ready(Rules(), 50), game).tolist() == playouts(game).tolist()


def test_it_wins_against_greedy() -> None:
    result = duel(SearchPolicy(16, **CHEAP), "greedy", Rules(payoff_size=2), games=60, seed=4)
    assert result.wins > result.losses + 10


def test_a_budget_of_time_plays_legally() -> None:
    game = played_games(Rules(), 3, seed=5, most=60)
    policy = ready(Rules(), 3, milliseconds=1)
    for _ in range(5):
        game.step(choices(policy, game))


def test_a_bar_shows_up_in_long_moves_alone(capsys: pytest.CaptureFixture[str]) -> None:
    choices(ready(Rules(), 1), Game(Rules(), 1))
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("rollouts", 0),
        ("rollouts", 1.5),
        ("milliseconds", 0),
        ("turns", 0),
        ("turns", 3),
        ("confidence", -1.0),
        ("confidence", np.nan),
        ("confidence", np.inf),
        ("confidence", True),
        ("confidence", "high"),
    ],
)
def test_impossible_arguments_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{name}={value!r} is not allowed"):
        SearchPolicy(**{name: value})


def test_unknown_policies_are_refused() -> None:
    with pytest.raises(ValueError, match="unknown policy 'nobody'"):
        SearchPolicy(rollout="nobody")


def test_rollouts_take_no_random_choices() -> None:
    with pytest.raises(ValueError, match="rollout='greedy' is not allowed"):
        SearchPolicy(rollout="greedy")


def test_without_information_it_says_what_is_missing() -> None:
    game = Game(Rules(), 1)
    policy = ready(Rules(), 1)
    with pytest.raises(ValueError, match="infosets"):
        policy.act(game.observe(table=policy.observation_table), game.legal_actions(), None, np.array([0]))


# -- the policy of the rollouts --------------------------------------------------------------------------------------


def playouts(game: Game) -> NDArray[np.intp]:
    policy = make_policy("playout")
    policy.reset(game.rules, 1, 0)
    return decide(policy, "playout", game, np.arange(game.num_games))


@given(any_rules(), st.integers(0, 2**32))
def test_the_rollout_policy_is_legal_under_any_rules(rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    playouts(Game.from_positions(rules, [random_position(rules, rng) for _ in range(8)]))


@pytest.mark.parametrize(
    ("layout", "expected"),
    [
        ({"payoff": "4", "hand": "4KAAA", "centers": ["A23"]}, "payoff>center0"),
        ({"payoff": "6", "hand": "45KQQ", "centers": ["A23"], "sides": ["", "4"]}, "side1>center0"),
        ({"payoff": "6", "hand": "5KKQQ", "centers": ["A23"]}, "wild>center0"),
        ({"payoff": "9", "hand": "KK3JQ", "centers": ["A23"], "sides": ["Q"]}, "discard J>side0"),
        (
            {"payoff": "9", "opponent_payoff": "5", "hand": "4K3JQ", "centers": ["A23"], "sides": ["Q"]},
            "discard J>side0",
        ),
        ({"payoff": "9", "centers": ["A23"]}, "end_turn"),
    ],
)
def test_the_rollout_policy_plays_by_its_rules(layout: dict[str, Any], expected: str) -> None:
    game = start(Rules(), **{"opponent_payoff": "2", **layout})
    assert game.actions.text(int(playouts(game)[0])) == expected


def test_the_rollout_policy_beats_greedy() -> None:
    result = duel("playout", "greedy", games=100, seed=7)
    assert result.wins > 3 * result.losses


def test_the_rollout_policy_takes_no_games() -> None:
    policy = make_policy("playout")
    policy.reset(Rules(), 3, 0)
    assert decide(policy, "playout", Game(Rules(), 3), np.array([], np.intp)).shape == (0,)
