"""Random numbers: what they are, and what may not change them."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from helpers import (
    ALL_PRESETS,
    SHORT_MATCH,
    EventLog,
    Players,
    chi_square,
    chi_square_limit,
    do,
    heap,
    over,
    snapshot,
    start,
)
from spite_env import Game, Rules, streams
from spite_env.rules import PRESETS

SEEDS = (0, 1, 7, 2**32, 2**63 + 5, 2**64 - 1)
VARIANTS = (*ALL_PRESETS, SHORT_MATCH, Rules(payoff_size=3, match_points=4, max_games=4, first_player="random"))


# -- the documented numbers, one at a time ---------------------------------------------------------------------------

LIMIT = 2**64
GOLDEN = 0x9E3779B97F4A7C15
DEAL, STARTER, SHUFFLE, HIDDEN_STOCK = range(4)


def mixed(word: int) -> int:
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9 % LIMIT
    word = (word ^ (word >> 27)) * 0x94D049BB133111EB % LIMIT
    return word ^ (word >> 31)


def combined(key: int, *values: int) -> int:
    for value in values:
        key = mixed((mixed((key + GOLDEN) % LIMIT) + value * GOLDEN) % LIMIT)
    return key


def word(key: int, number: int) -> int:
    return mixed((key + number * GOLDEN) % LIMIT)


def shuffled(cards: str, ranks: str, key: int) -> list[str]:
    """Sort cards by the upper 56 bits of the key's random numbers, equal ones by rank."""
    numbers = [(word(key, place) >> 8, ranks.index(card), card) for place, card in enumerate(cards, start=1)]
    return [card for _, _, card in sorted(numbers)]


def full_deck(rules: Rules) -> str:
    return "".join(card * count for card, count in zip(rules.characters, rules.deck, strict=True))


def dealt(rules: Rules, cards: list[str]) -> dict[str, Any]:
    """Deal both pay-off piles, both hands, and leave the stock."""
    ends = np.cumsum([rules.payoff_size, rules.payoff_size, rules.hand_size, rules.hand_size]).tolist()
    first, second, hand, other_hand, stock = (
        cards[begin:end] for begin, end in zip([0, *ends], [*ends, len(cards)], strict=True)
    )
    hands = [sorted(cards, key=rules.characters.index) for cards in (hand, other_hand)]
    return {"payoff": [first, second], "hands": hands, "stock": stock}


def test_the_first_numbers_of_a_key_are_those_of_splitmix64() -> None:
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    assert streams.words(np.array([1234567], np.uint64), 4)[0].tolist() == published
    assert [word(1234567, number) for number in (1, 2, 3, 4)] == published


@pytest.mark.parametrize("seed", SEEDS)
def test_combining_and_drawing_equal_the_scalar_statement(seed: int) -> None:
    keys = np.array([seed, seed ^ 5], np.uint64)
    assert streams.combine(keys, 3).tolist() == [combined(int(key), 3) for key in keys]
    values = np.array([2**64 - 1, 0], np.uint64)
    expected = [combined(int(key), int(value)) for key, value in zip(keys, values, strict=True)]
    assert streams.combine(keys, values).tolist() == expected
    assert streams.words(keys, 4).tolist() == [[word(int(key), number) for number in (1, 2, 3, 4)] for key in keys]
    assert streams.uniform(keys).tolist() == [(word(int(key), 1) >> 11) / 2**53 for key in keys]


@pytest.mark.parametrize("seed", SEEDS)
def test_game_0_has_the_seed_and_game_i_a_mix_of_it_and_i(seed: int) -> None:
    seeds = streams.seeds_for(seed, 5).tolist()
    assert seeds == [seed, *(combined(seed, number) for number in range(1, 5))]
    assert Game(Rules.mini(), 5, seed).state.seed.tolist() == seeds


