"""The Stable-Baselines3 environment, and the training built on it."""

from __future__ import annotations

import functools
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from helpers import check_remedy
from spite_env import Rules, random_legal_actions
from spite_env.arena import duel
from spite_env.policies import GreedyPolicy, RandomPolicy, make_policy

torch = pytest.importorskip("torch")
pytest.importorskip("sb3_contrib")

from sb3_contrib import MaskablePPO  # noqa: E402
from sb3_contrib.common.maskable.evaluation import evaluate_policy  # noqa: E402
from sb3_contrib.common.maskable.utils import get_action_masks, is_masking_supported  # noqa: E402
from stable_baselines3 import A2C, DQN, PPO  # noqa: E402
from stable_baselines3.common.env_util import make_vec_env  # noqa: E402
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecMonitor  # noqa: E402

from spite_env.envs.gym import SpiteEnv  # noqa: E402
from spite_env.envs.sb3 import ModelPolicy, SpiteVecEnv  # noqa: E402

SMALL = Rules(payoff_size=2)

Step = tuple[NDArray[Any], NDArray[Any], NDArray[Any], list[dict[str, Any]]]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def choose(env: SpiteVecEnv, rng: np.random.Generator) -> NDArray[np.intp]:
    """Play a random action, or the greedy one, half of the time each."""
    masks = get_action_masks(env)[0]
    policy = GreedyPolicy()
    policy.reset(env.rules, env.num_envs, int(rng.integers(2**32)))
    greedy = policy.act(None, masks, None, np.arange(env.num_envs))  # type: ignore[arg-type]
    return np.where(rng.random(env.num_envs) < 0.5, greedy, random_legal_actions(masks, rng.random(env.num_envs)))


def walk(env: SpiteVecEnv, steps: int, seed: int = 0) -> Iterator[Step]:
    """Reset an environment and play, one step at a time."""
    rng = np.random.default_rng(seed)
    env.reset()
    for _ in range(steps):
        yield env.step(choose(env, rng))


class Referee:
    """Notes, independently of the environment, how each game ended and what its learner saw then."""

    def __init__(self, env: SpiteVecEnv) -> None:
        self.env = env
        self.ends: list[dict[str, Any]] = []
        env.game.listener = self.hear

    def hear(self, kind: str, games: NDArray[np.intp], **details: Any) -> None:
        if kind != "end":
            return
        for game, winner, points in zip(games.tolist(), details["winner"].tolist(), details["points"].T, strict=True):
            seat = int(self.env.games.seats[game])
            self.ends.append(
                {
                    "game": game,
                    "outcome": "draw" if winner < 0 else "win" if winner == seat else "loss",
                    "mover": int(self.env.game.state.player[game]) == seat,
                    "view": self.env.game.observe(seat, [game])[0],
                    "left": self.env.game.state.pile_size[[seat, 1 - seat], 0, game].tolist(),
                    "points": int(points[seat]) - int(points[1 - seat]),
                }
            )


def test_shapes_types_and_masks() -> None:
    env = SpiteVecEnv(16, "random", SMALL, encoding="compact", side_depth=1)
    observations = env.reset()
    assert is_masking_supported(env)
    assert not env.has_attr("nothing")
    with pytest.raises(AttributeError):
        env.get_attr("nothing")
    assert env.get_attr("rules", [0, 3]) == [SMALL, SMALL]
    assert env.env_is_wrapped(object) == [False] * 16
    low_high = env.observation_space
    for step, (seen, earned, dones, infos) in enumerate(walk(env, 40)):
        assert seen.dtype == np.uint8
        assert seen.shape == (16, env.game.observation.n)
        assert all(low_high.contains(row) for row in seen)
        assert earned.dtype == np.float32
        assert dones.dtype == np.bool_
        assert len(infos) == 16
        assert (env.game.current_player == env.games.seats).all()
        masks = env.env_method("action_masks")
        assert len(masks) == 1
        assert masks[0].shape == (16, env.game.actions.n)
        assert masks[0].dtype == np.bool_
        assert (np.stack(env.env_method("action_masks", indices=[2, 5])) == masks[0][[2, 5]]).all()
        np.testing.assert_array_equal(masks[0], env.game.legal_actions())
        np.testing.assert_array_equal(seen, env.game.observe())
        assert [bool(info) for info in infos] == dones.tolist(), step
    assert observations.shape == (16, env.game.observation.n)


