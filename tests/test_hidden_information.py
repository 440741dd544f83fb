"""Nothing that a player is shown depends on a card that it can't see."""

from __future__ import annotations

import random

import numpy as np
import pytest

from helpers import ALL_PRESETS, PLAYERS, SHORT_MATCH, Position, played_games, random_position, rehidden
from spite_env import Game, Rules
from spite_env.rules import PRESETS

VARIANTS = {**dict(zip(PRESETS, ALL_PRESETS, strict=True)), "match": SHORT_MATCH}


def assert_nothing_leaks(rules: Rules, positions: list[Position], seed: int, encoding: str) -> int:
    """Assert it for both viewers of each position, and return how many of the positions really became others."""
    rng = random.Random(seed)
    real = Game.from_positions(rules, positions, encoding=encoding)
    views, masks, movers = [real.observe(viewer) for viewer in PLAYERS], real.legal_actions(), real.current_player
    different = 0
    for viewer in PLAYERS:
        others = [rehidden(position, viewer, rng) for position in positions]
        different += sum(other != position for other, position in zip(others, positions, strict=True))
        imagined = Game.from_positions(rules, others, encoding=encoding)
        assert imagined.observe(viewer).tobytes() == views[viewer].tobytes()
        own_turn = movers == viewer
        assert imagined.observe()[own_turn].tobytes() == views[viewer][own_turn].tobytes()
        assert imagined.legal_actions()[own_turn].tobytes() == masks[own_turn].tobytes()
    return different


@pytest.mark.parametrize("encoding", ["compact", "onehot"])
@pytest.mark.parametrize("name", VARIANTS)
def test_hidden_cards_change_nothing_in_played_positions(name: str, encoding: str) -> None:
    rules, count = VARIANTS[name], 1000
    seed = 1 if encoding == "compact" else 2
    game = played_games(rules, count, seed, most=40 if name == "mini" else 200)
    positions = [game.position(index) for index in range(count)]
    different = assert_nothing_leaks(rules, positions, seed, encoding=encoding)
    assert different > count


@pytest.mark.parametrize("name", VARIANTS)
def test_hidden_cards_change_nothing_in_any_position(name: str) -> None:
    rng = random.Random(3)
    positions = [random_position(VARIANTS[name], rng) for _ in range(200)]
    assert_nothing_leaks(VARIANTS[name], positions, seed=4, encoding="compact")


@pytest.mark.parametrize("name", VARIANTS)
def test_a_played_game_looks_as_its_position_does(name: str) -> None:
    rules = VARIANTS[name]
    game = played_games(rules, 100, seed=5, most=100)
    again = Game.from_positions(rules, [game.position(index) for index in range(100)])
    for viewer in PLAYERS:
        np.testing.assert_array_equal(game.observe(viewer), again.observe(viewer))
    np.testing.assert_array_equal(game.legal_actions(), again.legal_actions())