@pytest.mark.parametrize("rules", ALL_PRESETS, ids=PRESETS)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_deal_equals_the_scalar_statement(rules: Rules, seed: int) -> None:
    game = Game(rules, 2, seed)
    for episode in range(3):
        for index, own_seed in enumerate((seed, combined(seed, 1))):
            position = game.position(index)
            key = combined(own_seed, episode, 0, DEAL)
            for attempt in range(100):
                expected = dealt(rules, shuffled(full_deck(rules), rules.characters, combined(key, attempt)))
                tops = [rules.characters.index(pile[-1]) for pile in expected["payoff"]]
                if rules.first_player != "higher_payoff" or tops[0] != tops[1]:
                    break
            assert {name: position[name] for name in expected} == expected
            if rules.first_player == "higher_payoff":
                assert position["turn"] == tops.index(max(tops))
        game.reset()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_random_start_equals_the_scalar_statement(seed: int) -> None:
    game = Game(Rules(first_player="random"), 40, seed)
    for episode in range(3):
        expected = [word(combined(own, episode, 0, STARTER), 1) >> 63 for own in game.state.seed.tolist()]
        assert game.current_player.tolist() == expected
        game.reset()


def test_the_games_of_a_match_are_dealt_as_the_scalar_statement_says() -> None:
    rules = SHORT_MATCH
    game = Game(rules, 20, seed=5)
    log = EventLog(game)
    players = Players(rules, 20, seed=6)
    while not over(game).all():
        game.step(players.choose(game))
    assert max(len(outcomes) for outcomes in log.outcomes) > 2
    for seed, outcomes in zip(game.state.seed.tolist(), log.outcomes, strict=True):
        deals = [outcome for kind, outcome in outcomes if kind == "deal"]
        for number, outcome in enumerate(deals, start=1):
            cards = shuffled(full_deck(rules), rules.characters, combined(seed, 0, number, DEAL, 0))
            assert outcome == dealt(rules, cards)


@pytest.mark.parametrize("recycle", ["shuffle", "bottom"])
@pytest.mark.parametrize("seed", SEEDS)
def test_recycling_equals_the_scalar_statement(recycle: str, seed: int) -> None:
    rules = Rules(recycle=recycle)
    stock, piles = "AAKK99", ["A23K56789TJ", heap(rules, 11)]
    game = start(rules, seed=seed, hand="QQ2", centers=piles, stock=stock)
    position = game.position(0)
    for occurrence in range(2):
        cards = piles[occurrence] + "Q"
        key = combined(seed, 0, 0, SHUFFLE, occurrence)
        before = "".join(position["stock"])
        position = do(game, f"hand>center{occurrence}")
        if recycle == "shuffle":
            assert position["stock"] == shuffled(cards + before, rules.characters, key)
        else:
            assert position["stock"] == shuffled(cards, rules.characters, key) + list(before)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_return_of_cards_set_aside_equals_the_scalar_statement(seed: int) -> None:
    game = start(Rules.classic(), seed=seed, hand="2", stock="9", set_aside="KA332T")
    log = EventLog(game)
    do(game, "discard 2>side0")
    under = shuffled("A233TK", Rules.classic().characters, combined(seed, 0, 0, SHUFFLE, 0))
    assert log.outcomes[0][0] == ("return", [*under, "9"])


@pytest.mark.parametrize("seed", SEEDS)
def test_cards_that_a_position_leaves_out_are_shuffled_as_the_scalar_statement_says(seed: int) -> None:
    rules = Rules.mini()
    game = start(rules, seed=seed, payoff="A", opponent_payoff="2", hand="K")
    expected = shuffled("AAA2223333K", rules.characters, combined(seed, 0, 0, HIDDEN_STOCK))
    assert game.position(0)["stock"] == expected


# -- what changes nothing --------------------------------------------------------------------------------------------


def played(rules: Rules, seeds: list[int], decisions: int) -> list[list[dict[str, Any]]]:
    """Play a batch, each game by its seed alone, and return what every game looked like before each decision."""
    game = Game(rules, len(seeds), seeds, encoding="compact", autoreset=True)
    looks: list[list[dict[str, Any]]] = [[] for _ in seeds]
    for number in range(decisions):
        for index in range(min(len(seeds), 7)):
            looks[index].append(snapshot(game, index))
        rows = zip(seeds, game.legal_actions(), strict=True)
        legal = [(seed, np.flatnonzero(row)) for seed, row in rows]
        game.step([int(row[combined(seed, number) % min(row.size, 9)]) for seed, row in legal])
    return looks


