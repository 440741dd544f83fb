"""The PettingZoo environment: its contract with PettingZoo, and that it plays the core's game and nothing else."""

from __future__ import annotations

import copy
import hashlib
import inspect
import os
import pickle
import random
import re
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pettingzoo
import pytest
from pettingzoo.test import api_test, parallel_api_test, render_test, seed_test
from pettingzoo.utils import turn_based_aec_to_parallel

from helpers import ALL_PRESETS, Position, lay, played_games, random_position
from spite_env import Game, Rules, spite_and_malice_v0
from spite_env.envs.spite_and_malice_v0 import IllegalActionError
from spite_env.render import ansi, describe

AGENTS = ("player_0", "player_1")
MINI, G4A = Rules.mini(), Rules.g4a()
MATCH = MINI.replace(match_points=4, max_games=9, first_player="random", recycle="set_aside")
VARIANTS = tuple(rules.replace(max_steps=100) for rules in (*ALL_PRESETS, MATCH))
DOORS = (spite_and_malice_v0.env, spite_and_malice_v0.raw_env)
ENCODINGS = ("onehot", "compact")

all_rules = pytest.mark.parametrize("rules", VARIANTS, ids=["g4a", "classic", "skip_bo", "mini", "match"])
both_doors = pytest.mark.parametrize("door", DOORS, ids=["env", "raw_env"])
both_encodings = pytest.mark.parametrize("encoding", ENCODINGS)

#: What PettingZoo's API test says about every environment whose observations are dicts with a mask.
DICT_WARNINGS = (
    "Observation space for each agent probably should be gymnasium.spaces.box or gymnasium.spaces.discrete",
    "Observation is not a NumPy array",
)
#: And about one in which an agent whose game is over has no legal action.
NO_ACTION_LEFT = "Action mask numpy array is all zeros (no legal actions)."


def choose(mask: Any, number: int) -> int:
    """Return a legal action: of three one is any, two are the first one, which is a play where there is one."""
    legal = mask.nonzero()[0].tolist()
    return legal[number * 7919 % len(legal) if number % 3 == 0 else 0]


def steps(env: Any, most: int = 10**6) -> Iterator[tuple[str, dict[str, Any]]]:
    """Play an episode from where it stands to its end, and yield the mover and its observation before each decision."""
    for number in range(most):
        observation, _, termination, truncation, _ = env.last()
        if termination or truncation:
            return
        yield env.agent_selection, observation
        env.step(choose(observation["action_mask"], number))


def trace(env, most=10**6):  # types are left out: this source is run in another process, too
    """Return a digest of all that an environment shows until its episode ends."""
    digest = hashlib.sha256()
    for number in range(most):
        observation, *rest = env.last()
        for agent in ("player_0", "player_1"):
            digest.update(b"".join(array.tobytes() for array in env.observe(agent).values()))
        digest.update(repr((env.agent_selection, rest, env.rewards, env.infos)).encode())
        digest.update(env.state().tobytes())
        if rest[1] or rest[2]:
            break
        legal = observation["action_mask"].nonzero()[0].tolist()
        env.step(legal[number * 7919 % len(legal) if number % 3 == 0 else 0])
    return digest.hexdigest()


def started(door: Callable[..., Any], rules: Rules | None = None, seed: int = 5, plies: int = 0, **options: Any) -> Any:
    """Return an environment some decisions into the episode of a seed."""
    env = door(rules, **options)
    env.reset(seed=seed)
    for _ in steps(env, plies):
        pass
    return env


def an_illegal_action(env: Any) -> int:
    mask = env.observe(env.agent_selection)["action_mask"]
    return int(np.flatnonzero(mask == 0)[0])


def outcomes(env: Any) -> tuple[dict[str, float], Counter[str]]:
    """Play an episode; return the sums of what ``last`` paid, and how often each agent was removed."""
    paid = dict.fromkeys(AGENTS, 0.0)
    removed: Counter[str] = Counter()
    for number, agent in enumerate(env.agent_iter()):
        observation, reward, termination, truncation, _ = env.last()
        paid[agent] += reward
        done = termination or truncation
        removed[agent] += done
        env.step(None if done else choose(observation["action_mask"], number))
    return paid, removed


# -- PettingZoo's own tests -------------------------------------------------------------------------------------------


