"""The numbers and words of a variant, and which of them are refused."""

from __future__ import annotations

import copy
import dataclasses
import json
import pickle
import re
from typing import Any

import numpy as np
import pytest
from hypothesis import given

from helpers import ALL_PRESETS, any_rules
from spite_env import Game, Rules, spite_and_malice_v0
from spite_env.rules import PRESETS

DEFAULTS = {
    "ranks": 12,
    "copies": 8,
    "wilds": 8,
    "payoff_size": 20,
    "hand_size": 5,
    "side_piles": 4,
    "center_piles": 3,
    "refill_mid_turn": False,
    "recycle": "shuffle",
    "stock_end": "empty",
    "first_player": 0,
    "match_points": None,
    "max_games": 100,
    "max_steps": 5000,
}

CLASSIC = {
    "center_piles": 4,
    "refill_mid_turn": True,
    "recycle": "set_aside",
    "stock_end": "short",
    "first_player": "higher_payoff",
}

SKIP_BO = {
    "copies": 12,
    "wilds": 18,
    "payoff_size": 30,
    "center_piles": 4,
    "refill_mid_turn": True,
    "recycle": "set_aside",
    "stock_end": "short",
}

MINI = {"ranks": 3, "copies": 4, "wilds": 2, "payoff_size": 2, "hand_size": 2, "side_piles": 1, "center_piles": 2}


@pytest.mark.parametrize(("name", "changes"), [("g4a", {}), ("classic", CLASSIC), ("skip_bo", SKIP_BO), ("mini", MINI)])
def test_a_preset_is_the_default_but_for_its_changes(name: str, changes: dict[str, Any]) -> None:
    rules = Rules.preset(name)
    assert rules.to_dict() == DEFAULTS | changes
    assert rules == getattr(Rules, name)()
    assert rules == Rules(**changes)
    assert name in PRESETS


def test_the_default_is_g4a_with_two_52_card_decks() -> None:
    assert Rules() == Rules.g4a()
    assert Rules().num_cards == 104
    assert Rules().deck == (8,) * 13
    assert Rules().kinds == 13
    assert Rules().characters == "A23456789TJQK"


def test_every_preset_has_a_name_and_an_unknown_one_is_refused_with_the_known_ones() -> None:
    assert PRESETS == ("g4a", "classic", "skip_bo", "mini")
    for name in ("uno", "", "G4A", "preset", "to_dict", "__init__"):
        with pytest.raises(
            ValueError, match=f"unknown rules preset '{name}'; the presets are g4a, classic, skip_bo, mini"
        ):
            Rules.preset(name)


def test_with_fewer_ranks_the_king_stays_k() -> None:
    assert Rules.mini().characters == "A23K"
    assert Rules.mini().deck == (4, 4, 4, 2)
    assert Rules(ranks=1, copies=60).characters == "AK"


@given(any_rules())
def test_rules_survive_json_pickling_copying_and_replacing_nothing(rules: Rules) -> None:
    assert Rules.from_dict(json.loads(json.dumps(rules.to_dict()))) == rules
    assert list(rules.to_dict()) == list(DEFAULTS)
    assert pickle.loads(pickle.dumps(rules)) == rules
    assert copy.deepcopy(rules) == rules
    assert hash(copy.deepcopy(rules)) == hash(rules)
    assert rules.replace() == rules
    assert sum(rules.deck) == rules.num_cards
    assert len(rules.deck) == len(rules.characters) == rules.kinds


@given(any_rules())
def test_rules_survive_resets_and_pickling_of_a_game(rules: Rules) -> None:
    game = Game(rules, 2, seed=1)
    game.reset(seed=3)
    game.reset()
    assert game.rules == rules
    assert game.copy().rules == pickle.loads(pickle.dumps(game)).rules == rules


def test_fields_that_are_left_out_take_their_defaults() -> None:
    assert Rules.from_dict({}) == Rules()
    assert Rules.from_dict({"copies": 9, "recycle": "bottom"}) == Rules(copies=9, recycle="bottom")


def test_replacing_changes_a_copy() -> None:
    rules = Rules.classic()
    assert rules.replace(hand_size=7) == Rules(**CLASSIC, hand_size=7)
    assert rules == Rules.classic()


def test_rules_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Rules().ranks = 3  # type: ignore[misc]


@pytest.mark.parametrize("change", [{"rank": 12}, {"seed": 1}, {"": 1}, {"Copies": 8}])
def test_an_unknown_field_is_refused_with_the_known_ones(change: dict[str, Any]) -> None:
    for build in (Rules.from_dict, lambda values: Rules().replace(**values)):
        with pytest.raises(
            ValueError, match=r"unknown rules field '.*'; the fields are ranks, copies, wilds, .*max_steps"
        ):
            build(change)


def test_numbers_of_numpy_become_plain_ones() -> None:
    rules = Rules(ranks=np.int64(3), copies=np.uint8(20), first_player=np.int32(1), recycle=np.str_("bottom"))
    assert type(rules.ranks) is type(rules.copies) is type(rules.first_player) is int
    assert type(rules.recycle) is str
    assert json.dumps(rules.to_dict())


# -- refused values --------------------------------------------------------------------------------------------------

