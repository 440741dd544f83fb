"""The Gymnasium environments, of one game and of many."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from importlib.util import find_spec
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.vector import SyncVectorEnv
from numpy.typing import NDArray

import spite_env
from helpers import ALL_PRESETS, lay
from spite_env import Rules, random_legal_actions
from spite_env.envs.gym import SpiteEnv, SpiteVectorEnv
from spite_env.policies import make_policy
from spite_env.rules import PRESETS

SMALL = Rules(payoff_size=2)


class Careful:
    """Takes the last legal action, without chance: the discard of the highest card, where there is one."""

    def reset(self, rules: Rules, num_games: int, seed: int) -> None:
        """Have nothing to begin."""

    def act(self, observation: Any, action_mask: NDArray[np.bool_], infosets: Any, indices: Any) -> NDArray[np.intp]:
        n = action_mask.shape[1]
        plays = action_mask[:, : n // 4].any(axis=1)
        return np.where(plays, action_mask.argmax(axis=1), n - 1 - action_mask[:, ::-1].argmax(axis=1))


def choose(mask: NDArray[Any], rng: np.random.Generator) -> int:
    return int(rng.choice(np.flatnonzero(mask)))


def episodes(env: Any, count: int, seed: int = 0) -> Iterator[list[tuple[Any, ...]]]:
    """Play with random legal actions, and yield the steps of each episode."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        _, info = env.reset(seed=seed if number == 0 else None)
        steps: list[tuple[Any, ...]] = []
        while not steps or not (steps[-1][2] or steps[-1][3]):
            steps.append(env.step(choose(info["action_mask"], rng)))
            info = steps[-1][4]
        yield steps


@pytest.mark.parametrize("observation", ["box", "dict"])
@pytest.mark.parametrize("rules", ALL_PRESETS, ids=list(PRESETS))
def test_gymnasiums_checker_has_nothing_to_say(rules: Rules, observation: str) -> None:
    env = gymnasium.make("SpiteAndMalice-v0", rules=rules, observation=observation, render_mode="ansi")
    # A warning is an error here. The check of rendering tries every mode.
    check_env(env.unwrapped, skip_render_check=find_spec("pygame") is None)


@pytest.mark.parametrize("observation", ["box", "dict"])
def test_sb3s_checker_has_nothing_to_say(observation: str) -> None:
    checker = pytest.importorskip("stable_baselines3.common.env_checker")
    checker.check_env(SpiteEnv(observation=observation))


def test_an_episode_is_the_learners_own() -> None:
    env = SpiteEnv("random", Rules.mini(), reward="points", side_depth=2)
    seen = set()
    for steps in episodes(env, 60, seed=1):
        for view, reward, terminated, truncated, info in steps[:-1]:
            assert not terminated
            assert not truncated
            assert reward == 0.0
            assert info["action_mask"].any()
            assert view in env.observation_space
        view, reward, terminated, _, last = steps[-1]
        assert terminated
        game, seat = env.games.game, last["seat"]
        assert last["length"] == len(steps)
        assert last["outcome"] == {-1: "draw", seat: "win", 1 - seat: "loss"}[int(game.winner[0])]
        assert reward == last["reward"] == int(game.points[0, seat] - game.points[0, 1 - seat])
        left = [len(pile) for pile in game.position(0)["payoff"]]
        assert [last["payoff"], last["opponent_payoff"]] == [left[seat], left[1 - seat]]
        assert not last["action_mask"].any()
        np.testing.assert_array_equal(view, game.observe(seat)[0])
        seen.add((last["outcome"], seat))
    assert {("loss", 0), ("loss", 1), ("win", 0), ("win", 1)} <= seen


def test_kings_are_counted_wherever_they_come_from() -> None:
    rules = Rules.g4a()
    env = SpiteEnv(Careful(), rules, seat=0)
    position = lay(rules, mover=0, hand="K2", payoff="3K", opponent_payoff="99", sides=["5K"], stock="789JQ789JQ")
    env.reset(seed=1, options={"position": position})
    parse = env.games.game.actions.parse
    for text, kings in (("wild>center0", 1), ("hand>center0", 1), ("payoff>center1", 2), ("side0>center2", 3)):
        env.step(parse(text))
        assert env.games.results(np.array([0]))["kings"] == [kings], text


def test_masks_and_kinds_of_observations() -> None:
    box, both = SpiteEnv(rules="mini"), SpiteEnv(rules="mini", observation="dict")
    view, info = box.reset(seed=3)
    seen, _ = both.reset(seed=3)
    np.testing.assert_array_equal(seen["observation"], view)
    np.testing.assert_array_equal(seen["action_mask"], info["action_mask"])
    assert info["action_mask"].dtype == seen["action_mask"].dtype == np.int8
    assert box.action_masks().dtype == np.bool_
    assert box.action_masks().tolist() == info["action_mask"].astype(bool).tolist()
    assert info["action_mask"][box.action_space.sample(info["action_mask"])]
    assert seen in both.observation_space