@all_rules
@both_encodings
@both_doors
def test_pettingzoos_api_test_warns_of_nothing_but_dict_observations(
    door: Callable[..., Any], rules: Rules, encoding: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for text in (*DICT_WARNINGS, NO_ACTION_LEFT):
            warnings.filterwarnings("ignore", message=f"{re.escape(text)}$")
        api_test(door(rules, encoding=encoding), num_cycles=60)
    assert "Passed API test" in capsys.readouterr().out


@all_rules
@both_encodings
@both_doors
def test_pettingzoos_seed_test_passes(door: Callable[..., Any], rules: Rules, encoding: str) -> None:
    seed_test(lambda: door(rules, encoding=encoding), num_cycles=60)


@all_rules
@both_doors
def test_pettingzoos_render_test_passes(door: Callable[..., Any], rules: Rules) -> None:
    pytest.importorskip("pygame")
    render_test(lambda render_mode: door(rules, render_mode))


def test_it_converts_to_a_parallel_environment(capsys: pytest.CaptureFixture[str]) -> None:
    parallel_api_test(turn_based_aec_to_parallel(spite_and_malice_v0.env(MINI)), num_cycles=50)
    assert "Passed Parallel API test" in capsys.readouterr().out


# -- what the spaces promise ------------------------------------------------------------------------------------------


@all_rules
@both_encodings
def test_everything_handed_out_is_of_its_space_and_type(rules: Rules, encoding: str) -> None:
    env = started(spite_and_malice_v0.env, rules, encoding=encoding)
    shape = (env.unwrapped.actions.n,)
    for _ in range(2):
        for mover, last in steps(env):
            for agent in AGENTS:
                observation = env.observe(agent)
                assert list(observation) == ["observation", "action_mask"]
                assert env.observation_space(agent).contains(observation)
                assert observation["observation"].dtype == np.uint8
                assert observation["action_mask"].dtype == np.int8
                assert observation["action_mask"].shape == shape
                assert all(part.flags.c_contiguous and part.flags.writeable for part in observation.values())
            assert env.action_space(mover).contains(env.action_space(mover).sample(last["action_mask"]))
            assert env.state_space.contains(env.state())
            assert env.state().dtype == np.uint8
        for values, kind in ((env.rewards, float), (env.terminations, bool), (env.truncations, bool)):
            assert {type(value) for value in values.values()} == {kind}
        env.reset()


def test_spaces_are_each_agents_own_and_stay_the_same() -> None:
    env = started(spite_and_malice_v0.env)
    for space in (env.observation_space, env.action_space):
        assert space("player_0") is space("player_0")
        assert space("player_0") is not space("player_1")
        assert space("player_0") == space("player_1")


def test_the_documented_sizes_are_those_of_the_default_rules() -> None:
    env = spite_and_malice_v0.env()
    page = " ".join(str(spite_and_malice_v0.__doc__).split())
    space = env.observation_space("player_0")
    assert f"``Discrete({env.action_space('player_0').n})`` with the default rules" in page
    assert f"observation=Box(0, high, {space['observation'].shape}, uint8)" in page
    assert f"action_mask=Box(0, 1, {space['action_mask'].shape}, int8)" in page
    assert f"``Box(0, high, {env.state_space.shape}, uint8)`` with the default rules" in page
    parts = ", ".join(env.unwrapped.state_slices)
    assert all(f"``{name}``" in page for name in parts.split(", "))
    assert str(env) == str(env.unwrapped) == env.metadata["name"] == "spite_and_malice_v0"


@all_rules
def test_the_mask_is_that_of_the_core_and_never_empty_for_the_mover(rules: Rules) -> None:
    env = started(spite_and_malice_v0.raw_env, rules)
    twin = Game(rules, seed=5)
    for number, (mover, observation) in enumerate(steps(env)):
        mask = observation["action_mask"]
        assert mask.any()
        np.testing.assert_array_equal(mask, twin.legal_actions()[0])
        np.testing.assert_array_equal(observation["observation"], twin.observe()[0])
        assert AGENTS[int(twin.current_player[0])] == mover
        twin.step([choose(mask, number)])
    assert twin.terminated[0] or twin.truncated[0]


def test_an_observation_handed_out_never_changes_and_changing_it_harms_nothing() -> None:
    env = started(spite_and_malice_v0.env, MINI)
    spoilt = started(spite_and_malice_v0.env, MINI)
    kept: list[tuple[Any, bytes]] = []
    for number in range(40):
        for agent in AGENTS:
            kept += [(part, part.tobytes()) for part in (*env.observe(agent).values(), env.state())]
            for part in (*spoilt.observe(agent).values(), spoilt.state()):
                part[:] = 1
            assert spoilt.observe(agent)["observation"].tobytes() == env.observe(agent)["observation"].tobytes()
        observation, _, termination, truncation, _ = env.last()
        if termination or truncation:
            env.reset()
            spoilt.reset()
            continue
        action = choose(observation["action_mask"], number)
        env.step(action)
        spoilt.step(action)
    assert all(part.tobytes() == before for part, before in kept)


# -- off-turn ---------------------------------------------------------------------------------------------------------


@all_rules
def test_off_turn_every_mask_is_zero_and_looking_changes_nothing(rules: Rules) -> None:
    watched, unwatched = (started(spite_and_malice_v0.env, rules, render_mode="ansi") for _ in range(2))
    for (mover, observation), _ in zip(steps(watched), steps(unwatched), strict=True):
        (other,) = set(AGENTS) - {mover}
        assert not watched.observe(other)["action_mask"].any()
        again = watched.observe(mover)
        assert all(again[key].tobytes() == observation[key].tobytes() for key in again)
        watched.render()
        assert watched.unwrapped.position() == unwatched.unwrapped.position()
    assert trace(watched) == trace(unwatched)


@all_rules
def test_after_the_end_both_views_are_shown_and_both_masks_are_zero(rules: Rules) -> None:
    env = started(spite_and_malice_v0.env, rules, plies=10**6)
    views = [env.observe(agent) for agent in AGENTS]
    env.step(None)
    env.step(None)
    assert env.agents == []
    for agent, before in zip(AGENTS, views, strict=True):
        assert not before["action_mask"].any()
        assert before["observation"].any()
        after = env.observe(agent)
        assert all(after[key].tobytes() == before[key].tobytes() for key in after)


def with_other_hidden_cards(position: Position, viewer: int, rng: random.Random) -> Position:
    """Permute all cards that a player can't see: the other hand, the face-down pay-off cards, the stock."""
    changed = copy.deepcopy(position)
    hidden = [*changed["hands"][1 - viewer], *changed["stock"]]
    hidden += [card for pile in changed["payoff"] for card in pile[:-1]]
    rng.shuffle(hidden)
    for pile in changed["payoff"]:
        pile[:-1] = [hidden.pop() for _ in pile[:-1]]
    for pile in (changed["hands"][1 - viewer], changed["stock"]):
        pile[:] = [hidden.pop() for _ in pile]
    return changed


@all_rules
@both_encodings
def test_nothing_shown_to_a_player_depends_on_a_card_it_cannot_see(rules: Rules, encoding: str) -> None:
    rng = random.Random(3)
    game = played_games(rules, 12, seed=8, most=120)
    for index in range(game.num_games):
        viewer = rng.randrange(2)
        position = game.position(index)
        shown = []
        for variant in (position, *(with_other_hidden_cards(position, viewer, rng) for _ in range(3))):
            env = spite_and_malice_v0.env(rules, "ansi", encoding=encoding)
            env.reset(seed=1, options={"position": variant})
            parts = [part.tobytes() for part in env.observe(AGENTS[viewer]).values()]
            text = ansi.board(describe(env.unwrapped.game, viewer=viewer))
            rendered = env.render() if position["turn"] == viewer else None
            shown.append((parts, text, rendered, env.infos, env.rewards, env.agent_selection))
        assert all(variant == shown[0] for variant in shown)


# -- rewards and ends -------------------------------------------------------------------------------------------------


@all_rules
@pytest.mark.parametrize("reward", ["win", "points", "margin"])
def test_last_pays_each_agent_the_outcome_exactly_once(rules: Rules, reward: str) -> None:
    rules = rules.replace(payoff_size=2, max_steps=5000)  # short games, and most of them decided
    env = spite_and_malice_v0.env(rules, reward=reward)
    decided = 0
    for seed in range(4):
        env.reset(seed=seed)
        twin = Game(rules, seed=seed)
        for number, (_, observation) in enumerate(steps(copy.deepcopy(env))):
            twin.step([choose(observation["action_mask"], number)])
        points = twin.points[0].tolist()
        expected = {
            "win": [1.0, -1.0][int(twin.winner[0])],
            "points": float(points[0] - points[1]),
            "margin": (points[0] - points[1]) / rules.payoff_size,
        }[reward]
        expected *= int(twin.winner[0]) >= 0
        paid, removed = outcomes(env)
        assert paid == {"player_0": expected, "player_1": -expected}
        assert removed == Counter(AGENTS)
        decided += expected != 0
    assert decided


@all_rules
def test_the_last_decision_pays_both_agents_at_once(rules: Rules) -> None:
    env = started(spite_and_malice_v0.env, rules)
    for _ in steps(env):
        assert set(env.rewards.values()) == {0.0}
        assert not any((*env.terminations.values(), *env.truncations.values()))
    assert set(env.rewards) == set(AGENTS)
    assert sum(env.rewards.values()) == 0
    assert len(set(env.terminations.values())) == len(set(env.truncations.values())) == 1
    assert env.terminations["player_0"] != env.truncations["player_0"]


@pytest.mark.parametrize("mover", [0, 1])
@pytest.mark.parametrize(
    ("reward", "rules", "paid"),
    [
        ("win", G4A, 1),
        ("points", G4A, 3),
        ("margin", G4A, 3 / 20),
        ("points", G4A.replace(match_points=50), (49 + 3) - 40),
    ],
)
def test_the_winner_is_paid_what_the_loser_has_left(reward: str, rules: Rules, paid: float, mover: int) -> None:
    scores = None if rules.match_points is None else (49, 40)
    env = spite_and_malice_v0.env(rules, reward=reward)
    env.reset(options={"position": lay(rules, mover=mover, payoff="A", opponent_payoff="579", scores=scores)})
    env.step(env.unwrapped.actions.parse("payoff>center0"))
    assert env.rewards == {AGENTS[mover]: paid, AGENTS[1 - mover]: -paid}
    assert all(env.terminations.values())
    assert not any(env.truncations.values())


def test_a_match_pays_at_its_end_only() -> None:
    env = started(spite_and_malice_v0.env, MATCH, reward="points")
    games = {int(env.unwrapped.game.state.game_number[0]) for _ in steps(env) if not any(env.rewards.values())}
    assert len(games) > 1
    scores = env.unwrapped.position()["scores"]
    assert all(env.terminations.values())
    assert max(scores) >= MATCH.match_points
    assert env.rewards == {"player_0": scores[0] - scores[1], "player_1": scores[1] - scores[0]}


def test_a_game_cut_at_its_limit_is_truncated_without_reward() -> None:
    env = started(spite_and_malice_v0.env, G4A.replace(max_steps=7))
    assert len(list(steps(env))) == 7
    assert env.truncations == dict.fromkeys(AGENTS, True)
    assert env.terminations == dict.fromkeys(AGENTS, False)
    assert set(env.rewards.values()) == {0.0}


@both_doors
def test_an_agent_whose_game_is_over_takes_none_and_leaves(door: Callable[..., Any]) -> None:
    env = started(door, MINI, plies=10**6)
    with pytest.raises(ValueError, match="None"):
        env.step(0)
    left = env.agent_selection
    env.step(None)
    for values in (env.agents, env.rewards, env.terminations, env.truncations, env.infos):
        assert list(values) == [agent for agent in AGENTS if agent != left]
    env.reset(seed=5)
    assert trace(env) == trace(started(door, MINI))


# -- illegal actions --------------------------------------------------------------------------------------------------

NOT_LEGAL = (
    None,
    True,
    False,
    np.bool_(True),
    np.bool_(False),
    1.0,
    np.float32(1),
    float("nan"),
    -1,
    10**30,
    np.int64(-1),
    "1",
    [1],
    np.array([1]),
    np.array(True),
    1j,
)


@pytest.mark.parametrize("action", NOT_LEGAL, ids=repr)
def test_the_raw_environment_refuses_what_is_no_legal_action_and_changes_nothing(action: Any) -> None:
    env = started(spite_and_malice_v0.raw_env, plies=9)
    before = pickle.dumps(env)
    with pytest.raises(IllegalActionError, match=re.escape(repr(action))):
        env.step(action)
    assert pickle.dumps(env) == before


@all_rules
def test_a_refusal_names_the_action_and_all_legal_ones(rules: Rules) -> None:
    env = started(spite_and_malice_v0.raw_env, rules, plies=2)
    table = env.actions
    mask = env.observe(env.agent_selection)["action_mask"]
    for action in (*np.flatnonzero(mask == 0).tolist(), table.n, -1):
        with pytest.raises(ValueError, match="is not legal") as refusal:
            env.step(action)
        head, _, listed = str(refusal.value).partition("; the legal ones are ")
        assert f"action {action} " in head
        assert action not in range(table.n) or f"({table.text(action)})" in head
        assert listed.split(", ") == [f"{number} ({table.text(number)})" for number in np.flatnonzero(mask).tolist()]


@pytest.mark.parametrize("cast", [int, np.int8, np.int32, np.int64, np.uint16, np.array])
@both_doors
def test_integers_of_any_kind_are_actions(door: Callable[..., Any], cast: Callable[[int], Any]) -> None:
    env, same = (started(door, plies=4) for _ in range(2))
    action = choose(env.last()[0]["action_mask"], 3)
    env.step(cast(action))
    same.step(action)
    assert env.infos == {agent: {} for agent in AGENTS}
    assert trace(env) == trace(same)


@pytest.mark.parametrize("plies", [0, 2])
@pytest.mark.parametrize(
    ("reward", "rules"),
    [(reward, rules) for reward in ("win", "points", "margin") for rules in (G4A, MINI, MATCH)],
)
def test_an_illegal_action_loses_the_episode(reward: str, rules: Rules, plies: int) -> None:
    env = started(spite_and_malice_v0.env, rules, plies=plies, reward=reward)
    offender = env.agent_selection
    (other,) = set(AGENTS) - {offender}
    left = len(env.unwrapped.position()["payoff"][AGENTS.index(offender)])
    env.step(an_illegal_action(env))
    paid = {"win": 1.0, "points": float(left), "margin": left / rules.payoff_size}[reward]
    assert env.rewards == {offender: -paid, other: paid}
    assert env.terminations == dict.fromkeys(AGENTS, True)
    assert env.truncations == dict.fromkeys(AGENTS, False)
    assert env.infos == {agent: {"forfeit": offender} for agent in AGENTS}
    game = env.unwrapped.game
    assert AGENTS[int(game.winner[0])] == other
    assert game.points[0].tolist() == [left * (agent == other) for agent in AGENTS]
    assert not any(env.observe(agent)["action_mask"].any() for agent in AGENTS)
    assert outcomes(env) == ({offender: -paid, other: paid}, Counter(AGENTS))


@pytest.mark.parametrize("action", NOT_LEGAL, ids=repr)
def test_whatever_is_no_legal_action_loses(action: Any) -> None:
    env = started(spite_and_malice_v0.env, plies=9)
    offender = env.agent_selection
    env.step(action)
    assert env.rewards[offender] == -1
    assert all(env.terminations.values())


@both_doors
def test_an_illegal_action_leaves_no_trace_in_the_next_game(door: Callable[..., Any]) -> None:
    env = started(door, plies=7)
    try:
        env.step(an_illegal_action(env))
    except IllegalActionError:
        assert door is spite_and_malice_v0.raw_env
    fresh = door()
    for seed in (42, None):
        env.reset(seed=seed)
        fresh.reset(seed=seed)
        assert trace(env, 20) == trace(fresh, 20)
    assert env.infos == {agent: {} for agent in AGENTS}


# -- resets, seeds, random numbers ------------------------------------------------------------------------------------


@all_rules
def test_a_seed_gives_the_cores_game_wherever_it_is_played(rules: Rules) -> None:
    batch = Game(rules, 7, seed=11)
    for index in (0, 3, 6):
        env = spite_and_malice_v0.env(rules)
        env.reset(seed=int(batch.state.seed[index]))
        assert env.unwrapped.position() == batch.position(index)
    env.reset()
    batch.reset()
    assert env.unwrapped.position() == batch.position(6)


@all_rules
def test_resets_count_the_episodes_of_a_seed_whatever_is_played(rules: Rules) -> None:
    env, twin = started(spite_and_malice_v0.env, rules), Game(rules, seed=5)
    deals = []
    for plies in (0, 3, 10**6):
        for _ in steps(env, plies):
            pass
        env.reset()
        twin.reset()
        assert env.unwrapped.position() == twin.position(0)
        deals.append(env.unwrapped.position())
    assert deals[0] != deals[1] != deals[2]
    assert trace(started(spite_and_malice_v0.env, rules)) == trace(started(spite_and_malice_v0.env, rules))


def test_without_any_seed_every_environment_draws_its_own() -> None:
    deals = []
    for _ in range(4):
        env = spite_and_malice_v0.env()
        env.reset()
        deals.append(repr(env.unwrapped.position()))
    assert len(set(deals)) == 4


@both_doors
def test_rules_and_options_survive_resets_and_copies(door: Callable[..., Any]) -> None:
    rules = MATCH.replace(side_piles=2, stock_end="short")
    env = door(rules, "ansi", "margin", "compact", 1, "all")
    for renew in (
        lambda env: env.reset(seed=3),
        lambda env: env.reset(),
        lambda env: env.reset(seed=3, options={}),
        lambda env: env.reset(options={"position": Game(rules).position(0)}),
    ):
        renew(env)
        env = pickle.loads(pickle.dumps(copy.deepcopy(env)))
        raw = env.unwrapped
        table = raw.game.observation
        assert (raw.rules, raw.game.rules, raw.actions.rules) == (rules, rules, rules)
        assert (raw.render_mode, raw.reward, table.encoding, table.side_depth) == ("ansi", "margin", "compact", 1)
        assert raw.perspective == "all"


def test_interleaved_environments_do_not_disturb_each_other() -> None:
    alone = [trace(started(spite_and_malice_v0.env, seed=seed)) for seed in (1, 2)]
    envs = [started(spite_and_malice_v0.env, seed=seed) for seed in (1, 2)]
    for _ in zip(steps(envs[0], 30), steps(envs[1], 30), strict=True):
        pass
    for env, seed in zip(envs, (1, 2), strict=True):
        env.reset(seed=seed)
    assert [trace(env) for env in envs] == alone


def test_global_random_numbers_are_neither_used_nor_touched() -> None:
    digests = []
    for global_seed in (1, 2):
        np.random.seed(global_seed)  # noqa: NPY002
        random.seed(global_seed)
        before = (pickle.dumps(np.random.get_state()), random.getstate())  # noqa: NPY002
        env = spite_and_malice_v0.env(MATCH)
        env.reset()
        env.reset(seed=9)
        digests.append(trace(env))
        assert (pickle.dumps(np.random.get_state()), random.getstate()) == before  # noqa: NPY002
    assert digests[0] == digests[1]


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, "7", [7], np.float64(3)])
def test_an_impossible_seed_is_refused_and_changes_nothing(seed: Any) -> None:
    env = started(spite_and_malice_v0.raw_env, plies=3)
    before = pickle.dumps(env)
    with pytest.raises(ValueError, match="seed"):
        env.reset(seed=seed)
    assert pickle.dumps(env) == before


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"postion": {}}, "postion"),
        ({"position": None}, "position"),
        ({"position": {"turn": 0}}, "payoff"),
        ({"position": lay(G4A), "seed": 3}, "'seed'"),
    ],
)
def test_impossible_options_are_refused_and_change_nothing(options: dict[str, Any], named: str) -> None:
    env = started(spite_and_malice_v0.raw_env, plies=3)
    before = pickle.dumps(env)
    with pytest.raises(ValueError, match=named):
        env.reset(seed=1, options=options)
    assert pickle.dumps(env) == before


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("render_mode", "rgb"),
        ("perspective", 0),
        ("reward", "score"),
        ("encoding", "image"),
        ("side_depth", -1),
    ],
)
@both_doors
def test_an_impossible_argument_is_refused_by_name(door: Callable[..., Any], argument: str, value: Any) -> None:
    with pytest.raises(ValueError, match=f"{argument}={value!r} is not allowed"):
        door(**{argument: value})