NUMBERS = {
    "ranks": (1, 12),
    "copies": (0, 255),
    "wilds": (0, 255),
    "payoff_size": (1, 255),
    "hand_size": (1, 255),
    "side_piles": (1, 255),
    "center_piles": (1, 255),
    "match_points": (1, 255),
    "max_games": (1, 65_535),
    "max_steps": (1, 2**31 - 1),
}

WORDS: dict[str, tuple[Any, ...]] = {
    "refill_mid_turn": (False, True),
    "recycle": ("shuffle", "bottom", "set_aside"),
    "stock_end": ("empty", "short"),
    "first_player": (0, 1, "random", "higher_payoff"),
}


def test_every_field_is_either_a_number_or_a_word() -> None:
    assert {*NUMBERS, *WORDS} == set(DEFAULTS)


@pytest.mark.parametrize("field", NUMBERS)
def test_a_number_out_of_range_or_of_another_type_is_refused_by_name_with_the_range(field: str) -> None:
    least, most = NUMBERS[field]
    wrong = [least - 1, -5, most + 1, 10**30, 1.5, float(least), float("nan"), "5", "", True, False, [3], {}, (), 1j]
    if field != "match_points":
        wrong.append(None)
    for value in wrong:
        with pytest.raises(ValueError, match=re.escape(f"{field}={value!r} is not allowed")) as caught:
            Rules(**{field: value})
        message = str(caught.value)
        assert f"an integer from {least} to {most}" in message
        assert ("or None" in message) == (field == "match_points")


@pytest.mark.parametrize("field", WORDS)
def test_an_unknown_word_is_refused_by_name_with_the_known_ones(field: str) -> None:
    allowed = WORDS[field]
    wrong: list[Any] = ["", "Shuffle", "none", None, 2, -1, 0.5, [], "0", "True", "empty ", b"short"]
    wrong += [0, 1] if field != "first_player" else [True, False]
    for value in wrong:
        with pytest.raises(ValueError, match=re.escape(f"{field}={value!r} is not allowed")) as caught:
            Rules(**{field: value})
        message = str(caught.value)
        assert ", ".join(map(repr, allowed)) in message


@pytest.mark.parametrize("field", WORDS)
def test_every_known_word_is_taken(field: str) -> None:
    for value in WORDS[field]:
        assert getattr(Rules(**{field: value}), field) is value


@pytest.mark.parametrize(
    "change",
    [
        {"copies": 0, "wilds": 0},
        {"copies": 3, "wilds": 14},
        {"payoff_size": 47},
        {"payoff_size": 200},
        {"hand_size": 32},
        {"copies": 4, "wilds": 2},
        {"copies": 20, "wilds": 16},
        {"copies": 0, "wilds": 50},
        {"ranks": 1},
        {"copies": 21, "wilds": 4},
    ],
)
def test_a_deck_that_leaves_no_stock_or_is_too_large_is_refused_with_its_numbers(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="is impossible") as caught:
        Rules(**change)
    message = str(caught.value)
    values = DEFAULTS | change
    for field in ("ranks", "copies", "wilds", "payoff_size", "hand_size"):
        assert f"{field}={values[field]}" in message
    assert str(2 * (values["payoff_size"] + values["hand_size"])) in message
    assert "255" in message


def test_the_smallest_and_the_largest_deck_are_taken() -> None:
    assert Rules(copies=4, wilds=3).num_cards == 51
    assert Rules(copies=20, wilds=15).num_cards == 255
    assert Rules(ranks=1, copies=0, wilds=5, payoff_size=1, hand_size=1).num_cards == 5


@pytest.mark.parametrize("change", [{"wilds": 60, "copies": 0}, {"ranks": 1, "copies": 60, "wilds": 0}])
def test_a_deck_in_which_no_two_pay_off_tops_can_differ_cannot_say_who_starts(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="first_player='higher_payoff' needs a deck with two kinds"):
        Rules(first_player="higher_payoff", **change)
    assert not Game(Rules(**change)).terminated.any()


def test_more_match_points_than_can_be_stored_are_refused_with_what_is_allowed() -> None:
    assert Rules(match_points=152).match_points == 152
    with pytest.raises(ValueError, match="match_points=153 is not allowed: with 104 cards it is None or at most 152"):
        Rules(match_points=153)


@pytest.mark.parametrize("number", [0, -1, 1.0, "3", True, None])
def test_a_number_of_games_that_is_no_positive_integer_is_refused(number: Any) -> None:
    with pytest.raises(ValueError, match=r"num_games=.* is not allowed; it is an integer of 1 or more"):
        Game(Rules.mini(), number)


def test_a_game_without_rules_plays_the_default() -> None:
    assert Game().rules == Rules()
    assert ALL_PRESETS[0] == Rules()


def test_rules_are_given_by_the_name_of_a_preset_too() -> None:
    assert Game("mini").rules == spite_and_malice_v0.raw_env("mini").rules == Rules.mini()
    with pytest.raises(ValueError, match="unknown rules preset 'maxi'; the presets are g4a, classic"):
        Game("maxi")
    with pytest.raises(ValueError, match="rules=3 are not allowed"):
        Game(3)  # type: ignore[arg-type]
