"""What an observation shows, feature by feature, against the facts of positions."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from helpers import ALL_PRESETS, PLAYERS, SHORT_MATCH, Position, cards_of, deck_of, lay, played_games, random_position
from spite_env import Game, Rules
from spite_env.observation import ObservationTable
from spite_env.rules import PRESETS

VARIANTS = {
    **dict(zip(PRESETS, ALL_PRESETS, strict=True)),
    "match": SHORT_MATCH,
    "one rank": Rules(ranks=1, copies=30, wilds=9, payoff_size=4),
    "255 cards": Rules(ranks=11, copies=22, wilds=13, payoff_size=40, hand_size=30, recycle="set_aside"),
    "many piles": Rules(center_piles=7, side_piles=9, match_points=100),
}
EVERY_VARIANT = pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)
EVERY_ENCODING = pytest.mark.parametrize("encoding", ["compact", "onehot"])
DEPTHS = range(6)
EVERY_DEPTH = pytest.mark.parametrize("depth", DEPTHS)


def facts(rules: Rules, position: Position, viewer: int, depth: int) -> dict[str, list[int]]:
    """Return what a viewer sees of a position, in natural units, by the names of the slices."""

    def rank(card: str) -> int:
        return rules.characters.index(card) + 1

    def tally(cards: list[str]) -> list[int]:
        return [cards.count(card) for card in rules.characters]

    seen: dict[str, list[int]] = {}
    for name, player in (("own", viewer), ("opponent", 1 - viewer)):
        payoff, sides = position["payoff"][player], position["sides"][player]
        seen[f"{name}_payoff_top"] = [rank(payoff[-1])] if payoff else [0]
        seen[f"{name}_payoff_size"] = [len(payoff)]
        seen[f"{name}_hand_size"] = [len(position["hands"][player])]
        seen[f"{name}_score"] = [position["scores"][player]]
        seen[f"{name}_side_size"] = [len(pile) for pile in sides]
        from_top = [pile[::-1][: depth + 1] for pile in sides]
        windows = [[rank(card) for card in window] + [0] * (depth + 1 - len(window)) for window in from_top]
        seen[f"{name}_side_cards"] = [card for window in windows for card in window]
        rests = [tally(pile[: max(len(pile) - depth - 1, 0)]) for pile in sides]
        seen[f"{name}_side_rest"] = [count for rest in rests for count in rest]
    seen["own_turn"] = [int(position["turn"] == viewer)]
    seen["own_hand"] = tally(position["hands"][viewer])
    seen["stock_size"] = [len(position["stock"])]
    seen["center_height"] = [len(pile) for pile in position["centers"]]
    heights = range(rules.ranks)
    seen["center_wild"] = [
        int(pile[height : height + 1] == ["K"]) for pile in position["centers"] for height in heights
    ]
    seen["set_aside"] = tally(position["set_aside"])
    seen["set_aside_size"] = [len(position["set_aside"])]
    face_down = [card for pile in position["payoff"] for card in pile[:-1]]
    seen["unseen"] = tally(position["stock"] + face_down + position["hands"][1 - viewer])
    return seen


def as_onehot(table: ObservationTable, compact: NDArray[np.uint8]) -> list[int]:
    """Rewrite a compact observation."""
    kinds = table.rules.kinds
    compact_places = ObservationTable(table.rules, "compact", table.side_depth).slices
    features: list[int] = []
    for row in table.table:
        for value in compact[compact_places[row.name]].tolist():
            if row.kind == "card":
                features += [int(value == kind) for kind in range(1, kinds + 1)]
            elif row.kind == "number":
                features += [value >> digit & 1 for digit in range(row.high.bit_length())]
            else:
                features.append(value)
    return features


def as_compact(table: ObservationTable, onehot: NDArray[np.uint8]) -> list[int]:
    """Read a one-hot observation back."""
    values: list[int] = []
    for row in table.table:
        cells = onehot[table.slices[row.name]].tolist()
        width = len(cells) // row.size
        for begin in range(0, len(cells), width):
            code = cells[begin : begin + width]
            if row.kind == "card":
                assert sum(code) <= 1
                values.append(code.index(1) + 1 if any(code) else 0)
            elif row.kind == "number":
                values.append(sum(digit << place for place, digit in enumerate(code)))
            else:
                values += code
    return values


@cache
def some_positions(rules: Rules) -> list[Position]:
    """Return positions from play and any others."""
    game = played_games(rules, 8, seed=1, most=150)
    rng = random.Random(1)
    return [game.position(index) for index in range(8)] + [random_position(rules, rng) for _ in range(12)]


def assert_shows_the_facts(game: Game, depth: int) -> None:
    places = game.observation.slices
    views = [game.observe(viewer) for viewer in PLAYERS]
    for index in range(game.num_games):
        position = game.position(index)
        for viewer, view in enumerate(views):
            expected = facts(game.rules, position, viewer, depth)
            assert set(expected) == set(places)
            assert {name: view[index, places[name]].tolist() for name in expected} == expected


@EVERY_DEPTH
@EVERY_VARIANT
def test_a_compact_observation_shows_the_facts_to_both_players(rules: Rules, depth: int) -> None:
    positions = some_positions(rules)
    assert_shows_the_facts(Game.from_positions(rules, positions, encoding="compact", side_depth=depth), depth)


@EVERY_VARIANT
def test_dealt_and_played_games_show_the_facts(rules: Rules) -> None:
    assert_shows_the_facts(Game(rules, 5, seed=1, encoding="compact"), 3)
    assert_shows_the_facts(played_games(rules, 40, 2, 120, encoding="compact"), 3)


def test_ended_games_show_how_they_ended() -> None:
    positions = [
        lay(Rules(), payoff="K", opponent_payoff="A2", centers=["A23456789TJ", "AK"], sides=["9K"]),
        lay(Rules(), mover=1, payoff="A", hand="99"),
    ]
    for encoding in ("compact", "onehot"):
        game = Game.from_positions(Rules(), positions, encoding=encoding)
        game.step([game.actions.parse("payoff>center0")] * 2)
        assert game.terminated.all()
        if encoding == "compact":
            assert_shows_the_facts(game, 3)
        for viewer in PLAYERS:
            assert all(game.observation.space.contains(row) for row in game.observe(viewer))
        np.testing.assert_array_equal(game.observe()[0], game.observe(0)[0])
        np.testing.assert_array_equal(game.observe()[1], game.observe(1)[1])


@EVERY_DEPTH
@EVERY_VARIANT
def test_the_encodings_can_be_rewritten_into_each_other(rules: Rules, depth: int) -> None:
    positions = some_positions(rules)[4:14]
    compact, onehot = (
        Game.from_positions(rules, positions, encoding=encoding, side_depth=depth) for encoding in ("compact", "onehot")
    )
    table = onehot.observation
    for viewer in PLAYERS:
        for short, long in zip(compact.observe(viewer), onehot.observe(viewer), strict=True):
            assert as_onehot(table, short) == long.tolist()
            assert as_compact(table, long) == short.tolist()


@EVERY_ENCODING
@EVERY_VARIANT
def test_the_movers_view_is_that_of_the_player_to_move(rules: Rules, encoding: str) -> None:
    game = Game.from_positions(rules, some_positions(rules), encoding=encoding)
    both = np.stack([game.observe(viewer) for viewer in PLAYERS])
    np.testing.assert_array_equal(game.observe(), both[game.current_player, np.arange(game.num_games)])
    assert set(game.current_player.tolist()) == {0, 1}


@EVERY_ENCODING
@EVERY_DEPTH
@EVERY_VARIANT
def test_observations_lie_in_the_space(rules: Rules, depth: int, encoding: str) -> None:
    game = Game.from_positions(rules, some_positions(rules), encoding=encoding, side_depth=depth)
    space = game.observation.space
    assert space.dtype == np.uint8
    assert space.shape == (game.observation.n,)
    assert not space.low.any()
    np.testing.assert_array_equal(space.high, game.observation.high)
    for observation in (game.observe(), game.observe(0), game.observe(1)):
        assert observation.dtype == np.uint8
        assert observation.shape == (game.num_games, game.observation.n)
        assert all(space.contains(row) for row in observation)


@EVERY_ENCODING
@EVERY_DEPTH
@EVERY_VARIANT
def test_the_slices_cover_all_features_without_gaps(rules: Rules, depth: int, encoding: str) -> None:
    table = ObservationTable(rules, encoding, depth)
    assert list(table.slices) == [row.name for row in table.table]
    assert len(set(table.slices)) == len(table.table)
    ends = [0]
    for place in table.slices.values():
        assert place.step is None
        assert place.start == ends[-1]
        assert place.stop > place.start
        ends.append(place.stop)
    assert ends[-1] == table.n == len(table.high)


@EVERY_ENCODING
def test_the_description_lists_every_slice_with_its_place(encoding: str) -> None:
    table = ObservationTable(Rules(), encoding)
    lines = table.describe().splitlines()
    assert len(lines) == 2 + len(table.table)
    for row, line in zip(table.table, lines[2:], strict=True):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        place = table.slices[row.name]
        assert cells[0] == f"{place.start}:{place.stop}"
        assert cells[1] == f"`{row.name}`"
        assert cells[2].split(" x ") == [str(length) for length in row.shape]
        assert cells[3] == row.kind
        assert cells[4] == str(row.high)
        assert cells[5] == row.meaning
        assert row.meaning


def test_a_compact_observation_has_about_a_hundred_values_at_the_least_depth() -> None:
    assert 100 <= ObservationTable(Rules(), "compact", 0).n <= 250


@EVERY_ENCODING
def test_some_games_are_shown_as_they_are_among_all(encoding: str) -> None:
    game = Game.from_positions(SHORT_MATCH, some_positions(SHORT_MATCH), encoding=encoding)
    for indices in ([], [3], [7, 2, 2, 19], range(20), np.arange(20)[::-1]):
        listed = np.array(indices, np.intp)
        for viewer in (None, *PLAYERS):
            np.testing.assert_array_equal(game.observe(viewer, indices), game.observe(viewer)[listed])
        np.testing.assert_array_equal(game.legal_actions(indices), game.legal_actions()[listed])
    for wrong in ([20], [-1], [0.0], 3, [[1]]):
        with pytest.raises(ValueError, match=r"game .* does not exist|indices must be integers"):
            game.observe(indices=wrong)
        with pytest.raises(ValueError, match=r"game .* does not exist|indices must be integers"):
            game.legal_actions(wrong)


@EVERY_ENCODING
def test_an_observation_is_a_new_array_that_stays(encoding: str) -> None:
    game = Game(Rules(), 3, seed=1, encoding=encoding)
    first = game.observe()
    kept = first.copy()
    second = game.observe()
    second[:] = 77
    np.testing.assert_array_equal(first, kept)
    game.step(game.legal_actions().argmax(axis=1))
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize("viewer", [2, -1, True, False, 0.5, 1.0, "0", "player_0"])
def test_a_viewer_that_is_no_player_is_refused(viewer: Any) -> None:
    with pytest.raises(ValueError, match=r"viewer=.* is not allowed; it is 0, 1 or None"):
        Game().observe(viewer)


@pytest.mark.parametrize("encoding", ["", "one-hot", "Compact", None, 1])
def test_an_unknown_encoding_is_refused_with_the_known_ones(encoding: Any) -> None:
    with pytest.raises(ValueError, match=r"encoding=.* is not allowed; it is one of 'compact', 'onehot'"):
        Game(encoding=encoding)


@pytest.mark.parametrize("depth", [-1, 105, 1.0, "3", None, True])
def test_an_impossible_side_depth_is_refused_with_what_is_allowed(depth: Any) -> None:
    with pytest.raises(ValueError, match=r"side_depth=.* is not allowed; it is an integer from 0 to 104"):
        Game(side_depth=depth)


# -- every public fact is in it --------------------------------------------------------------------------------------


def changed(position: Position, *path: Any, to: Any) -> Position:
    """Return a position with one thing changed, named by keys and numbers."""
    if not path:
        return to
    first, *rest = path
    part: Any = changed(position[first], *rest, to=to)
    if isinstance(position, dict):
        return position | {first: part}
    return [*position[:first], part, *position[first + 1 :]]


def other_cards(rules: Rules, card: str, rng: random.Random) -> list[str]:
    others = rules.characters.replace(card, "")
    return rng.sample(others, min(2, len(others)))


def public_changes(rules: Rules, position: Position, rng: random.Random) -> Iterator[tuple[str, Position]]:
    """Change one public fact of a position, in many ways; not all of the results are possible."""
    for player in PLAYERS:
        payoff, hand = position["payoff"][player], position["hands"][player]
        for card in other_cards(rules, payoff[-1], rng):
            yield "pay-off top", changed(position, "payoff", player, -1 % len(payoff), to=card)
        for card in rng.sample(rules.characters, 2):
            yield "pay-off size", changed(position, "payoff", player, to=[card, *payoff])
            yield "hand size", changed(position, "hands", player, to=[*hand, card])
        yield "pay-off size", changed(position, "payoff", player, to=payoff[1:])
        yield "hand size", changed(position, "hands", player, to=hand[1:])
        yield "score", changed(position, "scores", player, to=position["scores"][player] + 1)
        for side, pile in enumerate(position["sides"][player]):
            where = ("sides", player, side)
            for place in range(len(pile)):
                for card in other_cards(rules, pile[place], rng):
                    yield "side card", changed(position, *where, place, to=card)
            yield "side size", changed(position, *where, to=pile[1:])
            yield "side size", changed(position, *where, to=pile[:-1])
            yield "side size", changed(position, *where, to=[*pile, rng.choice(rules.characters)])
    for center, pile in enumerate(position["centers"]):
        for place in range(len(pile)):
            natural = rules.characters[place]
            yield (
                "king in a centre pile",
                changed(position, "centers", center, place, to=natural if pile[place] == "K" else "K"),
            )
        yield "centre height", changed(position, "centers", center, to=pile[:-1])
        yield "centre height", changed(position, "centers", center, to=[*pile, rules.characters[len(pile)]])
    for card in rng.sample(rules.characters, 2):
        yield "stock size", changed(position, "stock", to=[card, *position["stock"]])
        yield "cards set aside", changed(position, "set_aside", to=[*position["set_aside"], card])
        aside = position["set_aside"][1:]
        yield "cards set aside", changed(position, "set_aside", to=[card, *aside])
        yield (
            "cards set aside and stock size",
            changed(
                changed(position, "set_aside", to=aside), "stock", to=[*position["set_aside"][:1], *position["stock"]]
            ),
        )
    yield "stock size", changed(position, "stock", to=position["stock"][1:])
    yield "turn", changed(position, "turn", to=1 - position["turn"])
    for place, (first, second) in enumerate(zip(position["centers"], position["centers"][1:], strict=False)):
        swapped = changed(changed(position, "centers", place, to=second), "centers", place + 1, to=first)
        yield "order of centre piles", swapped


def is_possible(rules: Rules, position: Position) -> bool:
    most_points = (rules.match_points or 1) - 1
    return (
        cards_of(position) <= deck_of(rules)
        and all(position["payoff"])
        and all(len(hand) <= rules.hand_size for hand in position["hands"])
        and all(len(pile) < rules.ranks for pile in position["centers"])
        and (rules.recycle == "set_aside" or not position["set_aside"])
        and max(position["scores"]) <= most_points
    )


def canonical(position: Position) -> Position:
    """Return a position with unordered cards in order."""
    unordered = {"hands": [sorted(hand) for hand in position["hands"]], "set_aside": sorted(position["set_aside"])}
    return position | unordered


CHANGED_RULES = {
    "set aside": Rules(payoff_size=6, side_piles=2, recycle="set_aside", match_points=20),
    "mini": Rules.mini(),
}
ALL_CHANGES = {
    "pay-off top",
    "pay-off size",
    "hand size",
    "score",
    "side card",
    "side size",
    "king in a centre pile",
    "centre height",
    "stock size",
    "cards set aside",
    "cards set aside and stock size",
    "turn",
    "order of centre piles",
}


@EVERY_ENCODING
@EVERY_DEPTH
@pytest.mark.parametrize("name", CHANGED_RULES)
def test_positions_that_differ_in_a_public_fact_look_different_to_both(name: str, depth: int, encoding: str) -> None:
    rules, rng = CHANGED_RULES[name], random.Random(depth)
    tried = set()
    for _ in range(6):
        position = random_position(rules, rng)
        changes = [
            (what, other)
            for what, other in public_changes(rules, position, rng)
            if is_possible(rules, other) and canonical(other) != canonical(position)
        ]
        changes = rng.sample(changes, min(70, len(changes)))
        tried |= {what for what, _ in changes}
        game = Game.from_positions(
            rules, [position, *(other for _, other in changes)], encoding=encoding, side_depth=depth
        )
        for viewer in PLAYERS:
            original, *others = game.observe(viewer)
            for (what, other), view in zip(changes, others, strict=True):
                assert not np.array_equal(view, original), f"player {viewer} does not see another {what}: {other}"
    if name == "set aside":
        assert tried == ALL_CHANGES


@EVERY_ENCODING
@EVERY_DEPTH
def test_the_order_of_side_cards_shows_down_to_the_depth_and_no_further(depth: int, encoding: str) -> None:
    rules, pile = Rules(), "A23456789"
    for player in PLAYERS:
        for place in range(len(pile) - 1):
            swapped = pile[:place] + pile[place + 1] + pile[place] + pile[place + 2 :]
            layouts = [
                {"sides": ["K", cards]} if player == 0 else {"opponent_sides": ["K", cards]}
                for cards in (pile, swapped)
            ]
            positions = [lay(rules, stock="", **layout) for layout in layouts]
            game = Game.from_positions(rules, positions, encoding=encoding, side_depth=depth)
            upper_card_from_top = len(pile) - 2 - place
            for viewer in PLAYERS:
                first, second = game.observe(viewer)
                assert np.array_equal(first, second) == (upper_card_from_top > depth)


@EVERY_ENCODING
def test_the_own_hand_shows_and_the_opponents_does_not(encoding: str) -> None:
    rules = Rules()
    positions = [
        lay(rules, hand=hand, opponent_hand=other, stock="44") for hand, other in (("AA2", "33"), ("AA3", "23"))
    ]
    game = Game.from_positions(rules, positions, encoding=encoding)
    assert not np.array_equal(*game.observe(0))
    positions[1] = lay(rules, hand="AA2", opponent_hand="34", stock="34")
    game = Game.from_positions(rules, positions, encoding=encoding)
    assert np.array_equal(*game.observe(0))
    assert not np.array_equal(*game.observe(1))


@given(st.integers(0, 2**32), st.sampled_from(list(VARIANTS)))
def test_unseen_cards_and_visible_cards_are_all_that_are_in_the_game(seed: int, name: str) -> None:
    rules = VARIANTS[name]
    position = random_position(rules, random.Random(seed))
    game = Game.from_positions(rules, [position], encoding="compact")
    for viewer in PLAYERS:
        unseen = game.observe(viewer)[0, game.observation.slices["unseen"]].tolist()
        hidden = Counter(dict(zip(rules.characters, unseen, strict=True)))
        sides = [card for piles in position["sides"] for pile in piles for card in pile]
        centers = [card for pile in position["centers"] for card in pile]
        tops = [pile[-1] for pile in position["payoff"]]
        visible = Counter(sides + centers + tops + position["hands"][viewer] + position["set_aside"])
        assert hidden + visible == cards_of(position)


@pytest.mark.parametrize("encoding", ["compact", "onehot"])
def test_a_game_shows_itself_in_another_layout_when_asked(encoding: str) -> None:
    game = played_games(Rules(), 50, seed=8, most=100)
    table = ObservationTable(Rules(), encoding, 6)
    other = Game.from_positions(Rules(), [game.position(index) for index in range(50)], encoding=encoding, side_depth=6)
    for viewer in (0, 1, None):
        np.testing.assert_array_equal(game.observe(viewer, table=table), other.observe(viewer))
    np.testing.assert_array_equal(game.observe(indices=[7, 3], table=table), other.observe(indices=[7, 3]))


def test_a_layout_for_other_rules_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is one for Rules\(ranks=3.*this game's rules are Rules\(ranks=12"):
        Game().observe(table=ObservationTable(Rules.mini()))