def test_calls_out_of_order_are_refused() -> None:
    raw = spite_and_malice_v0.raw_env(MINI, "ansi")
    looks = (raw.render, raw.state, raw.position, lambda: raw.observe("player_0"))
    for call in (*looks, raw.forfeit, lambda: raw.step(0)):
        with pytest.raises(RuntimeError, match="reset"):
            call()
    env = spite_and_malice_v0.env(MINI)
    for call in (env.render, env.state, lambda: env.step(0), lambda: env.observe("player_0"), env.agent_iter):
        with pytest.raises(AssertionError, match="reset"):
            call()
    raw.reset(seed=1)
    with pytest.raises(ValueError, match="player_2"):
        raw.observe("player_2")
    for _ in steps(raw):
        pass
    raw.step(None)
    raw.step(None)
    with pytest.raises(RuntimeError, match="reset"):
        raw.step(None)


# -- positions and the state ------------------------------------------------------------------------------------------


@all_rules
def test_a_position_comes_back_as_it_was_given(rules: Rules) -> None:
    rng = random.Random(1)
    env = spite_and_malice_v0.env(rules)
    for seed in (None, *range(30)):
        position = random_position(rules, rng)
        env.reset(seed=seed, options={"position": position})
        assert env.unwrapped.position() == position
        assert env.agent_selection == AGENTS[position["turn"]]
        assert env.last()[0]["action_mask"].any()


