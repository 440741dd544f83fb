"""Ray's RLlib (new API stack): self-play of one learner in a random seat, with action masks and frozen opponents.

.. code-block:: python

    config = self_play(PPOConfig(), {"rules": "mini"}, frozen=2)
    algo = config.env_runners(num_env_runners=2, num_envs_per_env_runner=16).build_algo()
    algo.train()
    freeze(algo, "frozen_0")
    policy = ModulePolicy(load_module(algo.save_to_path()))

:func:`self_play` is nothing but RLlib's own settings, put together from the parts below, which work without it too. On
a cluster every node needs this package; nothing has to be registered.
"""

from __future__ import annotations

import itertools
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spite_env import streams
from spite_env.envs import spite_and_malice_v0
from spite_env.policies import Mask, ProbabilityPolicy
from spite_env.state import NO_WINNER

try:
    import torch
    from ray.rllib.algorithms.ppo.torch.default_ppo_torch_rl_module import DefaultPPOTorchRLModule
    from ray.rllib.callbacks.callbacks import RLlibCallback
    from ray.rllib.core.columns import Columns
    from ray.rllib.core.rl_module.multi_rl_module import MultiRLModuleSpec
    from ray.rllib.core.rl_module.rl_module import RLModule, RLModuleSpec
    from ray.rllib.env.wrappers.pettingzoo_env import PettingZooEnv
except ImportError as error:  # pragma: no cover
    raise ImportError(
        f"spite_env.envs.rllib needs Ray's RLlib ({error}); install it with: pip install 'spite_env[rllib]'"
    ) from error

#: The module that learns.
LEARNER = "main"

#: What an environment's config may hold, see :mod:`~spite_env.envs.spite_and_malice_v0`.
SETTINGS = ("rules", "reward", "encoding", "side_depth")

_AGENTS = spite_and_malice_v0.AGENTS
# An infinite logit would make the entropy NaN, and so would the lowest finite one, once it is normalised.
_IMPOSSIBLE = -1e9


