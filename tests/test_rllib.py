"""The RLlib environment, and the training built on it; `make test-rllib` runs them in an environment with Ray."""

from __future__ import annotations

import os
import pickle
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.typing import NDArray

os.environ.setdefault("RAY_AUTH_MODE", "disabled")
os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
ray = pytest.importorskip("ray")
torch = pytest.importorskip("torch")

from ray.rllib.algorithms.ppo import PPOConfig  # noqa: E402
from ray.rllib.env.env_context import EnvContext  # noqa: E402
from ray.rllib.utils.pre_checks.env import check_multiagent_environments  # noqa: E402
from ray.tune.trainable import trainable  # noqa: E402

from helpers import check_remedy  # noqa: E402
from spite_env import Game, Rules, spite_and_malice_v0  # noqa: E402
from spite_env.arena import duel  # noqa: E402
from spite_env.envs.rllib import (  # noqa: E402
    LEARNER,
    MaskedPPOModule,
    ModulePolicy,
    RandomSeat,
    SelfPlayCallback,
    SpiteMultiAgentEnv,
    freeze,
    load_module,
    self_play,
)
from spite_env.policies import make_policy  # noqa: E402
from spite_env.rewards import rewards  # noqa: E402
from test_docs import PAGES, Block, blocks, run_python  # noqa: E402

# RLlib enters its environment in Gymnasium's registry anew for every algorithm.
pytestmark = pytest.mark.filterwarnings("ignore:.*Overriding environment rllib-multi-agent-env-v0:UserWarning")

AGENTS = ("player_0", "player_1")

Weights = dict[str, NDArray[Any]]


# -- the environment --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"rules": "mini", "reward": "points"},
        {"rules": Rules(payoff_size=3, max_steps=60), "encoding": "compact", "side_depth": 1},
    ],
)
def test_it_plays_the_game_of_the_aec_environment(settings: dict[str, Any]) -> None:
    env, aec = SpiteMultiAgentEnv(settings), spite_and_malice_v0.env(**settings)
    rng = np.random.default_rng(0)
    for seed in (7, 8, None):
        seen, _ = env.reset(seed=seed)
        aec.reset(seed=seed)
        assert env.game.position(0) == aec.unwrapped.position()
        returns, ended = Counter[str](), {"__all__": False}
        while not ended["__all__"]:
            [agent] = seen
            assert agent == aec.agent_selection
            for name, value in aec.observe(agent).items():
                np.testing.assert_array_equal(seen[agent][name], value)
            assert env.observation_spaces[agent].contains(seen[agent])
            action = int(rng.choice(np.flatnonzero(seen[agent]["action_mask"])))
            aec.step(action)
            seen, earned, terminated, truncated, _ = env.step({agent: action})
            returns.update(earned)
            ended = {name: terminated[name] or truncated[name] for name in terminated}
        assert set(seen) == set(AGENTS)
        assert terminated["__all__"] == aec.terminations[AGENTS[0]]
        assert truncated["__all__"] == aec.truncations[AGENTS[0]]
        assert dict(returns) == aec.rewards
        assert sum(returns.values()) == 0


def test_remote_runners_have_games_of_their_own() -> None:
    def deal(seed: int, runner: int) -> str:
        env = SpiteMultiAgentEnv(EnvContext({"rules": "mini"}, worker_index=runner))
        env.reset(seed=seed)
        return repr(env.game.position(0))

    assert deal(5, 0) == repr(Game("mini", seed=5).position(0))
    # RLlib's seeds of the environments of runners 1 and 2, see the class.
    assert len({deal(seed, runner) for runner in (1, 2) for seed in range(runner, runner + 20)}) == 40
    assert deal(5, 1) == deal(5, 1)


