"""The vectorised core against an independent statement of the rules, decision by decision."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from helpers import (
    ALL_PRESETS,
    SHORT_MATCH,
    EventLog,
    Players,
    Position,
    any_rules,
    over,
    played_games,
    random_position,
)
from reference import Reference
from spite_env import Game, Rules
from spite_env.rules import PRESETS

SEEDS = st.integers(0, 2**32 - 1)

#: Variants in which the rarer rules matter often.
VARIANTS = {
    **dict(zip(PRESETS, ALL_PRESETS, strict=True)),
    "short match": SHORT_MATCH,
    "mini match": Rules.mini().replace(match_points=4, max_games=5, first_player="higher_payoff"),
    "bottom": Rules(payoff_size=6, recycle="bottom", stock_end="short", refill_mid_turn=True, max_steps=120),
    "tight": Rules(copies=4, wilds=4, payoff_size=6, recycle="set_aside", refill_mid_turn=True),
    "tight shuffle": Rules(ranks=4, copies=5, wilds=5, payoff_size=5, hand_size=6, refill_mid_turn=True),
    "all wild": Rules(ranks=5, copies=0, wilds=40, payoff_size=8, recycle="set_aside", center_piles=1, hand_size=3),
}


class Shadows:
    """One reference game for each game of a batch; `agree` asserts that nothing tells them apart.

    The first games of the batch are played once more in batches of one: by turns compiled, and in plain Python.
    """

    def __init__(self, game: Game, *, from_position: bool = False, alone: int = 8) -> None:
        self.game = game
        self.alone = [game.copy([index]) for index in range(min(alone, game.num_games))]
        for single in self.alone[1::2]:
            single.compiled = False
        self.log = EventLog(game)
        self.rules = game.rules.to_dict()
        self.references = [self._started(index, game.position(index), from_position) for index in range(game.num_games)]

    def _started(self, index: int, position: Position, from_position: bool) -> Reference:
        chance, first = partial(self._chance, index), position["turn"]
        if from_position:
            return Reference(self.rules, chance, position=position, first_player=first)
        deal = {key: position[key] for key in ("payoff", "hands", "stock")}
        return Reference(self.rules, chance, deal=deal, first_player=first)

    def _chance(self, index: int, kind: str, cards: list[str]) -> Any:
        told, outcome = self.log.outcomes[index].popleft()
        assert told == kind, f"the reference needs a {kind}, the core made a {told}"
        return outcome

    def step(self, actions: Sequence[int], games: Sequence[int]) -> None:
        self.game.step(actions, games)
        for action, index in zip(actions, games, strict=True):
            self.references[index].step(action)
            if index < len(self.alone):
                self.alone[index].step([action])

    def agree(self, games: Sequence[int]) -> None:
        mask, points, winner = self.game.legal_actions(), self.game.points, self.game.winner
        terminated, truncated = self.game.terminated, self.game.truncated
        for index in games:
            reference = self.references[index]
            position = self.game.position(index)
            assert position == reference.position()
            assert np.flatnonzero(mask[index]).tolist() == reference.legal()
            assert terminated[index] == reference.terminated
            assert truncated[index] == reference.truncated
            assert winner[index] == (-1 if reference.winner is None else reference.winner)
            if reference.terminated or reference.truncated:
                assert points[index].tolist() == reference.points
            else:
                assert points[index].tolist() == [0, 0]
            assert not self.log.outcomes[index], "the core made a shuffle or deal that the reference did not need"
            if index < len(self.alone):
                alone = self.alone[index]
                assert alone.position(0) == position
                np.testing.assert_array_equal(alone.legal_actions()[0], mask[index])
                assert (alone.terminated[0], alone.truncated[0]) == (terminated[index], truncated[index])
                assert (alone.winner[0], *alone.points[0]) == (winner[index], *points[index])

    def agree_on_history(self) -> None:
        for reference, finished, events in zip(self.references, self.log.finished, self.log.events, strict=True):
            told = [
                {key: game[key] for key in ("outcome", "winner", "points", "events")} for game in reference.finished
            ]
            assert finished == told
            if not (reference.terminated or reference.truncated):
                assert events == reference.events


def walk(game: Game, seed: int, *, from_position: bool = False, most: int = 10**9) -> Shadows:
    """Play a batch to its end, or ``most`` decisions, together with references."""
    shadows = Shadows(game, from_position=from_position)
    players = Players(game.rules, game.num_games, seed)
    shadows.agree(range(game.num_games))
    for _ in range(most):
        (live,) = np.nonzero(~over(game))
        if not live.size:
            break
        shadows.step(players.choose(game)[live].tolist(), live.tolist())
        shadows.agree(live.tolist())
    shadows.agree_on_history()
    return shadows


def happenings(shadows: Shadows) -> set[str]:
    """Return the kinds of events, and the outcomes, that the games have seen."""
    games = [game for games in shadows.log.finished for game in games]
    return {event["type"] for game in games for event in game["events"]} | {game["outcome"] for game in games}


@pytest.mark.parametrize("name", VARIANTS)
def test_core_and_reference_number_and_name_the_same_actions(name: str) -> None:
    game = Game(VARIANTS[name])
    reference = Shadows(game).references[0]
    assert [game.actions.text(number) for number in range(game.actions.n)] == [
        reference.text(number) for number in range(len(reference.moves))
    ]


@pytest.mark.parametrize("name", PRESETS)
def test_games_of_a_preset_equal_the_reference(name: str) -> None:
    shadows = walk(Game(VARIANTS[name], 200, seed=11), seed=12)
    seen = happenings(shadows)
    assert {"play", "discard", "draw", "recycle", "win"} <= seen
    if VARIANTS[name].recycle == "set_aside":
        assert "return" in seen
    if VARIANTS[name].refill_mid_turn:
        assert "end_turn" not in seen
    else:
        assert "end_turn" in seen


@pytest.mark.parametrize("name", [name for name in VARIANTS if name not in PRESETS])
def test_games_and_matches_of_a_variant_equal_the_reference(name: str) -> None:
    shadows = walk(Game(VARIANTS[name], 40, seed=21), seed=22)
    if VARIANTS[name].match_points is not None:
        lengths = {len(games) for games in shadows.log.finished}
        assert len(lengths) > 2, f"matches of {lengths} games"
        assert shadows.game.truncated.any()
        assert shadows.game.terminated.any()


@given(any_rules(), SEEDS)
def test_games_of_any_rules_equal_the_reference(rules: Rules, seed: int) -> None:
    walk(Game(rules, 4, seed=seed), seed=seed, most=150)


@given(any_rules(), SEEDS)
def test_games_from_any_position_equal_the_reference(rules: Rules, seed: int) -> None:
    rng = random.Random(seed)
    positions = [random_position(rules, rng) for _ in range(6)]
    walk(Game.from_positions(rules, positions, seed), seed=seed, from_position=True, most=60)


def restocked(position: Position, rng: random.Random) -> Position:
    """Return a position with another stock: its cards in another order, and only a few of them."""
    stock = position["stock"]
    kept = rng.choice([0, 1, 2, rng.randint(0, len(stock)), len(stock)])
    return position | {"stock": rng.sample(stock, min(kept, len(stock)))}


def restocked_games(rules: Rules, count: int, seed: int) -> Game:
    game = played_games(rules, count, seed, 150)
    rng = random.Random(seed)
    return Game.from_positions(rules, [restocked(game.position(index), rng) for index in range(count)], seed)


@pytest.mark.parametrize("name", VARIANTS)
def test_games_from_played_positions_with_another_stock_equal_the_reference(name: str) -> None:
    walk(restocked_games(VARIANTS[name], 30, seed=31), seed=32, from_position=True, most=40)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(25))
@pytest.mark.parametrize("name", VARIANTS)
def test_five_thousand_games_equal_the_reference(name: str, part: int) -> None:
    walk(Game(VARIANTS[name], 200, seed=1000 + part), seed=2000 + part)


@pytest.mark.soak
@pytest.mark.parametrize("part", range(25))
@pytest.mark.parametrize("name", VARIANTS)
def test_five_thousand_games_from_played_positions_equal_the_reference(name: str, part: int) -> None:
    walk(restocked_games(VARIANTS[name], 200, seed=3000 + part), seed=4000 + part, from_position=True, most=60)