class SpiteMultiAgentEnv(PettingZooEnv):
    """The PettingZoo environment as RLlib takes it: ``config.environment(SpiteMultiAgentEnv, env_config={...})``.

    The class is also an environment creator for ``ray.tune.registry.register_env``. Whoever makes an illegal action
    loses, so that RLlib's own check of environments, which ignores the mask, passes too.

    Args:
        config: Any of ``rules`` (a :class:`~spite_env.rules.Rules` or the name of a preset), ``reward``, ``encoding``
            and ``side_depth``.

    ``reset(seed=s)`` gives the game that it gives in the PettingZoo environment. RLlib seeds environment ``j`` of env
    runner ``i`` with ``seed + i + j``, so that runners would share most of their deals; where ``config`` says that the
    environment belongs to a remote runner (number 1 or more), that number is mixed into the seed.

    Attributes:
        game: The :class:`~spite_env.game.Game` of one game that is played, hidden cards included; for reading.

    Raises:
        ValueError: an unknown setting, or one that is not allowed.
    """

    def __init__(self, config: Mapping[str, Any] | None = None) -> None:
        settings = dict(config or {})
        for name in settings:
            if name not in SETTINGS:
                raise ValueError(f"unknown setting {name!r} of the environment; the settings are {', '.join(SETTINGS)}")
        super().__init__(spite_and_malice_v0.env(**settings))
        self.agents = self.possible_agents = list(_AGENTS)  # of a set, and in another order in another process
        self.game = self.env.unwrapped.game
        self._runner = int(getattr(config, "worker_index", 0) or 0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> Any:
        """Start an episode: the first one of ``seed``, or the next one.

        Returns:
            Observations and infos of the agent to move, by agent.
        """
        if seed is not None and self._runner:
            seed = int(streams.combine(streams.seeds_for(seed, 1), self._runner)[0])
        return super().reset(seed=seed, options=options)


class MaskedPPOModule(DefaultPPOTorchRLModule):
    """PPO's default networks for ``{"observation", "action_mask"}``: illegal actions have probability 0.

    The networks get the ``observation``; the module's ``model_config`` is that of RLlib's default model.
    """

    def __init__(self, *, observation_space: Any = None, **options: Any) -> None:
        self._whole_space = observation_space
        super().__init__(observation_space=observation_space["observation"], **options)

    def setup(self) -> None:
        """Build the networks."""
        super().setup()
        self.observation_space = self._whole_space

    def compute_values(self, batch: dict[str, Any], embeddings: Any = None) -> Any:
        """Return the value of each observation, float32 ``(batch,)``."""
        return super().compute_values(_unmasked(batch), embeddings)

    def _forward(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward(_unmasked(batch), **options), batch)

    def _forward_train(self, batch: dict[str, Any], **options: Any) -> dict[str, Any]:
        return _masked(super()._forward_train(_unmasked(batch), **options), batch)


@dataclass(frozen=True)
class RandomSeat:
    """A policy mapping: in each episode the learner has a random seat, and a random one of ``opponents`` the other.

    The choice depends on the episode's id alone, and is the same in every process.

    Args:
        opponents: Modules, each as probable as the others; repeat one to make it more probable.
    """

    opponents: tuple[str, ...] = (LEARNER,)

    def __call__(self, agent_id: str, episode: Any, **_: Any) -> str:
        """Return the module of an agent in an episode."""
        number = zlib.crc32(episode.id_.encode())
        if _AGENTS.index(agent_id) == number % 2:
            return LEARNER
        return self.opponents[number // 2 % len(self.opponents)]


class SelfPlayCallback(RLlibCallback):
    """Logs how the learner's episodes end, and lets a seed repeat a training.

    The shares of episodes won, drawn (or truncated) and lost are logged as ``outcome/<opponent>/win`` and so on.
    Episodes in which the learner has both seats count from player 0's view.

    RLlib draws the ids of episodes, on which the seats depend, from the operating system. Where the config has a seed,
    they come from that instead.
    """

    def __init__(self) -> None:
        super().__init__()
        self._episodes = itertools.count()

    def on_episode_created(self, *, episode: Any, env_runner: Any, **_: Any) -> None:
        """Give a new episode its id."""
        if env_runner.config.seed is not None:
            key = streams.seeds_for(env_runner.config.seed, 1)
            for number in (env_runner.worker_index, next(self._episodes)):
                key = streams.combine(key, number)
            episode.id_ = f"{key[0]:016x}"

    def on_episode_end(self, *, episode: Any, metrics_logger: Any, env: Any, env_index: int, **_: Any) -> None:
        """Log how an episode has ended."""
        modules = [episode.module_for(agent) for agent in _AGENTS]
        seat = modules.index(LEARNER)
        winner = int(env.envs[env_index].unwrapped.game.winner[0])
        ended = "draw" if winner == NO_WINNER else "win" if winner == seat else "loss"
        for outcome in ("win", "draw", "loss"):
            metrics_logger.log_value(("outcome", modules[1 - seat], outcome), float(outcome == ended), window=300)


class ModulePolicy(ProbabilityPolicy):
    """An RLlib module as a :class:`~spite_env.policies.Policy`.

    Args:
        module: A :class:`MaskedPPOModule`, or one that takes the same observations; it is used as it is, not copied.
        deterministic: Whether to take the most probable action; else actions are drawn from the module's distribution.
    """

    def __init__(self, module: Any, deterministic: bool = False) -> None:
        super().__init__(deterministic)
        self.module = module

    def sizes(self) -> tuple[int, int]:
        """Return the features and the actions that the module was built for."""
        return self.module.observation_space["observation"].shape[0], int(self.module.action_space.n)

    def probabilities(self, observation: NDArray[np.uint8], action_mask: Mask) -> NDArray[np.float32]:
        """Return the module's probabilities, float32 ``(n, actions)``."""
        seen = {"observation": torch.as_tensor(observation), "action_mask": torch.as_tensor(action_mask)}
        with torch.no_grad():
            logits = self.module.forward_inference({Columns.OBS: seen})[Columns.ACTION_DIST_INPUTS]
            return torch.softmax(logits, dim=-1).numpy()


def self_play(
    config: Any,
    env_config: Mapping[str, Any] | None = None,
    *,
    frozen: int = 0,
    model_config: Mapping[str, Any] | None = None,
) -> Any:
    """Set up self-play in a PPO config: environment, masked modules, seats, opponents, and the metrics of outcomes.

    The learner plays in a random seat against itself or, as often as that, against each of the frozen modules. These
    begin with random weights, until :func:`freeze` copies the learner's.

    Args:
        config: A ``PPOConfig``; it is changed.
        env_config: See :class:`SpiteMultiAgentEnv`.
        frozen: The number of frozen modules; their names are ``frozen_0`` and so on.
        model_config: The modules' ``model_config``, such as ``{"fcnet_hiddens": [256, 256]}``.

    Returns:
        ``config``.
    """
    modules = (LEARNER, *(f"frozen_{number}" for number in range(frozen)))
    spec = RLModuleSpec(module_class=MaskedPPOModule, model_config=dict(model_config or {}))
    return (
        config.environment(SpiteMultiAgentEnv, env_config=dict(env_config or {}))
        .multi_agent(policies=modules, policy_mapping_fn=RandomSeat(modules), policies_to_train=[LEARNER])
        .rl_module(rl_module_spec=MultiRLModuleSpec(rl_module_specs=dict.fromkeys(modules, spec)))
        .callbacks(SelfPlayCallback)
    )


def freeze(algo: Any, into: str, source: str = LEARNER) -> None:
    """Copy one module's weights into another, at once, in all learners and all env runners.

    Args:
        algo: The algorithm.
        into: The module that is overwritten.
        source: The module that is copied.

    Raises:
        ValueError: no such module.
    """
    for name in (into, source):
        if name not in algo.config.policies:
            raise ValueError(f"there is no module {name!r}; the modules are {', '.join(algo.config.policies)}")
    weights = algo.learner_group.get_weights([source])[source]
    # Setting the algorithm's state instead would reach the env runners one iteration late.
    algo.learner_group.foreach_learner(partial(_set_weights, into, weights))
    algo.env_runner_group.foreach_env_runner(partial(_set_weights, into, weights))


def load_module(checkpoint: str | Path, name: str = LEARNER) -> Any:
    """Load a module from a checkpoint.

    RLlib's checkpoints hold pickles, which can run any code: load only those from a source that you trust.

    Args:
        checkpoint: A folder: an algorithm's checkpoint, or the part of it that is a module.
        name: The module to take from an algorithm's checkpoint.

    Returns:
        The ``RLModule``.

    Raises:
        ValueError: there is no such module.
    """
    folder = Path(checkpoint).absolute()
    modules = folder / "learner_group" / "learner" / "rl_module"
    chosen = modules / name if modules.is_dir() else folder
    if not (chosen / RLModule.CLASS_AND_CTOR_ARGS_FILE_NAME).is_file():
        raise ValueError(f"there is no module in {str(chosen)!r}; give the folder of a checkpoint of RLlib")
    return RLModule.from_checkpoint(str(chosen))


def _unmasked(batch: dict[str, Any]) -> dict[str, Any]:
    """Return a batch whose observations are those that the networks take."""
    return {**batch, Columns.OBS: batch[Columns.OBS]["observation"].float()}


def _masked(outputs: dict[str, Any], batch: dict[str, Any]) -> dict[str, Any]:
    """Make illegal actions impossible."""
    illegal = batch[Columns.OBS]["action_mask"] == 0
    logits = outputs[Columns.ACTION_DIST_INPUTS].masked_fill(illegal, _IMPOSSIBLE)
    return {**outputs, Columns.ACTION_DIST_INPUTS: logits}


def _set_weights(name: str, weights: dict[str, Any], owner: Any) -> None:
    """Set the weights of a module of a learner or an env runner."""
    owner.module[name].set_state(weights)
