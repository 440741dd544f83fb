"""The expert: it plays by the rules, sees only what it may, finds the plays that it should, and beats greedy."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from agents.expert import LARGEST_WEIGHT, Weights
from helpers import (
    ALL_PRESETS,
    SHORT_MATCH,
    any_rules,
    over,
    played_games,
    random_position,
    rehidden,
    start,
    wins_this_turn,
)
from spite_env import Game, Policy, Rules
from spite_env.arena import duel
from spite_env.policies import decide, make_policy
from spite_env.rules import PRESETS

VARIANTS = dict(zip((*PRESETS, "match"), (*ALL_PRESETS, SHORT_MATCH), strict=True))
EVERY_VARIANT = pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)


def expert(rules: Rules) -> Policy:
    policy = make_policy("expert")
    policy.reset(rules, 1, 0)
    return policy


def choices(game: Game) -> NDArray[np.intp]:
    """Return the expert's actions in games that all go on; they are checked to be legal."""
    return decide(expert(game.rules), "expert", game, np.arange(game.num_games))


def choice(layout: dict[str, Any], rules: Rules | None = None) -> str:
    game = start(rules or Rules(), stock="", **layout)
    return game.actions.text(int(choices(game)[0]))


def turn(layout: dict[str, Any], rules: Rules | None = None) -> list[str]:
    """Return what the expert plays until its turn, or the game, ends."""
    game = start(rules or Rules(), **layout)
    texts: list[str] = []
    while not over(game)[0] and game.current_player[0] == 0:
        action = choices(game)
        texts.append(game.actions.text(int(action[0])))
        game.step(action)
    return texts


# -- by the rules ----------------------------------------------------------------------------------------------------


