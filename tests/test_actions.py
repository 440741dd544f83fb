"""The numbering of actions and their texts."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import given

from helpers import ALL_PRESETS, any_rules
from spite_env import ActionTable, Game, Rules


@given(any_rules())
def test_every_action_has_the_number_of_the_documented_formula(rules: Rules) -> None:
    table = ActionTable(rules)
    centers, sides, kinds = rules.center_piles, rules.side_piles, rules.kinds
    names = ["payoff", *(f"side{side}" for side in range(sides)), "hand", "wild"]
    for center in range(centers):
        for source, name in enumerate(names):
            number = center * (sides + 3) + source
            assert table.text(number) == f"{name}>center{center}"
            assert table.play(center, source) == number
    for rank, card in enumerate(rules.characters):
        for side in range(sides):
            number = centers * (sides + 3) + rank * sides + side
            assert table.text(number) == f"discard {card}>side{side}"
            assert table.discard(rank, side) == number
    assert table.n == centers * (sides + 3) + kinds * sides + 1
    assert table.text(table.n - 1) == "end_turn"
    assert table.end_turn == table.n - 1
    assert table.num_plays == centers * (sides + 3)
    assert table.num_sources == sides + 3


def test_the_default_has_74_actions() -> None:
    assert ActionTable(Rules()).n == 74
    assert Game().actions.n == Game().legal_actions().shape[1] == 74


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0, "payoff>center0"),
        (1, "side0>center0"),
        (5, "hand>center0"),
        (6, "wild>center0"),
        (7, "payoff>center1"),
        (10, "side2>center1"),
        (20, "wild>center2"),
        (21, "discard A>side0"),
        (48, "discard 7>side3"),
        (57, "discard T>side0"),
        (72, "discard K>side3"),
        (73, "end_turn"),
    ],
)
def test_known_numbers_and_texts_of_the_default(number: int, text: str) -> None:
    assert ActionTable(Rules()).text(number) == text
    assert ActionTable(Rules()).parse(text) == number


@given(any_rules())
def test_texts_are_all_different_and_parse_to_their_number(rules: Rules) -> None:
    table = ActionTable(rules)
    texts = [table.text(number) for number in range(table.n)]
    assert len(set(texts)) == table.n
    assert [table.parse(text) for text in texts] == list(range(table.n))


@pytest.mark.parametrize("rules", ALL_PRESETS)
def test_a_number_out_of_range_is_refused_with_the_range(rules: Rules) -> None:
    table = ActionTable(rules)
    wrong: list[Any] = [-1, table.n, 10**9, 1.0, "0", None, True]
    for number in wrong:
        with pytest.raises(
            ValueError, match=f"action={number!r} is not allowed; it is an integer from 0 to {table.n - 1}"
        ):
            table.text(number)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "payoff",
        "payoff>center3",
        "payoff>side0",
        "Payoff>center0",
        "payoff > center0",
        " payoff>center0",
        "payoff>center0 ",
        "payoff>center00",
        "side4>center0",
        "side-1>center0",
        "side>center0",
        "hand 7>center0",
        "king>center0",
        "discard 7>side4",
        "discard 10>side0",
        "discard k>side0",
        "discard >side0",
        "discard7>side0",
        "discard 7>center0",
        "end turn",
        "end_turn>center0",
        "0",
    ],
)
def test_a_text_that_is_no_action_is_refused_with_the_forms(text: str) -> None:
    with pytest.raises(ValueError, match=f"{re.escape(repr(text))} is no action") as caught:
        ActionTable(Rules()).parse(text)
    message = str(caught.value)
    for form in ("payoff>center0", "side0>center0", "hand>center0", "wild>center0", "discard A>side0", "end_turn"):
        assert form in message
    assert "0 to 2" in message
    assert "0 to 3" in message
    assert "A23456789TJQK" in message


@pytest.mark.parametrize(
    ("rules", "text"), [(Rules.mini(), "discard 4>side0"), (Rules.mini(), "side1>center0"), (Rules(), "payoff>center3")]
)
def test_what_a_variant_does_not_have_is_no_action_of_it(rules: Rules, text: str) -> None:
    with pytest.raises(ValueError, match="is no action"):
        ActionTable(rules).parse(text)
    assert ActionTable(Rules.classic()).parse(text) >= 0


@pytest.mark.parametrize("action", [0, 73, 74, -1])
def test_an_illegal_step_names_the_action_the_game_and_all_legal_actions(action: int) -> None:
    positions: list[dict[str, Any]] = [Game().position(0), Game(seed=1).position(0)]
    positions[1]["hands"][0] = ["A"]
    positions[1]["payoff"][0][-1] = "9"
    positions[1]["stock"] = []
    positions[1]["centers"] = [["A"], ["A"], []]
    game = Game.from_positions(Rules(), [positions[1]])
    name = f"{action} ({game.actions.text(action)})" if 0 <= action < 74 else str(action)
    legal = "19 (hand>center2), 21 (discard A>side0), 22 (discard A>side1), 23 (discard A>side2), 24 (discard A>side3)"
    known = "" if 0 <= action < 74 else " (actions are 0 to 73)"
    message = f"action {name} is not legal in game 0{known}; the legal actions are {legal}"
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        game.step([action])


@given(any_rules())
def test_description_has_every_action_in_its_place(rules: Rules) -> None:
    table = ActionTable(rules)
    _, _, *rows = table.describe().splitlines()
    assert len(rows) == rules.center_piles + rules.kinds + 1
    places = [re.match(r"\| (\d+):(\d+) \|", row) for row in rows]
    numbers = [range(*map(int, place.groups())) for place in places if place]
    listed = [re.findall(r"`(.*?)`", row) for row in rows]
    assert [[table.parse(text) for text in texts] for texts in listed] == list(map(list, numbers))
    assert [number for place in numbers for number in place] == list(range(table.n))
