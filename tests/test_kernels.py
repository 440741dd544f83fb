"""The core compiled, and a batch of one in plain Python, do what the core does on NumPy's arrays."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from helpers import ALL_PRESETS, SHORT_MATCH, Players, any_rules, check_bookkeeping, over, random_position, snapshot
from spite_env import Game, Rules, acceleration, random_legal_actions, spite_and_malice_v0
from spite_env.envs.seat import SeatGames
from spite_env.policies import GreedyPolicy

COMPILED = [pytest.param(True, marks=pytest.mark.skipif(not acceleration.kernels().COMPILED, reason="no Numba"))]

VARIANTS = [*ALL_PRESETS, SHORT_MATCH, Rules(max_steps=9), Rules(recycle="bottom")]


def compare(batch: Game, players: Players, most: int) -> None:
    """Walk a batch through the same decisions in all ways that the core knows."""
    games = range(batch.num_games)
    batch.compiled = False
    singles = [batch.copy([index]) for index in games]
    compiled = batch.copy()
    compiled.compiled = acceleration.kernels().COMPILED
    for step in count():
        if step == most or over(batch).all():
            break
        actions = players.choose(batch)
        going_on = np.flatnonzero(~over(batch)).tolist()
        batch.step(actions)
        compiled.step(actions)
        np.testing.assert_array_equal(compiled.legal_actions(), batch.legal_actions())
        np.testing.assert_array_equal(over(compiled), over(batch))
        for index in going_on:
            singles[index].step(actions[[index]])
            assert singles[index].legal_actions()[0].tolist() == batch.legal_actions()[index].tolist()
            assert bool(over(singles[index])[0]) == bool(over(batch)[index])
        if step % 10 == 0:
            for viewer in (None, 0, 1, np.arange(batch.num_games) % 2):
                np.testing.assert_array_equal(compiled.observe(viewer), batch.observe(viewer))
            for index in going_on:
                assert snapshot(singles[index], 0) == snapshot(compiled, index) == snapshot(batch, index)
    for index in games:
        check_bookkeeping(singles[index])
        assert snapshot(singles[index], 0) == snapshot(compiled, index) == snapshot(batch, index)
    check_bookkeeping(compiled)


@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_all_ways_to_run_the_core_are_equal(rules: Rules) -> None:
    compare(Game(rules, 24, seed=3), Players(rules, 24, seed=4), most=700)


@given(any_rules(), st.integers(0, 2**32))
@settings(max_examples=40)
def test_they_are_equal_for_any_rules(rules: Rules, seed: int) -> None:
    compare(Game(rules, 4, seed), Players(rules, 4, seed), most=120)


@given(any_rules(), st.randoms(use_true_random=False))
@settings(max_examples=40)
def test_they_are_equal_from_any_position(rules: Rules, rng: object) -> None:
    positions = [random_position(rules, rng) for _ in range(4)]  # type: ignore[arg-type]
    compare(Game.from_positions(rules, positions, seed=1), Players(rules, 4, seed=2), most=60)


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("encoding", ["onehot", "compact"])
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_compiled_batches_deal_anew_and_show_the_same(rules: Rules, encoding: str, compiled: bool) -> None:
    batches = [
        Game(rules, 300, seed=5, encoding=encoding, side_depth=2, autoreset=True, compiled=way)
        for way in (compiled, False)
    ]
    rng = np.random.default_rng(1)
    some = rng.integers(0, 300, 40)
    for _ in range(25):
        masks = [batch.legal_actions() for batch in batches]
        np.testing.assert_array_equal(*masks)
        np.testing.assert_array_equal(*(batch.legal_actions(some) for batch in batches))
        np.testing.assert_array_equal(*(batch.observe() for batch in batches))
        np.testing.assert_array_equal(*(batch.observe(1, some) for batch in batches))
        actions = random_legal_actions(masks[0], rng.random(300))
        for batch in batches:
            batch.step(actions)
        np.testing.assert_array_equal(*(batch.final_observation for batch in batches))
        for name in ("current_player", "terminated", "truncated", "winner", "points"):
            np.testing.assert_array_equal(*(getattr(batch, name) for batch in batches))
    assert [batches[0].position(game) for game in range(300)] == [batches[1].position(game) for game in range(300)]


@pytest.mark.parametrize("compiled", COMPILED)
def test_compiled_deals_keep_shorter_payoff_piles(compiled: bool) -> None:
    batches = [Game(num_games=50, compiled=way) for way in (compiled, False)]
    for batch in batches:
        batch.reset(seed=4, payoff_sizes=1 + np.arange(50) % 20)
    assert [batches[0].position(game) for game in range(50)] == [batches[1].position(game) for game in range(50)]


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize(
    "opponent", ["random", "greedy", "hoarder", [("random", 1), ("greedy", 2), ("expert", 1)]], ids=str
)
@pytest.mark.parametrize("rules", [*ALL_PRESETS, SHORT_MATCH], ids=str)
def test_opponents_that_play_compiled_do_the_same(rules: Rules, opponent: object, compiled: bool) -> None:
    both = []
    for way in (compiled, False):
        seats = SeatGames(20, opponent, rules)  # type: ignore[arg-type]
        seats.game.compiled = way
        seats.reset(seed=3)
        both.append(seats)
    rng = np.random.default_rng(2)
    for _ in range(30):
        actions = random_legal_actions(both[0].game.legal_actions(), rng.random(20))
        for told in zip(*(seats.step(actions) for seats in both), strict=True):
            np.testing.assert_array_equal(*told)
        for name in ("last_actions", "last_players"):
            np.testing.assert_array_equal(*(getattr(seats, name) for seats in both))
        for seats in both:
            ended = np.flatnonzero(seats.game.state.over)
            if ended.size:
                seats.deal(ended)
        np.testing.assert_array_equal(*(seats.observe() for seats in both))


@pytest.mark.parametrize("compiled", COMPILED)
@pytest.mark.parametrize("rules", VARIANTS, ids=str)
def test_the_compiled_aec_game_is_the_same(rules: Rules, compiled: bool) -> None:
    both = [spite_and_malice_v0.raw_env(rules) for _ in range(2)]
    rng = np.random.default_rng(1)
    both[0].game.compiled, both[1].game.compiled = compiled, False
    for seed in range(3):
        for env in both:
            env.reset(seed=seed)
        while both[0].agents:
            for agent in both[0].possible_agents:
                views = [env.observe(agent) for env in both]
                for part in ("observation", "action_mask"):
                    np.testing.assert_array_equal(*(view[part] for view in views))
                    assert views[0][part].dtype == views[1][part].dtype
            legal = both[0].observe(both[0].agent_selection)["action_mask"]
            action = int(rng.integers(-1, legal.size + 1))
            done = not legal.any()
            told = [_outcome(env, None if done else action) for env in both]
            assert told[0] == told[1]
            if not done and told[0]:  # refused
                actions = np.flatnonzero(legal)
                told = [_outcome(env, actions[action % actions.size]) for env in both]
                assert told == ["", ""]


def _outcome(env: spite_and_malice_v0.raw_env, action: Any) -> str:
    """Return what a step complains of."""
    try:
        env.step(action)
    except spite_and_malice_v0.IllegalActionError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("compiled", [False, *COMPILED])
@pytest.mark.parametrize("opponent", ["random", [("random", 1), ("expert", 1)]], ids=str)
@pytest.mark.parametrize(
    "options", [{}, {"illegal": "raise", "reward": "margin"}, {"shaping": 1, "card_reward": 0.1}], ids=str
)
@pytest.mark.parametrize("rules", [*ALL_PRESETS, Rules(max_steps=9)], ids=str)
def test_a_learners_only_game_is_stepped_like_a_batch(
    rules: Rules, options: dict[str, Any], opponent: Any, compiled: bool
) -> None:
    both = [SeatGames(1, opponent, rules, **options) for _ in range(2)]
    both[0].game.compiled, both[1].game.compiled = compiled, False
    rng = np.random.default_rng(1)
    ways = both[0].step_alone, lambda action: tuple(value.item() for value in both[1].step([action]))
    for seed in range(4):
        for seats in both:
            seats.reset(seed=seed)
        while not over(both[0].game)[0]:
            legal = both[1].game.legal_actions()[0]
            action = int(rng.integers(-1, legal.size + 1) if rng.random() < 0.04 else rng.choice(np.flatnonzero(legal)))
            told = []
            for way in ways:
                try:
                    told.append(way(action))
                except ValueError as error:
                    told.append(str(error))
            assert told[0] == told[1]
            for name in ("last_players", "last_actions"):
                np.testing.assert_array_equal(*(getattr(seats, name) for seats in both))
        results = [seats.results(np.arange(1)) for seats in both]
        assert {name: value.tolist() for name, value in results[0].items()} == {
            name: value.tolist() for name, value in results[1].items()
        }
        with pytest.raises(RuntimeError, match="call reset"):
            both[0].step_alone(0)


class LastAction(GreedyPolicy):
    """Differs from the policy that it inherits from in how it chooses."""

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        return action_mask.shape[1] - 1 - action_mask[:, ::-1].argmax(axis=1)


def test_an_opponent_that_chooses_otherwise_is_asked() -> None:
    seats = SeatGames(20, LastAction(), "mini", seat=1)
    seats.reset(seed=1)
    assert (seats.last_actions >= seats.game.actions.num_plays).all()  # a greedy one would have played more


def test_an_opponent_that_was_reset_for_fewer_games_is_refused() -> None:
    seats = SeatGames(20, "greedy", "mini")
    seats.reset(seed=1)
    seats.policies[0].reset(seats.rules, 5, 1)
    with pytest.raises((ValueError, IndexError)):  # of 20 games, some opponent is to move
        seats.step(seats.game.legal_actions().shape[1] - 1 - seats.game.legal_actions()[:, ::-1].argmax(axis=1))


def test_what_is_no_play_is_refused() -> None:
    class Odd(GreedyPolicy):
        def plays(self, table: Any) -> list[int]:
            return [table.n]

    with pytest.raises(ValueError, match="a play=25"):
        Odd().reset(Rules.mini().replace(side_piles=3), 5, 1)


@pytest.mark.parametrize("compiled", COMPILED)
def test_random_actions_are_the_same_however_a_mask_is_stored(compiled: bool) -> None:
    mask = Game(num_games=200, seed=1, compiled=compiled).legal_actions()
    uniform = np.random.default_rng(1).random(200)
    chosen = random_legal_actions(mask, uniform)
    np.testing.assert_array_equal(chosen, random_legal_actions(np.ascontiguousarray(mask), uniform))
    np.testing.assert_array_equal(chosen, random_legal_actions(mask.astype(np.int64), uniform))
    assert mask[np.arange(200), chosen].all()


def test_there_may_be_very_many_actions() -> None:
    game = Game(Rules(side_piles=255, center_piles=255), num_games=3, seed=1)
    mask = game.legal_actions()
    assert mask[np.arange(3), random_legal_actions(mask, np.full(3, 0.999))].all()


@pytest.mark.parametrize("setting", ["NUMBA_DISABLE_JIT=1", "NUMBA_CACHE_DIR=/dev/null/no-folder"])
def test_the_core_runs_however_numba_is_set(setting: str) -> None:
    name, _, value = setting.partition("=")
    code = "from spite_env import Game; game = Game(); game.step(game.legal_actions().argmax(axis=1))"
    subprocess.run([sys.executable, "-c", code], env={**os.environ, name: value}, check=True)


def test_the_core_runs_without_numba() -> None:
    code = """
