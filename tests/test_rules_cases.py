"""How the game goes: every rule, and every fault that other implementations of it were known for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import (
    ALL_PRESETS,
    PLAYERS,
    SHORT_MATCH,
    EventLog,
    Players,
    Position,
    check_bookkeeping,
    chi_square,
    chi_square_limit,
    count_cards,
    deck_of,
    do,
    heap,
    lay,
    legal_texts,
    over,
    start,
)
from spite_env import Game, Rules
from spite_env.policies import make_policy
from spite_env.rules import PRESETS

G4A = Rules.g4a()
BOTH_PLAYERS = pytest.mark.parametrize("mover", PLAYERS)
EVERY_PRESET = pytest.mark.parametrize("rules", ALL_PRESETS, ids=PRESETS)
EVERY_RECYCLE = pytest.mark.parametrize("recycle", ["shuffle", "bottom", "set_aside"])
EVERY_STOCK_END = pytest.mark.parametrize("stock_end", ["empty", "short"])


def ended_without_winner(game: Game) -> bool:
    return bool(game.terminated[0]) and game.winner[0] == -1 and game.points[0].tolist() == [0, 0]


def result(game: Game) -> tuple[bool, bool, int, list[int]]:
    return bool(game.terminated[0]), bool(game.truncated[0]), int(game.winner[0]), game.points[0].tolist()


def won_by(mover: int, points: int) -> tuple[bool, bool, int, list[int]]:
    return True, False, mover, [points, 0] if mover == 0 else [0, points]


GOES_ON = (False, False, -1, [0, 0])
DRAW = (True, False, -1, [0, 0])
TRUNCATED = (False, True, -1, [0, 0])


@EVERY_PRESET
def test_what_a_batch_shows_has_one_row_for_each_game_and_its_types(rules: Rules) -> None:
    for count in (1, 6):
        game = Game(rules, count, seed=1)
        players = Players(rules, count, seed=1)
        for _ in range(3):
            assert game.current_player.shape == game.winner.shape == (count,)
            assert game.current_player.dtype.kind == "i"
            assert game.winner.dtype == np.int8
            assert game.points.shape == (count, 2)
            assert game.points.dtype == np.int16
            for flags in (game.terminated, game.truncated):
                assert flags.shape == (count,)
                assert flags.dtype == np.bool_
            mask, observation = game.legal_actions(), game.observe()
            assert mask.shape == (count, game.actions.n)
            assert mask.dtype == np.bool_
            assert not mask.flags.writeable
            assert observation.shape == (count, game.observation.n)
            assert observation.dtype == np.uint8
            game.step(players.choose(game))


# -- the deal --------------------------------------------------------------------------------------------------------


@EVERY_PRESET
def test_a_deal_is_the_whole_deck_in_full_pay_off_piles_full_hands_and_the_stock(rules: Rules) -> None:
    game = Game(rules, 50, seed=1)
    np.testing.assert_array_equal(count_cards(game), np.repeat(np.array(rules.deck)[:, None], 50, axis=1))
    for index in range(50):
        position = game.position(index)
        assert [len(pile) for pile in position["payoff"]] == [rules.payoff_size] * 2
        assert [len(hand) for hand in position["hands"]] == [rules.hand_size] * 2
        assert len(position["stock"]) == rules.num_cards - 2 * (rules.payoff_size + rules.hand_size)
        assert position["sides"] == [[[]] * rules.side_piles] * 2
        assert position["centers"] == [[]] * rules.center_piles
        assert position["set_aside"] == []
        assert position["scores"] == [0, 0]


def test_the_default_stock_has_54_cards() -> None:
    assert len(Game().position(0)["stock"]) == 54


@EVERY_STOCK_END
def test_the_first_turn_has_neither_refill_nor_stock_check(stock_end: str) -> None:
    rules = Rules(ranks=3, copies=3, wilds=0, payoff_size=2, hand_size=2, stock_end=stock_end)
    game = Game(rules, 20, seed=1)
    assert not over(game).any()
    assert (game.state.stock_size == 1).all()
    assert game.legal_actions().any(axis=1).all()


def test_the_other_player_starts_with_a_refill_and_a_check() -> None:
    rules = Rules(ranks=3, copies=3, wilds=0, payoff_size=2, hand_size=2)
    game = Game(rules, 1, seed=1)
    position = game.position(0)
    position = do(game, f"discard {position['hands'][0][0]}>side0")
    assert position["turn"] == 1
    assert result(game) == GOES_ON, "its hand is full and the stock has a card left"
    position = do(game, f"discard {position['hands'][1][0]}>side0")
    assert len(position["hands"][0]) == 2
    assert result(game) == DRAW


@pytest.mark.parametrize("first", PLAYERS)
def test_a_named_first_player_starts_every_game(first: int) -> None:
    game = Game(Rules(first_player=first), 200, seed=1)
    assert (game.current_player == first).all()
    game.reset()
    assert (game.current_player == first).all()


def test_a_random_first_player_is_each_as_often_and_independent_of_the_deal() -> None:
    game = Game(Rules(first_player="random"), 20_000, seed=2)
    counts = np.zeros((2, G4A.kinds))
    np.add.at(counts, (game.current_player, game.state.pile_top[0, 0] - 1), 1)
    assert abs(counts[1].sum() - 10_000) < 5 * np.sqrt(20_000) / 2
    expected = counts.sum(axis=1, keepdims=True) * counts.sum(axis=0) / counts.sum()
    assert chi_square(counts, expected) < chi_square_limit(G4A.kinds - 1)


def test_the_higher_payoff_card_starts_kings_high_and_ties_are_dealt_anew() -> None:
    for rules in (Rules.classic(), Rules.mini().replace(first_player="higher_payoff")):
        game = Game(rules, 3000, seed=3)
        tops = game.state.pile_top[:, 0].astype(int)
        assert (tops[0] != tops[1]).all()
        np.testing.assert_array_equal(game.current_player, tops[1] > tops[0])
        kings = tops == rules.kinds
        assert kings.any(axis=1).all()
        assert (game.current_player[kings[0]] == 0).all()
        assert (game.current_player[kings[1]] == 1).all()


# -- what fits where -------------------------------------------------------------------------------------------------


@BOTH_PLAYERS
@EVERY_PRESET
def test_exactly_the_next_rank_and_kings_fit_from_every_source_at_every_height(rules: Rules, mover: int) -> None:
    positions, expected = [], []
    for height in range(rules.ranks):
        for card in rules.characters:
            sources = {
                "payoff": {"payoff": card},
                **{f"side{side}": {"sides": [""] * side + [card]} for side in range(rules.side_piles)},
                "wild" if card == "K" else "hand": {"hand": card},
            }
            for center in range(rules.center_piles):
                centers = [""] * center + [heap(rules, height)]
                for source, layout in sources.items():
                    positions.append(lay(rules, mover=mover, centers=centers, stock="", **layout))
                    expected.append((f"{source}>center{center}", card in ("K", rules.characters[height])))
    game = Game.from_positions(rules, positions)
    legal = game.legal_actions()
    for row, (text, fits) in zip(legal, expected, strict=True):
        assert row[game.actions.parse(text)] == fits


@BOTH_PLAYERS
@pytest.mark.parametrize("heights", [(0, 3, 9), (9, 0, 3), (0, 0, 0), (1, 1, 11), (11, 4, 6)])
def test_a_natural_card_fits_exactly_the_piles_that_wait_for_it(heights: tuple[int, ...], mover: int) -> None:
    centers = [heap(G4A, height) for height in heights]
    for rank, card in enumerate(G4A.characters[:-1]):
        game = start(G4A, mover=mover, payoff=card, hand=card, sides=["", "", card], centers=centers)
        waiting = [center for center, height in enumerate(heights) if height == rank]
        expected = {f"{source}>center{center}" for center in waiting for source in ("payoff", "side2", "hand")}
        discards = {f"discard {card}>side{side}" for side in range(4)}
        assert legal_texts(game) == expected | discards


@BOTH_PLAYERS
@pytest.mark.parametrize("heights", [(0, 4, 7), (11, 0, 5), (0, 0, 0), (11, 11, 10)])
def test_a_king_fits_every_pile_from_every_source(heights: tuple[int, ...], mover: int) -> None:
    centers = [heap(G4A, height) for height in heights]
    game = start(G4A, mover=mover, payoff="9K", hand="K", sides=["K", "3K"], centers=centers)
    expected = {f"{source}>center{center}" for center in range(3) for source in ("payoff", "side0", "side1", "wild")}
    assert legal_texts(game) == expected | {f"discard K>side{side}" for side in range(4)}


@pytest.mark.parametrize(
    "pile", ["A2KK", "KKK", "K", "A23456789TK", "KKKKKKKK9TJ", "AK3K5K7K9KJ", "A2K4567", "KKKKKKKK", "K23456789TJ"]
)
def test_every_card_on_a_pile_counts_as_the_rank_of_its_place(pile: str) -> None:
    wanted = G4A.characters[len(pile)]
    wilds = Counter(pile)["K"]
    for card in G4A.characters[:-1]:
        game = start(G4A, hand=card, payoff=card, sides=[card], centers=[pile, heap(G4A, 11), heap(G4A, 11)])
        plays = {text for text in legal_texts(game) if text.endswith(">center0")}
        assert plays == ({"hand>center0", "payoff>center0", "side0>center0"} if card == wanted else set())
        if card == wanted:
            assert do(game, "hand>center0")["centers"][0] == ([*pile, card] if len(pile) < 11 else [])
    if wilds < 8:
        game = start(G4A, hand="K9", centers=[pile])
        assert do(game, "wild>center0")["centers"][0] == ([*pile, "K"] if len(pile) < 11 else [])


def test_kings_go_several_in_a_row_and_the_pile_goes_on_by_its_height() -> None:
    game = start(G4A, hand="KKK45", centers=["", "A"])
    position = do(game, "wild>center0", "wild>center0", "wild>center0")
    assert position["centers"][0] == ["K", "K", "K"]
    assert "hand>center0" in legal_texts(game)
    position = do(game, "hand>center0")
    assert position["centers"][0] == ["K", "K", "K", "4"]
    position = do(game, "hand>center0")
    assert position["centers"][0] == ["K", "K", "K", "4", "5"]
    assert position["hands"][0] == []


def test_only_the_top_card_of_a_pile_can_be_played() -> None:
    game = start(G4A, payoff="A9", sides=["A5", "A", "5A"], hand="7")
    plays = {text for text in legal_texts(game) if ">center" in text}
    assert plays == {f"side{side}>center{center}" for side in (1, 2) for center in range(3)}
    position = do(game, "side1>center2")
    assert position["sides"][0] == [["A", "5"], [], ["5", "A"], []]


@BOTH_PLAYERS
def test_no_card_of_the_opponent_can_be_played(mover: int) -> None:
    game = start(
        G4A, mover=mover, hand="9", payoff="9", opponent_payoff="A", opponent_hand="AK", opponent_sides=["A", "K"]
    )
    assert legal_texts(game) == {f"discard 9>side{side}" for side in range(4)}


def test_with_fewer_ranks_the_king_is_still_the_wild_and_the_last_rank_completes() -> None:
    rules = Rules(ranks=5, copies=12, wilds=4, payoff_size=5)
    game = start(rules, payoff="35", hand="K5", centers=["A234", "A2"], stock="")
    assert {"hand>center0", "payoff>center0", "wild>center0", "wild>center1"} <= legal_texts(game)
    position = do(game, "hand>center0")
    assert position["centers"] == [[], ["A", "2"], []]
    assert len(position["stock"]) == 5


# -- discards and turns ----------------------------------------------------------------------------------------------


@BOTH_PLAYERS
@EVERY_PRESET
def test_any_hand_card_goes_on_any_own_side_pile_and_ends_the_turn(rules: Rules, mover: int) -> None:
    for card in rules.characters:
        for side in range(rules.side_piles):
            sides = ["A", "2A", "K", ""][: rules.side_piles]
            game = start(rules, mover=mover, payoff="2", opponent_payoff="2", hand=card, sides=sides)
            before = game.position(0)
            position = do(game, f"discard {card}>side{side}")
            assert position["sides"][mover][side] == [*sides[side], card]
            assert position["sides"][1 - mover] == before["sides"][1 - mover]
            assert position["hands"][mover] == []
            assert position["turn"] == 1 - mover


@BOTH_PLAYERS
def test_a_hand_of_kings_can_be_discarded_to_each_side_pile(mover: int) -> None:
    game = start(G4A, mover=mover, hand="KKKKK")
    discards = {f"discard K>side{side}" for side in range(4)}
    assert legal_texts(game) == discards | {f"wild>center{center}" for center in range(3)}
    for side in range(4):
        position = do(game.copy(), f"discard K>side{side}")
        assert position["sides"][mover][side] == ["K"]
        assert position["hands"][mover] == ["K"] * 4


@BOTH_PLAYERS
@pytest.mark.parametrize("side", range(4))
@pytest.mark.parametrize("heights", [(0, 4, 7), (11, 0, 5), (0, 0, 0), (3, 3, 3)])
def test_a_parked_king_is_still_a_king_on_the_next_turn(heights: tuple[int, ...], side: int, mover: int) -> None:
    centers = [heap(G4A, height) for height in heights]
    game = start(G4A, mover=mover, hand="K78", centers=centers, opponent_hand="9")
    do(game, f"discard K>side{side}")
    assert not any(text.startswith("side") for text in legal_texts(game)), "it is not the opponent's"
    position = do(game, "discard 9>side0")
    assert position["turn"] == mover
    assert position["sides"][mover][side] == ["K"]
    for center in range(3):
        text = f"side{side}>center{center}"
        assert text in legal_texts(game)
        after = do(game.copy(), text)
        assert after["centers"][center] == ([*centers[center], "K"] if heights[center] < 11 else [])


def test_no_play_is_ever_forced_and_only_an_empty_hand_may_just_end_the_turn() -> None:
    game = start(G4A, payoff="9A", hand="AK", sides=["A"])
    assert {"discard A>side0", "discard K>side3"} <= legal_texts(game)
    assert "end_turn" not in legal_texts(game)
    do(game, "hand>center0")
    assert "end_turn" not in legal_texts(game)
    do(game, "wild>center1")
    assert "end_turn" in legal_texts(game)
    assert not any(text.startswith("discard") for text in legal_texts(game))


@BOTH_PLAYERS
def test_with_neither_a_play_nor_a_card_the_turn_can_be_ended(mover: int) -> None:
    game = start(G4A, mover=mover, hand="4", payoff="9", centers=["A23"], opponent_hand="77")
    position = do(game, "hand>center0")
    assert position["turn"] == mover
    assert legal_texts(game) == {"end_turn"}
    position = do(game, "end_turn")
    assert position["turn"] == 1 - mover
    assert position["hands"][mover] == []
    assert len(position["hands"][1 - mover]) == 5
    assert result(game) == GOES_ON


@BOTH_PLAYERS
def test_a_turn_goes_on_with_pay_off_and_side_cards_after_the_hand_is_empty(mover: int) -> None:
    game = start(G4A, mover=mover, hand="4", payoff="96", sides=["5"], centers=["A23"])
    assert do(game, "hand>center0")["hands"][mover] == []
    assert legal_texts(game) == {"side0>center0", "end_turn"}
    do(game, "side0>center0")
    assert legal_texts(game) == {"payoff>center0", "end_turn"}
    position = do(game, "payoff>center0")
    assert position["centers"][0] == list("A23456")
    assert position["payoff"][mover] == ["9"]
    assert position["turn"] == mover
    assert legal_texts(game) == {"end_turn"}


@pytest.mark.parametrize("refill_mid_turn", [False, True])
@pytest.mark.parametrize("hand", ["9", "99", "999", "9999", "99999"])
@BOTH_PLAYERS
def test_the_hand_is_refilled_at_the_start_of_the_own_turn_and_not_at_its_end(
    mover: int, hand: str, refill_mid_turn: bool
) -> None:
    game = start(G4A.replace(refill_mid_turn=refill_mid_turn), mover=mover, hand=hand, opponent_hand="8")
    position = do(game, "discard 9>side0")
    assert len(position["hands"][mover]) == len(hand) - 1
    assert len(position["hands"][1 - mover]) == 5
    position = do(game, "discard 8>side0")
    assert len(position["hands"][mover]) == 5
    assert len(position["hands"][1 - mover]) == 4


def test_cards_are_drawn_from_the_top_of_the_stock_one_after_the_other() -> None:
    game = start(G4A, hand="9", opponent_hand="88", stock="A23456")
    log = EventLog(game)
    position = do(game, "discard 9>side0")
    assert position["hands"][1] == ["4", "5", "6", "8", "8"]
    assert position["stock"] == ["A", "2", "3"]
    assert log.events[0][-1] == {"type": "draw", "player": 1, "cards": ["6", "5", "4"]}


@BOTH_PLAYERS
def test_with_mid_turn_refill_a_play_that_empties_the_hand_draws_a_full_one_at_once(mover: int) -> None:
    rules = G4A.replace(refill_mid_turn=True)
    game = start(rules, mover=mover, hand="4", centers=["A23"], stock="AAAA23456")
    position = do(game, "hand>center0")
    assert position["hands"][mover] == ["2", "3", "4", "5", "6"]
    assert position["stock"] == ["A"] * 4
    assert position["turn"] == mover
    assert position["hands"][1 - mover] == []


@pytest.mark.parametrize("source", ["payoff", "side0"])
def test_with_mid_turn_refill_any_play_that_leaves_the_hand_empty_draws(source: str) -> None:
    rules = G4A.replace(refill_mid_turn=True)
    game = start(rules, payoff="9A", sides=["A"], stock="2222222")
    assert do(game, f"{source}>center1")["hands"][0] == ["2"] * 5


def test_with_mid_turn_refill_a_discard_of_the_last_card_does_not_draw() -> None:
    game = start(G4A.replace(refill_mid_turn=True), hand="9", opponent_hand="88888", stock="2222222")
    position = do(game, "discard 9>side0")
    assert position["hands"] == [[], ["8"] * 5]
    assert len(position["stock"]) == 7


def test_with_mid_turn_refill_the_completed_pile_is_recycled_before_the_draw() -> None:
    rules = G4A.replace(refill_mid_turn=True)
    game = start(rules, hand="Q", centers=[heap(G4A, 11)], stock="")
    position = do(game, "hand>center0")
    assert len(position["hands"][0]) == 5
    assert len(position["stock"]) == 7
    assert result(game) == GOES_ON

    game = start(rules.replace(recycle="set_aside"), hand="Q", centers=[heap(G4A, 11)], stock="99")
    position = do(game, "hand>center0")
    assert Counter(position["hands"][0])["9"] == 2
    assert len(position["stock"]) == 9
    assert position["set_aside"] == []
    assert result(game) == GOES_ON


# -- completed piles -------------------------------------------------------------------------------------------------


def completing_layouts(rules: Rules) -> dict[str, dict[str, Any]]:
    """Return, by the play that completes a pile, what must lie there."""
    last = rules.characters[rules.ranks - 1]
    return {
        "payoff": {"payoff": f"2{last}"},
        "side0": {"sides": [last]},
        "hand": {"hand": last},
        "wild": {"hand": "K"},
    }


@EVERY_RECYCLE
@pytest.mark.parametrize("center", range(3))
@pytest.mark.parametrize("source", ["payoff", "side0", "hand", "wild"])
@BOTH_PLAYERS
def test_a_completed_pile_alone_is_cleared_and_its_cards_leave_for_their_place(
    mover: int, source: str, center: int, recycle: str
) -> None:
    rules = G4A.replace(recycle=recycle)
    pile, others, stock = "A23K5678KTJ", ["A2345", ""], "AA223"
    centers = [*others[:center], pile, *others[center:]]
    game = start(
        rules, mover=mover, centers=centers, stock=stock, opponent_hand="7777", **completing_layouts(rules)[source]
    )
    position = do(game, f"{source}>center{center}")
    expected = [list(pile) for pile in centers]
    expected[center] = []
    assert position["centers"] == expected
    cards = Counter(pile + ("K" if source == "wild" else "Q"))
    if recycle == "set_aside":
        assert position["stock"] == list(stock)
        assert Counter(position["set_aside"]) == cards
    else:
        assert Counter(position["stock"]) == cards + Counter(stock)
        assert position["set_aside"] == []
    if recycle == "bottom":
        assert position["stock"][12:] == list(stock)
    assert position["turn"] == mover


@EVERY_RECYCLE
@EVERY_PRESET
def test_all_cards_are_there_after_every_step(rules: Rules, recycle: str) -> None:
    rules = rules.replace(recycle=recycle)
    game = Game(rules, 30, seed=4)
    players = Players(rules, 30, seed=5)
    deck = np.repeat(np.array(rules.deck)[:, None], 30, axis=1)
    decisions = 0
    while not over(game).all():
        game.step(players.choose(game))
        np.testing.assert_array_equal(count_cards(game), deck)
        decisions += 1
        if decisions % 5 == 0:
            check_bookkeeping(game)
    check_bookkeeping(game)


@EVERY_RECYCLE
@pytest.mark.parametrize("place", range(12))
def test_a_king_that_was_played_is_a_king_again_when_it_is_drawn(place: int, recycle: str) -> None:
    rules = G4A.replace(recycle=recycle, stock_end="short")
    cards = heap(rules, place) + "K" + rules.characters[place + 1 : 12]
    layout = {"hand": "K"} if place == 11 else {"hand": "Q"}
    game = start(rules, centers=[cards[:-1]], stock="", **layout)
    position = do(game, ("wild" if place == 11 else "hand") + ">center0")
    assert Counter(position["stock"] + position["set_aside"]) == Counter(cards)

    drawn: list[str] = []
    do(game, "end_turn")
    while "K" not in drawn:
        position = game.position(0)
        drawn = position["hands"][position["turn"]]
        if "K" not in drawn:
            do(game, f"discard {drawn[0]}>side0")
    position = game.position(0)
    assert {f"wild>center{center}" for center in range(3)} <= legal_texts(game)
    assert {f"discard K>side{side}" for side in range(4)} <= legal_texts(game)
    assert do(game, "wild>center2")["centers"][2] == ["K"]


@EVERY_RECYCLE
def test_a_pile_of_kings_alone_gives_back_kings_alone(recycle: str) -> None:
    rules = G4A.replace(wilds=14, recycle=recycle)
    game = start(rules, hand="K", centers=["K" * 11], stock="")
    do(game, "wild>center0")
    position = do(game, "end_turn")
    assert position["hands"][1] == ["K"] * 5
    assert position["stock"] == ["K"] * 7
    assert position["set_aside"] == []
    wanted = {f"wild>center{center}" for center in range(3)} | {f"discard K>side{side}" for side in range(4)}
    assert legal_texts(game) == wanted


@pytest.mark.parametrize("recycle", ["shuffle", "bottom"])
@EVERY_STOCK_END
def test_a_pile_completed_while_the_stock_is_empty_becomes_the_stock(stock_end: str, recycle: str) -> None:
    rules = G4A.replace(recycle=recycle, stock_end=stock_end)
    game = start(rules, hand="Q9", centers=[heap(G4A, 11)], stock="")
    position = do(game, "hand>center0")
    assert len(position["stock"]) == 12
    assert result(game) == GOES_ON
    position = do(game, "discard 9>side0")
    assert len(position["stock"]) == 7
    assert result(game) == GOES_ON


@EVERY_STOCK_END
def test_cards_set_aside_keep_the_game_going_when_the_stock_is_empty(stock_end: str) -> None:
    rules = G4A.replace(recycle="set_aside", stock_end=stock_end)
    game = start(rules, hand="Q9", centers=[heap(G4A, 11)], stock="")
    position = do(game, "hand>center0")
    assert position["stock"] == []
    assert position["set_aside"] == list("A23456789TJQ")
    position = do(game, "discard 9>side0")
    assert len(position["hands"][1]) == 5
    assert len(position["stock"]) == 7
    assert position["set_aside"] == []
    assert result(game) == GOES_ON


@pytest.mark.parametrize(("stock", "returned"), [("", True), ("8", True), ("8888", True), ("88888", False)])
@EVERY_STOCK_END
def test_cards_set_aside_return_under_the_stock_when_a_refill_needs_more_than_it_holds(
    stock_end: str, stock: str, returned: bool
) -> None:
    rules = G4A.replace(recycle="set_aside", stock_end=stock_end)
    game = start(rules, hand="9", stock=stock, set_aside="AAA222333KKK")
    log = EventLog(game)
    position = do(game, "discard 9>side0")
    assert result(game) == GOES_ON
    assert ("return" in [event["type"] for event in log.events[0]]) == returned
    assert Counter(position["hands"][1])["8"] == len(stock), "what was in the stock is drawn first"
    if returned:
        assert position["set_aside"] == []
        assert len(position["stock"]) == 12 + len(stock) - 5
        assert Counter(position["stock"] + position["hands"][1]) == Counter("AAA222333KKK" + stock)
    else:
        assert position["set_aside"] == list("AAA222333KKK")
        assert position["stock"] == []


# -- the stock runs out ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stock", "opponent_hand", "set_aside", "empty", "short"),
    [
        ("8", "77", "", DRAW, DRAW),
        ("", "77", "", DRAW, DRAW),
        ("", "", "", DRAW, DRAW),
        ("8888", "", "", DRAW, DRAW),
        ("888", "77", "", DRAW, GOES_ON),
        ("88888", "", "", DRAW, GOES_ON),
        ("", "77777", "", DRAW, GOES_ON),
        ("8", "77777", "", GOES_ON, GOES_ON),
        ("8888", "77", "", GOES_ON, GOES_ON),
        ("", "77777", "2", GOES_ON, GOES_ON),
        ("88", "777", "2", GOES_ON, GOES_ON),
        ("8", "77", "2", DRAW, DRAW),
        ("8", "77", "22", DRAW, GOES_ON),
        ("8", "77", "222", GOES_ON, GOES_ON),
    ],
)
@EVERY_STOCK_END
@BOTH_PLAYERS
def test_the_stock_runs_out_at_a_refill(
    mover: int, stock_end: str, stock: str, opponent_hand: str, set_aside: str, empty: Any, short: Any
) -> None:
    rules = G4A.replace(stock_end=stock_end, recycle="set_aside" if set_aside else "shuffle")
    layout: dict[str, Any] = {"opponent_hand": opponent_hand, "stock": stock, "set_aside": set_aside}
    for by_discard in (True, False):
        game = start(rules, mover=mover, hand="9" if by_discard else "", **layout)
        position = do(game, "discard 9>side0" if by_discard else "end_turn")
        assert result(game) == (empty if stock_end == "empty" else short)
        assert len(position["hands"][1 - mover]) == min(5, len(opponent_hand + stock + set_aside))
        assert position["turn"] == 1 - mover


@pytest.mark.parametrize(
    ("stock", "empty", "short"),
    [("", DRAW, DRAW), ("2222", DRAW, DRAW), ("22222", DRAW, GOES_ON), ("222222", GOES_ON, GOES_ON)],
)
@EVERY_STOCK_END
def test_the_stock_runs_out_at_a_refill_within_a_turn(stock_end: str, stock: str, empty: Any, short: Any) -> None:
    rules = G4A.replace(stock_end=stock_end, refill_mid_turn=True)
    game = start(rules, hand="4", centers=["A23"], stock=stock)
    do(game, "hand>center0")
    assert result(game) == (empty if stock_end == "empty" else short)


@EVERY_STOCK_END
def test_an_empty_stock_alone_ends_nothing_before_a_refill(stock_end: str) -> None:
    game = start(G4A.replace(stock_end=stock_end), hand="A2", payoff="93", stock="")
    do(game, "hand>center0", "hand>center0", "payoff>center0")
    assert result(game) == GOES_ON


@EVERY_STOCK_END
def test_an_ended_game_stays_as_it_ended(stock_end: str) -> None:
    game = start(G4A.replace(stock_end=stock_end), hand="9", opponent_hand="77", stock="8")
    position = do(game, "discard 9>side0")
    assert ended_without_winner(game)
    assert game.current_player.tolist() == [1], "its refill ended the game"
    assert not game.legal_actions().any()
    for action in (0, 5, 10**6, -1):
        game.step([action])
    assert game.position(0) == position
    assert ended_without_winner(game)


# -- winning ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("left", [1, 2, 7, 20])
@pytest.mark.parametrize(
    ("payoff", "centers"),
    [
        ("9", ["A2345678"]),
        ("K", ["A2345678"]),
        ("Q", [heap(G4A, 11)]),
        ("K", [heap(G4A, 11)]),
        ("A", [""]),
        ("K", [""]),
        ("4", ["AKK"]),
    ],
)
@pytest.mark.parametrize("stock", [None, ""])
@pytest.mark.parametrize("variant", [G4A, Rules.classic(), Rules.skip_bo()])
@BOTH_PLAYERS
def test_the_last_pay_off_card_wins_a_point_for_each_card_left_to_the_opponent(
    mover: int, variant: Rules, stock: str | None, payoff: str, centers: list[str], left: int
) -> None:
    for hand in ("", "77"):
        game = start(
            variant,
            mover=mover,
            payoff=payoff,
            hand=hand,
            centers=centers,
            stock=stock,
            opponent_payoff="KAAAAA2222233333TTTTT"[-left:],
        )
        before = game.position(0)
        assert "payoff>center0" in legal_texts(game)
        position = do(game, "payoff>center0")
        assert result(game) == won_by(mover, left)
        assert position["payoff"][mover] == []
        assert position["centers"][0] == [*centers[0], payoff], "nothing is cleared after a win"
        assert position["stock"] == before["stock"]
        assert position["hands"] == before["hands"], "nothing is drawn after a win"
        assert position["turn"] == mover
        assert not game.legal_actions().any()


@BOTH_PLAYERS
def test_with_one_pay_off_card_left_nobody_has_won(mover: int) -> None:
    game = start(G4A, mover=mover, payoff="29", hand="AJ", centers=["A2345678"])
    position = do(game, "payoff>center0")
    assert position["payoff"][mover] == ["2"]
    assert result(game) == GOES_ON
    do(game, "hand>center1", "payoff>center1")
    assert result(game) == won_by(mover, 1)


def test_emptying_hand_and_sides_wins_nothing() -> None:
    game = start(G4A, hand="A", sides=["2"], payoff="9")
    do(game, "hand>center0", "side0>center0")
    assert result(game) == GOES_ON


# -- length ----------------------------------------------------------------------------------------------------------


def test_a_game_is_truncated_after_max_steps_decisions_without_points() -> None:
    for limit in (1, 2, 9):
        rules = G4A.replace(max_steps=limit)
        game = Game(rules, 30, seed=6)
        players = Players(rules, 30, seed=7)
        for number in range(1, limit + 1):
            assert not over(game).any()
            game.step(players.choose(game))
            assert (game.truncated == (number == limit)).all()
        assert not game.terminated.any()
        assert (game.winner == -1).all()
        assert not game.points.any()
        assert not game.legal_actions().any()


def test_a_win_or_draw_on_the_very_last_decision_counts() -> None:
    rules = G4A.replace(max_steps=2)
    win = start(rules, hand="A", payoff="2", opponent_payoff="99")
    do(win, "hand>center0", "payoff>center0")
    assert result(win) == won_by(0, 2)
    draw = start(rules, hand="A9", opponent_hand="77", stock="8")
    do(draw, "hand>center0", "discard 9>side0")
    assert result(draw) == DRAW
    late = start(rules, hand="A2", payoff="3", opponent_payoff="99")
    do(late, "hand>center0", "hand>center0")
    assert result(late) == TRUNCATED


# -- matches ---------------------------------------------------------------------------------------------------------

MATCH = Rules(match_points=50)


def win_now(**layout: Any) -> dict[str, Any]:
    return {"payoff": "A", "opponent_payoff": "2222222"} | layout


@pytest.mark.parametrize(("before", "ends"), [(44, True), (43, True), (42, False), (0, False)])
@BOTH_PLAYERS
def test_a_match_ends_with_the_win_that_reaches_its_points(mover: int, before: int, ends: bool) -> None:
    game = start(MATCH, mover=mover, scores=(before, 30), **win_now())
    position = do(game, "payoff>center0")
    scores = [before + 7, 30] if mover == 0 else [30, before + 7]
    assert position["scores"] == scores
    if ends:
        assert result(game) == (True, False, mover, scores)
        assert position["payoff"][mover] == []
    else:
        assert result(game) == GOES_ON
        assert [len(pile) for pile in position["payoff"]] == [20, 20]


@BOTH_PLAYERS
def test_a_drawn_game_scores_nothing_and_the_match_goes_on(mover: int) -> None:
    game = start(MATCH, mover=mover, scores=(44, 12), hand="9", opponent_hand="77", stock="8")
    position = do(game, "discard 9>side0")
    assert result(game) == GOES_ON
    assert position["scores"] == ([44, 12] if mover == 0 else [12, 44])
    assert cards_dealt(position) == deck_of(MATCH)


def test_a_truncated_game_scores_nothing_and_the_match_goes_on() -> None:
    game = start(MATCH.replace(max_steps=1), scores=(44, 12), hand="99", payoff="A")
    position = do(game, "discard 9>side0")
    assert result(game) == GOES_ON
    assert position["scores"] == [44, 12]
    assert cards_dealt(position) == deck_of(MATCH)


def cards_dealt(position: Position) -> Counter[str]:
    """Return the cards of a fresh deal."""
    assert all(pile == [] for pile in [*position["centers"], *position["sides"][0], *position["sides"][1]])
    piles = [*position["payoff"], *position["hands"], position["stock"]]
    return Counter(card for pile in piles for card in pile)


@pytest.mark.parametrize("first_player", [0, 1, "random", "higher_payoff"])
def test_the_start_alternates_from_the_first_game_on(first_player: int | str) -> None:
    rules = SHORT_MATCH.replace(first_player=first_player, match_points=100, max_games=6, payoff_size=2)
    game = Game(rules, 40, seed=8)
    starters: list[list[int]] = [[int(player)] for player in game.current_player]
    if isinstance(first_player, int):
        assert starters == [[first_player]] * 40
    elif first_player == "higher_payoff":
        assert (game.state.pile_top[0, 0] != game.state.pile_top[1, 0]).all()

    def note_deals(kind: str, games: NDArray[np.intp], **details: Any) -> None:
        if kind == "deal":
            for index in games.tolist():
                starters[index].append(int(game.current_player[index]))

    game.listener = note_deals
    players = Players(rules, 40, seed=9, only="fitting")
    while not over(game).all():
        game.step(players.choose(game))
    for sequence in starters:
        assert sequence == [(sequence[0] + number) % 2 for number in range(6)]


def test_later_games_of_a_match_are_dealt_without_regard_to_ties() -> None:
    rules = SHORT_MATCH.replace(first_player="higher_payoff", payoff_size=2, match_points=100)
    game = Game(rules, 400, seed=8)
    log = EventLog(game)
    players = Players(rules, 400, seed=9, only="fitting")
    while not over(game).all():
        game.step(players.choose(game))
    deals = [outcome for outcomes in log.outcomes for kind, outcome in outcomes if kind == "deal"]
    assert any(deal["payoff"][0][-1] == deal["payoff"][1][-1] for deal in deals)


def test_a_match_is_truncated_after_max_games_and_its_scores_are_its_points() -> None:
    rules = SHORT_MATCH.replace(match_points=100, max_games=3)
    game = Game(rules, 40, seed=8)
    log = EventLog(game)
    players = Players(rules, 40, seed=9, only="fitting")
    while not over(game).all():
        game.step(players.choose(game))
    assert game.truncated.all()
    assert not game.terminated.any()
    assert (game.winner == -1).all()
    assert game.points.any(axis=1).all()
    for index, finished in enumerate(log.finished):
        assert len(finished) == 3
        totals = [sum(played["points"][player] for played in finished) for player in PLAYERS]
        assert game.points[index].tolist() == game.position(index)["scores"] == totals


def test_the_points_of_a_match_show_at_its_end_only_and_its_scores_all_the_time() -> None:
    game = Game(SHORT_MATCH, 60, seed=8)
    players = Players(SHORT_MATCH, 60, seed=9, only="fitting")
    while not over(game).all():
        game.step(players.choose(game))
        going_on = ~over(game)
        assert not game.points[going_on].any()
        np.testing.assert_array_equal(game.points[~going_on], game.state.scores.T[~going_on])
        assert (game.state.scores.T[going_on] < 9).all()
    assert game.terminated.any()
    reached = game.points >= 9
    np.testing.assert_array_equal(game.terminated, reached.any(axis=1))
    np.testing.assert_array_equal(game.winner, np.where(reached[:, 0], 0, np.where(reached[:, 1], 1, -1)))


def test_max_steps_counts_the_decisions_of_each_game_of_a_match() -> None:
    rules = MATCH.replace(max_steps=3, max_games=4)
    game = Game(rules, 1, seed=1)
    for number in range(1, 13):
        assert not over(game).any()
        hand = game.position(0)["hands"][int(game.current_player[0])]
        do(game, f"discard {hand[0]}>side0")
        assert game.state.game_number[0] == number // 3
    assert game.truncated.all()


def test_a_win_on_the_last_decision_that_is_allowed_does_not_truncate_the_next_game_of_a_match() -> None:
    game = start(MATCH.replace(max_steps=1), **win_now())
    position = do(game, "payoff>center0")
    assert result(game) == GOES_ON
    assert position["scores"] == [7, 0]
    assert game.state.game_number.tolist() == [1]
    assert cards_dealt(position) == deck_of(MATCH)


# -- forfeits --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("autoreset", [False, True])
@BOTH_PLAYERS
def test_a_forfeit_gives_the_other_player_the_cards_left_to_the_offender(mover: int, autoreset: bool) -> None:
    positions = [lay(G4A, mover=mover, hand="5", payoff="987", opponent_payoff="23")] * 2
    game = Game.from_positions(G4A, positions, autoreset=autoreset)
    game.forfeit([0])
    assert result(game) == won_by(1 - mover, 3)
    assert game.terminated.tolist() == [True, False]
    assert bool(game.legal_actions()[0].any()) == autoreset
    if not autoreset:
        before = game.position(0)
        game.forfeit([0])
        assert result(game) == won_by(1 - mover, 3)
        assert game.position(0) == before


@BOTH_PLAYERS
def test_a_forfeit_ends_the_whole_match_whatever_its_scores(mover: int) -> None:
    game = start(MATCH, mover=mover, hand="5", payoff="987", opponent_payoff="23", scores=(49, 3))
    game.forfeit([0])
    assert result(game) == won_by(1 - mover, 3)
    assert not game.legal_actions().any()


# -- autoreset -------------------------------------------------------------------------------------------------------


def test_with_autoreset_a_games_result_and_final_views_stay_until_its_own_next_step() -> None:
    positions = [lay(G4A, payoff="A", opponent_payoff="99"), lay(G4A, hand="98"), lay(G4A, mover=1, payoff="A")]
    auto = Game.from_positions(G4A, positions, autoreset=True)
    plain = Game.from_positions(G4A, positions)
    win, discard = (auto.actions.parse(text) for text in ("payoff>center0", "discard 9>side0"))

    for game in (auto, plain):
        game.step([win], [2])
    views = np.stack([plain.observe(viewer) for viewer in PLAYERS], axis=1)
    final = auto.final_observation
    np.testing.assert_array_equal(final[2], views[2])
    assert not final[:2].any()

    auto.step([discard], [1])
    auto.step([win], [0])
    auto.step([], [])
    plain.step([win], [0])
    views[0] = np.stack([plain.observe(viewer)[0] for viewer in PLAYERS])
    assert auto.terminated.tolist() == [True, False, True]
    assert auto.winner.tolist() == [0, -1, 1]
    assert auto.points.tolist() == [[2, 0], [0, 0], [0, 1]]
    np.testing.assert_array_equal(auto.final_observation[[0, 2]], views[[0, 2]])
    assert not auto.final_observation[1].any()
    some = auto.copy([2, 1, 0, 2])
    np.testing.assert_array_equal(some.final_observation, auto.final_observation[[2, 1, 0, 2]])

    auto.step(auto.legal_actions()[[0]].argmax(axis=1), [0])
    assert auto.terminated.tolist() == [False, False, True]
    assert not auto.final_observation[:2].any()
    auto.reset([2])
    assert not auto.terminated.any()
    assert not auto.final_observation.any()


@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=[*PRESETS, "match"])
def test_with_autoreset_an_ended_game_goes_on_with_its_next_episode_as_after_a_reset(rules: Rules) -> None:
    auto, plain = Game(rules, 12, seed=3, autoreset=True), Game(rules, 12, seed=3)
    players = Players(rules, 12, seed=4)
    ended = 0
    while ended < 24:
        actions = players.choose(auto)
        for game in (auto, plain):
            game.step(actions)
        again = np.flatnonzero(over(plain))
        np.testing.assert_array_equal(over(auto), over(plain))
        ended += again.size
        if again.size:
            plain.reset(again)
            assert [auto.position(index) for index in range(12)] == [plain.position(index) for index in range(12)]
            np.testing.assert_array_equal(auto.legal_actions(), plain.legal_actions())


def test_without_autoreset_there_is_no_final_observation() -> None:
    game = start(G4A, payoff="A")
    do(game, "payoff>center0")
    assert not game.final_observation.any()
    assert game.final_observation.shape == (1, 2, game.observation.n)


# -- no dead ends ----------------------------------------------------------------------------------------------------


def play_out(rules: Rules, policy: str, num_games: int, seed: int) -> None:
    """Play games to their end and assert, decision by decision, that someone can move and that no card is lost."""
    game = Game(rules, num_games, seed)
    player = make_policy(policy)
    player.reset(rules, num_games, seed + 1)
    live = np.arange(num_games)
    for _ in range(rules.max_steps):
        mask = game.legal_actions()
        assert mask.any(axis=1).all()
        game.step(player.act(None, mask, None, live))  # type: ignore[arg-type]
        np.testing.assert_array_equal(count_cards(game), np.repeat(np.array(rules.deck)[:, None], live.size, axis=1))
        ended = over(game)
        assert not game.legal_actions()[ended].any()
        if ended.any():
            game, live = game.copy(np.flatnonzero(~ended)), live[~ended]
        if not live.size:
            break
    assert not live.size


POLICY_NAMES = pytest.mark.parametrize("policy", ["random", "greedy", "hoarder"])


@EVERY_PRESET
@POLICY_NAMES
def test_someone_can_move_until_the_game_is_over(policy: str, rules: Rules) -> None:
    play_out(rules, policy, 300, seed=10)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(50))
@EVERY_PRESET
@POLICY_NAMES
def test_someone_can_move_until_each_of_a_hundred_thousand_games_is_over(policy: str, rules: Rules, part: int) -> None:
    play_out(rules, policy, 2000, seed=100 + part)


# -- fair shuffles ---------------------------------------------------------------------------------------------------


def rank_by_place(places: NDArray[np.uint8], kinds: int) -> NDArray[np.intp]:
    """Count the cards of each kind at each place, ``(places, kinds)``; ``places`` is ``(places, deals)``."""
    bins = np.arange(len(places))[:, None] * kinds + places - 1
    return np.bincount(bins.ravel(), minlength=len(places) * kinds).reshape(-1, kinds)


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("rules", ALL_PRESETS[:3], ids=PRESETS[:3])
def test_every_rank_is_as_likely_at_every_place_of_a_deal(rules: Rules, seed: int) -> None:
    deals = 6000
    game = Game(rules.replace(first_player=0), deals, seed)
    s = game.state
    stock = s.stock[: int(s.stock_size[0])]
    places = np.concatenate((*s.pile[:, 0, 1 : rules.payoff_size + 1], stock))
    expected = deals * np.array(rules.deck) / rules.num_cards
    counts = rank_by_place(places, rules.kinds)
    statistics = [chi_square(row, expected) for row in counts]
    assert max(statistics) < chi_square_limit(rules.kinds - 1)
    assert abs(sum(statistics) - len(counts) * (rules.kinds - 1)) < 6 * np.sqrt(2 * len(counts) * (rules.kinds - 1))

    # The cards of a hand come from one deck, without replacement, and vary less.
    variation = (rules.num_cards - rules.hand_size) / (rules.num_cards - 1)
    for hand in s.hand:
        statistic = chi_square(hand.sum(axis=1, dtype=np.intp), expected * rules.hand_size)
        assert statistic / variation < chi_square_limit(rules.kinds - 1)

    # Neighbours are no more alike than any two cards.
    deck = np.array(rules.deck)
    alike = (deck * (deck - 1)).sum() / (rules.num_cards * (rules.num_cards - 1))
    for distance in (1, 2, 12):
        same = (places[distance:] == places[:-distance]).sum(axis=1)
        deviation = np.sqrt(deals * alike * (1 - alike))
        assert (np.abs(same - deals * alike) < 5 * deviation).all()


@pytest.mark.parametrize("recycle", ["shuffle", "bottom"])
@pytest.mark.parametrize("center", [0, 2])
def test_from_a_known_stock_every_rank_is_as_likely_at_every_place_after_a_recycling(recycle: str, center: int) -> None:
    rules = Rules(ranks=6, copies=8, wilds=8, payoff_size=8, recycle=recycle)
    stock, pile, games = "AAAA2222KK", "AK345", 4000
    centers = ["A"] * center + [pile]
    position = lay(rules, hand="6", centers=centers, stock=stock)
    game = Game.from_positions(rules, [position] * games, seed=3)
    game.step([game.actions.parse(f"hand>center{center}")] * games)
    new = game.state.stock[: len(stock) + 6]
    shuffled = pile + "6" + (stock if recycle == "shuffle" else "")
    counts = rank_by_place(new[: len(shuffled)], rules.kinds)
    amounts = np.array([shuffled.count(card) for card in rules.characters])
    there = amounts > 0
    for row in counts:
        assert row[~there].sum() == 0
        assert chi_square(row[there], games * amounts[there] / len(shuffled)) < chi_square_limit(there.sum() - 1)
    if recycle == "bottom":
        kept = np.array([rules.characters.index(card) + 1 for card in stock])
        assert (new[6:] == kept[:, None]).all(), "what was in the stock stays on top, in its order"


@pytest.mark.parametrize("way", ["shuffle", "bottom", "return"])
def test_every_order_of_the_shuffled_cards_is_as_likely(way: str) -> None:
    rules = Rules(ranks=4, copies=8, wilds=8, payoff_size=4, hand_size=1)
    games = 4800
    if way == "return":
        rules = rules.replace(recycle="set_aside")
        position = lay(rules, payoff="4", opponent_payoff="4", hand="A", set_aside="A23K", stock="")
        text = "discard A>side0"
    else:
        rules = rules.replace(recycle=way)
        position = lay(rules, payoff="4", opponent_payoff="4", hand="K", opponent_hand="3", centers=["A23"], stock="")
        text = "wild>center0"
    game = Game.from_positions(rules, [position] * games, seed=4)
    game.step([game.actions.parse(text)] * games)
    cards = game.state.stock[: 3 if way == "return" else 4]
    orders = Counter(map(tuple, cards.T.tolist()))
    assert len(orders) == 24
    assert chi_square(list(orders.values()), np.full(24, games / 24)) < chi_square_limit(23)


@EVERY_RECYCLE
def test_over_many_recyclings_every_rank_is_as_likely_at_every_place(recycle: str) -> None:
    rules = Rules(recycle=recycle, copies=5, wilds=6, payoff_size=12)
    game = Game(rules, 400, seed=5)
    log = EventLog(game)
    players = Players(rules, 400, seed=6, only="fitting")
    old = {}
    shuffles = 0
    places = 12
    observed, mean, variance = np.zeros((3, 2 * places, rules.kinds))
    while not over(game).all():
        if recycle == "bottom":
            old = {index: int(game.state.stock_size[index]) for index in range(game.num_games)}
        game.step(players.choose(game))
        for index, outcomes in enumerate(log.outcomes):
            while outcomes:
                kind, stock = outcomes.popleft()
                if kind == "return":
                    event = next(event for event in reversed(log.events[index]) if event["type"] == "return")
                    stock = stock[: len(event["cards"])]
                elif recycle == "bottom":
                    stock = stock[: len(stock) - old[index]]
                ranks = np.array([rules.characters.index(card) for card in stock])
                share = np.bincount(ranks, minlength=rules.kinds) / len(stock)
                # The first and the last places of what was shuffled.
                both_ends = np.concatenate((ranks[:places], ranks[-places:]))
                observed[np.arange(2 * places), both_ends] += 1
                mean += share
                variance += share * (1 - share)
                shuffles += 1
    assert shuffles > 400
    assert (np.abs(observed - mean) < 5 * np.sqrt(variance) + 1e-9).all()


@pytest.mark.parametrize("autoreset", [False, True])
def test_a_forfeit_ends_a_match_with_the_losers_pay_off_cards_as_points(autoreset: bool) -> None:
    game = Game(SHORT_MATCH, 8, seed=5, autoreset=autoreset)
    losers = game.current_player
    left = game.state.pile_size[losers, 0, np.arange(8)].copy()
    game.forfeit([1, 3])
    assert game.terminated.tolist() == [index in (1, 3) for index in range(8)]
    for index in (1, 3):
        assert game.winner[index] == 1 - losers[index]
        assert game.points[index, game.winner[index]] == left[index] > 0
        assert game.points[index, losers[index]] == 0