def test_rllibs_own_check_and_pickles() -> None:
    env = SpiteMultiAgentEnv({"rules": "mini"})
    check_multiagent_environments(env)
    env.reset(seed=3)
    copied = pickle.loads(pickle.dumps(env))
    assert copied.game.position(0) == env.game.position(0)
    assert pickle.loads(pickle.dumps(SpiteMultiAgentEnv)) is SpiteMultiAgentEnv
    seats = RandomSeat((LEARNER, "frozen_0"))
    assert pickle.loads(pickle.dumps(seats)) == seats


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"rule": "mini"}, "'rule'.*rules, reward"), ({"rules": "maxi"}, "'maxi'"), ({"reward": "fun"}, "reward='fun'")],
)
def test_settings_are_checked(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SpiteMultiAgentEnv(settings)


def test_seats_and_opponents_are_random_and_depend_on_the_episode_alone() -> None:
    seats = RandomSeat((LEARNER, "frozen_0", "frozen_0", "frozen_1"))
    rng = np.random.default_rng(0)
    seen = Counter[tuple[str, ...]]()
    for _ in range(4000):
        episode = SimpleNamespace(id_=rng.bytes(16).hex())
        modules = tuple(seats(agent, episode) for agent in AGENTS)
        assert modules == tuple(seats(agent, episode) for agent in AGENTS)
        seen[modules] += 1
    wanted = {(LEARNER, LEARNER): 1000}
    for name, count in (("frozen_0", 1000), ("frozen_1", 500)):
        wanted |= {(LEARNER, name): count, (name, LEARNER): count}
    assert seen.keys() == wanted.keys()
    assert all(abs(seen[pair] - count) < 5 * count**0.5 for pair, count in wanted.items())
    # The same in every process, whatever its hash seed.
    at_first = [seats(AGENTS[0], SimpleNamespace(id_=name)) for name in "abcdef"]
    assert at_first == ["frozen_0", LEARNER, "frozen_1", LEARNER, LEARNER, LEARNER]


# -- training ---------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module", autouse=True)
def running_ray(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    trainable.DEFAULT_STORAGE_PATH = str(tmp_path_factory.mktemp("ray"))
    torch.set_num_threads(1)
    ray.init(num_cpus=2, include_dashboard=False, log_to_driver=False, logging_level="ERROR")
    yield
    ray.shutdown()


class Referee(SelfPlayCallback):
    """Notes what each agent was paid in an episode, and what the core says that it earned."""

    episodes: ClassVar[list[dict[str, Any]]] = []

    def on_episode_end(self, *, episode: Any, prev_episode_chunks: Any, env: Any, env_index: int, **rest: Any) -> None:
        super().on_episode_end(episode=episode, env=env, env_index=env_index, **rest)
        paid = Counter[str]()
        for chunk in (*prev_episode_chunks, episode):
            for agent, part in chunk.agent_episodes.items():
                paid[agent] += part.get_return()
        earned = dict(zip(AGENTS, rewards(env.envs[env_index].unwrapped.game, "points")[0].tolist(), strict=True))
        modules = tuple(episode.module_for(agent) for agent in AGENTS)
        self.episodes.append({"modules": modules, "paid": paid, "earned": earned})


def build(frozen: int = 1, runners: int = 0, seed: int | None = 0, callback: Any = SelfPlayCallback) -> Any:
    env_config = {"rules": "mini", "reward": "points"}
    config = self_play(PPOConfig(), env_config, frozen=frozen, model_config={"fcnet_hiddens": [16]})
    return (
        config.env_runners(num_env_runners=runners, num_envs_per_env_runner=8)
        .training(train_batch_size_per_learner=200, minibatch_size=100, num_epochs=1, lr=1e-3)
        .callbacks(callback)
        .debugging(seed=seed)
        .build_algo()
    )


def learners_weights(algo: Any, name: str = LEARNER) -> Weights:
    return {key: value.copy() for key, value in algo.learner_group.get_weights([name])[name].items()}


def samplers_weights(algo: Any, name: str) -> list[Weights]:
    return algo.env_runner_group.foreach_env_runner(lambda runner: runner.module[name].get_state())


def same(first: Weights, second: Weights) -> bool:
    return all(np.array_equal(first[key], second[key]) for key in first.keys() & second.keys())


@pytest.fixture(scope="module")
def algo(running_ray: None) -> Iterator[Any]:
    """An algorithm after two iterations, in which no action was illegal."""
    made = build(callback=Referee)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(spite_and_malice_v0.raw_env, "forfeit", lambda self: pytest.fail("an illegal action"))
        made.frozen_at_first = learners_weights(made, "frozen_0")
        made.learner_at_first = learners_weights(made)
        for _ in range(2):
            made.last_result = made.train()
    yield made
    made.stop()


def test_training_pays_what_the_core_says(algo: Any) -> None:
    episodes = Referee.episodes
    assert {episode["modules"] for episode in episodes} == {
        (LEARNER, LEARNER),
        (LEARNER, "frozen_0"),
        ("frozen_0", LEARNER),
    }
    assert len({episode["earned"]["player_0"] for episode in episodes}) >= 4
    for episode in episodes:
        for agent, paid in episode["paid"].items():
            assert paid == episode["earned"][agent]
    both = [sum(episode["paid"].values()) for episode in episodes if len(episode["paid"]) == 2]
    assert len(both) > 10
    assert not any(both)
    outcomes = algo.last_result["env_runners"]["outcome"]
    assert set(outcomes) == {LEARNER, "frozen_0"}
    assert all(sum(shares.values()) == pytest.approx(1) for shares in outcomes.values())


def test_a_frozen_module_stays_frozen_until_it_is_overwritten(algo: Any) -> None:
    assert same(learners_weights(algo, "frozen_0"), algo.frozen_at_first)
    learnt = learners_weights(algo)
    assert not same(learnt, algo.learner_at_first)
    freeze(algo, "frozen_0")
    algo.train()
    for weights in (learners_weights(algo, "frozen_0"), *samplers_weights(algo, "frozen_0")):
        assert same(weights, learnt)
    assert not same(learners_weights(algo), learnt)
    for names in (("frozen_7",), ("frozen_0", "nobody")):
        with pytest.raises(ValueError, match=f"no module '{names[-1]}'.*main, frozen_0"):
            freeze(algo, *names)


def test_a_checkpoint_plays_the_same_actions(algo: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    algo.save_to_path(str(tmp_path / "checkpoint"))
    game = Game("mini", 64, seed=1)
    observation, mask = game.observe(), np.array(game.legal_actions())
    names = ["checkpoint", f"{tmp_path}/checkpoint/learner_group/learner/rl_module/main"]
    policies = [ModulePolicy(algo.get_module(LEARNER), deterministic=True)]
    policies += [make_policy(f"agents.rllib:{name}") for name in names]
    actions = [policy.act(observation, mask, None, np.arange(64)) for policy in policies]
    np.testing.assert_array_equal(actions[0], actions[1])
    np.testing.assert_array_equal(actions[0], actions[2])
    frozen = load_module("checkpoint", "frozen_0")
    assert same(frozen.get_state(), learners_weights(algo, "frozen_0"))

    assert duel(policies[1], "random", "mini", games=40).games == 40
    assert duel(ModulePolicy(frozen), policies[1], "mini", games=40).games == 40
    with pytest.raises(ValueError, match="the model was trained with"):
        duel(policies[1], "random", games=2)
    for name, message in (("missing", "has no 'missing'"), (str(tmp_path), "no module in")):
        with pytest.raises(ValueError, match=message):
            make_policy(f"agents.rllib:{name}")
    with pytest.raises(ValueError, match="frozen_9"):
        load_module("checkpoint", "frozen_9")

    restored = build(seed=9)
    restored.restore_from_path(str(tmp_path / "checkpoint"))
    for name in (LEARNER, "frozen_0"):
        wanted = learners_weights(algo, name)
        assert same(learners_weights(restored, name), wanted)
        acting = {key: value for key, value in wanted.items() if key.startswith(("encoder.actor_encoder", "pi"))}
        assert len(acting) > 2
        assert all(same(weights, acting) for weights in samplers_weights(restored, name))
    assert restored.iteration == algo.iteration
    restored.stop()


def test_illegal_actions_have_probability_zero() -> None:
    env = SpiteMultiAgentEnv()
    space, actions = env.observation_spaces["player_0"], env.action_spaces["player_0"]
    module = MaskedPPOModule(observation_space=space, action_space=actions, model_config={"fcnet_hiddens": [16]})
    game = Game(num_games=32)
    observation, mask = game.observe(), np.array(game.legal_actions())
    mask[0] = False  # that of an ended game, whose value may be asked for
    probabilities = ModulePolicy(module).probabilities(observation, mask)
    assert (probabilities[1:][~mask[1:]] == 0).all()
    assert (probabilities[1:][mask[1:]] > 0).all()
    batch = {"obs": {"observation": torch.as_tensor(observation), "action_mask": torch.as_tensor(mask)}}
    outputs = module.forward_train(batch)
    distribution = module.get_train_action_dist_cls().from_logits(outputs["action_dist_inputs"])
    assert torch.isfinite(distribution.entropy()).all()
    assert torch.isfinite(distribution.kl(distribution)).all()
    values = [module.compute_values(batch), module.compute_values(batch, outputs["embeddings"])]
    assert values[0].shape == (32,)
    torch.testing.assert_close(*values)


def test_a_seed_repeats_a_training() -> None:
    def trained(seed: int) -> Weights:
        algo = build(seed=seed)
        algo.train()
        algo.stop()
        return learners_weights(algo)

    first = trained(3)
    assert same(trained(3), first)
    assert not same(trained(4), first)


def test_a_remote_sampler_gets_frozen_weights_at_once() -> None:
    algo = build(runners=1)
    freeze(algo, "frozen_0")
    wanted = learners_weights(algo)
    found = samplers_weights(algo, "frozen_0")
    assert len(found) == 2
    assert all(same(weights, wanted) for weights in found)
    assert algo.train()["env_runners"]["num_env_steps_sampled"] >= 200
    algo.stop()


# -- the script -------------------------------------------------------------------------------------------------------


@pytest.fixture
def script() -> Callable[..., Any]:
    from experiments import train_rllib

    return train_rllib.main


def test_the_script_runs_and_resumes(script: Callable[..., Any], tmp_path: Path) -> None:
    command = ["--quick", "--runs", str(tmp_path), "--name", "one"]
    results = script(command)
    folder = tmp_path / "one"
    for name in ("config.json", "curve.csv", "duels.json", "duels.md", "checkpoint"):
        assert (folder / name).exists(), name
    assert list((folder / "tensorboard").glob("events*"))
    assert list((folder / "ray").iterdir())  # and nothing in the home folder
    assert [result.players for result in results] == [("one", "random"), ("one", "greedy")]
    curve = (folder / "curve.csv").read_text().splitlines()
    assert len(curve) == 1 + 2

    before = load_module(folder / "checkpoint").get_state()
    script([*command, "--resume"])  # there is nothing left to do
    assert same(load_module(folder / "checkpoint").get_state(), before)
    script([*command, "--resume", "--iterations", "3"])
    resumed = (folder / "curve.csv").read_text().splitlines()
    assert resumed[:3] == curve
    assert len(resumed) == 1 + 3
    assert int(resumed[3].split(",")[2]) >= int(curve[2].split(",")[2]) + 256  # decisions are counted on
    assert not same(load_module(folder / "checkpoint").get_state(), before)


DOCUMENTED = [(page, block) for page in PAGES for block in blocks(page) if "envs.rllib" in block.code]


@pytest.mark.parametrize(("page", "block"), DOCUMENTED, ids=lambda value: getattr(value, "name", None))
def test_documented_blocks_run(page: Path, block: Block, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_python(page, block)


def test_without_ray_the_remedy_is_named() -> None:
    check_remedy("spite_env.envs.rllib", missing="ray", extra="rllib")
