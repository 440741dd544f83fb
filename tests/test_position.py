"""Positions in and out."""

from __future__ import annotations

import json
import random
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    ALL_PRESETS,
    PLAYERS,
    SHORT_MATCH,
    Players,
    Position,
    any_rules,
    cards_of,
    check_bookkeeping,
    deck_of,
    do,
    lay,
    over,
    played_games,
    random_position,
    snapshot,
    start,
    storage,
)
from spite_env import Game, Rules
from spite_env.record import Recorder
from spite_env.rules import PRESETS
from spite_env.verify import verify

G4A = Rules.g4a()
SET_ASIDE = G4A.replace(recycle="set_aside")
MATCH = G4A.replace(match_points=50)

KEYS = ("payoff", "hands", "sides", "centers", "stock", "set_aside", "turn", "scores")


# -- round trips -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=[*PRESETS, "match"])
def test_a_played_position_comes_back_through_json(rules: Rules) -> None:
    game = played_games(rules, 60, seed=1, most=150)
    positions = [game.position(index) for index in range(60)]
    again = Game.from_positions(rules, json.loads(json.dumps(positions)))
    check_bookkeeping(again)
    assert [again.position(index) for index in range(60)] == positions
    np.testing.assert_array_equal(again.current_player, game.current_player)
    np.testing.assert_array_equal(again.legal_actions(), game.legal_actions())