def test_every_step_returns_new_arrays() -> None:
    env = SpiteVecEnv(8, "greedy", SMALL)
    before = [env.reset()]
    kept = [before[0].copy()]
    for seen, earned, dones, _ in walk(env, 30):
        for new in (seen, earned, dones):
            assert not any(np.shares_memory(new, old) for old in before)
            before.append(new)
            kept.append(new.copy())
    for old, copied in zip(before, kept, strict=True):
        np.testing.assert_array_equal(old, copied)


@pytest.mark.parametrize(("seat", "reward"), [(0, "win"), (1, "points"), ("random", "margin"), ("random", "win")])
def test_results_are_the_learners_own(seat: int | str, reward: str) -> None:
    rules = Rules(payoff_size=2, first_player="random")
    env = SpiteVecEnv(32, "greedy", rules, reward=reward, seat=seat, seed=3)
    referee = Referee(env)
    seen_outcomes = set()
    lengths = np.zeros(32, int)
    for _, earned, dones, infos in walk(env, 120, seed=1):
        lengths += 1
        ends = {end["game"]: end for end in reversed(referee.ends)}  # the first end of each game in this step
        assert set(np.flatnonzero(dones)) <= set(ends)
        for game in np.flatnonzero(dones):
            end, info = ends[game], infos[game]
            episode = info["episode"]
            assert episode["outcome"] == end["outcome"]
            sign = {"win": 1, "draw": 0, "loss": -1}[end["outcome"]]
            wanted = {"win": sign, "points": end["points"], "margin": end["points"] / 2}[reward]
            assert earned[game] == episode["r"] == wanted
            assert [episode["payoff"], episode["opponent_payoff"]] == end["left"]
            assert episode["l"] == lengths[game]
            assert seat == "random" or episode["seat"] == seat
            np.testing.assert_array_equal(info["terminal_observation"], end["view"])
            assert info["TimeLimit.truncated"] is False
            seen_outcomes.add((end["outcome"], end["mover"]))
        assert (earned[~dones] == 0).all()
        lengths[dones] = 0
        referee.ends.clear()
    assert {("win", True), ("loss", False)} <= seen_outcomes


def test_games_that_end_before_the_learner_moves_leave_no_trace() -> None:
    rules = Rules.mini().replace(payoff_size=1)
    env = SpiteVecEnv(64, "greedy", rules, seat=1)
    referee = Referee(env)
    unseen = played = 0
    total = credited = 0.0
    for _, earned, dones, infos in walk(env, 30):
        unseen += len(referee.ends) - int(dones.sum())
        played += int(dones.sum())
        total += float(earned.sum())
        credited += sum(info["episode"]["r"] for info in infos if info)
        assert (earned[~dones] == 0).all()
        assert all(info["episode"]["l"] >= 1 for info in infos if info)
        referee.ends.clear()
    assert unseen > 0
    assert played > 0
    assert total == credited


def told(info: dict[str, Any]) -> dict[str, Any]:
    """Return the results in an info, without its time."""
    return {name: value for name, value in info.get("episode", {}).items() if name != "t"}


def trace(env: SpiteVecEnv, steps: int = 60) -> list[bytes]:
    return [
        b"".join((seen.tobytes(), earned.tobytes(), dones.tobytes(), repr([told(i) for i in infos]).encode()))
        for seen, earned, dones, infos in walk(env, steps)
    ]


def test_seeds_repeat_everything() -> None:
    def make(seed: int) -> SpiteVecEnv:
        mixture = [("greedy", 1.0), ("random", 1.0)]
        return SpiteVecEnv(16, mixture, Rules(payoff_size=3), payoff_sizes=[1, 3], shaping=1.0, seed=seed)

    env = make(5)
    first = trace(env)
    assert trace(make(5)) == first
    assert trace(make(6)) != first
    assert trace(env) != first  # the next episodes
    env.seed(5)
    assert trace(env) == first


