"""What holds behind every door: PettingZoo's parallel API, processes of one's own, the same deals for a seed."""

from __future__ import annotations

import importlib.util
import multiprocessing
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import pytest
from pettingzoo.utils import aec_to_parallel, turn_based_aec_to_parallel

from helpers import ALL_PRESETS, snapshot, storage
from spite_env import Game, Rules, random_legal_actions, spite_and_malice_v0, streams
from spite_env.cli import main
from spite_env.record import read_records
from spite_env.rules import PRESETS

MATCH = Rules.mini().replace(payoff_size=4, match_points=5, max_games=4, first_player="random", recycle="set_aside")


# -- PettingZoo's parallel API -----------------------------------------------------------------------------------------


def assert_equal(found: Any, expected: Any) -> None:
    """Compare what an environment hands out, arrays and dictionaries within dictionaries included."""
    assert type(found) is type(expected)
    if isinstance(expected, dict):
        assert list(found) == list(expected)
        for key, value in expected.items():
            assert_equal(found[key], value)
    else:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("illegal_at", [None, 1])
@pytest.mark.parametrize("rules", [*ALL_PRESETS, Rules.classic().replace(max_steps=50), MATCH])
def test_the_parallel_environment_plays_the_same_episodes(rules: Rules, illegal_at: int | None) -> None:
    aec = spite_and_malice_v0.env(rules, reward="points")
    parallel = turn_based_aec_to_parallel(spite_and_malice_v0.env(rules, reward="points"))
    rng = np.random.default_rng(1)
    for seed in (7, None):
        aec.reset(seed=seed)
        observations, infos = parallel.reset(seed=seed)
        assert_equal(observations, {agent: aec.observe(agent) for agent in aec.agents})
        assert_equal(infos, aec.infos)
        decisions = 0
        while parallel.agents:
            mover = aec.agent_selection
            assert [agent for agent in observations if observations[agent]["action_mask"].any()] == [mover]
            mask = observations[mover]["action_mask"].astype(bool)
            action = int(random_legal_actions(mask[None], rng.random(1))[0])
            if decisions == illegal_at:
                action = int(mask.argmin())
            idle = {agent: rng.integers(mask.size) for agent in aec.agents if agent != mover}
            observations, rewards, terminations, truncations, infos = parallel.step({mover: action, **idle})
            aec.step(action)
            decisions += 1
            over = aec.terminations[mover] or aec.truncations[mover]
            active = {} if over else {"active_agent": aec.agent_selection}
            assert_equal(observations, {agent: aec.observe(agent) for agent in aec.agents})
            assert (rewards, terminations, truncations) == (aec.rewards, aec.terminations, aec.truncations)
            assert_equal(infos, {agent: {**info, **active} for agent, info in aec.infos.items()})
            assert (not parallel.agents) == over
        assert ("forfeit" in infos["player_0"]) == (illegal_at is not None)


def test_the_conversion_for_simultaneous_games_is_refused() -> None:
    with pytest.raises(AssertionError, match="is_parallelizable"):
        aec_to_parallel(spite_and_malice_v0.env())