def test_an_illegal_action_loses_or_raises_as_is_asked() -> None:
    for reward, lost in (("win", -1.0), ("points", -2.0), ("margin", -1.0)):
        env = SpiteEnv("greedy", SMALL, reward=reward)
        _, info = env.reset(seed=5)
        left = len(env.games.game.position(0)["payoff"][env.games.seats[0]])
        _, earned, terminated, truncated, last = env.step(int(np.argmin(info["action_mask"])))
        assert (earned, terminated, truncated) == (lost, True, False)
        assert last["outcome"] == "loss"
        assert last["forfeit"] is True
        assert last["payoff"] == left == 2
        with pytest.raises(RuntimeError, match="call reset"):
            env.step(0)
    env = SpiteEnv("greedy", SMALL, illegal="raise")
    _, info = env.reset(seed=5)
    before = env.games.game.position(0)
    with pytest.raises(ValueError, match=r"action 0 .* is not legal in game 0; the legal actions are"):
        env.step(int(np.argmin(info["action_mask"])))
    assert env.games.game.position(0) == before
    env.step(int(np.argmax(info["action_mask"])))


@pytest.mark.parametrize("illegal", ["lose", "raise"])
@pytest.mark.parametrize("action", [74, -1, 1000, 0.5, None, "0", [0, 1]])
def test_what_is_no_action_raises_and_changes_nothing(illegal: str, action: Any) -> None:
    env = SpiteEnv(illegal=illegal)
    env.reset(seed=5)
    before = env.games.game.position(0)
    message = r"is not legal in game 0 \(actions are 0 to 73\)" if isinstance(action, int) else "it is an integer"
    with pytest.raises(ValueError, match=message):
        env.step(action)
    assert env.games.game.position(0) == before
    batch = SpiteVectorEnv(2, illegal=illegal)
    batch.reset(seed=5)
    mask = batch.action_masks()
    legal = int(mask[0].argmax())
    with pytest.raises(ValueError, match=r"game 1 \(actions are 0 to 73\)|actions must be integers"):
        batch.step([legal, action] if not isinstance(action, list) else action[:1])
    np.testing.assert_array_equal(batch.action_masks(), mask)


def test_games_that_end_before_the_learner_moves_are_counted() -> None:
    rules = Rules.mini().replace(payoff_size=1)
    env = SpiteEnv("greedy", rules, seat=1)
    counts = []
    for number in range(40):
        _, info = env.reset(seed=2 if number == 0 else None)
        counts.append(info["redeals"])
        assert info["action_mask"].any()
    assert 0 in counts
    assert max(counts) >= 1
    assert int(env.games.game.state.episode[0]) == 39 + sum(counts)

    position = lay(rules, mover=0, payoff="A", opponent_payoff="3")
    with pytest.raises(ValueError, match="position 0 ends before the learner's first decision"):
        env.reset(seed=1, options={"position": position})
    with pytest.raises(RuntimeError, match="call reset"):
        env.step(0)
    env.reset(seed=1)
    hopeless = SpiteEnv(rules=Rules(max_steps=1), seat=1)
    with pytest.raises(RuntimeError, match="1000 games in a row ended"):
        hopeless.reset(seed=1)


def test_positions_start_episodes() -> None:
    rules = Rules.g4a()
    position = lay(rules, mover=1, hand="A5", payoff="2", opponent_payoff="77", stock="345678")
    env = gymnasium.make("SpiteAndMalice-v0", opponent=Careful(), rules=rules, seat=1)
    env.reset(seed=1, options={"position": position})
    assert env.unwrapped.games.game.position(0) == position | {"scores": [0, 0]}
    parse = env.unwrapped.games.game.actions.parse
    env.step(parse("hand>center0"))
    _, reward, terminated, _, info = env.step(parse("payoff>center0"))
    assert (reward, terminated, info["payoff_size"]) == (1.0, True, 2)
    for options, message in (
        ({"start": 1}, "unknown option 'start'"),
        ({"position": {}}, "the key 'payoff' is missing"),
    ):
        with pytest.raises(ValueError, match=message):
            env.reset(options=options)

    batch = SpiteVectorEnv(3, Careful(), rules, seat=1)
    batch.reset(seed=1, options={"position": position})
    assert [batch.games.game.position(index) for index in range(3)] == [position | {"scores": [0, 0]}] * 3