@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=[*PRESETS, "match"])
def test_a_game_plays_the_same_in_a_batch_of_1_and_7_and_1024(rules: Rules) -> None:
    seeds = streams.seeds_for(3, 1024).tolist()
    in_seven = played(rules, seeds[:7], 70)
    assert [played(rules, [seed], 70)[0] for seed in seeds[:7]] == in_seven
    assert played(rules, seeds, 70)[:7] == in_seven


def test_a_game_plays_the_same_at_any_place_in_a_batch() -> None:
    seeds = streams.seeds_for(3, 7).tolist()
    for rules in (Rules.g4a(), Rules.mini()):
        assert played(rules, seeds[::-1], 120)[::-1] == played(rules, seeds, 120)


def test_recycling_in_other_games_does_not_change_the_shuffle() -> None:
    layout: dict[str, Any] = {"hand": "Q", "centers": [heap(Rules(), 11)]}
    alone = start(Rules(), seed=9, stock="AAAA", **layout)
    batch = Game(Rules(), 2, [9, 4])
    long_stock = start(Rules(), stock=None, **layout).position(0)
    batch.reset(seed=[9, 4], positions=[alone.position(0), long_stock])
    alone.step([alone.actions.parse("hand>center0")])
    batch.step([alone.actions.parse("hand>center0")] * 2)
    assert batch.position(0) == alone.position(0)


def test_numpys_and_pythons_global_random_state_change_nothing_and_stay() -> None:
    def global_state() -> tuple[Any, ...]:
        return str(np.random.get_state()), random.getstate()  # noqa: NPY002

    games = []
    for seed in (1, 2):
        np.random.seed(seed)  # noqa: NPY002
        random.seed(seed)
        before = global_state()
        games.append(played(SHORT_MATCH, [1, 2], 200))
        assert global_state() == before
    assert games[0] == games[1]


HASH_SEED_PROGRAM = """
import hashlib
import numpy as np
from spite_env import Game, Rules
from spite_env.policies import make_policy

digest = hashlib.sha256()
for name in ("g4a", "classic", "mini"):
    rules = Rules.preset(name)
    game = Game(rules, 8, seed=5, autoreset=True)
    policies = [make_policy("random"), make_policy("greedy")]
    for policy in policies:
        policy.reset(rules, 8, 6)
    for number in range(60):
        observation, mask = game.observe(), game.legal_actions()
        digest.update(observation.tobytes() + mask.tobytes())
        game.step(policies[number % 2].act(observation, mask, None, np.arange(8)))
    digest.update(repr([game.position(index) for index in range(8)]).encode())
print(digest.hexdigest())
"""


def test_the_hash_seed_changes_nothing() -> None:
    root = str(Path(__file__).parents[1])
    outputs = set()
    for hash_seed in ("0", "1", "12345"):
        environment = os.environ | {"PYTHONHASHSEED": hash_seed, "PYTHONPATH": root}
        command = [sys.executable, "-c", HASH_SEED_PROGRAM]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        outputs.add(done.stdout)
    assert len(outputs) == 1
    assert len(outputs.pop().strip()) == 64


@pytest.mark.parametrize("rules", VARIANTS)
def test_moves_never_change_the_next_deal(rules: Rules) -> None:
    untouched = Game(rules, 6, seed=8)
    untouched.reset()
    for decisions in (1, 5, 80):
        game = Game(rules, 6, seed=8)
        players = Players(rules, 6, seed=decisions)
        for _ in range(decisions):
            game.step(players.choose(game))
        game.reset()
        assert [snapshot(game, index) for index in range(6)] == [snapshot(untouched, index) for index in range(6)]


def test_moves_never_change_the_next_deal_of_a_match() -> None:
    deals = []
    for seed in (1, 2, 3):
        game = Game(SHORT_MATCH, 10, seed=8)
        log = EventLog(game)
        players = Players(SHORT_MATCH, 10, seed)
        while any(not any(kind == "deal" for kind, _ in outcomes) for outcomes in log.outcomes):
            game.step(players.choose(game))
        deals.append([next(outcome for kind, outcome in outcomes if kind == "deal") for outcomes in log.outcomes])
    assert deals[0] == deals[1] == deals[2]


# -- seeds and episodes ----------------------------------------------------------------------------------------------


def look(game: Game) -> list[dict[str, Any]]:
    return [snapshot(game, index) for index in range(game.num_games)]


