"""Sampling what a player can't see."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import (
    ALL_PRESETS,
    SHORT_MATCH,
    Players,
    check_bookkeeping,
    chi_square,
    chi_square_limit,
    count_cards,
    do,
    over,
    played_games,
    start,
    storage,
)
from spite_env import Game, Rules
from spite_env.information import InformationSets
from spite_env.policies import RandomPolicy, decide
from spite_env.render import describe
from spite_env.render.ansi import board
from spite_env.rules import PRESETS
from spite_env.state import Bytes

VARIANTS = {
    **dict(zip(PRESETS, ALL_PRESETS, strict=True)),
    "match": SHORT_MATCH,
    "bottom": Rules(recycle="bottom"),
    "mini set_aside": Rules.mini().replace(recycle="set_aside", stock_end="short"),
    "mini bottom": Rules.mini().replace(recycle="bottom", stock_end="short"),
}
EVERY_VARIANT = pytest.mark.parametrize("rules", VARIANTS.values(), ids=VARIANTS)


def games_going_on(rules: Rules, count: int, seed: int, **options: Any) -> Game:
    """Return games after any number of decisions, all piles recycled so far included."""
    return played_games(rules, count, seed, most=20 if rules.ranks == 3 else 150, **options)


def infosets(game: Game) -> InformationSets:
    return InformationSets(game, np.arange(game.num_games))


def hidden_facts(game: Game, viewer: NDArray[np.int64]) -> Bytes:
    """Return the opponent's hand, both pay-off piles' face-down cards, and the next card, one row a game."""
    s, every = game.state, np.arange(game.num_games)
    place = np.arange(s.pile.shape[2])[:, None]
    face_down = (s.pile[:, 0] * (place < s.pile_size[:, 0, None]))[:, 1 : game.rules.payoff_size]
    last = np.maximum(s.stock_size.astype(np.intp) - 1, 0)
    rows = (s.hand[1 - viewer, :, every].T, face_down.reshape(-1, game.num_games), s.stock[last, every][None])
    return np.ascontiguousarray(np.concatenate(rows).T)


# -- what a sampled game is ------------------------------------------------------------------------------------------


@EVERY_VARIANT
def test_a_sample_looks_to_its_player_as_the_game_does(rules: Rules) -> None:
    game = games_going_on(rules, 150, seed=1, encoding="compact", side_depth=rules.num_cards)
    worlds = infosets(game).sample(3, np.random.default_rng(0))
    same = np.repeat(np.arange(150), 3)
    np.testing.assert_array_equal(worlds.observe(), game.observe()[same])
    np.testing.assert_array_equal(worlds.legal_actions(), game.legal_actions()[same])
    np.testing.assert_array_equal(worlds.current_player, game.current_player[same])
    np.testing.assert_array_equal(worlds.state.steps, game.state.steps[same])
    for number in range(0, 450, 30):
        assert board(describe(worlds, number)) == board(describe(game, number // 3))


@EVERY_VARIANT
def test_cards_are_conserved_and_every_sample_is_a_game(rules: Rules) -> None:
    game = games_going_on(rules, 150, seed=2)
    worlds = infosets(game).sample(2, np.random.default_rng(0))
    np.testing.assert_array_equal(count_cards(worlds), np.repeat(count_cards(game), 2, axis=1))
    check_bookkeeping(worlds)
    above = np.arange(rules.num_cards)[:, None] >= worlds.state.stock_size
    assert not (worlds.state.stock * above).any(), "cards drawn before are left above the stock"
    players = Players(rules, worlds.num_games, seed=3)
    for _ in range(20):
        worlds.step(players.choose(worlds))
    np.testing.assert_array_equal(count_cards(worlds)[:, ~over(worlds)].sum(axis=0), rules.num_cards)
    check_bookkeeping(worlds)


@EVERY_VARIANT
def test_nothing_hidden_gets_into_a_sample(rules: Rules) -> None:
    """Any sample might be the truth: sampling from it must give the same, to the last byte."""
    game = games_going_on(rules, 200, seed=4)
    others = infosets(game).sample(1, np.random.default_rng(0))
    assert (hidden_facts(game, game.current_player) != hidden_facts(others, game.current_player)).any(
        axis=1
    ).mean() > 0.5
    seeds = list(range(200))
    assert storage(infosets(game).sample(5, seeds)) == storage(infosets(others).sample(5, seeds))


def test_a_game_dealt_anew_leaves_nothing_of_the_last_one_in_its_samples() -> None:
    game = Game(Rules.mini(), 200, seed=5, autoreset=True)
    players = Players(Rules.mini(), 200, seed=5)
    while not over(game).any():
        game.step(players.choose(game))
    worlds = infosets(game).sample(2, np.random.default_rng(0))
    assert not over(worlds).any()
    assert not worlds.final_observation.any()
    players = Players(Rules.mini(), 400, seed=6)
    for _ in range(300):
        worlds.step(players.choose(worlds))
    assert over(worlds).all()


def test_the_player_stays_the_one_who_was_to_move() -> None:
    game = games_going_on(Rules(), 50, seed=6)
    asked = infosets(game)
    viewer = game.current_player
    game.step(game.actions.num_plays + game.legal_actions()[:, game.actions.num_plays :].argmax(axis=1))
    worlds = asked.sample(2, np.random.default_rng(0))
    for player in (0, 1):
        own = viewer == player
        np.testing.assert_array_equal(
            worlds.observe(player)[np.repeat(own, 2)], np.repeat(game.observe(player)[own], 2, axis=0)
        )


# -- how likely it is ------------------------------------------------------------------------------------------------


def blind_actions(game: Game, rng: np.random.Generator) -> NDArray[np.intp]:
    """Use the pay-off card if it fits, else a hand card chosen with closed eyes: play it, else discard it."""
    table, rules, every = game.actions, game.rules, np.arange(game.num_games)
    mask, state = game.legal_actions(), game.state
    hand = state.hand[state.player, :, every].T.astype(np.intp)
    drawn = (hand.cumsum(axis=0) <= rng.integers(np.maximum(hand.sum(axis=0), 1))).sum(axis=0)
    chosen = np.where(hand.any(axis=0), table.discard(0, 0) + drawn * rules.side_piles, table.end_turn)
    for center in reversed(range(rules.center_piles)):
        fits = (drawn == rules.ranks) | (drawn == state.center_size[center])
        source = np.where(drawn == rules.ranks, table.num_sources - 1, table.num_sources - 2)
        chosen = np.where(fits & hand.any(axis=0), table.play(center, 0) + source, chosen)
    for center in reversed(range(rules.center_piles)):
        chosen = np.where(mask[:, table.play(center, 0)], table.play(center, 0), chosen)
    return chosen


def two_sample_chi_square(views: Bytes, truth: Bytes, samples: Bytes) -> tuple[float, int]:
    """Compare how often hidden facts go with a view in truth and in samples; return the number of cells too."""
    rows = np.concatenate((np.hstack((views, truth)), np.hstack((views, samples))))
    _, cell = np.unique(rows.view(f"V{rows.shape[1]}").ravel(), return_inverse=True)
    true, sampled = (np.bincount(half, minlength=cell.max() + 1) for half in np.split(cell.ravel(), 2))
    often = true + sampled >= 20
    return float(((true - sampled)[often] ** 2 / (true + sampled)[often]).sum()), int(often.sum())


@pytest.mark.parametrize(
    ("recycle", "decisions", "recycled"),
    [("shuffle", 0, False), ("shuffle", 2, False), ("set_aside", 5, False), ("shuffle", 5, True)],
)
def test_samples_are_as_frequent_as_the_truth_where_the_same_cards_are_unseen(
    recycle: str, decisions: int, recycled: bool
) -> None:
    """The players choose blindly, so that what is said of the posterior holds."""
    rules = Rules.mini().replace(recycle=recycle)
    rng = np.random.default_rng(decisions)
    game = Game(rules, 100_000, seed=decisions, encoding="compact", side_depth=rules.num_cards)
    for _ in range(decisions):
        game.step(np.where(over(game), 0, blind_actions(game, rng)))
    game = game.copy(np.flatnonzero(~over(game) & ((game.state.shuffles > 0) == recycled)))
    worlds = infosets(game).sample(1, rng)
    viewer, unseen = game.current_player, game.observe()[:, game.observation.slices["unseen"]]
    statistic, cells = two_sample_chi_square(unseen, hidden_facts(game, viewer), hidden_facts(worlds, viewer))
    assert cells > 100
    assert statistic < chi_square_limit(cells)


@EVERY_VARIANT
def test_the_most_cards_ever_in_view_at_once_are_remembered(rules: Rules) -> None:
    game = Game(rules, 100, seed=7)
    players = Players(rules, 100, seed=7)
    s, deck = game.state, np.array(rules.deck)[:, None]
    most, kinds = np.zeros((2, rules.kinds, 100), np.intp), np.arange(1, rules.kinds + 1)[:, None]
    for _ in range(30 if rules.ranks == 3 else 250):
        most = np.maximum(most, deck - s.hidden + s.hand)
        sizes = s.pile_size[:, 0].copy()
        game.step(players.choose(game))
        uncovered = np.where(sizes > s.pile_size[:, 0], s.pile_top[:, 0], 0)
        most += (uncovered[:, None] == kinds).sum(axis=0)
        most[..., s.steps == 0] = 0  # the next game of a match
        in_view = np.maximum(s.seen, deck - s.hidden + s.hand)
        assert (in_view >= most)[..., ~over(game)].all()
    check_bookkeeping(game)
    assert rules.recycle == "set_aside" or s.seen.any()


def test_recycled_cards_lie_under_the_others() -> None:
    rules = Rules.mini().replace(recycle="bottom")
    layout = {"payoff": "2A", "opponent_payoff": "2A", "hand": "33", "opponent_hand": "2", "stock": "KK"}
    game = start(rules, centers=["A2"], **layout)
    do(game, "hand>center0")
    worlds = infosets(game).sample(300, [1])
    positions = [worlds.position(number) for number in range(300)]
    assert {"".join(sorted(position["stock"][:3])) for position in positions} == {"23A"}
    assert len({"".join(position["stock"][:3]) for position in positions}) == 6
    elsewhere = [[*position["stock"][3:], *position["hands"][1]] for position in positions]
    assert {"".join(sorted(cards)) for cards in elsewhere} == {"2KK", "22K", "222"}


def test_a_stock_that_was_shuffled_holds_recycled_cards_anywhere() -> None:
    layout = {"payoff": "2A", "opponent_payoff": "2A", "hand": "33", "opponent_hand": "2", "stock": "KK"}
    game = start(Rules.mini(), centers=["A2"], **layout)
    do(game, "hand>center0")
    worlds = infosets(game).sample(2000, [1])
    position = worlds.state.stock[:5] == 1  # the only ace that isn't on the table
    in_hand = worlds.state.hand[1, 0] == 1
    counts = np.append(position.sum(axis=1), in_hand.sum())
    assert chi_square(counts, np.full(6, 2000 / 6)) < chi_square_limit(5)


def test_when_all_else_is_in_view_only_the_order_of_the_stock_is_open() -> None:
    rules = Rules.mini().replace(recycle="set_aside")
    game = start(rules, centers=["A2"], payoff="2A", opponent_payoff="3A", hand="3", opponent_hand="2", stock="")
    do(game, "hand>center0", "end_turn")
    truth = game.position(0)
    worlds = infosets(game).sample(50, [1])
    stocks = set()
    for number in range(50):
        position = worlds.position(number)
        stocks.add("".join(position.pop("stock")))
        piles = [pile[:-1] for pile in position.pop("payoff")]
        assert sorted(map(tuple, piles)) == [("2",), ("3",)]
        assert position == {key: truth[key] for key in position}
    assert stocks == {"".join(truth["stock"]), "".join(reversed(truth["stock"]))}


def test_samples_differ() -> None:
    game = games_going_on(Rules(), 20, seed=8)
    worlds = infosets(game).sample(100, np.random.default_rng(0))
    facts = np.hstack((hidden_facts(worlds, worlds.current_player), worlds.state.stock.T))
    for block in np.split(facts, 20):
        assert len(np.unique(block, axis=0)) >= 99


# -- random numbers --------------------------------------------------------------------------------------------------


def test_equal_seeds_sample_equally_and_others_do_not() -> None:
    game = games_going_on(Rules(), 10, seed=9)
    first = storage(infosets(game).sample(3, np.random.default_rng(1)))
    assert storage(infosets(game).sample(3, np.random.default_rng(1))) == first
    assert storage(infosets(game).sample(3, np.random.default_rng(2))) != first
    asked, generator = infosets(game), np.random.default_rng(1)
    assert storage(asked.sample(3, generator)) == first
    assert storage(asked.sample(3, generator)) != first


def test_from_seeds_a_game_is_sampled_the_same_in_any_batch_and_any_number() -> None:
    game = games_going_on(Rules(), 30, seed=10)
    seeds = np.arange(100, 130)
    whole = infosets(game).sample(8, seeds)
    some = np.array([17, 3, 29])
    fewer = InformationSets(game, some).sample(5, seeds[some])
    numbers = (some[:, None] * 8 + np.arange(5)).ravel()
    assert storage(fewer) == storage(whole.copy(numbers))
    assert storage(infosets(game).select(some).sample(5, seeds[some])) == storage(fewer)


def test_samples_shuffle_and_deal_by_random_numbers_of_their_own() -> None:
    rules = SHORT_MATCH
    game = games_going_on(rules, 10, seed=11)
    worlds = infosets(game).sample(50, np.random.default_rng(0))
    keys = np.concatenate((game.state.key, worlds.state.key))
    assert len(np.unique(keys)) == keys.size
    assert not np.isin(worlds.state.seed, game.state.seed).any()


@pytest.mark.parametrize("k", [0, -1, 1.5, True, None])
def test_an_impossible_number_of_samples_is_refused(k: Any) -> None:
    with pytest.raises(ValueError, match=f"k={k!r} is not allowed"):
        infosets(Game(Rules(), 2)).sample(k, np.random.default_rng(0))


def test_seeds_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ValueError, match="do not fit 2 games"):
        infosets(Game(Rules(), 2)).sample(1, [1, 2, 3])


# -- policies --------------------------------------------------------------------------------------------------------


def test_policies_are_given_the_information_of_the_games_they_play() -> None:
    game = games_going_on(Rules(), 6, seed=12)
    given: list[InformationSets] = []

    class Listener(RandomPolicy):
        def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
            given.append(infosets)
            return super().act(observation, action_mask, infosets, indices)

    policy = Listener()
    policy.reset(Rules(), 16, 0)
    games = np.array([4, 1])
    decide(policy, "listener", game, games, first=10)
    assert storage(given[0].sample(2, [5, 6])) == storage(InformationSets(game, games).sample(2, [5, 6]))
    assert [name for name in dir(given[0]) if not name.startswith("_")] == ["sample", "select"]
