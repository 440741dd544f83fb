"""Games as texts: what a board says, and that it gives nothing away."""

from __future__ import annotations

import io
import random
import sys

import pytest

from helpers import ALL_PRESETS, PLAYERS, SHORT_MATCH, lay, played_games, start, storage
from spite_env import Game, Rules, spite_and_malice_v0
from spite_env.render import ansi, describe
from test_aec import with_other_hidden_cards

G4A, CLASSIC = Rules.g4a(), Rules.classic()

EXPECTED = """\
┌─ Spite & Malice ──────────────────────────────────────── player_1 to move ─┐
│ player_0  pay-off [7] and 2 more                                           │
│   hand    ## ##                                                            │
│   side0   -                                                                │
│   side1   Q [K]                                                            │
│   side2   -                                                                │
│   side3   -                                                                │
├─ centre ───────────────────────────────────────────────────────────────────┤
│   center0 needs 5   A 2 K=3 4                                              │
│   center1 needs A                                                          │
│   center2 needs 3   K=A K=2                                                │
│   center3 needs A                                                          │
│   stock   3 cards                                                          │
│   aside   3 cards  2x5 1xK                                                 │
├────────────────────────────────────────────────────────────────────────────┤
│ player_1  pay-off [K] and 0 more                                           │
│   hand    A 7 7 Q K                                                        │
│   side0   3 K [5]                                                          │
│   side1   -                                                                │
│   side2   -                                                                │
│   side3   [2]                                                              │
└────────────────────────────────────────────────────────────────────────────┘
  last: player_0: discard K>side1"""


def test_the_board_of_a_known_position() -> None:
    game = start(
        CLASSIC,
        mover=1,
        payoff="K",
        hand="7AKQ7",
        sides=["3K5", "", "", "2"],
        opponent_payoff="857",
        opponent_hand="J9",
        opponent_sides=["", "QK"],
        centers=["A2K4", "", "KK"],
        stock="468",
        set_aside="5K5",
    )
    assert ansi.board(describe(game, last_move=(0, game.actions.parse("discard K>side1")))) == EXPECTED


@pytest.mark.parametrize("viewer", [None, 0, 1])
@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH])
def test_a_board_shows_what_its_viewer_sees_in_lines_that_fit(rules: Rules, viewer: int | None) -> None:
    game = played_games(rules, 10, seed=4, most=200)
    before = storage(game)
    for index in range(game.num_games):
        position = game.position(index)
        seat = position["turn"] if viewer is None else viewer
        lines = ansi.board(describe(game, index, viewer)).splitlines()
        assert {len(line) for line in lines} == {ansi.WIDTH}
        assert ansi.WIDTH <= 80
        assert f"player_{position['turn']} to move" in lines[0]
        for player in PLAYERS:
            (start,) = [row for row, line in enumerate(lines) if line.startswith(f"│ player_{player}")]
            assert (start == 1) == (player != seat)
            top, below = position["payoff"][player][-1], len(position["payoff"][player]) - 1
            assert f"pay-off [{top}] and {below} more" in lines[start]
            assert ("score" in lines[start]) == (rules.match_points is not None)
            hand = position["hands"][player]
            shown = hand if player == seat else ["##"] * len(hand)
            assert lines[start + 1].split("hand")[1].split()[:-1] == (shown or ["-"])
            for side, pile in enumerate(position["sides"][player]):
                assert lines[start + 2 + side].split()[1] == f"side{side}"
                assert (f"[{pile[-1]}]" if pile else "-") in lines[start + 2 + side]
        assert f" {len(position['stock'])} card" in next(line for line in lines if line.startswith("│   stock"))
    assert storage(game) == before


@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH])
def test_no_viewers_board_depends_on_a_hidden_card(rules: Rules) -> None:
    rng = random.Random(6)
    game = played_games(rules, 12, seed=9, most=150)
    for index in range(game.num_games):
        for viewer in PLAYERS:
            changed = with_other_hidden_cards(game.position(index), viewer, rng)
            other = Game.from_positions(rules, [changed], seed=77)
            assert ansi.board(describe(other, 0, viewer)) == ansi.board(describe(game, index, viewer))


def test_a_king_in_the_centre_shows_the_rank_that_it_stands_for() -> None:
    lines = ansi.board(describe(start(G4A, centers=["K2KKK", "A", "A23456789TK"], hand="A"))).splitlines()
    assert "center0 needs 6   K=A 2 K=3 K=4 K=5 " in lines[8]
    assert "center1 needs 2   A " in lines[9]
    assert "center2 needs Q   A 2 3 4 5 6 7 8 9 T K=J " in lines[10]


def test_a_pile_too_long_for_its_line_shows_its_top_and_its_size() -> None:
    pile = "A23456789TJQK" * 3
    lines = ansi.board(describe(start(G4A, sides=[pile, pile[:31]], payoff="K", hand="A"))).splitlines()
    assert {len(line) for line in lines} == {ansi.WIDTH}
    own = lines.index(next(line for line in lines if "pay-off [K]" in line))
    long, short = lines[own + 2], lines[own + 3]
    assert "side0   (39) … " in long
    assert long.replace(" ", "").endswith("…QKA23456789TJQKA23456789TJQ[K]│")
    assert short.split("side1")[1].strip(" │") == " ".join(pile[:30]) + " [5]"