import sys
sys.modules["numba"] = None
import spite_env
game = spite_env.Game(num_games=2, seed=1)
assert not game.compiled
game.step(game.legal_actions().argmax(axis=1))
spite_env.Game(compiled=True)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert "ImportError: compiled=True needs Numba: pip install 'spite-env[fast]'" in done.stderr


@pytest.mark.parametrize("compiled", ["yes", 0, 1, np.False_])
def test_compiled_is_a_choice(compiled: Any) -> None:
    with pytest.raises(ValueError, match=r"compiled=.* is not allowed"):
        Game(compiled=compiled)
    assert not Game(compiled=False).copy().compiled


def test_copies_of_every_kind_can_be_played() -> None:
    game = Game(num_games=3, seed=1)
    buffers: list[pickle.PickleBuffer] = []
    pickled = pickle.dumps(game, protocol=5, buffer_callback=buffers.append)
    copies = [
        pickle.loads(pickled, buffers=[bytes(buffer.raw()) for buffer in buffers]),
        copy.copy(game),
        copy.deepcopy(game),
        game.copy(),
    ]
    before = snapshot(game, 0)
    actions = game.legal_actions().argmax(axis=1)
    for copied in copies:
        copied.step(actions)
        assert snapshot(copied, 0) == snapshot(copies[0], 0) != before
    assert snapshot(game, 0) == before


def test_numpy_integers_are_integers() -> None:
    game = Game(Rules(ranks=np.int64(9)), np.int64(2), np.int64(7), side_depth=np.int64(1))
    assert snapshot(game, 1) == snapshot(Game(Rules(ranks=9), 2, 7, side_depth=1), 1)


@pytest.mark.soak
@pytest.mark.parametrize("rules", ALL_PRESETS, ids=str)
def test_many_single_games_equal_those_of_a_batch(rules: Rules) -> None:
    for seed in range(10):
        compare(Game(rules, 50, seed), Players(rules, 50, seed), most=2000)
