"""Tables as data, SVG and pixels: what they show, and that they give nothing away."""

from __future__ import annotations

import dataclasses
import json
import random
import sys
from collections.abc import Iterator
from itertools import combinations, pairwise
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from helpers import ALL_PRESETS, PLAYERS, SHORT_MATCH, legal_texts, moves, played_games, rehidden, start
from spite_env import Game, Rules
from spite_env.render import Table, describe, svg
from spite_env.render.layout import LOOKS, WIDTH, Box, Drawing, Text, layout

G4A, CLASSIC = Rules.g4a(), Rules.classic()
VARIANTS = (*ALL_PRESETS, SHORT_MATCH)

#: More piles and cards than a row holds.
LARGE = Rules(hand_size=13, side_piles=6, center_piles=6, copies=15, wilds=30, recycle="set_aside")

all_variants = pytest.mark.parametrize("rules", VARIANTS)


def tables(rules: Rules, num_games: int, seed: int, viewer: Any = None) -> Iterator[Table]:
    """Yield tables of games that have come to different lengths."""
    game = played_games(rules, num_games, seed, most=200)
    for index in range(num_games):
        yield describe(game, index, viewer)


def shapes(drawing: Drawing, kind: type[Any]) -> list[Any]:
    return [shape for part in drawing.parts for shape in part.shapes if isinstance(shape, kind)]


def groups(picture: str) -> dict[str, list[ElementTree.Element]]:
    """Return the groups of an SVG by their places."""
    found: dict[str, list[ElementTree.Element]] = {}
    for group in ElementTree.fromstring(picture).iter("{http://www.w3.org/2000/svg}g"):
        if (place := group.get("data-place")) is not None:
            found.setdefault(place, []).append(group)
    return found


def cards_at(table: Table, place: str) -> int:
    """Return how many cards are at a place."""
    own, other = table.players[table.seat], table.players[1 - table.seat]
    player = other if place.startswith("opponent-") else own
    name = place.removeprefix("opponent-")
    if name.startswith("center"):
        return len(table.centers[int(name.removeprefix("center"))].cards)
    if name.startswith("side"):
        return len(player.sides[int(name.removeprefix("side"))])
    if name.startswith("hand-"):
        return player.hand.count(name.removeprefix("hand-"))
    return len({"payoff": player.payoff, "hand": player.hand}[name])


# -- the description ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("viewer", [0, 1, None, "all"])
@all_variants
def test_a_table_holds_what_its_viewer_sees_ready_for_json(rules: Rules, viewer: Any) -> None:
    game = played_games(rules, 6, seed=4, most=200)
    for index in range(game.num_games):
        position, table = game.position(index), describe(game, index, viewer)
        turn, everything = position["turn"], viewer == "all"
        seat = viewer if viewer in PLAYERS else turn
        told = json.loads(json.dumps(dataclasses.asdict(table)))

        def seen(cards: list[str], visible: bool, everything: bool = everything) -> list[str | None]:
            return list(cards) if visible or everything else [None] * len(cards)

        for player, shown in enumerate(told["players"]):
            payoff = position["payoff"][player]
            assert shown["payoff"] == [*seen(payoff[:-1], False), payoff[-1]]
            assert shown["hand"] == seen(position["hands"][player], player == seat)
            assert shown["sides"] == position["sides"][player]
            assert shown["score"] == (None if rules.match_points is None else position["scores"][player])
        assert told["stock"] == seen(position["stock"], False)
        assert told["set_aside"] == (position["set_aside"] if rules.recycle == "set_aside" else None)
        assert [pile["cards"] for pile in told["centers"]] == position["centers"]
        assert (told["seat"], told["turn"], told["over"], told["winner"]) == (seat, turn, False, None)
        assert {move["text"] for move in told["legal"]} == (legal_texts(game, index) if turn == seat else set())
        assert all(game.actions.text(move["action"]) == move["text"] for move in told["legal"])