def test_a_stock_left_out_is_shuffled_by_the_seed() -> None:
    env = spite_and_malice_v0.env()
    stocks = []
    for seed in (4, 4, 5, None):
        env.reset(seed=seed, options={"position": lay(G4A)})
        stocks.append(env.unwrapped.position()["stock"])
    assert stocks[0] == stocks[1]
    assert len(set(map(tuple, stocks))) == 3
    assert {tuple(sorted(stock)) for stock in stocks} == {tuple(sorted(stocks[0]))}


@all_rules
def test_the_state_is_a_function_of_the_position_alone(rules: Rules) -> None:
    env, other = spite_and_malice_v0.env(rules), spite_and_malice_v0.env(rules, encoding="compact")
    seen: dict[bytes, str] = {}
    for seed in range(3):
        env.reset(seed=seed)
        for _ in steps(env, 150):
            position = env.unwrapped.position()
            other.reset(seed=99, options={"position": position})
            state = env.state()
            assert state.tobytes() == other.state().tobytes()
            assert seen.setdefault(state.tobytes(), repr(position)) == repr(position)
    assert len(seen) >= 10


@all_rules
def test_the_state_tells_any_two_positions_apart(rules: Rules) -> None:
    rng = random.Random(2)
    env = spite_and_malice_v0.env(rules)

    def state(position: Position) -> bytes:
        env.reset(seed=0, options={"position": position})
        return env.state().tobytes()

    for _ in range(20):
        position = random_position(rules, rng)
        changed = copy.deepcopy(position)
        changed["turn"] = 1 - changed["turn"]
        variants = [changed]
        piles = [*position["payoff"], *position["sides"][0], *position["sides"][1], position["stock"]]
        for number, pile in enumerate(piles):
            if len(set(pile)) > 1:  # two different cards of one pile change places
                first = rng.choice([place for place in range(1, len(pile)) if pile[place] != pile[place - 1]])
                changed = copy.deepcopy(position)
                sides = [*changed["sides"][0], *changed["sides"][1]]
                target = [*changed["payoff"], *sides, changed["stock"]][number]
                target[first - 1 : first + 1] = target[first - 1 : first + 1][::-1]
                variants.append(changed)
        assert state(position) not in {state(variant) for variant in variants}