# -- worker processes --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def worker() -> Iterator[Executor]:
    """A process that starts from nothing, as it does by default on macOS and Windows."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as executor:
        yield executor


def build_env(rules: Rules, seed: int) -> Any:
    env = spite_and_malice_v0.env(rules, encoding="compact", side_depth=2)
    env.reset(seed=seed)
    return env


def play_env(env: Any, decisions: range) -> tuple[Any, list[Any]]:
    """Play on, into the next episodes too, and return the environment and all that was told on the way."""
    told = []
    for number in decisions:
        observation, *rest = env.last()
        mask = observation["action_mask"].astype(bool)
        done = not mask.any()
        action = None if done else int(random_legal_actions(mask[None], np.random.default_rng(number).random(1))[0])
        told.append([observation["observation"].tolist(), mask.tolist(), *rest])
        env.step(action)
        if not env.agents:
            env.reset()
    return env, told


def build_and_play_env(rules: Rules, seed: int, decisions: range) -> tuple[Any, list[Any]]:
    return play_env(build_env(rules, seed), decisions)


@pytest.mark.parametrize("rules", [Rules(), MATCH])
def test_an_environment_comes_back_from_a_worker(rules: Rules, worker: Executor) -> None:
    begin, rest = range(33), range(33, 600)
    here, told_here = build_and_play_env(rules, 5, begin)
    there, told_there = worker.submit(build_and_play_env, rules, 5, begin).result()
    assert told_there == told_here
    assert there.unwrapped.position() == here.unwrapped.position()
    sent, told_sent = worker.submit(play_env, here, rest).result()
    (here, told_here), (there, told_there) = play_env(here, rest), play_env(there, rest)
    assert told_here == told_there == told_sent
    assert sent.unwrapped.position() == there.unwrapped.position() == here.unwrapped.position()
    assert any(termination or truncation for *_, termination, truncation, _ in told_here), "no episode has ended"


def build_game(rules: Rules, seed: int) -> Game:
    return Game(rules, 20, seed, encoding="compact", autoreset=True)


def play_game(game: Game, decisions: range) -> Game:
    for number in decisions:
        game.step(random_legal_actions(game.legal_actions(), np.random.default_rng(number).random(game.num_games)))
    return game


def build_and_play_game(rules: Rules, seed: int, decisions: range) -> Game:
    return play_game(build_game(rules, seed), decisions)


@pytest.mark.parametrize("rules", [Rules(), MATCH])
def test_a_batch_comes_back_from_a_worker(rules: Rules, worker: Executor) -> None:
    begin, rest = range(33), range(33, 400)
    here = build_and_play_game(rules, 5, begin)
    there = worker.submit(build_and_play_game, rules, 5, begin).result()
    assert storage(there) == storage(here)
    sent = worker.submit(play_game, here, rest).result()
    for game in (here, there):
        play_game(game, rest)
    assert storage(sent) == storage(there) == storage(here)
    for index in (0, 19):
        assert snapshot(sent, index) == snapshot(there, index) == snapshot(here, index)
    assert (here.state.episode > 0).any(), "no episode has ended"


# -- the same seed behind every door ---------------------------------------------------------------------------------


def dealt(game: Game, index: int = 0) -> dict[str, Any]:
    return {name: game.position(index)[name] for name in ("payoff", "hands", "stock")}


@pytest.mark.parametrize("preset", PRESETS)
def test_the_same_seed_deals_the_same_cards_behind_every_door(preset: str, tmp_path: Path) -> None:
    rules, seed = Rules.preset(preset).replace(first_player=0), 2**63 + 9
    wanted = dealt(Game(rules, 1, seed))

    aec = spite_and_malice_v0.env(rules)
    aec.reset(seed=seed)
    assert dealt(aec.unwrapped.game) == wanted

    options: dict[str, Any] = {"rules": rules, "opponent": "random", "seat": 0}
    single: Any = gymnasium.make("SpiteAndMalice-v0", **options)
    single.reset(seed=seed)
    assert dealt(single.unwrapped.games.game) == wanted

    batch: Any = gymnasium.make_vec("SpiteAndMalice-v0", num_envs=3, **options)
    batch.reset(seed=seed)
    assert dealt(batch.games.game) == wanted
    for index, other in enumerate(streams.seeds_for(seed, 3).tolist()):
        single.reset(seed=other)
        assert dealt(batch.games.game, index) == dealt(single.unwrapped.games.game)

    path = tmp_path / "games.jsonl"
    command = ["duel", "random", "greedy", "--rules", preset, "--set", "first_player=0", "--games", "2", "--json"]
    assert main([*command, "--seed", str(seed), "--records", str(path)]) == 0
    assert [record["deal"] for record in read_records(path)] == [wanted] * 2

    if importlib.util.find_spec("stable_baselines3"):
        from spite_env.envs.sb3 import SpiteVecEnv

        env = SpiteVecEnv(3, seed=seed, **options)
        env.reset()
        assert [dealt(env.game, index) for index in range(3)] == [dealt(batch.games.game, index) for index in range(3)]