@all_variants
def test_no_viewers_table_depends_on_a_hidden_card(rules: Rules) -> None:
    rng = random.Random(6)
    game = played_games(rules, 12, seed=9, most=150)
    others = 0
    for index in range(game.num_games):
        position = game.position(index)
        for viewer in PLAYERS:
            changed = rehidden(position, viewer, rng)
            other = Game.from_positions(rules, [changed], seed=77)
            assert describe(other, 0, viewer) == describe(game, index, viewer)
            assert svg(describe(other, 0, viewer)).encode() == svg(describe(game, index, viewer)).encode()
            others += describe(other, 0, "all") != describe(game, index, "all")
    assert others > 12


@pytest.mark.parametrize("rules", [G4A, CLASSIC, Rules.mini()])
def test_moves_name_the_places_that_cards_leave_and_reach(rules: Rules) -> None:
    game = played_games(rules, 32, seed=3, most=120)
    seen = set()
    for index in range(game.num_games):
        single = game.copy([index])
        mover = int(single.current_player[0])
        before = describe(single)
        by_action = {move.action: move for move in before.legal}
        for action, after in moves(single):
            move = by_action[action]
            seen.add(move.text.split(">")[0].split()[0].rstrip("0123456789"))
            own = describe(after, viewer=mover, last_move=(mover, action))
            other = describe(after, viewer=1 - mover, last_move=(mover, action))
            assert own.last_move is not None
            assert other.last_move is not None
            assert own.last_move.text == other.last_move.text == move.text
            assert own.last_move.target == move.target
            assert own.last_move.source == move.source.split("-")[0]
            prefix = "" if move.target.startswith("center") else "opponent-"
            assert other.last_move.target == prefix + move.target
            assert other.last_move.source == "opponent-" + own.last_move.source
            if move.text == "end_turn":
                assert move.source == move.target == "end_turn"
                continue
            drawn = rules.refill_mid_turn and len(before.players[mover].hand) == 1
            if not drawn:
                assert cards_at(own, move.source) == cards_at(before, move.source) - 1
                assert cards_at(other, "opponent-" + move.source.split("-")[0]) == cards_at(own, own.last_move.source)
            recycled = move.target.startswith("center") and not own.centers[int(move.target[-1])].cards
            assert recycled or cards_at(own, move.target) == cards_at(before, move.target) + 1
    assert seen >= {"payoff", "side", "hand", "wild", "discard"}


def test_a_forfeit_has_no_places_and_an_ended_game_no_legal_moves() -> None:
    game = start(G4A, mover=1, opponent_payoff="234")
    game.forfeit([0])
    table = describe(game, last_move=(1, None), names=("ann", "bob"))
    assert table.last_move is not None
    assert (table.last_move.source, table.last_move.target) == ("", "")
    assert (table.last_text, table.headline) == ("bob: forfeits", "ann wins 1 point")
    assert (table.over, table.winner, table.legal) == (True, 0, ())


@pytest.mark.parametrize("viewer", [2, -1, True, 1.0, "player_0", "mover"])
def test_a_viewer_that_does_not_exist_is_refused(viewer: Any) -> None:
    with pytest.raises(ValueError, match=r"viewer=.* is not allowed; it is 0, 1, 'all' or None"):
        describe(Game(), 0, viewer)


@pytest.mark.parametrize("last_move", ["player_0: discard K>side1", (2, 0), (0, 74), (0, "wild>center0"), (True, 1), 5])
def test_a_last_move_that_is_none_is_refused(last_move: Any) -> None:
    with pytest.raises(ValueError, match=r"last_move.* is not allowed; it is"):
        describe(Game(), last_move=last_move)


# -- the picture -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("viewer", [0, 1, None, "all"])
@all_variants
def test_every_legal_action_starts_and_ends_at_a_place_of_the_picture(rules: Rules, viewer: Any) -> None:
    marked = 0
    for table in tables(rules, 6, seed=3, viewer=viewer):
        found = groups(svg(table))
        plays = [move for move in table.legal if not move.text.startswith("discard")]
        sources, targets = {move.source for move in plays}, {move.target for move in table.legal}
        assert {move.source for move in table.legal} | targets <= found.keys()
        for place, drawn in found.items():
            classes = {name for group in drawn for name in str(group.get("class")).split()}
            assert ("source" in classes, "target" in classes) == (place in sources, place in targets)
            marked += place in sources
        assert len(found.get("hand-K", [])) == table.players[table.seat].hand.count("K")
    assert marked