@given(any_rules(), st.integers(0, 2**32))
def test_its_choices_are_legal_under_any_rules(rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    choices(Game.from_positions(rules, [random_position(rules, rng) for _ in range(8)]))


@EVERY_VARIANT
def test_it_plays_whole_games(rules: Rules) -> None:
    game = Game(rules, 10, seed=1)
    policy = expert(rules)
    for _ in range(5000):
        (live,) = np.nonzero(~over(game))
        if not live.size:
            break
        game.step(decide(policy, "expert", game, live), live)
    assert over(game).all()
    assert (game.winner >= 0).sum() > 5


# -- what its choices depend on --------------------------------------------------------------------------------------


@EVERY_VARIANT
def test_a_choice_depends_on_its_game_alone(rules: Rules) -> None:
    game = played_games(rules, 300, seed=2, most=40 if rules.num_cards < 20 else 200)
    together = choices(game)
    order = np.random.default_rng(0).permutation(300)
    np.testing.assert_array_equal(choices(game.copy(order)), together[order])
    alone = [int(choices(game.copy([index]))[0]) for index in range(60)]
    assert alone == together[:60].tolist()


@EVERY_VARIANT
def test_a_choice_does_not_depend_on_hidden_cards(rules: Rules) -> None:
    rng = random.Random(3)
    game = played_games(rules, 300, seed=3, most=40 if rules.num_cards < 20 else 200)
    positions = [game.position(index) for index in range(300)]
    positions += [random_position(rules, rng) for _ in range(300)]
    others = [rehidden(position, position["turn"], rng) for position in positions]
    assert others != positions
    expected = choices(Game.from_positions(rules, positions))
    np.testing.assert_array_equal(choices(Game.from_positions(rules, others)), expected)


def test_it_reads_the_layout_that_it_asks_for() -> None:
    game = played_games(Rules(), 100, seed=4, most=100)
    expected = choices(game)
    for encoding, side_depth in (("compact", 3), ("onehot", 0)):
        other = played_games(Rules(), 100, seed=4, most=100, encoding=encoding, side_depth=side_depth)
        np.testing.assert_array_equal(choices(other), expected)


def test_it_takes_no_games() -> None:
    assert decide(expert(Rules()), "expert", Game(Rules(), 3), np.zeros(0, np.intp)).shape == (0,)


# -- what it plays ---------------------------------------------------------------------------------------------------

WINS: dict[str, dict[str, Any]] = {
    "the pay-off card fits": {"hand": "2", "payoff": "5", "centers": ["A234"]},
    "a king as pay-off card": {"hand": "2", "payoff": "K"},
    "a chain from the hand": {"hand": "3458Q", "payoff": "6", "centers": ["A2"]},
    "a chain from hand and sides": {"hand": "4TTTT", "payoff": "6", "sides": ["5", "3"], "centers": ["A2"]},
    "a run on one side pile": {"hand": "TTTTT", "payoff": "8", "sides": ["9", "76543"], "centers": ["A2"]},
    "a card to uncover first": {
        "hand": "TTTTT", "payoff": "7", "sides": ["6Q"], "centers": ["A2345", "A23456789TJ"]
    },
    "a card to uncover with another centre pile's help": {
        "hand": "8QQQQ", "payoff": "4", "sides": ["39"], "centers": ["A2", "A234567"]
    },
    "through the completion of a pile": {
        "hand": "QA277", "payoff": "3", "centers": ["A23456789TJ", "A234", "A234"]
    },
    "a king for a missing rank": {"hand": "4KTTT", "payoff": "6", "centers": ["A23"]},
    "three kings, if they win": {"hand": "KKKTT", "payoff": "6", "centers": ["A2", "A23456"]},
    "a king from a side pile": {"hand": "TTTTT", "payoff": "6", "sides": ["8K"], "centers": ["A234"]},
    "no king where there is a longer way without": {
        "hand": "K2348", "payoff": "5", "sides": ["T"], "centers": ["A", "A2"]
    },
    "the rank that is on a pile only once": {
        "hand": "4444", "payoff": "5", "sides": ["T3"], "centers": ["A2", "A23456789"]
    },
}  # fmt: skip


@pytest.mark.parametrize("layout", WINS.values(), ids=WINS)
def test_it_finds_every_chain_that_wins(layout: dict[str, Any]) -> None:
    texts = turn(layout)
    assert texts[-1].startswith("payoff>")


def test_it_wins_exactly_where_a_win_within_the_turn_exists() -> None:
    game = played_games(Rules(), 60, seed=6, most=150)
    positions = [game.position(index) for index in range(60)]
    for position in positions:
        position["payoff"][position["turn"]] = position["payoff"][position["turn"]][-1:]
    expected = [wins_this_turn(Game.from_positions(Rules(), [position])) for position in positions]
    assert 10 < sum(expected) < 50
    game = Game.from_positions(Rules(), positions)
    movers, live = game.current_player, np.arange(60)
    while live.size:
        game.step(choices(game.copy(live)), live)
        live = live[~over(game)[live] & (game.current_player == movers)[live]]
    assert (game.winner == movers).tolist() == expected


def test_it_spends_no_king_that_it_need_not() -> None:
    texts = turn(WINS["no king where there is a longer way without"])
    assert "wild" not in " ".join(texts)


@pytest.mark.parametrize("kings", range(1, 4))
def test_it_spends_few_kings_on_a_card_that_does_not_win(kings: int) -> None:
    hand = "K" * kings + "T" * (5 - kings)
    texts = turn({"hand": hand, "payoff": "97", "centers": ["A23456"[: 6 - kings]]})
    assert ("payoff>center0" in texts) == (kings <= 2)


def test_it_ends_a_turn_that_it_must_end() -> None:
    assert choice({"payoff": "9"}) == "end_turn"


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("hand_card", LARGEST_WEIGHT + 1),
        ("king", -LARGEST_WEIGHT - 1),
        ("same", 1.5),
        ("most_kings", True),
        ("opponent_gap", ()),
        ("opponent_gap", (1, 2.5)),
        ("opponent_gap", 7),
        ("down", (1,)),
        ("short_stock", np.nan),
        ("short_stock", 1.5),
    ],
)
def test_impossible_weights_are_refused(name: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"^{name}=.* is not allowed; it is "):
        Weights(**{name: value})


def test_weights_are_plain_integers() -> None:
    assert type(Weights(king=np.int16(-240)).king) is int


# -- how well it plays -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("preset", ["g4a", "classic"])
def test_it_beats_greedy(preset: str) -> None:
    result = duel("expert", "greedy", Rules.preset(preset), games=100, seed=7)
    assert result.win_share_interval is not None
    assert result.win_share_interval[0] > 0.85
    assert result.draws <= 0.1 * result.games