def test_matches_are_registered_too() -> None:
    env = gymnasium.make("SpiteAndMaliceMatch-v0", rules="mini", opponent="greedy", reward="points")
    assert env.unwrapped.games.rules == Rules.mini().replace(match_points=50)
    [steps] = episodes(env, 1, seed=1)
    scores = env.unwrapped.games.game.points[0].tolist()
    seat = steps[-1][4]["seat"]
    assert max(scores) >= 50
    assert steps[-1][1] == scores[seat] - scores[1 - seat]
    batch = gymnasium.make_vec("SpiteAndMaliceMatch-v0", num_envs=2)
    assert batch.unwrapped.games.rules.match_points == 50


def test_unseeded_resets_go_on_and_differ() -> None:
    first, second = SpiteEnv(), SpiteEnv()
    views = [env.reset()[0].tobytes() for env in (first, second)]
    assert views[0] != views[1]
    assert first.reset()[0].tobytes() != views[0]
    first.reset(seed=4)
    state = first.games.game.state
    assert (state.seed[0], state.episode[0]) == (4, 0)
    first.reset()
    assert (state.seed[0], state.episode[0]) == (4, 1)


def test_render_is_from_the_learners_seat() -> None:
    for seat in (0, 1):
        env = SpiteEnv("greedy", render_mode="ansi", seat=seat)
        env.reset(seed=2)
        text = env.render()
        assert text is not None
        lower = text[text.index("stock") :]
        assert "learner" in lower
        assert "greedy" not in lower
        assert "##" not in lower


def test_wrong_arguments_are_named() -> None:
    with pytest.raises(ValueError, match="observation='flat' is not allowed"):
        SpiteEnv(observation="flat")
    with pytest.raises(ValueError, match="observation='flat' is not allowed"):
        SpiteVectorEnv(2, observation="flat")
    with pytest.raises(
        ValueError, match=r"unknown policy 'nobody'; the known ones are random, greedy, expert, hoarder"
    ):
        gymnasium.make("SpiteAndMalice-v0", opponent="nobody")
    with pytest.raises(ValueError, match="max_steps of the rules"):
        SpiteVectorEnv(2, max_episode_steps=10)
    with pytest.raises(TypeError, match="unknown setting 'colour'; the settings are encoding, side_depth"):
        SpiteEnv(colour="red")
    for name in ("shaping", "gamma", "card_reward"):
        for value in (None, "1", -1, float("nan"), float("inf")):
            with pytest.raises(ValueError, match=f"{name}={value!r} is not allowed"):
                SpiteEnv(**{name: value})
    for name in ("shaping", "card_reward"):
        with pytest.raises(ValueError, match="match_points must be None"):
            SpiteEnv(match_points=50, **{name: 1.0})
    with pytest.raises(ValueError, match="options=5 are not allowed"):
        SpiteEnv().reset(options=5)  # type: ignore[arg-type]
    for wrong in (
        {"illegal": "ignore"},
        {"seat": 2},
        {"seat": 1.0},
        {"seat": None},
        {"reward": "fun"},
        {"match_points": 0},
    ):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))}=.* is not allowed"):
            SpiteEnv(**wrong)
    env = SpiteEnv()
    env.reset(seed=1)
    before = env.games.game.position(0)
    for seed in (-1, 2**64, 1.5, "1", True, [7]):
        with pytest.raises(ValueError, match=r"seed=.* is not allowed"):
            env.reset(seed=seed)  # type: ignore[arg-type]
        assert env.games.game.position(0) == before
    env.reset(seed=np.int64(1))  # type: ignore[arg-type]
    assert env.games.game.position(0) == before


def same(first: Any, second: Any, where: str) -> None:
    """Compare nested observations and infos, types included."""
    assert type(first) is type(second), where
    if isinstance(first, dict):
        assert first.keys() == second.keys(), where
        for key in first:
            same(first[key], second[key], f"{where}.{key}")
    elif isinstance(first, np.ndarray) and first.dtype == object:
        for index, (one, other) in enumerate(zip(first, second, strict=True)):
            same(one, other, f"{where}[{index}]")
    elif isinstance(first, np.ndarray):
        assert first.dtype == second.dtype, where
        np.testing.assert_array_equal(first, second, err_msg=where)
    else:
        assert first == second, where


@pytest.mark.parametrize("observation", ["box", "dict"])
def test_the_batch_is_what_gymnasium_makes_of_single_games(observation: str) -> None:
    mode = pytest.importorskip("gymnasium", minversion="1.1").vector.AutoresetMode.SAME_STEP
    rules = Rules.mini().replace(payoff_size=1, max_steps=4)
    options: dict[str, Any] = {"opponent": Careful(), "rules": rules, "observation": observation, "reward": "points"}
    native = SpiteVectorEnv(5, **options)
    singles = SyncVectorEnv([lambda: SpiteEnv(**options)] * 5, autoreset_mode=mode)
    assert native.metadata["autoreset_mode"] == mode
    assert native.observation_space == singles.observation_space
    assert native.action_space == singles.action_space
    seeds = [3, 2**40, 5, 6, 7]
    first, second = native.reset(seed=seeds), singles.reset(seed=seeds)
    same(first[0], second[0], "views")
    same(first[1], second[1], "infos")
    rng = np.random.default_rng(1)
    ends = np.zeros(2, int)
    for step in range(150):
        mask = first[-1]["action_mask"].astype(bool)
        actions = random_legal_actions(mask, rng.random(5))
        if step % 10 == 9:
            actions[step % 5] = mask[step % 5].argmin()
        first, second = native.step(actions), singles.step(actions)
        for name, one, other in zip(("views", "rewards", "terminated", "truncated"), first, second, strict=False):
            same(one, other, f"{step} {name}")
        same(first[4], second[4], f"{step} infos")
        ends += [int(first[2].sum()), int(first[3].sum())]
    assert (ends > 5).all()