def test_the_last_move_is_marked_where_it_came_from_and_went_to() -> None:
    game = start(G4A, hand="25", sides=["A"], opponent_hand="6")
    marks = {}
    for text in ("side0>center1", "hand>center1", "discard 5>side3"):
        action = game.actions.parse(text)
        game.step([action])
        for viewer in PLAYERS:
            picture = svg(describe(game, viewer=viewer, last_move=(0, action)))
            assert f"last: player_0: {text.replace('>', '&gt;')}</text>" in picture
            marks[text, viewer] = {
                (mark, place)
                for place, drawn in groups(picture).items()
                for group in drawn
                for mark in str(group.get("class")).split()
                if mark.startswith("last-")
            }
    assert marks["side0>center1", 0] == {("last-source", "side0"), ("last-target", "center1")}
    assert marks["side0>center1", 1] == {("last-source", "opponent-side0"), ("last-target", "center1")}
    assert marks["hand>center1", 0] == {("last-source", "hand"), ("last-target", "center1")}
    assert marks["hand>center1", 1] == {("last-source", "opponent-hand"), ("last-target", "center1")}
    assert marks["discard 5>side3", 0] == {("last-source", "hand"), ("last-target", "side3")}
    assert marks["discard 5>side3", 1] == {("last-source", "opponent-hand"), ("last-target", "opponent-side3")}


def test_a_king_in_the_centre_shows_the_rank_that_it_stands_for() -> None:
    picture = svg(describe(start(G4A, centers=["K2KKK", "A", "KK3"], hand="K")))
    texts = {
        place: ["".join(text.itertext()) for text in group.iter("{http://www.w3.org/2000/svg}text")]
        for place, (group, *_) in groups(picture).items()
    }
    assert texts["center0"] == ["centre 0", "needs 6", "K", "=5"]
    assert texts["center1"] == ["centre 1", "needs 2", "A", "A"]
    assert texts["center2"] == ["centre 2", "needs 4", "3", "3"]
    assert texts["hand-K"] == ["K", "K"]
    assert "center0 needs 6: K=A 2 K=3 K=4 K=5" in picture


def test_a_long_side_pile_shows_its_upper_cards_and_how_many_lie_below() -> None:
    pile = "A23456789TJQ" * 2
    drawn = layout(describe(start(G4A, sides=[pile, pile[:6], pile[:7]], hand="A")))
    texts = {part.place: [shape.text for shape in part.shapes if isinstance(shape, Text)] for part in drawn.parts}
    assert texts["side0"] == ["side 0", "+19", "8", "9", "T", "J", "Q", "Q"]
    assert texts["side1"] == ["side 1", *"A2345", "6", "6"]
    assert texts["side2"] == ["side 2", "+2", *"3456", "7", "7"]
    assert "side0: " + " ".join(pile) in {part.title for part in drawn.parts}


@pytest.mark.parametrize("rules", [*VARIANTS, LARGE])
def test_all_pictures_of_a_game_have_one_size_and_lie_within_it(rules: Rules) -> None:
    drawings = [layout(table) for viewer in (0, "all") for table in tables(rules, 6, seed=5, viewer=viewer)]
    [(width, height)] = {(drawing.width, drawing.height) for drawing in drawings}
    assert width == WIDTH
    for drawing in drawings:
        for box in shapes(drawing, Box):
            assert -0.5 <= box.x <= box.x + box.width <= width
            assert 0 <= box.y <= box.y + box.height <= height
            assert box.look in LOOKS
        for text in shapes(drawing, Text):
            assert 0 < text.x < width
            assert text.size < text.y < height
            assert text.size >= 10