def test_the_parts_of_the_state_stand_where_their_names_say() -> None:
    rules = Rules.classic().replace(match_points=50)
    position = lay(
        rules,
        mover=1,
        payoff="3K",
        hand="AAK",
        sides=["579", "", "J"],
        opponent_payoff="27Q",
        opponent_hand="2",
        centers=["AK3", "", "K"],
        stock="468",
        set_aside="AAK",
        scores=(7, 9),
    )
    env = spite_and_malice_v0.env(rules)
    env.reset(options={"position": position})
    state = env.state()
    parts = {name: state[place] for name, place in env.unwrapped.state_slices.items()}
    assert sum(part.size for part in parts.values()) == state.size

    def tally(cards: str) -> list[int]:
        return [cards.count(card) for card in rules.characters]

    def ranks(cards: str) -> list[int]:
        """Return a pile as ranks, top first and filled up."""
        found = [rules.characters.index(card) + 1 for card in reversed(cards)]
        return found + [0] * (rules.num_cards - len(found))

    assert parts["turn"].tolist() == [1]
    assert parts["scores"].tolist() == [9, 7]
    assert parts["hands"].tolist() == tally("2") + tally("AAK")
    assert parts["pile_sizes"].tolist() == [3, 0, 0, 0, 0, 2, 3, 0, 1, 0]
    assert parts["center_sizes"].tolist() == [3, 0, 1, 0]
    kings = np.zeros((4, 12), int)
    kings[0, 1] = kings[2, 0] = 1
    assert parts["center_kings"].tolist() == kings.ravel().tolist()
    assert parts["set_aside"].tolist() == tally("AAK")
    assert parts["stock_size"].tolist() == [3]
    piles = ["27Q", "", "", "", "", "3K", "579", "", "J", ""]
    assert parts["piles"].tolist() == [rank for pile in piles for rank in ranks(pile)]
    assert parts["stock"].tolist() == ranks("468")