def test_seeds_of_a_batch() -> None:
    env = gymnasium.make_vec("SpiteAndMalice-v0", num_envs=3, opponent="greedy")
    env.reset(seed=7)
    cores = spite_env.Game(num_games=3, seed=7).state.seed
    np.testing.assert_array_equal(env.unwrapped.games.game.state.seed, cores)
    env.reset(seed=[1, 2, 3])
    assert env.unwrapped.games.game.state.seed.tolist() == [1, 2, 3]
    with pytest.raises(ValueError, match="do not fit 3 games"):
        env.reset(seed=[1, 2])


def test_wrappers_of_vector_environments_work() -> None:
    wrappers = pytest.importorskip("gymnasium", minversion="1.4").wrappers.vector  # older ones miscount
    env: Any = gymnasium.make_vec("SpiteAndMalice-v0", num_envs=4, opponent="greedy", rules="mini")
    env = wrappers.DictInfoToList(wrappers.RecordEpisodeStatistics(env))
    _, infos = env.reset(seed=1)
    rng = np.random.default_rng(1)
    counted = 0
    for _ in range(60):
        masks = np.array([info["action_mask"] for info in infos], bool)
        _, rewards, terminations, truncations, infos = env.step(random_legal_actions(masks, rng.random(4)))
        for index in np.flatnonzero(terminations | truncations):
            counted += 1
            final = infos[index]["final_info"]
            assert final["reward"] == rewards[index]
            assert infos[index]["episode"]["r"] == rewards[index]
            assert infos[index]["episode"]["l"] == final["length"]
    assert counted > 5


def test_pickles_go_on_the_same() -> None:
    env = SpiteEnv("greedy", SMALL)
    _, info = env.reset(seed=1)
    env.step(choose(info["action_mask"], np.random.default_rng(0)))
    again = pickle.loads(pickle.dumps(env))
    for _ in range(5):
        action = int(np.argmax(env.action_masks()))
        first, second = env.step(action), again.step(action)
        same(dict(enumerate(first)), dict(enumerate(second)), "step")


class Failing(Careful):
    """Raises when it is told to."""

    fail = False

    def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
        if self.fail:
            raise ZeroDivisionError
        return super().act(observation, action_mask, infosets, indices)


def test_after_an_opponent_has_failed_only_a_reset_is_possible() -> None:
    for forfeit in (False, True):  # while it answers, and while the next game begins
        env = SpiteVectorEnv(2, Failing(), "mini", seat=1)
        env.reset(seed=1)
        env.games.policies[0].fail = True  # type: ignore[attr-defined]
        mask = env.action_masks()
        actions = (~mask).argmax(axis=1) if forfeit else mask.shape[1] - 1 - mask[:, ::-1].argmax(axis=1)
        with pytest.raises(ZeroDivisionError):
            env.step(actions)
        env.games.policies[0].fail = False  # type: ignore[attr-defined]
        with pytest.raises(RuntimeError, match="call reset"):
            env.step(env.action_masks().argmax(axis=1))
        env.reset(seed=1)
        env.step(env.action_masks().argmax(axis=1))


def test_environments_can_share_an_opponent() -> None:
    shared = make_policy("random")
    envs = [SpiteVectorEnv(3, opponent, SMALL, seat=1) for opponent in (shared, shared, "random")]
    views = [env.reset(seed=4)[0] for env in envs]
    shared.reset(SMALL, 1, 0)
    for _ in range(20):
        for view in views[1:]:
            np.testing.assert_array_equal(view, views[0])
        views = [env.step(env.action_masks().argmax(axis=1))[0] for env in envs]


def test_redeals_keep_the_drawn_opponent() -> None:
    rules = Rules.mini().replace(payoff_size=1)
    env = SpiteVectorEnv(2000, [("random", 1.0), ("greedy", 3.0)], rules)
    env.reset(seed=1)
    assert (env.games.redeals > 0).sum() > 100
    assert 0.72 < env.games.opponents.mean() < 0.78
    assert 0.47 < env.games.seats.mean() < 0.53