@pytest.mark.parametrize("rules", [G4A, CLASSIC, LARGE])
def test_the_cards_of_different_places_do_not_overlap(rules: Rules) -> None:
    solid = {"card", "king", "back", "gap"}
    for table in tables(rules, 4, seed=8, viewer=1):
        cards = [
            (part.place if not part.place.startswith("hand-") else str(number), box)
            for number, part in enumerate(layout(table).parts)
            for box in part.shapes
            if isinstance(box, Box) and box.look in solid
        ]
        for (place, a), (other, b) in combinations(cards, 2):
            apart = a.x + a.width <= b.x or b.x + b.width <= a.x or a.y + a.height <= b.y or b.y + b.height <= a.y
            assert apart or place == other


@all_variants
def test_equal_tables_have_equal_pictures_and_any_move_changes_them(rules: Rules) -> None:
    game = Game(rules, seed=3)
    pictures = []
    while len(pictures) < 12 and not game.terminated[0]:
        pictures.append(svg(describe(game, viewer=0)))
        assert svg(describe(game.copy(), viewer=0)) == pictures[-1]
        game.step(game.legal_actions().argmax(axis=1))
    assert len(pictures) > 1
    assert all(first != second for first, second in pairwise(pictures))


def test_names_of_any_characters_are_drawn() -> None:
    names = ("<b>&\"'</b>", "\x00\ud800\n\u202e\u4e2d\N{GRINNING FACE}" + "x" * 50)
    table = describe(Game(), names=names)
    picture = ElementTree.fromstring(svg(table))
    texts = {"".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert names[0] in texts
    [other] = (text for text in texts if "\u4e2d" in text)
    assert len(other) == 24
    assert other.startswith("????\u4e2d")


def test_an_svg_stands_alone() -> None:
    table = describe(Game())
    picture = ElementTree.fromstring(svg(table))
    assert not any("href" in name or name == "id" for element in picture.iter() for name in element.attrib)
    assert {element.tag.split("}")[1] for element in picture.iter()} == {"svg", "title", "g", "rect", "text"}
    assert "width" not in picture.attrib
    assert ElementTree.fromstring(svg(table, width=400)).get("width") == "400"
    assert picture[0].text == "player_0 to move"


# -- pixels ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rules", [G4A, Rules.mini()])
def test_pixels_are_equal_for_equal_views_and_need_no_display(rules: Rules, monkeypatch: pytest.MonkeyPatch) -> None:
    pygame = pytest.importorskip("pygame")
    from spite_env.render.raster import rgb_array

    monkeypatch.setenv("SDL_VIDEODRIVER", "no such driver")
    game = played_games(rules, 3, seed=1, most=60)
    rng = random.Random(1)
    pictures = []
    for index in range(game.num_games):
        table = describe(game, index, 0)
        picture = rgb_array(table, 200)
        assert (picture.dtype, picture.shape[1:], picture.flags.c_contiguous) == (np.uint8, (200, 3), True)
        other = Game.from_positions(rules, [rehidden(game.position(index), 0, rng)], seed=5)
        np.testing.assert_array_equal(rgb_array(describe(other, 0, 0), 200), picture)
        pictures.append(picture)
        pygame.quit()  # as other environments do when they are closed
        colors = {tuple(color) for color in picture[::3, ::3].reshape(-1, 3).tolist()}
        assert colors >= {tuple(bytes.fromhex(str(LOOKS[look].fill)[1:])) for look in ("cloth", "centre", "back")}
    assert len({picture.shape for picture in pictures}) == 1
    assert all((first != second).any() for first, second in combinations(pictures, 2))
    assert pictures[0].shape[0] == 2 * round(layout(describe(game)).height / 4)
    assert rgb_array(describe(game)).shape[1] == 600


@pytest.mark.parametrize("width", [0, 99, 4001, 400.0, True, "400"])
def test_a_width_that_is_none_is_refused(width: Any) -> None:
    pytest.importorskip("pygame")
    from spite_env.render.raster import rgb_array

    with pytest.raises(ValueError, match=r"width=.* is not allowed; it is an integer from 100 to 4000"):
        rgb_array(describe(Game()), width)


def test_pixels_without_pygame_say_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    from spite_env.render.raster import rgb_array

    monkeypatch.setitem(sys.modules, "pygame", None)
    with pytest.raises(ImportError, match=r"pip install 'spite_env\[render\]'"):
        rgb_array(describe(Game()))