def test_the_same_seed_gives_the_same_games_by_construction_and_by_reset() -> None:
    game = Game(Rules(), 5, seed=3)
    game.reset()
    game.reset(seed=7)
    assert look(game) == look(Game(Rules(), 5, seed=7))
    game.reset(seed=[7, 1, 2, 3, 4])
    assert look(game) == look(Game(Rules(), 5, seed=np.array([7, 1, 2, 3, 4])))
    assert look(Game(Rules(), 2, seed=(7, 1))) == look(game)[:2]


@pytest.mark.parametrize("kind", [np.uint8, np.int64, np.uint64, int])
def test_a_seed_of_any_integer_type_is_the_same_seed(kind: Any) -> None:
    assert look(Game(Rules(), 3, seed=kind(200))) == look(Game(Rules(), 3, seed=200))
    listed = [kind(200), kind(1)]
    assert look(Game(Rules(), 2, seed=np.array(listed))) == look(Game(Rules(), 2, seed=listed))


def test_episodes_differ_and_are_counted_for_each_game_alone() -> None:
    game = Game(Rules(), 3, seed=3)
    episodes = [look(game)]
    for _ in range(2):
        game.reset()
        episodes.append(look(game))
    for first, second in ((0, 1), (0, 2), (1, 2)):
        for one, other in zip(episodes[first], episodes[second], strict=True):
            assert one["position"] != other["position"]

    game.reset(seed=3)
    assert look(game) == episodes[0]
    game.reset([1])
    game.reset([1])
    game.reset([2])
    assert look(game) == [episodes[0][0], episodes[2][1], episodes[1][2]]


def test_a_seeded_reset_of_some_games_counts_the_seeds_over_them() -> None:
    game = Game(Rules(), 4, seed=3)
    before = look(game)
    fresh = look(Game(Rules(), 2, seed=50))
    game.reset([2, 0], seed=50)
    assert look(game) == [fresh[1], before[1], fresh[0], before[3]]
    game.reset([3, 1], seed=[60, 61])
    assert look(game)[3] == look(Game(Rules(), 1, seed=60))[0]
    assert look(game)[1] == look(Game(Rules(), 1, seed=61))[0]


def test_resetting_no_games_changes_nothing() -> None:
    game = Game(Rules(), 4, seed=3)
    before = look(game)
    game.reset([])
    game.reset([], seed=5)
    assert look(game) == before


@pytest.mark.parametrize(
    "seed", [-1, 2**64, True, 1.0, 1.5, "7", "seed", [1.0, 2.0], [True, False], [-1, 2], [2**64, 1], {"a": 1}, b"ab"]
)
def test_seeds_that_are_no_integers_in_range_are_refused_by_name(seed: Any) -> None:
    with pytest.raises(ValueError, match=r"seed .* is not allowed; a seed is an integer from 0 to"):
        Game(Rules(), 2, seed=seed)


@pytest.mark.parametrize("seed", [[], [1], [1, 2, 3], np.arange(3), np.arange(3, dtype=np.uint64)])
def test_seeds_that_are_not_one_a_game_are_refused(seed: Any) -> None:
    with pytest.raises(ValueError, match="do not fit 2 games"):
        Game(Rules(), 2, seed=seed)


# -- quality ---------------------------------------------------------------------------------------------------------


def test_shuffles_of_consecutive_keys_are_uniform_over_all_orders() -> None:
    keys = streams.combine(np.arange(24_000, dtype=np.uint64), 1)
    orders = streams.shuffle(np.arange(1, 5, dtype=np.uint8), keys)
    counts = np.unique(orders @ np.array([1000, 100, 10, 1]), return_counts=True)[1]
    assert counts.size == 24
    assert chi_square(counts, np.full(24, 1000)) < chi_square_limit(23)


def test_holes_come_last_and_do_not_change_the_order_of_the_cards() -> None:
    keys = np.arange(50, dtype=np.uint64)
    cards = np.arange(1, 7, dtype=np.uint8)
    valid = np.ones((50, 9), np.bool_)
    valid[:, 6:] = False
    with_holes = streams.shuffle(np.pad(np.tile(cards, (50, 1)), ((0, 0), (0, 3))), keys, valid)
    np.testing.assert_array_equal(with_holes[:, :6], streams.shuffle(cards, keys))