def test_a_row_plays_the_same_in_any_batch() -> None:
    def views(num_envs: int) -> list[bytes]:
        env = SpiteVecEnv(num_envs, [("greedy", 1.0), ("random", 1.0)], SMALL, seed=9)
        rows = [env.reset()[:4].tobytes()]
        for _ in range(60):
            masks = env.action_masks()
            rows.append(env.step(masks.argmax(axis=1))[0][:4].tobytes())
        return rows

    assert views(4) == views(50)


def test_opponents_are_drawn_by_their_weights() -> None:
    env = SpiteVecEnv(400, [("greedy", 3.0), (RandomPolicy(), 1.0), ("hoarder", 0.0)], SMALL)
    env.reset()
    counts = np.bincount(env.games.opponents, minlength=3)
    assert counts[2] == 0
    assert 0.68 < counts[0] / 400 < 0.82
    env.set_weights([0, 1, 0])
    for _, _, dones, infos in walk(env, 30):
        assert (env.games.opponents[dones] == 1).all()
        assert all(info["episode"]["opponent"] in (0, 1) for info in infos if info)
    assert 150 < env.games.seats.sum() < 250


@pytest.mark.parametrize("gamma", [1.0, 0.9])
@pytest.mark.parametrize("max_steps", [5000, 30])
def test_shaping_telescopes(gamma: float, max_steps: int) -> None:
    rules = Rules(payoff_size=4, max_steps=max_steps)
    env = SpiteVecEnv(32, "greedy", rules, shaping=2.0, gamma=gamma, reward="points")

    def potentials() -> NDArray[np.float64]:
        sizes = env.game.state.pile_size[:, 0].astype(float)
        rows = np.arange(32)
        return 2.0 * (sizes[1 - env.games.seats, rows] - sizes[env.games.seats, rows]) / 4

    rng = np.random.default_rng(0)
    env.reset()
    start, returns, power = potentials(), np.zeros(32), np.ones(32)
    ended = 0
    for _ in range(120):
        _, earned, dones, infos = env.step(choose(env, rng))
        returns += power * earned
        power *= gamma
        for game in np.flatnonzero(dones):
            episode = infos[game]["episode"]
            wanted = power[game] / gamma * episode["r"] - start[game]
            if infos[game]["TimeLimit.truncated"]:  # SB3 goes on with the value of the last view there
                wanted += power[game] * 2.0 * (episode["opponent_payoff"] - episode["payoff"]) / 4
            assert returns[game] == pytest.approx(wanted, abs=1e-4)
            ended += 1
        start[dones], returns[dones], power[dones] = potentials()[dones], 0.0, 1.0
    assert ended > 32


def test_card_rewards_add_up_to_the_cards_played() -> None:
    env = SpiteVecEnv(32, "greedy", Rules(payoff_size=4), card_reward=0.5)
    rng = np.random.default_rng(0)
    env.reset()

    def leads() -> NDArray[np.int64]:
        sizes, rows = env.game.state.pile_size[:, 0].astype(np.int64), np.arange(32)
        return sizes[1 - env.games.seats, rows] - sizes[env.games.seats, rows]

    start, returns = leads(), np.zeros(32)
    ended = 0
    for _ in range(120):
        _, earned, dones, infos = env.step(choose(env, rng))
        returns += earned
        for game in np.flatnonzero(dones):
            episode = infos[game]["episode"]
            ended += 1
            final = episode["opponent_payoff"] - episode["payoff"]
            assert returns[game] == pytest.approx(episode["r"] + 0.5 * (final - start[game]), abs=1e-4)
        start[dones], returns[dones] = leads()[dones], 0.0
    assert ended > 32


def test_truncated_games_say_so() -> None:
    env = SpiteVecEnv(16, "random", Rules(max_steps=9))
    infos = [info for _, earned, _, step in walk(env, 12) for info in step if info]
    assert infos
    assert all(info["TimeLimit.truncated"] and info["episode"]["outcome"] == "draw" for info in infos)