# -- copies -----------------------------------------------------------------------------------------------------------


@all_rules
@both_doors
def test_copies_at_any_ply_play_on_identically_and_independently(door: Callable[..., Any], rules: Rules) -> None:
    env = door(rules)
    env.reset(seed=6)
    ways = (copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env)))
    env.action_space("player_0").seed(4)
    made = []
    for number, _ in enumerate(steps(env)):
        if number in (1, 40):
            copies = [way(env) for way in ways]
            samples = {int(copied.action_space("player_0").sample()) for copied in copies}
            assert samples == {int(copy.deepcopy(env).action_space("player_0").sample())}
            before = env.unwrapped.position()
            digests = {trace(copied) for copied in copies}
            for copied in copies:
                copied.reset()
                made.append(trace(copied))
            assert env.unwrapped.position() == before
            assert digests == {trace(copy.deepcopy(env))}
    copies = [way(env) for way in ways]
    assert {trace(copied) for copied in copies} == {trace(env)}
    env.reset()
    assert {trace(env), *made} == {made[0]}


@pytest.mark.parametrize("hash_seed", ["0", "4711"])
def test_another_process_plays_on_whatever_its_hash_seed(hash_seed: str) -> None:
    env = started(spite_and_malice_v0.env, MATCH, plies=20)
    program = (
        f"import hashlib, pickle, sys\n{inspect.getsource(trace)}\n"
        "env = pickle.load(sys.stdin.buffer)\nprint(trace(env))\nenv.reset(seed=8)\nprint(trace(env))"
    )
    output = run_python(program, pickle.dumps(env), PYTHONHASHSEED=hash_seed)
    assert output.split() == [trace(env), trace(started(spite_and_malice_v0.env, MATCH, seed=8))]