@given(any_rules(), st.integers(0, 2**32))
def test_any_position_comes_back(rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    positions = [random_position(rules, rng) for _ in range(3)]
    game = Game.from_positions(rules, positions, seed)
    check_bookkeeping(game)
    assert [game.position(index) for index in range(3)] == positions
    assert not over(game).any()
    assert (game.winner == -1).all()
    assert not game.points.any()


def test_a_position_has_all_keys_in_order_and_plain_values() -> None:
    position = Game(SHORT_MATCH).position(0)
    assert tuple(position) == KEYS
    assert json.loads(json.dumps(position)) == position
    assert type(position["turn"]) is int
    assert {type(score) for score in position["scores"]} == {int}


def test_hands_and_cards_set_aside_come_back_sorted() -> None:
    position = start(SET_ASIDE, hand="K3A9", opponent_hand="2AK", set_aside="KT2A").position(0)
    assert position["hands"] == [list("A39K"), list("A2K")]
    assert position["set_aside"] == list("A2TK")


def test_all_other_piles_keep_their_order_bottom_to_top() -> None:
    position = start(G4A, payoff="5A3", sides=["92K", "4"], centers=["A2", "AK3"], stock="T92").position(0)
    assert position["payoff"][0] == list("5A3")
    assert position["sides"][0] == [list("92K"), ["4"], [], []]
    assert position["centers"] == [["A", "2"], ["A", "K", "3"], []]
    assert position["stock"] == list("T92")


def test_a_changed_position_leaves_the_game_alone() -> None:
    game = start(G4A, hand="9", stock="87")
    position = game.position(0)
    before = json.dumps(position)
    position["stock"].append("A")
    position["sides"][0][0].append("A")
    position["centers"][0].append("A")
    position["hands"][0].clear()
    assert json.dumps(game.position(0)) == before


@pytest.mark.parametrize("index", [-1, 3, 100, 1.0, "0", None, True])
def test_the_position_of_a_game_that_does_not_exist_is_refused(index: Any) -> None:
    with pytest.raises(ValueError, match=f"game={index!r} is not allowed; it is an integer from 0 to 2"):
        Game(G4A, 3).position(index)


# -- what may be left out --------------------------------------------------------------------------------------------


def without(position: Position, *keys: str) -> Position:
    return {key: value for key, value in position.items() if key not in keys}


def test_without_a_stock_every_card_that_is_not_named_is_in_it() -> None:
    layouts: list[dict[str, Any]] = [{}, {"hand": "AKK", "sides": ["999", "K"]}, {"set_aside": "AAAAAAAA"}]
    for layout in layouts:
        position = start(SET_ASIDE, **layout).position(0)
        assert cards_of(position) == deck_of(SET_ASIDE)
        assert Counter(position["stock"]) == deck_of(SET_ASIDE) - cards_of(without(position, "stock") | {"stock": []})


def test_the_seed_shuffles_a_stock_that_is_left_out_and_nothing_else_does() -> None:
    stocks = [start(G4A, seed=seed, hand="A").position(0)["stock"] for seed in (1, 1, 2)]
    assert stocks[0] == stocks[1]
    assert stocks[0] != stocks[2]
    assert Counter(stocks[0]) == Counter(stocks[2])
    batch = Game.from_positions(G4A, [lay(G4A), lay(G4A, hand="A"), lay(G4A)], [5, 1, 6])
    assert batch.position(1)["stock"] == stocks[0]


@pytest.mark.parametrize("stock", ["", "A", "99K"])
def test_with_a_stock_cards_that_are_not_named_are_out_of_the_game(stock: str) -> None:
    game = start(G4A, hand="A", stock=stock)
    position = game.position(0)
    assert position["stock"] == list(stock)
    assert cards_of(position).total() == 3 + len(stock)


def test_cards_set_aside_and_scores_may_be_left_out() -> None:
    for rules in (G4A, SET_ASIDE, MATCH):
        position = lay(rules, stock="9")
        assert "scores" not in position
        game = Game.from_positions(rules, [without(position, "set_aside")])
        assert game.position(0)["set_aside"] == []
        assert game.position(0)["scores"] == [0, 0]


def test_a_position_that_is_given_stays_as_it_was() -> None:
    position = lay(G4A, hand="KA", sides=["9"])
    before = json.dumps(position)
    game = Game.from_positions(G4A, [position])
    do(game, "hand>center0", "discard K>side0")
    assert json.dumps(position) == before


def test_piles_may_be_given_as_tuples() -> None:
    position = lay(G4A, hand="KA", stock="9", sides=["92"])
    as_tuples = position | {"hands": (tuple(position["hands"][0]), ()), "stock": ("9",)}
    assert Game.from_positions(G4A, [as_tuples]).position(0) == Game.from_positions(G4A, [position]).position(0)


# -- how a game starts there -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ALL_PRESETS, ids=PRESETS)
def test_a_game_starts_in_mid_turn_without_draw_or_check_and_with_step_0(rules: Rules) -> None:
    rules = rules.replace(max_steps=2)
    game = Game(rules, 2, seed=1)
    players = Players(rules, 2, seed=1)
    game.step(players.choose(game))
    position = lay(rules, payoff="3", opponent_payoff="33", hand="A3", sides=["2"], stock="")
    game.reset([1], positions=[position])
    assert game.state.steps.tolist() == [1, 0]
    shown = game.position(1)
    assert shown["stock"] == []
    assert shown["hands"] == [["A", "3"], []]
    for text in ("hand>center0", "side0>center0"):
        assert not over(game)[1]
        game.step([game.actions.parse(text)], [1])
    assert game.truncated[1]


def test_a_game_from_a_position_with_an_ended_batch_around_it_goes_on() -> None:
    game = Game.from_positions(G4A, [lay(G4A, payoff="A")] * 3)
    game.step([game.actions.parse("payoff>center0")] * 3)
    game.reset([1], positions=[lay(G4A, payoff="A", opponent_payoff="99")])
    assert game.terminated.tolist() == [True, False, True]
    assert game.winner.tolist() == [0, -1, 0]
    game.step([0, 0, 0])
    assert game.points.tolist() == [[1, 0], [2, 0], [1, 0]]


def test_pile_sizes_are_free() -> None:
    game = start(G4A, payoff="9" * 8 + "A" * 8 + "2" * 8, opponent_payoff="3", sides=["5" * 8 + "6" * 8], stock="")
    assert len(game.position(0)["payoff"][0]) == 24
    deck = "".join(card * count for card, count in deck_of(G4A).items())
    game = start(G4A, payoff="K", opponent_payoff="K", sides=[deck[:-2]], stock="")
    assert len(game.position(0)["sides"][0][0]) == 102
    check_bookkeeping(game)


def test_the_next_episode_after_a_position_is_an_ordinary_deal() -> None:
    game = Game.from_positions(G4A, [lay(G4A, hand="9", stock="8")], seed=4)
    game.reset()
    ordinary = Game(G4A, 1, seed=4)
    ordinary.reset()
    assert snapshot(game, 0) == snapshot(ordinary, 0)


def test_a_match_goes_on_from_a_position_with_its_scores_and_the_other_player_starts_next() -> None:
    for mover in PLAYERS:
        game = start(MATCH, mover=mover, payoff="A", opponent_payoff="99", scores=(3, 4))
        position = do(game, "payoff>center0")
        assert position["scores"] == ([5, 4] if mover == 0 else [4, 5])
        assert position["turn"] == 1 - mover


# -- impossible positions --------------------------------------------------------------------------------------------

BASE = lay(SET_ASIDE, hand="A2", opponent_hand="34", sides=["5"], centers=["A2"], stock="99") | {"scores": [0, 0]}


def base(**changes: Any) -> Position:
    return BASE | changes


EMPTY_SIDES = [[], [], [], []]

IMPOSSIBLE: list[tuple[Rules, Any, str]] = [
    # keys
    (SET_ASIDE, base(deck=[]), "unknown key 'deck'"),
    (SET_ASIDE, base(Stock=[]), "unknown key 'Stock'"),
    (SET_ASIDE, base() | {3: []}, "unknown key 3"),
    *(
        (SET_ASIDE, without(BASE, key), f"'{key}' is missing")
        for key in ("payoff", "hands", "sides", "centers", "turn")
    ),
    (SET_ASIDE, [], r"\[\] is no dict"),
    (SET_ASIDE, None, "None is no dict"),
    (SET_ASIDE, "position", "'position' is no dict"),
    # how many piles
    (SET_ASIDE, base(payoff=[["9"]]), "payoff must be a list of 2"),
    (SET_ASIDE, base(payoff=[["9"], ["9"], ["9"]]), "payoff must be a list of 2"),
    (SET_ASIDE, base(hands=[]), "hands must be a list of 2"),
    (SET_ASIDE, base(hands=[[], [], []]), "hands must be a list of 2"),
    (SET_ASIDE, base(sides=[EMPTY_SIDES]), "sides must be a list of 2"),
    (SET_ASIDE, base(sides=[EMPTY_SIDES, [[], [], []]]), "sides of player 1 must be a list of 4"),
    (SET_ASIDE, base(sides=[[[], [], [], [], []], EMPTY_SIDES]), "sides of player 0 must be a list of 4"),
    (SET_ASIDE, base(centers=[[], []]), "centers must be a list of 3"),
    (SET_ASIDE, base(centers=[[], [], [], []]), "centers must be a list of 3"),
    (SET_ASIDE, base(centers="AAA"), "centers must be a list of 3"),
    (SET_ASIDE, base(hands={"0": [], "1": []}), "hands must be a list of 2"),
    (SET_ASIDE, base(hands=None), "hands must be a list of 2"),
    (SET_ASIDE, base(scores=[0]), "scores must be a list of 2"),
    (SET_ASIDE, base(scores=0), "scores must be a list of 2"),
    (SET_ASIDE, base(sides=[EMPTY_SIDES, 4]), "sides of player 1 must be a list of 4"),
    # cards
    (SET_ASIDE, base(hands=[["X"], []]), "'X' in hands 0 is no card; the cards are A 2 3"),
    (SET_ASIDE, base(hands=[[], ["10"]]), "'10' in hands 1 is no card"),
    (SET_ASIDE, base(hands=[[], ["k"]]), "'k' in hands 1 is no card"),
    (SET_ASIDE, base(hands=[[], [""]]), "'' in hands 1 is no card"),
    (SET_ASIDE, base(hands=[[], ["1"]]), "'1' in hands 1 is no card"),
    (SET_ASIDE, base(hands=[[5], []]), "5 in hands 0 is no card"),
    (SET_ASIDE, base(hands=[[None], []]), "None in hands 0 is no card"),
    (SET_ASIDE, base(hands=[[["A"]], []]), r"\['A'\] in hands 0 is no card"),
    (SET_ASIDE, base(payoff=[["9"], ["Z"]]), "'Z' in payoff 1 is no card"),
    (SET_ASIDE, base(stock=["A", "Z"]), "'Z' in stock is no card"),
    (SET_ASIDE, base(set_aside=["Z"]), "'Z' in set_aside is no card"),
    (SET_ASIDE, base(centers=[[], ["Z"], []]), "'Z' in centers 1 is no card"),
    (SET_ASIDE, base(sides=[EMPTY_SIDES, [[], ["Z"], [], []]]), "'Z' in sides of player 1 1 is no card"),
    (SET_ASIDE, base(stock="A2"), "stock must be a list of cards"),
    (SET_ASIDE, base(stock=None), "stock must be a list of cards"),
    (SET_ASIDE, base(stock=3), "stock must be a list of cards"),
    (SET_ASIDE, base(set_aside={"A": 1}), "set_aside must be a list of cards"),
    (SET_ASIDE, base(hands=["A2", []]), "hands 0 must be a list of cards"),
    (Rules.mini(), lay(Rules.mini(), hand="4"), "'4' in hands 0 is no card; the cards are A 2 3 K"),
    # too many of them
    (SET_ASIDE, base(stock=["9"] * 7), "9 cards '9' are named; the deck has 8"),
    (SET_ASIDE, base(stock=["K"] * 9), "9 cards 'K' are named; the deck has 8"),
    (SET_ASIDE, base(set_aside=["A"] * 7), "9 cards 'A' are named; the deck has 8"),
    (SET_ASIDE, without(base(set_aside=["A"] * 7), "stock"), "9 cards 'A' are named; the deck has 8"),
    (Rules.mini(), lay(Rules.mini(), hand="KK", sides=["K"]), "3 cards 'K' are named; the deck has 2"),
    (SET_ASIDE, base(hands=[["A"] * 6, []]), "hand of player 0 holds 6 cards; at most hand_size=5"),
    (SET_ASIDE, base(hands=[[], ["A"] * 6]), "hand of player 1 holds 6 cards; at most hand_size=5"),
    (SET_ASIDE, base(payoff=[[], ["9"]]), "pay-off pile of player 0 is empty"),
    (SET_ASIDE, base(payoff=[["9"], []]), "pay-off pile of player 1 is empty"),
    # centre piles
    (
        SET_ASIDE,
        base(centers=[["2"], [], []]),
        "centre pile 0 is out of order: '2' at place 0, where 'A' or 'K' belongs",
    ),
    (SET_ASIDE, base(centers=[[], ["A", "2", "4"], []]), "centre pile 1 is out of order: '4' at place 2"),
    (SET_ASIDE, base(centers=[[], [], ["K", "A"]]), "centre pile 2 is out of order: 'A' at place 1"),
    (SET_ASIDE, base(centers=[[], [], list("AA")]), "centre pile 2 is out of order: 'A' at place 1"),
    (SET_ASIDE, base(centers=[list("A23456789TJQ"), [], []]), "centre pile 0 has 12 cards; it is complete at 12"),
    (SET_ASIDE, base(centers=[list("A23456789TJK"), [], []]), "centre pile 0 has 12 cards; it is complete at 12"),
    (SET_ASIDE, base(centers=[list("A23456789TJQK"), [], []]), "centre pile 0 has 13 cards"),
    (Rules.mini(), lay(Rules.mini(), centers=["", "A23"]), "centre pile 1 has 3 cards; it is complete at 3"),
    # set aside
    (G4A, lay(G4A, set_aside="A"), "set aside only with recycle='set_aside', not with 'shuffle'"),
    (
        G4A.replace(recycle="bottom"),
        lay(G4A, set_aside="A"),
        "set aside only with recycle='set_aside', not with 'bottom'",
    ),
    # turn
    *(
        (SET_ASIDE, base(turn=turn), "turn=.* is not allowed; it is 0 or 1")
        for turn in (2, -1, True, None, "0", 1.0, [0])
    ),
    # scores
    (SET_ASIDE, base(scores=[1, 0]), "scores=.* is not allowed; .* without match_points there are no scores"),
    (MATCH, lay(MATCH, scores=(50, 0)), "scores=.* is not allowed; each is an integer from 0 to 49"),
    (MATCH, lay(MATCH, scores=(0, 51)), "scores=.* is not allowed; each is an integer from 0 to 49"),
    (MATCH, lay(MATCH) | {"scores": [-1, 0]}, "scores=.* is not allowed"),
    (MATCH, lay(MATCH) | {"scores": [1.0, 0]}, "scores=.* is not allowed"),
    (MATCH, lay(MATCH) | {"scores": [True, 0]}, "scores=.* is not allowed"),
    (MATCH, lay(MATCH) | {"scores": ["1", 0]}, "scores=.* is not allowed"),
]


def test_the_base_of_the_impossible_positions_is_possible() -> None:
    assert Game.from_positions(SET_ASIDE, [BASE]).position(0) == BASE


@pytest.mark.parametrize(("rules", "position", "message"), IMPOSSIBLE)
def test_an_impossible_position_is_refused_by_name_and_changes_nothing(
    rules: Rules, position: Any, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        Game.from_positions(rules, [position])

    game = Game(rules, 3, seed=1)
    players = Players(rules, 3, seed=1)
    game.step(players.choose(game))
    before = storage(game)
    with pytest.raises(ValueError, match=message):
        game.reset([2], positions=[position])
    with pytest.raises(ValueError, match=message):
        game.reset(seed=5, positions=[lay(rules), lay(rules), position])
    assert storage(game) == before


def test_the_message_names_the_first_impossible_position_of_several() -> None:
    with pytest.raises(ValueError, match="position 1: turn=7"):
        Game.from_positions(G4A, [lay(G4A), lay(G4A) | {"turn": 7}, lay(G4A) | {"turn": 8}])


@pytest.mark.parametrize("positions", [[], [lay(G4A)], [lay(G4A)] * 3, lay(G4A), "ab"])
def test_not_one_position_for_each_game_is_refused(positions: Any) -> None:
    game = Game(G4A, 2, seed=1)
    before = storage(game)
    with pytest.raises(ValueError, match="positions must be a list of 2, one for each game"):
        game.reset(positions=positions)
    assert storage(game) == before


# -- smaller pay-off piles -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", ALL_PRESETS, ids=list(PRESETS))
def test_smaller_payoff_piles_bury_what_lies_below_under_the_stock(rules: Rules) -> None:
    most = rules.payoff_size
    sizes = np.arange(40) % most + 1
    game, ordinary = Game(rules, 40, seed=3), Game(rules, 40, seed=3)
    records: list[dict[str, Any]] = []
    with Recorder(game, ("one", "two"), records.append):
        game.reset(seed=3, payoff_sizes=sizes)
        players = Players(rules, 40, seed=3)
        for index, size in enumerate(sizes.tolist()):
            wanted = ordinary.position(index)
            piles = wanted["payoff"]
            wanted["payoff"] = [pile[-size:] for pile in piles]
            wanted["stock"] = piles[0][:-size] + piles[1][:-size] + wanted["stock"]
            assert game.position(index) == wanted
        check_bookkeeping(game)
        while not over(game).all():
            game.step(players.choose(game))
    for record in records:
        verify(record)
    game.reset([1], payoff_sizes=1)
    assert [len(pile) for pile in game.position(1)["payoff"]] == [1, 1]


@pytest.mark.parametrize(
    ("rules", "options", "message"),
    [
        (G4A, {"payoff_sizes": 0}, "payoff_sizes=0 is not allowed; a size is from 1 to 20"),
        (G4A, {"payoff_sizes": [3, 21]}, "payoff_sizes=21"),
        (G4A, {"payoff_sizes": [3]}, "one or 2, got int64 of shape"),
        (G4A, {"payoff_sizes": 1.5}, "got float64"),
        (G4A, {"payoff_sizes": True}, "got bool"),
        (G4A, {"payoff_sizes": 3, "positions": [lay(G4A)] * 2}, "exclude each other"),
        (MATCH, {"payoff_sizes": 3}, "match_points must be None"),
    ],
)
def test_impossible_payoff_sizes_are_refused_and_change_nothing(
    rules: Rules, options: dict[str, Any], message: str
) -> None:
    game = Game(rules, 2, seed=1)
    before = storage(game)
    with pytest.raises(ValueError, match=message):
        game.reset(**options)
    assert storage(game) == before