def test_smaller_payoff_piles() -> None:
    env = SpiteVecEnv(64, "random", payoff_sizes=[1, 4], seat=0)
    env.reset()
    for game in range(64):
        position = env.game.position(game)
        size = int(env.games.dealer.payoff_sizes[game])
        assert [len(pile) for pile in position["payoff"]] == [size, size]
        assert len(position["stock"]) == 104 - 2 * (5 + size)
    assert set(env.games.dealer.payoff_sizes) == {1, 4}
    env.set_payoff_sizes([20])
    sizes = [info["episode"]["payoff_size"] for _, _, _, infos in walk(env, 60) for info in infos if info]
    assert set(env.games.dealer.payoff_sizes) <= {1, 4, 20}
    assert {20} <= set(sizes)
    for bad in ([], [0], [21], [1.5]):
        with pytest.raises(ValueError, match="payoff_sizes"):
            env.set_payoff_sizes(bad)
    with pytest.raises(ValueError, match="match_points"):
        SpiteVecEnv(2, rules=Rules(match_points=50), payoff_sizes=[1])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"seat": 2}, "seat=2"),
        ({"payoff_sizes": 5}, "payoff_sizes=5"),
        ({"shaping": -1.0}, "shaping"),
        ({"shaping": float("inf")}, "shaping"),
        ({"card_reward": float("nan")}, "card_reward"),
        ({"payoff_sizes": [True]}, "payoff_sizes"),
        ({"opponent": None}, "no policy"),
        ({"seed": [1, 2]}, "seed"),
        ({"gamma": 1.5}, "gamma"),
        ({"reward": "fun"}, "reward='fun'"),
        ({"opponent": "nobody"}, "unknown policy 'nobody'"),
        ({"opponent": []}, "opponent"),
        ({"opponent": ["greedy", "random"]}, "pairs"),
        ({"opponent": [("greedy", 0.0)]}, "weights"),
        ({"opponent": [("greedy", -1.0), ("random", 2.0)]}, "weights"),
        ({"seed": -1}, "seed"),
    ],
)
def test_arguments_are_checked(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpiteVecEnv(2, **options)


@pytest.mark.parametrize(
    ("answer", "message"),
    [(-1, "policy 'Stubborn' chose action -1"), (0.5, "policy 'Stubborn' returned float64")],
)
def test_an_opponent_that_misbehaves_is_named(answer: float, message: str) -> None:
    class Stubborn:
        def reset(self, rules: Rules, num_games: int, seed: int) -> None:
            """Have nothing to begin."""

        def act(self, observation: Any, action_mask: Any, infosets: Any, indices: Any) -> Any:
            return np.full(len(indices), answer)

    env = SpiteVecEnv(4, Stubborn(), seat=1)
    with pytest.raises(ValueError, match=message):
        env.reset()


def test_games_without_a_decision_of_the_learner_are_given_up() -> None:
    env = SpiteVecEnv(2, rules=Rules(max_steps=1), seat=1)
    with pytest.raises(RuntimeError, match="ended before the learner's first decision"):
        env.reset()


def test_an_illegal_action_changes_nothing() -> None:
    env = SpiteVecEnv(4, "random", illegal="raise")
    env.reset()
    masks = env.action_masks()
    actions = masks.argmax(axis=1)
    before = env.game.observe()
    with pytest.raises(ValueError, match="not legal in game 2"):
        env.step(np.where(np.arange(4) == 2, masks.argmin(axis=1), actions))
    np.testing.assert_array_equal(env.game.observe(), before)
    env.step(actions)


def test_an_illegal_action_loses_its_game_alone() -> None:
    env = SpiteVecEnv(4, "random", reward="points")
    views = env.reset()
    masks = env.action_masks()
    wrong = np.array([False, False, True, False])
    _, earned, dones, infos = env.step(np.where(wrong, masks.argmin(axis=1), masks.argmax(axis=1)))
    assert dones.tolist() == wrong.tolist()
    assert earned.tolist() == [0, 0, -20, 0]
    assert infos[2]["episode"]["forfeit"] is True
    np.testing.assert_array_equal(infos[2]["terminal_observation"], views[2])


@pytest.mark.parametrize("algorithm", [PPO, A2C, DQN])
def test_algorithms_without_masks_learn_what_is_legal(algorithm: type[Any]) -> None:
    env = SpiteVecEnv(16, "random", "mini", seed=1)
    options: dict[str, Any] = {"policy_kwargs": {"net_arch": [32]}, "seed": 0, "device": "cpu"}
    if algorithm is PPO:
        options |= {"n_steps": 32, "batch_size": 256, "n_epochs": 4, "learning_rate": 1e-2, "gamma": 0.5}
    model = algorithm("MlpPolicy", env, **options)

    def forfeits() -> float:
        lost: list[bool] = []
        views = env.reset()
        while len(lost) < 400:
            views, _, _, infos = env.step(model.predict(views)[0])
            lost += [info["episode"]["forfeit"] for info in infos if info]
        return float(np.mean(lost))

    before = forfeits()
    model.learn(8_000 if algorithm is PPO else 500)
    if algorithm is PPO:
        assert forfeits() < before - 0.08
    assert len(model.ep_info_buffer) > 0


@pytest.mark.parametrize("kind", [DummyVecEnv, SubprocVecEnv])
def test_sb3s_own_vector_environments_hold_single_games(kind: type[Any]) -> None:
    options = {"start_method": "spawn"} if kind is SubprocVecEnv else {}
    env = kind([functools.partial(SpiteEnv, "greedy", "mini") for _ in range(2)], **options)
    model = MaskablePPO("MlpPolicy", VecMonitor(env), n_steps=32, batch_size=32, n_epochs=1, device="cpu", seed=0)
    model.learn(128)
    assert {"r", "l", "t"} <= model.ep_info_buffer[0].keys()
    env.close()


def test_environments_are_made_by_name() -> None:
    env = make_vec_env("SpiteAndMalice-v0", 2, env_kwargs={"rules": "mini"})
    MaskablePPO("MlpPolicy", env, n_steps=16, batch_size=32, n_epochs=1, device="cpu").learn(32)


def test_options_are_positions() -> None:
    env = SpiteVecEnv(2, "greedy", SMALL, seat=0)
    env.reset()
    positions = [env.game.position(index) for index in (1, 0)]
    env.set_options([{"position": position} for position in positions])
    env.reset()
    assert [env.game.position(index) for index in (0, 1)] == positions
    env.reset()
    assert [env.game.position(index) for index in (0, 1)] != positions
    env.set_options({"start": 1})
    with pytest.raises(ValueError, match="unknown option 'start'"):
        env.reset()


def test_infos_are_new_dictionaries() -> None:
    env = SpiteVecEnv(4, "greedy")
    env.reset()
    for _ in range(3):
        infos = env.step(env.action_masks().argmax(axis=1))[3]
        assert not any("mine" in info for info in infos)
        infos[0]["mine"] = 1


@pytest.mark.parametrize("model", [5, PPO])
def test_models_without_masks_are_no_policies(model: Any) -> None:
    made = model("MlpPolicy", SpiteVecEnv(2, rules="mini"), device="cpu") if model is PPO else model
    with pytest.raises(ValueError, match="it is a model of sb3-contrib with masks"):
        ModelPolicy(made)


def test_episodes_are_what_monitor_would_note() -> None:
    kings = 0
    for _, _, _, infos in walk(VecMonitor(SpiteVecEnv(16, "greedy", SMALL)), 60):  # type: ignore[arg-type]
        for info in infos:
            if info:
                monitored = info["episode"]
                assert monitored.keys() == {"r", "l", "t"}
                kings += 1
    assert kings > 16


def small_model(env: SpiteVecEnv, **options: Any) -> MaskablePPO:
    settings = {"n_steps": 16, "batch_size": 256, "n_epochs": 3, "learning_rate": 3e-3, "seed": 0, "device": "cpu"}
    return MaskablePPO("MlpPolicy", env, policy_kwargs={"net_arch": [32]}, **{**settings, **options})


def test_a_frozen_model_as_opponent() -> None:
    frozen = ModelPolicy()
    env = SpiteVecEnv(64, [(frozen, 1.0)], Rules.mini())
    model = small_model(env)
    model.learn(1024)  # against random moves
    frozen.update(model)
    weights = {name: value.clone() for name, value in frozen.network.state_dict().items()}
    model.learn(1024, reset_num_timesteps=False)
    changed = model.policy.state_dict()
    assert all(torch.equal(value, frozen.network.state_dict()[name]) for name, value in weights.items())
    assert not all(torch.equal(value, changed[name]) for name, value in weights.items())

    seen, masks = env.reset(), env.action_masks()
    fixed = ModelPolicy(model, deterministic=True)
    fixed.reset(env.rules, 64, 0)
    chosen = fixed.act(seen, masks, None, np.arange(64))
    np.testing.assert_array_equal(chosen, model.predict(seen, deterministic=True, action_masks=masks)[0])

    drawing = [ModelPolicy(model) for _ in range(2)]
    for policy in drawing:
        policy.reset(env.rules, 64, 7)
    whole = drawing[0].act(seen, masks, None, np.arange(64))
    parts = [drawing[1].act(seen[part], masks[part], None, part) for part in np.split(np.arange(64), 4)]
    np.testing.assert_array_equal(whole, np.concatenate(parts))
    assert masks[np.arange(64), whole].all()
    with pytest.raises(ValueError, match="the model was trained with"):
        duel(fixed, "random", games=2)


def test_training_beats_random_from_both_seats() -> None:
    rules = Rules.mini()
    env = SpiteVecEnv(64, [("random", 1.0), ("greedy", 1.0)], rules, seed=1)
    model = small_model(env, gamma=0.95)
    model.learn(16_000)
    result = duel(ModelPolicy(model, deterministic=True), "random", rules, games=600, seed=1)
    assert result.margin_interval[0] > 0.3
    for seat in (0, 1):
        judge = SpiteVecEnv(64, "random", rules, seat=seat, seed=2)
        mean, _ = evaluate_policy(model, judge, n_eval_episodes=300, warn=False)
        assert mean > 0.2, seat


@pytest.fixture(scope="module")
def script() -> Callable[..., Any]:
    pytest.importorskip("matplotlib")
    pytest.importorskip("tensorboard")
    from experiments import train_ppo

    return train_ppo.main


def weights_of(folder: Path) -> dict[str, Any]:
    return MaskablePPO.load(folder / "model.zip", device="cpu").policy.state_dict()


def test_the_script_runs_repeats_and_resumes(script: Callable[..., Any], tmp_path: Path) -> None:
    runs = ["--runs", str(tmp_path), "--quick"]
    results = script([*runs, "--name", "one"])
    folder = tmp_path / "one"
    for name in ("model.zip", "config.json", "curve.csv", "curve.png", "duels.json", "duels.md", "checkpoint.zip"):
        assert (folder / name).stat().st_size > 0, name
    assert list((folder / "tensorboard").rglob("events*"))
    assert [result.players for result in results] == [("one", "random"), ("one", "greedy")]
    assert len((folder / "curve.csv").read_text().splitlines()) == 1 + 4

    script([*runs, "--name", "two"])
    first, second = weights_of(folder), weights_of(tmp_path / "two")
    assert all(torch.equal(value, second[name]) for name, value in first.items())

    script([*runs, "--name", "two", "--steps", "6144", "--resume"])
    resumed = MaskablePPO.load(tmp_path / "two" / "model.zip", device="cpu")
    assert resumed.num_timesteps == 6144
    assert len((tmp_path / "two" / "curve.csv").read_text().splitlines()) == 1 + 6
    assert not all(torch.equal(value, second[name]) for name, value in weights_of(tmp_path / "two").items())

    policy = make_policy(f"agents.sb3:{folder / 'model.zip'}")
    assert duel(policy, "random", Rules.mini(), games=20).games == 20
    with pytest.raises(ValueError, match="no file"):
        make_policy(f"agents.sb3:{tmp_path / 'missing.zip'}")


def test_without_sb3_the_remedy_is_named() -> None:
    check_remedy("spite_env.envs.sb3", missing="torch", extra="train")
    code = "import sys, spite_env; assert not {'torch', 'stable_baselines3', 'agents'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