# -- the package ------------------------------------------------------------------------------------------------------


def run_python(program: str, data: bytes = b"", **environment: str) -> str:
    """Run a program in a new interpreter that finds the same packages, and return what it prints."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path)), **environment}
    environment.pop("DISPLAY", None)
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, input=data, capture_output=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr.decode()
    return done.stdout.decode()


def test_importing_and_playing_need_no_heavy_package() -> None:
    heavy = ("torch", "pygame", "pandas", "matplotlib", "PIL", "tensorboard", "stable_baselines3", "ray", "agents")
    program = (
        f"import sys\nfrom spite_env import spite_and_malice_v0\nenv = spite_and_malice_v0.env(render_mode='ansi')\n"
        f"env.reset(seed=1)\nenv.step(env.last()[0]['action_mask'].argmax())\nenv.render()\n"
        f"env._repr_html_()\nprint(*[name for name in {heavy!r} if name in sys.modules])"
    )
    assert run_python(program).split() == []


@pytest.mark.skipif(not hasattr(pettingzoo, "make"), reason="this version of PettingZoo has no registry")
def test_pettingzoos_registry_makes_it() -> None:
    for name in ("spite_env/spite_and_malice_v0", "spite_env/spite_and_malice"):
        env = pettingzoo.make("aec", name, rules=MINI, reward="points")
        env.reset(seed=5)
        assert env.unwrapped.rules == MINI
        assert trace(env) == trace(started(spite_and_malice_v0.env, MINI, reward="points"))


@pytest.mark.parametrize("agent", ["player_2", 0, None])
def test_an_agent_that_does_not_exist_is_named(agent: Any) -> None:
    env = spite_and_malice_v0.env()
    env.reset(seed=1)
    with pytest.raises(ValueError, match=f"agent {agent!r} does not exist; the agents are player_0 and player_1"):
        env.observe(agent)