def test_large_hands_and_many_cards_aside_go_on_in_further_lines() -> None:
    rules = Rules(hand_size=60, payoff_size=20, copies=19, recycle="set_aside")
    aside = rules.characters[:-1] * 10
    lines = ansi.board(describe(start(rules, hand="A2345678" * 7, opponent_hand="J" * 8, set_aside=aside))).splitlines()
    assert {len(line) for line in lines} == {ansi.WIDTH}
    words = " ".join(lines).replace("│", " ").split()
    assert words[words.index("aside") : words.index("aside") + 15] == [
        *("aside", "120", "cards"),
        *(f"10x{card}" for card in rules.characters[:-1]),
    ]
    hand = words[len(words) - words[::-1].index("hand") :]
    assert hand[:56] == sorted("A2345678" * 7, key=rules.characters.index)


@pytest.mark.parametrize("mover", PLAYERS)
def test_the_headline_tells_how_a_game_ended(mover: int) -> None:
    def headline(rules: Rules, *moves: str, **layout: object) -> str:
        game = start(rules, mover=mover, **layout)
        for move in moves:
            game.step([game.actions.parse(move)])
        return ansi.board(describe(game)).splitlines()[0]

    assert f"player_{mover} wins 3 points" in headline(G4A, "payoff>center0", payoff="A", opponent_payoff="234")
    assert f"player_{mover} wins 1 point " in headline(G4A, "payoff>center0", payoff="A", opponent_payoff="2")
    assert "a draw" in headline(G4A, "discard A>side0", hand="A", stock="")
    assert "cut at the limit" in headline(G4A.replace(max_steps=1), "discard A>side0", hand="A", stock="23456789")
    match = G4A.replace(match_points=9)
    won = headline(match, "payoff>center0", payoff="A", opponent_payoff="2", scores=(8, 0))
    assert f"player_{mover} wins the match" in won
    game = start(G4A, mover=mover)
    game.forfeit([0])
    assert f"player_{1 - mover} wins 1 point" in ansi.board(describe(game))


def test_a_match_shows_the_scores_and_names_replace_the_agents() -> None:
    game = start(G4A.replace(match_points=50), scores=(12, 49))
    text = ansi.board(describe(game, names=("greedy", "some.module:and_a_very_long_name_of_a_policy")))
    assert "greedy to move" in text
    assert "score 12 of 50" in text
    assert "score 49 of 50" in text
    assert {len(line) for line in text.splitlines()} == {ansi.WIDTH}


@pytest.mark.parametrize("index", [1, -1])
def test_a_game_that_does_not_exist_is_refused(index: int) -> None:
    with pytest.raises(ValueError, match=r"game=.* is not allowed"):
        describe(Game(), index)


def test_a_game_dealt_anew_is_shown_as_going_on() -> None:
    game = Game(Rules.mini(), seed=3, autoreset=True)
    while not game.terminated[0]:
        game.step(game.legal_actions().argmax(axis=1))
    assert f"player_{game.current_player[0]} to move" in ansi.board(describe(game))


def test_the_environment_draws_from_the_seat_of_the_agent_to_move_with_the_last_move() -> None:
    env = spite_and_malice_v0.env(render_mode="ansi")
    env.reset(seed=2)
    assert "last:" not in env.render()
    for _ in range(30):
        mover = env.agent_selection
        action = int(env.last()[0]["action_mask"].nonzero()[0][0])
        env.step(action)
        text = env.render()
        hand = env.unwrapped.position()["hands"][int(env.agent_selection[-1])]
        assert f"{env.agent_selection} to move" in text
        assert text.endswith(f"last: {mover}: {env.unwrapped.actions.text(action)}")
        assert f"hand    {' '.join(hand)} " in text
    offender = env.agent_selection
    env.step(None)
    assert env.render().endswith(f"last: {offender}: forfeits")


def test_a_terminal_without_box_characters_gets_plain_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for encoding in ("ascii", "cp1252", "utf-8"):
        output = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", output)
        text = ansi.board(describe(start(G4A, sides=["A23456789TJQK" * 5], hand="A")))
        ansi.show(text)
        printed = output.buffer.getvalue().decode(encoding)  # type: ignore[attr-defined]
        assert printed.isascii() == (encoding != "utf-8")
        assert len(printed) == len(text) + 1


def test_without_a_render_mode_rendering_warns_and_returns_nothing() -> None:
    env = spite_and_malice_v0.env()
    env.reset(seed=2)
    with pytest.warns(UserWarning, match="render_mode"):
        assert env.render() is None


def test_lay_and_board_agree_on_whose_cards_are_whose() -> None:
    position = lay(G4A, mover=1, payoff="8", hand="45", opponent_payoff="J", opponent_hand="9")
    upper, lower = ansi.board(describe(Game.from_positions(G4A, [position]))).split("centre")
    assert "[J]" in upper
    assert "[8]" in lower
    assert "4 5" in lower
    assert "9" not in upper.split("hand")[1].splitlines()[0]
